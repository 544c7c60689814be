"""Seven short motions that show what a film must show: robots, a car, cloth and a pile."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import torch

from physvision.core import State, Trajectory
from physvision.physics import articulated, soft
from physvision.physics.articulated import scenes
from physvision.physics.engine import MechanicalEngine

Motion = tuple[MechanicalEngine, Trajectory]
DOUBLE = torch.float64


def model_motion(path: Path, seconds: float, seed: int = 0) -> Motion:
    """Motion of a model file under slowly varying random controls."""
    engine = articulated.load(path, dt=0.01)
    return driven(engine, engine.initial_state(dtype=DOUBLE), seconds, seed)


def driven(engine: articulated.Articulation, start: State, seconds: float, seed: int = 0) -> Motion:
    """Motion of an engine under sines of random phase and amplitude in every control."""
    steps, generator = round(seconds / engine.dt), torch.Generator().manual_seed(seed)
    phase, size = (torch.rand(engine.nu, generator=generator, dtype=DOUBLE) for _ in range(2))
    time = engine.dt * torch.arange(steps, dtype=DOUBLE)[:, None]
    controls = 0.6 * size * torch.sin(2 * math.pi * (1.5 * time + phase))
    return engine, engine.rollout(start, steps, controls[None])


def arm() -> Motion:
    """The shipped arm, which falls over from upright because nothing drives it."""
    engine = scenes.load("arm")
    start = engine.initial_state(dtype=DOUBLE)
    target = torch.tensor([0.6, 0.9, -0.5, 1.1], dtype=DOUBLE)
    return engine, engine.rollout(start, 200, target.expand(1, 200, -1))


def racecar() -> Motion:
    """The shipped racing car, which rolls with its front wheels steered."""
    engine = scenes.load("racecar")
    start = engine.initial_state(dtype=DOUBLE)
    start.v[0, 0] = 1.6
    controls = torch.zeros(1, 200, engine.nu, dtype=DOUBLE)
    for column, name in enumerate(engine.control_names):
        if "steering" in name:
            controls[..., column] = 3.0
    return engine, engine.rollout(start, 200, controls)


def quadruped() -> Motion:
    """The shipped quadruped, whose legs swing in pairs."""
    engine = scenes.load("quadruped")
    return driven(engine, engine.initial_state(dtype=DOUBLE), 2.0, 1)


def cloth(steps: int = 60) -> Motion:
    """A cloth that falls on a ball that is held."""
    ball = soft.Collider((0.0, 0.0, 0.0), 0.3, friction=0.5, kinematic=True)
    body = soft.SoftBody(
        soft.cloth((1.0, 1.0), (20, 20), (-0.5, -0.5, 0.32)),
        soft.Material(1e5, density=300.0, viscous_time=0.01, velocity_decay=1.0, thickness=2e-3),
        contact=soft.SoftContact(colliders=[ball], stiffness=1e5),
        dt=0.02,
    )
    return body, body.rollout(body.initial_state(dtype=DOUBLE), steps)


def pile(steps: int = 180) -> Motion:
    """Boxes, balls and capsules that fall on a heap."""
    draw, bodies = random.Random(3), []
    kinds = ("box", "sphere", "capsule")
    sizes = {"box": ".1 .08 .06", "sphere": ".09", "capsule": ".05 .09"}
    colors = ("0.86 0.37 0.31", "0.95 0.71 0.31", "0.35 0.62 0.85", "0.45 0.72 0.48")
    for number in range(12):
        kind = kinds[number % 3]
        place = f"{draw.uniform(-0.12, 0.12):.3f} {draw.uniform(-0.12, 0.12):.3f} {0.15 + 0.22 * number:.3f}"
        turn = f"{draw.uniform(0, 90):.0f} {draw.uniform(0, 90):.0f} 0"
        bodies.append(
            f'<body pos="{place}" euler="{turn}"><freejoint/><geom type="{kind}" size="{sizes[kind]}" '
            f'rgba="{colors[number % 4]} 1"/></body>'
        )
    ground = '<geom type="plane" size="0 0 1"/>'
    engine = articulated.load(f"<mujoco><worldbody>{ground}{''.join(bodies)}</worldbody></mujoco>", dt=0.01)
    return engine, engine.rollout(engine.initial_state(dtype=DOUBLE), steps)


def motions(models: Path) -> dict[str, Callable[[], Motion]]:
    """Functions that simulate the motions, by name.

    Args:
        models: Folder with gymnasium's package, as its wheel holds it.
    """
    assets = models / "gymnasium" / "envs" / "mujoco" / "assets"
    return {
        "hopper": lambda: model_motion(assets / "hopper.xml", 1.0),
        "quadruped": quadruped,
        "arm": arm,
        "humanoid": lambda: model_motion(assets / "humanoid.xml", 1.2),
        "racecar": racecar,
        "cloth": cloth,
        "pile": pile,
    }
