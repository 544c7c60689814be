"""Ropes, loops, dominoes, card houses, cradles and boxes of balls at 1/60 s: accuracy and speed.

    python benchmarks/plane_scenes.py [--only rope] [--films films]

Each scene is simulated for its seconds in one thread. Printed are seconds of processor time a simulated second, the
fraction of fallback steps, the largest joint error at the end of any step, the deepest penetration at the end, the
largest gain of energy in a step, as a fraction of the largest kinetic energy or fall, and results in closed form.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import Trajectory
from physvision.physics import rigid2d
from physvision.physics.rigid2d.penetration import penetration
from physvision.report import render_video

DT = 1 / 60
GRAVITY = (0.0, -9.81)


@dataclass(frozen=True)
class Case:
    """Scene, its duration in seconds, and a check of its end: a text of the result and the right one."""

    name: str
    build: Callable[[], rigid2d.World]
    seconds: float
    known: Callable[[rigid2d.World, Trajectory], str] = lambda world, trajectory: ""


def ground(**surface: float) -> rigid2d.Rectangle:
    return rigid2d.Rectangle((200, 1), (0, -0.5), static=True, name="ground", **surface)


def rope(links: int) -> rigid2d.World:
    """A rope of one meter, held at one end, that falls from the horizontal."""
    length = 1 / links
    rods = [
        rigid2d.Rectangle((length, 0.02), ((i + 0.5) * length, 0), mass=1 / links, name=f"{i}") for i in range(links)
    ]
    pins = [rigid2d.Revolute("0", None, (0, 0))]
    pins += [rigid2d.Revolute(f"{i}", f"{i - 1}", (i * length, 0)) for i in range(1, links)]
    exempt = [(f"{i}", f"{j}") for i in range(links) for j in range(i)]
    return rigid2d.World(rods, pins, gravity=GRAVITY, dt=DT, exempt=exempt)


def bridge(planks: int = 12) -> rigid2d.World:
    """Planks between two pillars, and a box dropped on them."""
    width, slope = 0.5, math.radians(15)
    half = planks // 2
    points = [(i * width * math.cos(slope), -min(i, planks - i) * width * math.sin(slope)) for i in range(planks + 1)]
    parts = [
        rigid2d.Rectangle(
            (width, 0.1),
            ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2),
            angle=-slope if i < half else slope,
            mass=1.0,
            name=f"{i}",
            restitution=0,
        )
        for i, (a, b) in enumerate(pairwise(points))
    ]
    pins = [rigid2d.Revolute("0", None, points[0]), rigid2d.Revolute(f"{planks - 1}", None, points[-1])]
    pins += [rigid2d.Revolute(f"{i}", f"{i - 1}", points[i], damping=0.05) for i in range(1, planks)]
    box = rigid2d.Rectangle((0.8, 0.8), (3.0, 1.5), mass=2.0, name="box", restitution=0)
    return rigid2d.World([*parts, box], pins, gravity=GRAVITY, dt=DT)


def slider_crank() -> rigid2d.World:
    """A crank that turns, a rod, and a piston on a rail."""
    crank = rigid2d.Rectangle((1, 0.1), (0.5, 0), name="crank", spin=6.0, velocity=(0, 3.0))
    rod = rigid2d.Rectangle((3, 0.1), (2.5, 0), name="rod", velocity=(0, 3.0), spin=-2.0)
    piston = rigid2d.Rectangle((0.5, 0.4), (4, 0), name="piston")
    pins = [
        rigid2d.Revolute("crank", None, (0, 0)),
        rigid2d.Revolute("rod", "crank", (1, 0)),
        rigid2d.Revolute("piston", "rod", (4, 0)),
        rigid2d.HoldY("piston"),
        rigid2d.HoldAngle("piston"),
    ]
    exempt = [("crank", "piston")]
    return rigid2d.World([crank, rod, piston], pins, gravity=(0, 0), dt=DT, exempt=exempt)


def four_bar() -> rigid2d.World:
    """A crank, a coupler and a rocker between two fixed pivots."""
    points = [(0, 0), (0, 1), (2.5, 2), (3, 0)]
    bars = []
    for i, (a, b) in enumerate(pairwise(points)):
        angle, length = math.atan2(b[1] - a[1], b[0] - a[0]), math.dist(a, b)
        bars.append(rigid2d.Rectangle((length, 0.1), ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2), angle=angle, name=f"{i}"))
    pins = [
        rigid2d.Revolute("0", None, points[0]),
        rigid2d.Revolute("1", "0", points[1]),
        rigid2d.Revolute("2", "1", points[2]),
        rigid2d.Revolute("2", None, points[3]),
    ]
    return rigid2d.World(bars, pins, gravity=GRAVITY, dt=DT, exempt=[("0", "2")])


def dominoes(count: int = 30) -> rigid2d.World:
    """A row of dominoes, the first of which is given a push."""
    surface = {"friction": 0.4, "restitution": 0.0}
    row = [
        rigid2d.Rectangle((0.1, 1), (0.5 * i, 0.5), mass=1.0, spin=-2.0 if i == 0 else 0.0, **surface)
        for i in range(count)
    ]
    row[0].velocity = (1.0, 0.0)
    return rigid2d.World([ground(**surface), *row], gravity=GRAVITY, dt=DT)


def card_house() -> rigid2d.World:
    """Two tents of cards, a card across, and a tent on top."""
    surface = {"friction": 0.9, "restitution": 0.0}
    lean, thick = math.radians(70), 0.02
    half = 0.5 * math.cos(lean)
    high = math.sin(lean) + thick * math.cos(lean)

    def tent(x: float, y: float) -> list[rigid2d.Rectangle]:
        across = half + thick / 2 * math.sin(lean) + 0.0005
        return [
            rigid2d.Rectangle((1, thick), (x + side * across, y + high / 2), angle=angle, mass=0.1, **surface)
            for side, angle in ((-1, lean), (1, math.pi - lean))
        ]

    across = rigid2d.Rectangle((1.4, thick), (0.5, high + thick / 2), mass=0.1, **surface)
    cards = [*tent(0, 0), *tent(1, 0), across, *tent(0.5, high + thick)]
    return rigid2d.World([ground(**surface), *cards], gravity=GRAVITY, dt=DT, initial_penetration="separate")


def cradle(balls: int = 5) -> rigid2d.World:
    """Pendulums next to each other, a thousandth apart, the first lifted by 60 degrees; elastic."""
    bodies, pins = [], []
    lifted = math.radians(-60)
    for i in range(balls):
        x = i * 0.2001
        place = (x + math.sin(lifted), 1 - math.cos(lifted)) if i == 0 else (x, 0.0)
        bodies.append(rigid2d.Circle(0.1, place, restitution=1.0, friction=0.0, name=f"{i}"))
        pins.append(rigid2d.Revolute(f"{i}", None, (x, 1.0)))
    return rigid2d.World(bodies, pins, gravity=GRAVITY, dt=DT)


def boxed(count: int) -> rigid2d.World:
    """Balls in a box without gravity, elastic and smooth."""
    generator = Random(count)
    side = math.ceil(math.sqrt(count))
    smooth = {"restitution": 1.0, "friction": 0.0}
    size = float(side)
    walls = [
        rigid2d.Rectangle(shape, place, static=True, **smooth)
        for shape, place in (
            ((size + 2, 1), (size / 2, -0.5)),
            ((size + 2, 1), (size / 2, size + 0.5)),
            ((1, size + 2), (-0.5, size / 2)),
            ((1, size + 2), (size + 0.5, size / 2)),
        )
    ]
    balls = [
        rigid2d.Circle(
            0.3,
            (i % side + 0.5, i // side + 0.5),
            velocity=(generator.uniform(-2, 2), generator.uniform(-2, 2)),
            **smooth,
        )
        for i in range(count)
    ]
    return rigid2d.World([*walls, *balls], gravity=(0, 0), dt=DT)


def wrecking_ball() -> rigid2d.World:
    """A ball on a chain of rods that swings into a wall of boxes."""
    surface = {"friction": 0.5, "restitution": 0.1}
    boxes = [
        rigid2d.Rectangle((0.5, 0.5), (0.5 * (i % 3) + 0.5 * 0, 0.25 + 0.5 * (i // 3)), mass=0.3, **surface)
        for i in range(18)
    ]
    links, length = 6, 0.6
    rods = [
        rigid2d.Rectangle((length, 0.05), (-4.1 + (i + 0.5) * length, 4.4), mass=0.1, name=f"rod {i}")
        for i in range(links)
    ]
    top = -4.1 + links * length
    ball = rigid2d.Circle(0.4, (-4.1, 4.4), mass=5.0, name="ball", **surface)
    pins = [rigid2d.Revolute(f"rod {links - 1}", None, (top, 4.4)), rigid2d.Revolute("ball", "rod 0", (-4.1, 4.4))]
    pins += [rigid2d.Revolute(f"rod {i}", f"rod {i - 1}", (-4.1 + i * length, 4.4)) for i in range(1, links)]
    exempt = [("ball", f"rod {i}") for i in range(links)]
    exempt += [(f"rod {i}", f"rod {j}") for i in range(links) for j in range(i)]
    return rigid2d.World([ground(**surface), *boxes, *rods, ball], pins, gravity=GRAVITY, dt=DT, exempt=exempt)


def fallen(world: rigid2d.World, trajectory: Trajectory) -> str:
    angles = trajectory.q[0, -1, 2::3]
    return f"{int((angles.abs() > 0.5).sum())} of {len(angles)} fell"


def stands(world: rigid2d.World, trajectory: Trajectory) -> str:
    return f"moved {float((trajectory.q[0, -1] - trajectory.q[0, 0]).abs().max()):.1e}"


def last_rises(world: rigid2d.World, trajectory: Trajectory) -> str:
    # The last ball goes as high as the first was: 1 − cos 60° = 0.5, less what five small gaps take.
    return f"last ball rises {float(trajectory.q[0, :, 13].max()):.4f} of 0.5"


CASES = (
    *(Case(f"rope {links}", lambda links=links: rope(links), 5.0) for links in (10, 20, 50)),
    Case("bridge", bridge, 10.0),
    Case("slider-crank", slider_crank, 10.0),
    Case("four-bar", four_bar, 10.0),
    Case("dominoes", dominoes, 6.0, fallen),
    Case("card house", card_house, 5.0, stands),
    Case("cradle", cradle, 2.0, last_rises),
    Case("25 balls", lambda: boxed(25), 10.0),
    Case("100 balls", lambda: boxed(100), 5.0),
    Case("wrecking ball", wrecking_ball, 6.0),
)


def joint_gaps(world: rigid2d.World, trajectory: Trajectory) -> float:
    """Return the largest distance between the two anchors of a revolute joint, at the end of any step."""
    from physvision.physics.rigid2d.world import planar_poses, points_in_world

    model, worst = world.model, 0.0
    pins = [k for k, (joint, _) in enumerate(model.joints) if isinstance(joint, rigid2d.Revolute)]
    if pins:
        place = planar_poses(model, trajectory.flatten(), world.properties)
        sides: list[Tensor] = []
        for side in range(2):
            bodies = [model.joints[k][1][side] for k in pins]
            sides.append(points_in_world(place[:, bodies], world.properties.anchors[pins, side]))
        worst = float((sides[0] - sides[1]).norm(dim=-1).max())
    return worst


def max_penetration(world: rigid2d.World, trajectory: Trajectory) -> float:
    """Return the deepest penetration at the end."""
    model = world.model
    poses = [model.pose(i) for i in range(len(model.bodies))]
    for slot, number in enumerate(model.moving):
        x, y, angle = trajectory.q[0, -1, 3 * slot : 3 * slot + 3].tolist()
        poses[number] = (x, y, angle)
    bodies = model.bodies
    return max((penetration(bodies[a], poses[a], bodies[b], poses[b])[0] for a, b in model.pairs), default=0.0)


def main(only: str = "", films: Path | None = None) -> None:
    """Simulate every scene, or those whose name begins with `only`.

    Args:
        only: Beginning of the names.
        films: Folder for a film of each scene; None for no films.
    """
    torch.set_num_threads(1)
    print(f"{'scene':<14}{'s/s':>7}{'worst ms':>9}{'fallback':>9}{'joints':>9}{'depth':>9}{'gained':>9}{'lost':>8}")
    for case in CASES:
        if not case.name.startswith(only):
            continue
        world = case.build()
        steps = round(case.seconds / DT)
        state = world.initial_state(1, torch.float64)
        world.rollout(state, 1)
        began = time.process_time()
        trajectory = world.rollout(state, steps)
        took = (time.process_time() - began) / case.seconds
        status = trajectory.status
        assert status is not None
        worst = 0.0
        for k in range(0, steps, max(1, steps // 50)):
            began = time.process_time()
            world.rollout(trajectory.state(k), 1)
            worst = max(worst, time.process_time() - began)
        kinetic, potential = world.energy(trajectory)
        total = (kinetic + potential)[0]
        scale = float(torch.maximum(kinetic.max(), potential.max() - potential.min()))
        gained, lost = float(total.diff().max()) / scale, float(total[0] - total[-1]) / scale
        bad = "" if bool(status.converged[0]) else f"  FAILED at {int(status.first_failed_step[0])}"
        fraction = int(status.fallback_steps[0]) / steps
        print(
            f"{case.name:<14}{took:>7.3f}{1e3 * worst:>9.1f}{fraction:>9.1%}{joint_gaps(world, trajectory):>9.1e}",
            end="",
        )
        print(f"{max_penetration(world, trajectory):>9.1e}{gained:>9.1e}{lost:>8.2f}  ", end="")
        print(f"{case.known(world, trajectory)}{bad}", flush=True)
        if films is not None:
            render_video(world, trajectory, films / f"{case.name}.mp4")


if __name__ == "__main__":
    auto_cli(main)
