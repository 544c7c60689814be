"""Time to compile the kernels of articulated bodies with contact, cold, into a folder of their own.

    python benchmarks/compilation.py [--dtype float64]

Seconds of processor time and of the clock for a rollout, its gradient, and the list of what touches: as for models
without the general pair of convex shapes, and as for those with it.
"""

from __future__ import annotations

import tempfile
import time

import torch
import warp as wp
from jsonargparse import auto_cli

from physvision.kernels import precision

PACKAGE = "physvision.physics.articulated.kernels"
KERNELS = "contact_rollout", "contact_rollout_backward", "contact_list"
BAR = 60.0  # seconds of processor time, all together


def compiled(dtype: torch.dtype, *parts: str) -> float:
    """Compile the kernels with these parts, and print what each takes; the processor time of all."""
    package = precision.load(PACKAGE, dtype, *parts)
    total = 0.0
    for name in KERNELS:
        spent, clock = time.process_time(), time.perf_counter()
        getattr(package, name).module.load(wp.get_device("cpu"))
        spent, clock = time.process_time() - spent, time.perf_counter() - clock
        print(f"  {name:<26} {spent:5.1f} s of processor time, {clock:5.1f} s")
        total += spent
    return total


def main(dtype: str = "float64") -> None:
    """Print the table of compile times.

    Args:
        dtype: "float32" or "float64".
    """
    precision.start_warp()
    with tempfile.TemporaryDirectory() as folder:
        wp.config.kernel_cache_dir = folder
        for parts in ((), ("convex_pairs",)):
            print("with any convex shapes" if parts else "without the general pair")
            total = compiled(getattr(torch, dtype), *parts)
            print(f"  {'together':<26} {total:5.1f} s of processor time   bar {BAR:g}")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
