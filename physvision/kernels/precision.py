"""One source of Warp kernels, compiled for float32 and for float64.

A package of kernels has a leaf module `precision` with the real type, `scalar`, and compile-time options. `load` runs
the package once for each precision under a name of its own, so that its modules, functions and structs exist twice
without being written twice.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import torch
import warp as wp

from physvision.core.errors import DtypeError
from physvision.kernels.loops import KernelFinder, KernelLoader


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
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)


SCALARS = {torch.float32: wp.float32, torch.float64: wp.float64}


@cache
def load(package: str, dtype: torch.dtype, *options: str) -> ModuleType:
    """Load a package of kernels in one precision, under a name of its own.

    Its leaf `precision` runs first and finds `scalar` among its globals, and the name of each option, true. Absolute
    imports of the package itself, and of packages that were loaded with the same precision and options, lead there.

    Args:
        package: Dotted name of the package.
        dtype: Precision of its real numbers, float32 or float64.
        *options: Compile-time options that are switched on.
    """
    if dtype not in SCALARS:
        raise DtypeError(f"kernels exist for float32 and float64, got {dtype}")
    start_warp()
    suffix = "".join(f"_{word}" for word in (SCALARS[dtype].__name__, *options))
    name = f"{package}{suffix}"
    KernelFinder.packages[name] = package, suffix
    if KernelFinder not in sys.meta_path:
        sys.meta_path.insert(0, KernelFinder)
    original = importlib.util.find_spec(package)
    assert original is not None
    assert original.origin is not None
    loader = KernelLoader(name, original.origin)
    spec = importlib.util.spec_from_loader(name, loader, origin=original.origin, is_package=True)
    assert spec is not None
    spec.submodule_search_locations = [str(Path(original.origin).parent)]
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    leaf = importlib.util.find_spec(f"{name}.precision")
    if leaf is not None:
        assert leaf.loader is not None
        precision = sys.modules[leaf.name] = importlib.util.module_from_spec(leaf)
        vars(precision).update(dict.fromkeys(options, True), scalar=SCALARS[dtype])
        leaf.loader.exec_module(precision)
        vars(module)["precision"] = precision
    loader.exec_module(module)
    return module


def load_module(name: str, dtype: torch.dtype, *options: str) -> ModuleType:
    """Load one module of a package called `kernels` as `load` does, for what the package does not import itself."""
    folder, _, module = name.partition(".kernels.")
    return import_module(f"{load(f'{folder}.kernels', dtype, *options).__name__}.{module}")
