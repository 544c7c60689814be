"""Random scenes of free bodies whose mass is off their center and that spin fast: energy, failures and penetration.

    python benchmarks/contact_energy.py [--scenes 10000] [--first 0] [--record contact_energy.jsonl]

One to eight spheres, capsules and boxes fall on a ground, with friction and restitution from 0 to 1, steps of 2 to 10
ms and angular velocities of 10 rad/s. Nothing drives them, so that energy may only fall. A hundred steps of each scene
are simulated in float64. Lines are added to the record; scenes that are in it already are not simulated again.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from contact_random import shape, simulate
from jsonargparse import auto_cli

from physvision import State
from physvision.core import Placed, Plane
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where the cache is
from result_cache import cached_results

SPIN = 10.0  # rad/s
MAX_GAIN = 1e-3  # of the largest energy
MAX_PENETRATION = 1e-3  # m


def scene(seed: int) -> tuple[articulated.Articulation, State]:
    """The world of a seed, and the state that it starts from."""
    rng = np.random.default_rng(seed)
    bodies: list[Body] = []
    q: list[float] = []
    v: list[float] = []
    for slot in range(int(rng.integers(1, 9))):
        place = np.array([0.7 * (slot % 3), 0.7 * (slot // 3 % 2), 0.4 + 0.7 * (slot // 6)])
        place[:2] += rng.uniform(-0.04, 0.04, 2)
        turn, spin, mass = rng.normal(size=4), rng.normal(size=3), float(rng.uniform(0.3, 3.0))
        center = tuple(float(x) for x in rng.uniform(-0.03, 0.03, 3))
        moments = tuple(float(x) for x in mass * rng.uniform(0.004, 0.007, 3))
        bodies.append(Body(f"{slot}", None, [Joint("free")], mass, center, moments, shapes=[Placed(shape(rng))]))
        q += [*place.tolist(), *(turn / np.linalg.norm(turn)).tolist()]
        v += [*rng.normal(size=3), *(SPIN * spin / np.linalg.norm(spin))]
    engine = articulated.tree(
        bodies,
        dt=float(rng.uniform(2e-3, 1e-2)),
        gravity=(0, 0, -9.81),
        static_shapes=[Placed(Plane())],
        contact=articulated.ContactSettings(
            friction=float(rng.choice([0.0, rng.random()])), restitution=float(rng.choice([0.0, rng.random(), 1.0]))
        ),
    )
    return engine, State(torch.tensor([q]).double(), torch.tensor([v]).double())


def line(seed: int) -> dict[str, float | int]:
    """Result of one scene, a line of the record."""
    engine, start = scene(seed)
    path, failed, elapsed, total = simulate(engine, start)
    assert path.status is not None
    gain = (total - total.cummin(0).values).max() / total.abs().max()
    return {
        "scene": seed,
        "bodies": len(engine.body_names),
        "dt": engine.dt,
        "milliseconds": elapsed,
        "failed": failed,
        "unnamed": int(not bool(torch.isfinite(path.q[0, : len(total)]).all())),
        "gain": float(gain),
        "named": int(path.status.first_underresolved_step[0] >= 0),
        "penetration": float(path.status.penetration[0]),
    }


def summary(lines: list[dict[str, float]]) -> str:
    """Summary of the record."""

    def column(name: str) -> np.ndarray:
        return np.array([entry[name] for entry in lines])

    gain, penetration, times = column("gain"), column("penetration"), column("milliseconds")
    unnamed = (gain > MAX_GAIN) & (column("named") == 0)
    failures = int((column("failed") >= 0).sum())
    return "\n".join(
        [
            f"{len(lines)} scenes: {failures} failed, {int(column('unnamed').sum())} of them not named",
            f"energy gained by more than {MAX_GAIN:g} of the largest: {int((gain > MAX_GAIN).sum())} scenes "
            f"({np.mean(gain > MAX_GAIN):.2%}), {int(unnamed.sum())} of them not named in the status; "
            f"99 % {np.quantile(gain, 0.99):.1e}, worst {gain.max():.1e}",
            f"penetration beyond 1 mm, named in the status: {np.mean(penetration > MAX_PENETRATION):.2%}; "
            f"worst {1e3 * penetration.max():.2f} mm",
            f"milliseconds a step: median {np.median(times):.3f}, worst {times.max():.2f}",
        ]
    )


def main(scenes: int = 1000, first: int = 0, record: Path = Path("contact_energy.jsonl")) -> None:
    """Simulate scenes that the record does not have yet, and print the summary.

    Args:
        scenes: Number of random scenes.
        first: Number of the first scene.
        record: Path of the file to which lines are added.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RuntimeWarning)
    lines = cached_results(record, range(first, first + scenes), line, lambda entry: entry["scene"])
    print(summary(list(lines.values())))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
