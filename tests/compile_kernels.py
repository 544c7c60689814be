"""Compile every kernel once, on all cores, before several processes of tests would each compile the same."""

import importlib.util
import os
import pkgutil
import sys
from pathlib import Path

import torch
import warp as wp

import physvision
from physvision.kernels import precision


def main() -> None:
    """Load all kernels of all packages; what the cache holds is not compiled again."""
    precision.start_warp()
    for module in pkgutil.walk_packages(physvision.__path__, "physvision."):
        if not module.ispkg or not module.name.endswith(".kernels"):
            continue
        source = importlib.util.find_spec(module.name).origin
        if "scalar" in Path(source).read_text():
            for dtype in precision.SCALARS:
                precision.load(module.name, dtype)
            # What is loaded on demand is tested in one precision.
            name = precision.load(module.name, torch.float64).__name__
        else:
            name = module.name
        for part in pkgutil.iter_modules([str(Path(source).parent)], f"{name}."):
            importlib.import_module(part.name)
    # Not the modules of functions alone, which Warp would compile to nothing.
    places = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("physvision.")]
    found = {value.module for names in places for value in names.values() if isinstance(value, wp.Kernel)}
    # Those that take longest come first, so that no core is left waiting for the other at the end.
    ordered = sorted(found, key=lambda module: "rollout" not in module.name and "ward" not in module.name)
    wp.force_load("cpu", ordered, max_workers=os.cpu_count() or 1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
