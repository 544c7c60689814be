"""Compile the kernels once, on all cores, before several processes of tests would each compile the same.

python tests/compile_kernels.py [--on-demand]
"""

# pyright: reportInvalidTypeForm=false

import importlib
import multiprocessing
import os
import pkgutil
import sys
from pathlib import Path

import torch
import warp as wp

import physvision
from physvision.kernels import precision

# Packages that are only loaded in float32.
ONLY_FLOAT32 = {"physvision.rendering.kernels"}
# Options that a package of kernels is compiled with on demand; they are tested in float64 alone.
PARTS = {"physvision.physics.soft.kernels": ["solid", "cloth"]}
# Those of the tests marked `extended`; and kernels that only they need in float32.
MORE_PARTS = {"physvision.physics.articulated.kernels": ["convex_pairs"]}
MORE_FLOAT32 = {"contact_list", "contact_rollout", "contact_rollout_backward"}
# A module whose kernels have an option to themselves: nothing else is compiled with that option, nor it without.
ALONE = {"rollouts.convex_contact": "midway"}
# No test runs these in float32: that they compile shows in a sixth of the time without optimization.
ONLY_COMPILED = {"contact_rollout_backward"}


def main(on_demand: bool) -> None:
    """Compile the kernels of all packages; what the cache holds is not compiled again."""
    modules = _modules(on_demand)
    wp.force_load("cpu", modules[-1:])  # the header that all share is compiled now, by one process
    # Processes, since threads would wait for one another: Warp writes its code under one lock.
    context = multiprocessing.get_context("fork")
    elapsed = context.Value("i", 0)
    workers = [context.Process(target=_compile, args=(modules, elapsed)) for _ in range(os.cpu_count() or 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        sys.exit("Kernels do not compile.")


def _modules(on_demand: bool) -> list[wp.Module]:
    """All that Warp compiles, the longest first, so that no core waits for another at the end."""
    precision.start_warp()
    root = Path(physvision.__path__[0])
    for place in sorted(root.glob("*/**/kernels/__init__.py")):
        _load(place, on_demand)
    places = [(name, vars(module)) for name, module in list(sys.modules.items()) if name.startswith("physvision.")]
    kernels = {
        value: f"{name}.{key}" for name, place in places for key, value in place.items() if isinstance(value, wp.Kernel)
    }
    parts = {f"_{part}.": f".{module}." for module, part in ALONE.items()}
    kernels = {
        entry: name
        for entry, name in kernels.items()
        if all(module in name for part, module in parts.items() if part in name)
    }
    if not on_demand:
        kernels = {
            entry: name for entry, name in kernels.items() if not ("float32" in name and _key(name) in MORE_FLOAT32)
        }
    for kernel, name in kernels.items():
        if "float32" in name and _key(name) in ONLY_COMPILED:
            kernel.module.options["optimization_level"] = 0
            kernel.module.mark_modified()
    # Modules of functions alone are not among them; Warp would compile them to nothing.
    return sorted({kernel.module for kernel in kernels}, key=_length, reverse=True)


def _key(name: str) -> str:
    """The last part of a dotted name."""
    return name.rpartition(".")[2]


def _load(source: Path, on_demand: bool) -> None:
    """Import a package of kernels in all the forms that the tests need."""
    package = ".".join(source.parent.relative_to(Path(physvision.__path__[0]).parent).parts)
    name = package
    if package in ONLY_FLOAT32:
        precision.load(package, torch.float32)
        return
    leaf = source.parent / "precision.py"
    in_both = leaf.exists() and 'get("scalar"' in leaf.read_text()
    parts = PARTS.get(package, []) + (MORE_PARTS.get(package, []) if on_demand else [])
    for dtype in precision.SCALARS if in_both else ():
        precision.load(package, dtype)
    if in_both or parts:
        name = precision.load(package, torch.float64).__name__
    for module in pkgutil.walk_packages([str(source.parent)], f"{name}."):
        last = module.name.removeprefix(f"{name}.")
        if last in ALONE:
            if on_demand:
                precision.load_module(f"{package}.{last}", torch.float64, ALONE[last])
        else:
            importlib.import_module(module.name)
    for part in parts:
        precision.load(package, torch.float64, part)


def _length(module: wp.Module) -> int:
    """How many functions a module has, which is about proportional to how long it takes."""
    if not module.hashers:
        module.get_module_hash(1)
    return len(next(iter(module.hashers.values())).function_hashes)


def _compile(modules: list[wp.Module], elapsed: multiprocessing.Value) -> None:
    """Compile one module after another that no other process has begun."""
    while True:
        with elapsed.get_lock():
            number, elapsed.value = elapsed.value, elapsed.value + 1
        if number >= len(modules):
            return
        modules[number].load(wp.get_device("cpu"), block_dim=1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(on_demand="--on-demand" in sys.argv)
