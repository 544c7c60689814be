"""Trees for the tests: random ones by Hypothesis, and one with every kind of joint and every property in use."""

# pyright: reportReturnType=false

from __future__ import annotations

from dataclasses import fields

import numpy as np
import torch
from hypothesis import strategies as st

from physvision import State
from physvision.core import Box, Capsule, Placed, Sphere
from physvision.physics.articulated import Articulation, Body, ContactSettings, Joint, tree

KINDS = ("revolute", "prismatic", "ball", "fixed")


def unit(rng: np.random.Generator, size: int) -> np.ndarray:
    x = rng.normal(size=size)
    return x / np.linalg.norm(x)


def random_inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    """That of a cloud of points: positive definite, and possible for a body."""
    points = rng.normal(size=(6, 3)) * 0.2
    points -= points.mean(0)
    squared = (points**2).sum()
    return mass / 6 * (squared * np.eye(3) - points.T @ points)


def random_bodies(seed: int, kinds: list[str], free_root: bool) -> list[Body]:
    rng = np.random.default_rng(seed)
    bodies = []
    for k, kind in enumerate(kinds):
        parent = int(rng.integers(-1 if not free_root else 0, k)) if k else -1
        if k == 0 and free_root:
            joints = [Joint("free")]
        elif kind == "fixed":
            joints = []
        else:
            joints = [Joint(kind, unit(rng, 3), anchor=rng.normal(size=3) * 0.2, armature=rng.uniform(0, 0.2))]
        mass = float(np.exp(rng.uniform(np.log(0.1), np.log(10.0))))
        bodies.append(
            Body(
                f"body {k}",
                None if parent < 0 else f"body {parent}",
                joints,
                mass=mass,
                center_of_mass=rng.normal(size=3) * 0.2,
                inertia=random_inertia(rng, mass),
                position=np.zeros(3) if joints and joints[0].kind == "free" else rng.normal(size=3) * 0.4,
                orientation=np.array([1.0, 0, 0, 0]) if joints and joints[0].kind == "free" else unit(rng, 4),
            )
        )
    return bodies


@st.composite
def descriptions(draw: st.DrawFn, limit: int = 30) -> tuple[int, list[str], bool]:
    """Arguments of `random_bodies` for a tree of up to `most` bodies, at least one of which moves."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=limit))
    free_root = draw(st.booleans())
    if not free_root and set(kinds) == {"fixed"}:
        kinds[-1] = "revolute"
    return draw(st.integers(0, 2**31 - 1)), kinds, free_root


def random_state(engine: Articulation, seed: int, batch: int = 1) -> State:
    """Positions all over the place and velocities of about one."""
    generator = torch.Generator().manual_seed(seed)
    start = engine.initial_state(batch, torch.float64)
    shift = torch.randn(batch, engine.nv, generator=generator, dtype=torch.float64)
    v = torch.randn(batch, engine.nv, generator=generator, dtype=torch.float64)
    return State(engine.integrate(start.q, shift), v)


def contact_tree(bodies, **options) -> Articulation:
    """An engine whose contact settings are given one by one beside the arguments of `tree`."""
    names = {field.name for field in fields(ContactSettings)} & set(options)
    settings = {name: options.pop(name) for name in names}
    contact = ContactSettings(options.pop("contact", None), **settings)
    return tree(bodies, contact=contact, **options)


def everything(**options) -> Articulation:
    """Every kind of joint, in a tree with branches, each property different from zero."""
    rng = np.random.default_rng(3)

    def body(name: str, parent: str | None, joints: list[Joint], free: bool = False) -> Body:
        return Body(
            name,
            parent,
            joints,
            mass=float(rng.uniform(0.5, 2.0)),
            center_of_mass=rng.normal(size=3) * 0.1,
            inertia=random_inertia(rng, 2.0) + 0.05 * np.eye(3),
            position=np.zeros(3) if free else rng.normal(size=3) * 0.3,
            orientation=np.array([1.0, 0, 0, 0]) if free else unit(rng, 4),
        )

    def joint(kind: str) -> Joint:
        used = {"damping": 0.3, "armature": 0.1, "friction_loss": 0.02, "stiffness": 1.5}
        reference = {"ball": unit(rng, 4), "free": np.concatenate([rng.normal(size=3) * 0.2, unit(rng, 4)])}
        return Joint(
            kind,
            unit(rng, 3),
            anchor=np.zeros(3) if kind == "free" else rng.normal(size=3) * 0.1,
            spring_reference=reference.get(kind, [0.3]),
            reference_position=0.2 if kind in ("revolute", "prismatic") else 0.0,
            **used,
        )

    bodies = [
        body("base", None, [joint("free")], free=True),
        body("shoulder", "base", [joint("ball")]),
        body("elbow", "shoulder", [joint("revolute")]),
        body("toe", "elbow", []),
        body("tail", "base", [joint("prismatic"), joint("revolute")]),
    ]
    return tree(bodies, **({"dt": 0.02} | options))


def stepping_robot():
    """A trunk that is free, a leg on a hinge and a foot that slides, both with stops."""
    knee = Joint("revolute", (0, 1, 0.1), damping=0.1, limits=(-0.4, 0.1))
    ankle = Joint("prismatic", (0, 0, 1), limits=(-0.02, 0.3))
    return [
        Body(
            "trunk", None, [Joint("free")], mass=1.0, center_of_mass=(0.01, 0, 0), inertia=(0.02, 0.03, 0.02),
            shapes=[Placed(Box((0.3, 0.2, 0.1)))],
        ),
        Body(
            "leg", "trunk", [knee], mass=0.3, center_of_mass=(0, 0, -0.1), inertia=(0.003, 0.003, 0.001),
            position=(0.1, 0, -0.06), shapes=[Placed(Capsule(0.03, 0.2))],
        ),
        Body(
            "foot", "leg", [ankle], mass=0.2, inertia=(0.001,) * 3, position=(0, 0, -0.2),
            shapes=[Placed(Sphere(0.05))],
        ),
    ]  # fmt: skip
