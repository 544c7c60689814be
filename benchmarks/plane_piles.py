"""Random piles of circles, boxes and polygons at 1/60 s, beside pymunk and Box2D: time, penetration, energy, rest.

    python benchmarks/plane_piles.py [--piles 200] [--seconds 10] [--record piles.csv]

Each pile of 10 to 40 bodies is simulated in one thread, step by step and at last in one go. Rows are added to the
record, and piles that are in it already are not simulated again. Peers get the same bodies and surfaces, ten
iterations a step and what else they do by default; `pip install physvision[peers]` brings them.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import rigid2d_scenes as scenes
import torch
from jsonargparse import auto_cli

from physvision.core import State
from physvision.physics import rigid2d
from physvision.physics.rigid2d.penetration import penetration
from physvision.physics.rigid2d.rollout import Rollout

DT = 1 / 60
# Steps that take more milliseconds are timed three times again, and the minimum counts.
SLOW_MS = 20.0
Pose = tuple[float, float, float]


@dataclass
class Run:
    """Measurements of a pile: milliseconds of each step, and of one in a rollout of all; and its end.

    `moving` holds the milliseconds of steps that change the state.
    """

    milliseconds: list[float] = field(default_factory=list)
    moving: list[float] = field(default_factory=list)
    whole: float = 0.0
    bad: bool = False
    fallback: int = 0
    gained: float = 0.0
    missed: float = 0.0
    rest: float = 0.0
    poses: list[Pose] = field(default_factory=list)
    drift: float = 0.0
    events: int = 0


def ours(world: rigid2d.World, steps: int) -> Run:
    """Time all steps one by one, all in one rollout, and ten seconds more at rest."""
    state, run = world.initial_state(1, torch.float64), Run()
    world.rollout(state, 1)
    began = time.process_time()
    world.rollout(state, steps)
    run.whole = 1e3 * (time.process_time() - began) / steps
    last = float(sum(world.energy(state)))
    scale, before, worst = abs(last), state, state
    for k in range(steps):
        start = state
        began = time.process_time()
        trajectory = world.rollout(state, 1)
        run.milliseconds.append(1e3 * (time.process_time() - began))
        if run.milliseconds[-1] > SLOW_MS:
            run.milliseconds[-1] = min(again(world, state) for _ in range(3))
        state, status = trajectory.final, trajectory.status
        if not torch.equal(state.q, start.q):
            run.moving.append(run.milliseconds[-1])
        if run.milliseconds[-1] == max(run.milliseconds):
            worst = start
        assert status is not None
        run.bad |= not bool(status.converged.all())
        run.fallback += int(status.fallback_steps[0])
        run.missed = max(run.missed, float(status.residual[0]))
        total = float(sum(world.energy(state)))
        run.gained += max(total - last, 0.0) / scale
        last = total
        if k == steps - 61:
            before = state
    run.drift = float((state.q - before.q).abs().max())
    began = time.process_time()
    world.rollout(state, 600)
    run.rest = 1e3 * (time.process_time() - began) / 600
    run.poses = [(x, y, angle) for x, y, angle in state.q.reshape(-1, 3).tolist()]
    run.events = events(world, worst)
    return run


def again(world: rigid2d.World, state: State) -> float:
    """Return the milliseconds of a repeated step: other work on the machine seldom delays it twice."""
    began = time.process_time()
    world.rollout(state, 1)
    return 1e3 * (time.process_time() - began)


def events(world: rigid2d.World, state: State) -> int:
    """Return the number of impacts, smooth steps and fallback steps in the step from a state."""
    numbers, controls = world._theta(None, state), state.q.new_zeros(1, 1, world.nu)
    return abs(int(Rollout(world._kernels_on(state.q.device), 1).forward(state.q, state.v, controls, numbers)[2]))


def with_pymunk(world: rigid2d.World, steps: int) -> Run:
    import pymunk

    space = pymunk.Space()
    space.gravity = (0, -9.81)
    # Its own is for pixels; this is that of Box2D.
    space.collision_slop = 0.005
    bodies = []
    for body in world.model.bodies:
        copy = pymunk.Body(body_type=pymunk.Body.STATIC) if body.static else pymunk.Body(body.mass, 1.0)
        copy.position, copy.angle = body.center, body.angle
        if isinstance(body, rigid2d.Circle):
            shape: pymunk.Shape = pymunk.Circle(copy, float(body.radius))
        else:
            assert isinstance(body, rigid2d.Polygon)
            shape = pymunk.Poly(copy, body.corners)
        if not body.static:
            copy.moment = body.mass * body.gyration**2
            bodies.append(copy)
        shape.friction, shape.elasticity = float(body.friction), float(body.restitution)
        space.add(copy, shape)
    return timed(lambda: space.step(DT), lambda: [(*body.position, body.angle) for body in bodies], steps)


def with_box2d(world: rigid2d.World, steps: int) -> Run:
    import Box2D

    space, bodies = Box2D.b2World(gravity=(0, -9.81)), []
    for body in world.model.bodies:
        make = space.CreateStaticBody if body.static else space.CreateDynamicBody
        copy = make(position=body.center, angle=body.angle)
        if isinstance(body, rigid2d.Circle):
            shape = Box2D.b2CircleShape(radius=float(body.radius))
        else:
            assert isinstance(body, rigid2d.Polygon)
            shape = Box2D.b2PolygonShape(vertices=list(body.corners))
        surface = {"friction": float(body.friction), "restitution": float(body.restitution)}
        copy.CreateFixture(shape=shape, density=1.0, **surface)
        if not body.static:
            copy.massData = Box2D.b2MassData(mass=body.mass, I=body.mass * body.gyration**2, center=(0, 0))
            bodies.append(copy)
    return timed(lambda: space.Step(DT, 8, 3), lambda: [(*body.position, body.angle) for body in bodies], steps)


def timed(step: Callable[[], object], poses: Callable[[], list[Pose]], steps: int) -> Run:
    run, before = Run(), poses()
    for k in range(steps):
        if k == steps - 60:
            before = poses()
        began = time.process_time()
        step()
        run.milliseconds.append(1e3 * (time.process_time() - began))
    run.poses = poses()
    run.drift = max(
        abs(a - b) for old, new in zip(before, run.poses, strict=True) for a, b in zip(old, new, strict=True)
    )
    run.rest, run.whole = median(run.milliseconds[-60:]), sum(run.milliseconds) / steps
    return run


def max_penetration(world: rigid2d.World, poses: list[Pose]) -> float:
    """Return the deepest penetration, as a fraction of the smallest body's radius."""
    bodies = world.model.bodies
    every = [world.model.pose(i) for i in range(len(bodies))]
    for number, pose in zip(world.model.moving, poses, strict=True):
        every[number] = pose
    depth = max(penetration(bodies[a], every[a], bodies[b], every[b])[0] for a, b in world.model.pairs)
    return max(depth, 0.0) / world.model.smallest


