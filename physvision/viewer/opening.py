"""Engines by the names under which they are opened: files, shipped scenes, environments and examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from physvision.core import InputError, State
from physvision.envs import ENVIRONMENTS
from physvision.physics import Engine, rigid2d, soft
from physvision.physics.articulated import scenes
from physvision.simulation import load_engine

Opened = tuple[Engine, State, tuple[float, ...]]


def open_scene(scene: str, dt: float = 0.01, ignore: Sequence[str] = (), base: str = "auto") -> Opened:
    """Return the engine of a scene, its start, and the largest value of each control; none where its range is its own.

    Args:
        scene: MJCF or URDF file, or the name of a shipped scene, an environment or an example.
        dt: Time step of files and shipped scenes, s.
        ignore: Elements of a file to leave out, as in `articulated.load`.
        base: Base of a root body without a joint, as in `articulated.load`.
    """
    name = scene.removeprefix("physvision/").removesuffix("-v0")
    if not Path(scene).is_file():
        if name in ENVIRONMENTS:
            env = ENVIRONMENTS[name]()
            return env.engine, env.reset(1, torch.Generator().manual_seed(0)), env.action_limit
        if scene in EXAMPLES:
            engine = EXAMPLES[scene]()
            return engine, engine.initial_state(dtype=torch.float64), ()
        if scene not in scenes.names():
            raise InputError(
                f"scene: expected a file, a scene ({', '.join(scenes.names())}), an environment "
                f"({', '.join(ENVIRONMENTS)}) or an example ({', '.join(EXAMPLES)}), got {scene!r}"
            )
    loaded = load_engine(scene, dt, ignore, base=base)
    return loaded, loaded.initial_state(dtype=torch.float64), ()


def falling_cloth() -> Engine:
    """Build a cloth that falls on a ball."""
    ball = soft.Collider((0.0, 0.0, 0.0), 0.3, friction=0.5, kinematic=True)
    return soft.SoftBody(
        soft.cloth((1.0, 1.0), (16, 16), (-0.5, -0.5, 0.32)),
        soft.Material(1e5, density=300.0, viscous_time=0.01, velocity_decay=1.0, thickness=2e-3),
        contact=soft.SoftContact(colliders=[ball], stiffness=1e5),
        dt=0.02,
    )


def soft_block() -> Engine:
    """Build an elastic block that lands on the ground."""
    ground = soft.Ground((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.5)
    material = soft.Material(2e4, viscous_time=0.02)
    mesh = soft.box((0.4, 0.4, 0.2), (4, 4, 2), (-0.2, -0.2, 0.3))
    return soft.SoftBody(mesh, material, contact=soft.SoftContact(grounds=[ground], stiffness=1e5), dt=0.01)


def planar_stack() -> Engine:
    """Build a flat world of boxes in a stack, and a ball that rolls towards it."""
    floor = rigid2d.Rectangle((8.0, 0.4), (0.0, -0.2), static=True, friction=0.6)
    boxes = [rigid2d.Rectangle((0.5, 0.5), (0.5, 0.25 + 0.5 * k), friction=0.6) for k in range(4)]
    ball = rigid2d.Circle(0.3, (-2.5, 0.31), velocity=(3.0, 0.0), mass=2.0, friction=0.4)
    return rigid2d.World([floor, *boxes, ball], gravity=(0.0, -9.81), dt=0.01)


EXAMPLES: dict[str, Callable[[], Engine]] = {
    "cloth": falling_cloth,
    "block": soft_block,
    "stack": planar_stack,
}
