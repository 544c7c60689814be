"""Speed and memory of the rigid-body world on the scenes of the published engine: one thread, float64.

    python benchmarks/rigid2d.py [--rounds 15]

Times are microseconds of one thread a world and step, medians over rounds; those of the published engine (lcp-physics,
measured on a machine of the same kind, with the same scenes) are printed beside them. The gradient is that of the mean
squared final position with respect to the masses. Memory is what autograd stores for the backward pass.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import rigid2d_scenes as scenes
import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.physics import rigid2d

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from claims import Claim, write_claims

STEPS = 100
PLACES, SPEEDS = [(100, 100), (250, 120), (200, 300)], [(150, 80), (-120, 100), (60, -170)]
MEMORY_BAR = 2000.0  # bytes a world and step


@dataclass(frozen=True)
class Case:
    """Scene, number of worlds, the published engine's times and the bars: forward, and with backward, in µs."""

    name: str
    batch: int
    build: Callable[[], rigid2d.World]
    published: tuple[float | None, float | None] = (None, None)
    bars: tuple[float | None, float | None] = (None, None)


def balls(count: int) -> Callable[[], rigid2d.World]:
    return lambda: scenes.billiard(PLACES[:count], SPEEDS[:count])


def chain(links: int) -> Callable[[], rigid2d.World]:
    return lambda: scenes.struck_chain(links)


CASES = (
    Case("chain5", 1, chain(5), (1600, 4600)),
    Case("chain10", 1, chain(10), (3000, 10200), (60, 180)),
    Case("chain20", 1, chain(20), (7300, 27000)),
    Case("ball1", 1, balls(1), (340, 520)),
    Case("ball3", 1, balls(3), (1100, 1500), (15, 30)),
    Case("ball3", 256, balls(3), (None, None), (5, None)),
)


def loss(world: rigid2d.World, batch: int, mass: Tensor) -> Tensor:
    controls = scenes.push(world, STEPS, batch) if world.model.joints else None
    trajectory = world.rollout(world.initial_state(batch, torch.float64), STEPS, controls, {"mass": mass})
    assert trajectory.status is not None
    assert bool(trajectory.status.converged.all())
    return trajectory.q[:, -1].square().mean()


def microseconds(work: Callable[[], object], rounds: int) -> float:
    work()
    times = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return median(times) * 1e6


def stored_bytes(world: rigid2d.World, batch: int) -> float:
    """Return the bytes that autograd stores for a rollout, each storage counted once, a world and step."""
    storages: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    mass = world.properties.mass.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss(world, batch, mass)
    return sum(storages.values()) / (batch * STEPS)


def main(rounds: int = 15) -> bool:
    """Measure time and memory of every scene.

    Args:
        rounds: Number of timings of each scene.

    Returns:
        True if every bar was met.
    """
    torch.set_num_threads(1)
    print(f"{'scene':<9}{'batch':>6}{'forward':>10}{'bar':>6}{'published':>11}", end="")
    print(f"{'+ backward':>13}{'bar':>6}{'published':>11}{'kept, bytes':>13}")
    met, claims = True, []
    for case in CASES:
        world = case.build()
        mass = world.properties.mass.clone().requires_grad_()
        work = case.batch * STEPS

        def forward_backward(world: rigid2d.World = world, batch: int = case.batch, mass: Tensor = mass) -> None:
            torch.autograd.grad(loss(world, batch, mass), mass)

        def forward(world: rigid2d.World = world, batch: int = case.batch, mass: Tensor = mass) -> None:
            loss(world, batch, mass.detach())

        times = [microseconds(forward, rounds) / work, microseconds(forward_backward, rounds) / work]
        stored = stored_bytes(world, case.batch)
        print(f"{case.name:<9}{case.batch:>6}", end="")
        for time_found, bar, peer, width in zip(times, case.bars, case.published, (10, 13), strict=True):
            print(f"{time_found:>{width}.1f}{bar or '':>6}{peer or '':>11}", end="")
            met &= bar is None or time_found <= bar
            name = f"{case.name}, batch {case.batch}, {'forward' if width == 10 else 'with backward'}"
            claims.append(Claim(name, time_found, "µs a world and step", reference=peer, source="lcp-physics"))
        print(f"{stored:>13.0f}")
        met &= stored < MEMORY_BAR
    print(write_claims(__file__, claims))
    print(f"all bars, and under {MEMORY_BAR:.0f} bytes kept a world and step: {'met' if met else 'MISSED'}")
    return met


if __name__ == "__main__":
    auto_cli(main)