ENGINES = {"physvision": ours, "pymunk": with_pymunk, "box2d": with_box2d}
COLUMNS: tuple[str, ...] = (
    "engine",
    "bodies",
    "seed",
    "bad",
    "median",
    "moving",
    "whole",
    "p999",
    "worst",
    "rest",
    "fallback",
    "gained",
    "missed",
    "penetration",
    "drift",
    "events",
)


def row(engine: str, count: int, seed: int, steps: int) -> dict[str, object]:
    world = scenes.pile(count, seed)
    run = ENGINES[engine](world, steps)
    ordered = sorted(run.milliseconds)
    moving = median(run.moving or run.milliseconds)
    numbers = (median(ordered), moving, run.whole, ordered[int(0.999 * len(ordered))], ordered[-1], run.rest)
    ends = (run.fallback, run.gained, run.missed, max_penetration(world, run.poses), run.drift, run.events)
    return dict(zip(COLUMNS, (engine, count, seed, int(run.bad), *numbers, *ends), strict=True))


def main(piles: int = 200, seconds: float = 10.0, record: Path = Path("piles.csv")) -> None:
    """Simulate piles that are missing in the record, and print a summary of each engine.

    Args:
        piles: Number of piles.
        seconds: Simulated seconds of each pile.
        record: File to which rows are added.
    """
    torch.set_num_threads(1)
    known = list(csv.DictReader(record.open())) if record.exists() else []
    finished = {(entry["engine"], int(entry["seed"])) for entry in known}
    with record.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not known:
            writer.writeheader()
        for seed in range(piles):
            for engine in ENGINES:
                if (engine, seed) not in finished:
                    writer.writerow(row(engine, 10 + seed % 31, seed, round(seconds / DT)))
                    file.flush()
    rows = list(csv.DictReader(record.open()))
    print(
        f"{'engine':<12}{'piles':>6}{'bad':>5}{'median ms':>11}{'of 20':>7}{'moving':>8}{'in one go':>11}",
        end="",
    )
    print(f"{'99.9 %':>8}{'worst':>8}{'at rest':>9}{'gained':>9}{'missed':>9}{'depth':>9}{'drift':>9}")
    for engine in ENGINES:
        mine = [entry for entry in rows if entry["engine"] == engine]
        if mine:
            about_20 = [entry for entry in mine if 18 <= int(entry["bodies"]) <= 22]
            of_20, moving, whole = (
                [float(entry[name]) for entry in about_20] or [math.nan] for name in ("median", "moving", "whole")
            )
            print(f"{engine:<12}{len(mine):>6}{sum(int(entry['bad']) for entry in mine):>5}", end="")
            print(f"{median(float(entry['median']) for entry in mine):>11.3f}{median(of_20):>7.3f}", end="")
            print(f"{median(moving):>8.3f}{median(whole):>11.3f}", end="")
            print(f"{max(float(entry['p999']) for entry in mine):>8.1f}", end="")
            print(f"{max(float(entry['worst']) for entry in mine):>8.1f}", end="")
            print(f"{median(float(entry['rest']) for entry in mine):>9.4f}", end="")
            for name in ("gained", "missed", "penetration", "drift"):
                print(f"{max(float(entry[name]) for entry in mine):>9.1e}", end="")
            print()
            slow = max(mine, key=lambda entry: float(entry["worst"]))
            restless = [entry for entry in mine if float(entry["rest"]) > 0.1]
            moving = sum(float(entry["drift"]) > 1e-3 for entry in restless)
            if engine == "physvision":
                text = f"the worst step has {slow['events']} events (seed {slow['seed']}); {len(restless)} piles take"
                print(f"  {text} over 0.1 ms at rest, in {moving} something moves over a millimeter in a second")


if __name__ == "__main__":
    auto_cli(main)
