"""One source of Warp kernels, compiled for float32 and for float64.

A package of kernels is written against one name, `scalar`. `load` runs it once for each precision under a name of
its own, so that its modules, functions and structs exist twice without a word written twice.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import ModuleType

import torch
import warp as wp

from physvision.core.errors import DtypeError
from physvision.kernels.loops import KernelFinder


@cache
def start_warp() -> None:
    """Start Warp without its banner, and without its warning where there is no CUDA."""
    # Loops here are short, and a kernel's are many: unrolled they take longer to compile and to run.
    wp.config.cpu_compiler_flags = f"{wp.config.cpu_compiler_flags or '-march=native'} -mllvm=-unroll-runtime=false"
    wp.config.log_level = wp.LOG_ERROR
    with nullcontext() if torch.cuda.is_available() else _mute():
        wp.init()
    wp.config.log_level = wp.LOG_WARNING


@contextmanager
def _mute() -> Iterator[None]:
    """Drop what compiled code writes to the error stream: Warp's library warns past Python and its log level."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


SCALARS = {torch.float32: wp.float32, torch.float64: wp.float64}


@cache
def load(package: str, dtype: torch.dtype, *parts: str) -> ModuleType:
    """The package of kernels called `package`, in the precision of `dtype`, with parts that it has on demand.

    The package finds a part's name among its globals, true.
    """
    if dtype not in SCALARS:
        raise DtypeError(f"kernels exist for float32 and float64, got {dtype}")
    start_warp()
    specification = importlib.util.find_spec(package)
    assert specification is not None
    assert specification.origin is not None
    name = "_".join([package, SCALARS[dtype].__name__, *parts])
    alias = importlib.util.spec_from_file_location(
        name, specification.origin, submodule_search_locations=[str(Path(specification.origin).parent)]
    )
    assert alias is not None
    assert alias.loader is not None
    module = importlib.util.module_from_spec(alias)
    KernelFinder.packages.add(name)
    if KernelFinder not in sys.meta_path:
        sys.meta_path.insert(0, KernelFinder)
    module.__dict__.update(dict.fromkeys(parts, True), scalar=SCALARS[dtype])
    sys.modules[name] = module
    alias.loader.exec_module(module)
    return module
