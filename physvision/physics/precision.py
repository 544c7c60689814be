"""One source of Warp kernels, compiled for float32 and for float64.

A package of kernels is written against one name, `scalar`. `load` runs it once for each precision under a name of
its own, so that its modules, functions and structs exist twice without a word written twice.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import torch
import warp as wp

from physvision.core.errors import DtypeError


@cache
def _start_warp() -> None:
    """Start Warp without its banner, and without its warning where there is no CUDA."""
    wp.config.log_level = wp.LOG_ERROR
    wp.init()
    wp.config.log_level = wp.LOG_WARNING


SCALARS = {torch.float32: wp.float32, torch.float64: wp.float64}


@cache
def load(package: str, dtype: torch.dtype) -> ModuleType:
    """The package of kernels called `package`, in the precision of `dtype`."""
    if dtype not in SCALARS:
        raise DtypeError(f"kernels exist for float32 and float64, got {dtype}")
    _start_warp()
    specification = importlib.util.find_spec(package)
    assert specification is not None
    assert specification.origin is not None
    name = f"{package}_{SCALARS[dtype].__name__}"
    alias = importlib.util.spec_from_file_location(
        name, specification.origin, submodule_search_locations=[str(Path(specification.origin).parent)]
    )
    assert alias is not None
    assert alias.loader is not None
    module = importlib.util.module_from_spec(alias)
    module.__dict__["scalar"] = SCALARS[dtype]
    sys.modules[name] = module
    alias.loader.exec_module(module)
    return module
