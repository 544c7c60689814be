"""Random scenes of three to twelve bodies: nothing that is not a number, no hang, no overlap that nothing names.

    python benchmarks/plane_random.py [--scenes 1000] [--record random.csv]

Circles, boxes and polygons, with joints and springs, friction and restitution from 0 to 1, steps from 1e-3 to 1/30 s. A
Circles, boxes and polygons, with joints and springs, friction and restitution from 0 to 1, steps of 1e-3 to 1/30 s. A
each reaches, one step is compared with that of the mirrored scene, of the bodies in another order, and in the batch.
Rows are added to the record; scenes that are in it already are not simulated again.
"""

from __future__ import annotations

import csv
import math
import time
import warnings
from dataclasses import replace
from pathlib import Path
from random import Random

import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import State
from physvision.physics import rigid2d
from physvision.physics.rigid2d.overlap import depth

COLUMNS = ("scene", "bodies", "milliseconds", "bad", "crowded", "overlap", "named", "mirror", "order", "batch")


def scene(seed: int, flip: float = 1.0, shuffle: bool = False) -> tuple[rigid2d.World, list[int]]:
    """A scene, mirrored if `flip` is −1, its bodies in another order if wanted; and the order of its moving bodies."""
    generator = Random(seed)
    count, dt = generator.randint(3, 12), 10 ** generator.uniform(-3, math.log10(1 / 30))
    surface = {"friction": generator.random(), "restitution": generator.random(), "static": True}
    walls = [
        rigid2d.Rectangle((20, 1), (0, -0.5), name="floor", **surface),
        *(rigid2d.Rectangle((1, 20), (side * 3.5, 9.5), name=f"wall {side}", **surface) for side in (-1, 1)),
    ]
    bodies = []
    for i in range(count):
        place = (flip * ((i % 4 - 1.5) * 1.4 + generator.uniform(-0.1, 0.1)), 0.8 + 1.4 * (i // 4))
        loose = {
            "velocity": (flip * generator.uniform(-3, 3), generator.uniform(-3, 1)),
            "spin": flip * generator.uniform(-3, 3),
            "mass": generator.uniform(0.3, 3),
            "friction": generator.random(),
            "restitution": generator.random(),
            "name": f"{i}",
        }
        size, angle, kind = generator.uniform(0.2, 0.5), generator.uniform(0, 6), generator.randrange(3)
        around = [2 * math.pi * (k + generator.uniform(0.0, 0.6)) / 5 for k in range(5)]
        if kind == 0:
            bodies.append(rigid2d.Circle(size, place, **loose))
        elif kind == 1:
            bodies.append(rigid2d.Rectangle((1.6 * size, size), place, angle=flip * angle, **loose))
        else:
            corners = [(flip * size * math.cos(turn), size * math.sin(turn)) for turn in around]
            bodies.append(rigid2d.Polygon(corners[:: int(flip)], place, **loose))
    joints: list[rigid2d.Joint] = []
    for i in range(count - 1):
        chance = generator.random()
        if chance < 0.15 and i % 4 != 3:
            middle = [(a + b) / 2 for a, b in zip(bodies[i].center, bodies[i + 1].center, strict=True)]
            joints.append(rigid2d.Revolute(f"{i}", f"{i + 1}", middle))
        elif chance < 0.25:
            joints.append(rigid2d.Spring(f"{i}", f"{i + 1}", stiffness=generator.uniform(1, 50), damping=0.1))
    order = list(range(count))
    if shuffle:
        generator.shuffle(order)
    return rigid2d.World([*walls, *(bodies[i] for i in order)], joints, gravity=(0, -9.81), dt=dt), order


def difference(found: State, wanted: State) -> float:
    """How far states are apart, as a share of the larger numbers."""
    return max(
        float((a - b).abs().max() / b.abs().max().clamp(min=1.0)) for a, b in ((found.q, wanted.q), (found.v, wanted.v))
    )


def moved(state: State, order: list[int], flip: float) -> State:
    signs = torch.tensor([flip, 1.0, flip], dtype=state.q.dtype)

    def change(values: Tensor) -> Tensor:
        return (values.reshape(state.batch, -1, 3)[:, order] * signs).flatten(1)

    return State(change(state.q), change(state.v))


def overlap(world: rigid2d.World, state: State) -> float:
    """The deepest overlap of a state, as a share of the smaller body's reach."""
    assembly = world.assembly
    poses = [assembly.pose(i) for i in range(len(assembly.bodies))]
    for slot, number in enumerate(assembly.moving):
        x, y, angle = state.q[0, 3 * slot : 3 * slot + 3].tolist()
        poses[number] = (x, y, angle)
    bodies = assembly.bodies
    return max(depth(bodies[a], poses[a], bodies[b], poses[b])[0] for a, b in assembly.pairs) / assembly.smallest


def row(seed: int) -> dict[str, object]:
    world, same = scene(seed)
    began = time.process_time()
    trajectory = world.rollout(world.initial_state(1, torch.float64), 100)
    took = 10 * (time.process_time() - began)
    status = trajectory.status
    assert status is not None
    bad = not bool(status.converged[0]) or not bool(torch.isfinite(trajectory.q).all())
    # The first step after which something overlaps by more than what was there; a crowded step before it names it.
    deepest, named = 0.0, 1
    for k in range(10, 101, 10):
        found = overlap(world, trajectory.state(k))
        if found > max(deepest, 1e-6):
            deepest = found
            named = int(bool(world.rollout(trajectory.state(0), k).status.crowded[0] > 0))  # pyright: ignore
    start = trajectory.state(Random(seed).randrange(20, 100))
    ahead = world.rollout(start, 1).final
    mirror, _ = scene(seed, -1.0)
    mirrored = mirror.rollout(moved(start, same, -1.0), 1).final
    other, order = scene(seed, shuffle=True)
    ordered = other.rollout(moved(start, order, 1.0), 1).final
    batch = 0.0
    if seed % 16 == 0:
        many = replace(start, q=start.q.repeat(64, 1), v=start.v.repeat(64, 1))
        many.v[17, 0] = math.nan
        together = world.rollout(many, 1).final
        kept = [i for i in range(64) if i != 17]
        batch = float((together.q[kept] != ahead.q).any() or (together.v[kept] != ahead.v).any())
    values = (seed, len(same), took, int(bad), int(status.crowded[0]), deepest, named)
    ends = (difference(mirrored, moved(ahead, same, -1.0)), difference(ordered, moved(ahead, order, 1.0)), batch)
    return dict(zip(COLUMNS, (*values, *ends), strict=True))


def main(scenes: int = 1000, first: int = 0, record: Path = Path("random.csv")) -> None:
    """Simulate scenes that the record does not have yet, and print what it says.

    Args:
        scenes: how many.
        first: the number of the first.
        record: a file that rows are added to.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RuntimeWarning)
    known = list(csv.DictReader(record.open())) if record.exists() else []
    done = {int(entry["scene"]) for entry in known}
    with record.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not known:
            writer.writeheader()
        for seed in range(first, first + scenes):
            if seed not in done:
                writer.writerow(row(seed))
                file.flush()
    rows = list(csv.DictReader(record.open()))
    crowded = sum(int(entry["crowded"]) for entry in rows) / 100 / len(rows)
    print(f"{len(rows)} scenes: {sum(int(entry['bad']) for entry in rows)} bad, {crowded:.1%} of the steps crowded")
    unnamed = [entry for entry in rows if float(entry["overlap"]) > 1e-6 and entry["named"] == "0"]
    print(f"overlaps over 1e-6 that no status names: {len(unnamed)}; batches that differ: ", end="")
    print(sum(float(entry["batch"]) > 0 for entry in rows))
    for name in ("mirror", "order"):
        off = [entry["scene"] for entry in rows if float(entry[name]) > 1e-9]
        print(f"{name}: {len(off)} steps differ by over 1e-9 {off[:10]}")
    times = sorted(float(entry["milliseconds"]) for entry in rows)
    print(f"milliseconds a step: median {times[len(times) // 2]:.3f}, worst scene {times[-1]:.1f}")


if __name__ == "__main__":
    auto_cli(main)
