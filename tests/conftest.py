"""Shapes in annotations are checked by beartype while the tests run; Warp kernels are left as they are."""

import importlib
import os
import pkgutil
import sys
import warnings
from pathlib import Path

import jaxtyping

ROOT = Path(__file__).resolve().parent.parent
# The oracles of one test are at hand for the next.
sys.path.insert(0, str(ROOT / "tests"))
# So are the contact laws that an experiment compares.
sys.path.append(str(ROOT / "experiments"))
import annotations  # noqa: E402


def _annotated_modules() -> list[str]:
    names = [f"physvision.{module.name}" for module in pkgutil.iter_modules([str(ROOT / "physvision")])]
    packages = [name for name in names if (ROOT / name.replace(".", "/")).is_dir()]
    results = [name for name in names if name not in packages]
    while packages:
        package = packages.pop()
        for module in pkgutil.iter_modules([str(ROOT / package.replace(".", "/"))]):
            name = f"{package}.{module.name}"
            if module.name == "kernels":
                continue
            (packages if module.ispkg else results).append(name)
    return results


warnings.filterwarnings("ignore", message=".*CUDA driver.*")
jaxtyping.jaxtyped = annotations.jaxtyped
jaxtyping.install_import_hook(_annotated_modules(), "annotations.check")


def pytest_configure(config):
    """Import what takes long, except in a process that only hands tests out."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if config.getoption("numprocesses", None) and not is_worker:
        return
    import torch

    torch.manual_seed(0)
    # Processes of tests share the cores; threads beside them would wait for each other.
    if is_worker:
        torch.set_num_threads(1)
        # Here, since what a checked module is the first to import is compiled anew: the hook hides its bytecode.
        packages = "kornia lightning.pytorch matplotlib.pyplot scipy.optimize torch._dynamo torchvision warp"
        for package in packages.split():
            importlib.import_module(package)


def pytest_runtest_setup():
    """Each test checks the first calls of each function."""
    annotations.begin_test()
