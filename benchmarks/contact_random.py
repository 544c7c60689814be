"""Random worlds of one to twelve bodies: nothing that is not a number, no hang, no overlap and no energy unnamed.

    python benchmarks/contact_random.py [--scenes 1000] [--record contact_random.jsonl]

Spheres, capsules and boxes, some of them joined, on a ground and among things that stand still; friction and
restitution from 0 to 1, steps of 1 to 10 ms, with weight and without. A hundred steps of each are simulated in float64.
Lines are added to the record; scenes that are in it already are not simulated again.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from jsonargparse import auto_cli

from physvision import State, Trajectory
from physvision.core import Box, Capsule, Placed, Plane, Shape, Sphere
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where the cache is
from result_cache import cached_results

STEPS = 100
Random = np.random.Generator


def shape(rng: Random) -> Shape:
    """A sphere, capsule or box that fits into a ball of radius 0.3 m."""
    a, b, c = (float(x) for x in rng.uniform(0.08, 0.16, 3))
    return [Sphere(a), Capsule(a / 2, 2 * b), Box((2 * a, 2 * b, 2 * c))][rng.integers(3)]


def at(place: np.ndarray) -> tuple:
    """The pose of a shape that is shifted and not turned."""
    rows = ((*(float(k == j) for k in range(3)), float(place[j])) for j in range(3))
    return (*rows, (0.0, 0.0, 0.0, 1.0))


def scene(seed: int) -> tuple[articulated.Articulation, State, float]:
    """The world of a seed, where it starts, and the size of its smallest shape."""
    rng = np.random.default_rng(seed)
    bodies: list[Body] = []
    q: list[float] = []
    v: list[float] = []
    count = int(rng.integers(1, 13))
    while len(bodies) < count:
        slot = len(bodies)
        place = np.array([0.7 * (slot % 3), 0.7 * (slot // 3 % 2), 0.4 + 0.7 * (slot // 6)])
        place[:2] += rng.uniform(-0.04, 0.04, 2)
        turn, mass = rng.normal(size=4), float(rng.uniform(0.3, 3.0))
        moments = tuple(float(x) for x in mass * rng.uniform(0.008, 0.012, 3))
        bodies.append(Body(f"{slot}", None, [Joint("free")], mass, (0, 0, 0), moments, shapes=[Placed(shape(rng))]))
        q += [*place.tolist(), *(turn / np.linalg.norm(turn)).tolist()]
        v += [*rng.normal(size=3), *(3 * rng.normal(size=3))]
        if len(bodies) < count and rng.random() < 0.2:
            # A second body in the place of its own above, on a hinge with stops.
            hinge = Joint("revolute", tuple(rng.normal(size=3)), limits=(-0.5, 0.5), damping=float(rng.uniform(0, 0.1)))
            arm = Placed(Sphere(0.05), pose=at(np.array([0.0, 0.0, 0.28])))
            bodies.append(Body(f"{slot}, arm", f"{slot}", [hinge], 0.3, (0, 0, 0.2), (0.002,) * 3, shapes=[arm]))
            q.append(0.0)
            v.append(float(rng.normal()))
    scenery = [Placed(Plane())]
    if rng.random() < 0.5:
        still = [Sphere(0.1), Capsule(0.05, 0.2), Box((0.2, 0.2, 0.2))][rng.integers(3)]
        scenery.append(Placed(still, pose=at(np.array([0.35, 0.35, 0.1]))))
    engine = articulated.tree(
        bodies,
        dt=float(10 ** rng.uniform(-3, -2)),
        gravity=(0, 0, -9.81 * float(rng.random() < 0.8)),
        static_shapes=scenery,
        contact=articulated.ContactSettings(
            friction=float(rng.choice([0.0, rng.random()])), restitution=float(rng.choice([0.0, rng.random(), 1.0]))
        ),
    )
    sizes = [
        min(size for size in placed.shape.sizes if size > 0) for placed in engine.geometry if placed.body is not None
    ]
    return engine, State(torch.tensor([q]).double(), torch.tensor([v]).double()), min(sizes)


def pushing(engine: articulated.Articulation, path: Trajectory, steps: int) -> torch.Tensor:
    """In which of the first steps something pushes: in the others nobody but the integrator can add energy."""
    if not steps:
        return torch.zeros(0, dtype=torch.bool)
    listed = engine.contacts(State(path.q[0, :steps], path.v[0, :steps]))
    return (listed.impulse != 0).any(-1).any(-1)


def simulate(engine: articulated.Articulation, start: State) -> tuple[Trajectory, int, float, torch.Tensor]:
    """A hundred steps of a scene: the motion, its first failed step or -1, milliseconds a step, energy up to there."""
    listed = engine.contacts(start, max_separation=0.0)
    if listed.separation.numel():
        start = engine.resolve_penetration(start)
    began = time.process_time()
    path = engine.rollout(start, STEPS)
    took = 1e3 * (time.process_time() - began) / STEPS
    assert path.status is not None
    failed = int(path.status.first_failed_step[0])
    last = STEPS if failed < 0 else failed - 1
    kinetic, potential = engine.energy(State(path.q[0, : last + 1], path.v[0, : last + 1]))
    return path, failed, took, kinetic + potential


def line(seed: int) -> dict[str, float | int | str]:
    """Result of one scene, a line of the record."""
    engine, start, smallest = scene(seed)
    path, bad, took, total = simulate(engine, start)
    last = len(total) - 1
    status = path.status
    assert status is not None
    finite = bool(torch.isfinite(path.q[0, : last + 1]).all())
    change, pushed = total.diff() / total[0].abs(), pushing(engine, path, last)
    return {
        "scene": seed,
        "bodies": len(engine.body_names),
        "dt": engine.dt,
        "milliseconds": took,
        "bad": bad,
        "unnamed": int(not finite),
        "residual": float(status.residual[0]) if bad < 0 else -1.0,
        "crowded": int(status.fallback_steps[0]),
        "softened": int(status.regularized_impacts[0]),
        "grazing": int(status.first_grazing_step[0]),
        "overlap": float(status.penetration[0]) / smallest,
        "gained": float((total - total[0]).max() / total[0].abs()),
        "flown": float(change.where(~pushed, 0.0).cumsum(0).amax().clamp(min=0)) if last else 0.0,
        "pushed": float(change.where(pushed, 0.0).clamp(min=0).sum()),
    }


def summary(lines: list[dict[str, float]]) -> str:
    """Summary of the record."""

    def column(name: str) -> np.ndarray:
        return np.array([line[name] for line in lines])

    good = column("bad") < 0
    times = column("milliseconds")
    results = [
        f"{len(lines)} scenes: {int((~good).sum())} failed and are named, {int(column('unnamed').sum())} are not",
        f"worst residual of the others {column('residual')[good].max():.1e}",
        *(f"{name} in {np.mean(column(name) > 0):.2%}" for name in ("crowded", "softened", "grazing")),
    ]
    names = {
        "overlap": "the smallest size, as the status tells",
        "gained": "the start's energy",
        "flown": "it, in steps in which nothing pushes",
        "pushed": "it, the sum over the other steps that gain",
    }
    for name, what in names.items():
        values = column(name)[good]
        spread = f"median {np.median(values):.1e}, 99 % {np.quantile(values, 0.99):.1e}, worst {values.max():.1e}"
        results.append(f"{name}, as a share of {what}: {spread}, beyond 1e-3 in {int((values > 1e-3).sum())}")
    results.append(f"milliseconds a step: median {np.median(times):.3f}, worst {times.max():.2f}")
    results.append(f"all {STEPS * times.sum() / 3.6e6:.2f} h")
    return "\n".join(results)


def main(scenes: int = 1000, first: int = 0, record: Path = Path("contact_random.jsonl")) -> None:
    """Simulate scenes that the record does not have yet, and print what it says.

    Args:
        scenes: Number of random scenes.
        first: the number of the first.
        record: a file that lines are added to.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RuntimeWarning)
    print(
        summary(list(cached_results(record, range(first, first + scenes), line, lambda entry: entry["scene"]).values()))
    )


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
