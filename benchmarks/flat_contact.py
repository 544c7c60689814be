"""Gradients of flat contact: boxes that slide flat, stacks of three, and boxes that an arm pushes.

    python benchmarks/flat_contact.py [--scenes 100] [--first 0]

Flat sides touch at more points than are needed to hold a body, so that the impulses of these are undetermined, and a
small tilt decides which of them bear a load. The gradient is the derivative of the motion in which everything that
touches without parting goes on touching (docs/contact.md, "Flat contact"). It is compared with the one-sided
derivatives along a random unit direction of the state and of each property, from differences at 1e-6 and 1e-7: whether
it is both of them, one of them, lies between them, or is neither, since each step takes a side of its own. A side has a
derivative if both differences agree, those of first order or those of second. Where no side has, the motion jumps:
several corners strike at the same time, or friction of a side that spins is undetermined. The status names such motions
(`first_grazing_step`); scenes that it names although each gradient is the derivative of both sides are counted as well.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
import torch
from jsonargparse import auto_cli

from physvision import State
from physvision.core import Box, Placed, Plane, Sphere
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint

DOUBLE = torch.float64
LEAVES = ("mass", "center_of_mass", "inertia", "gravity", "friction", "shape_size")
SCALED = ("mass", "friction", "shape_size")
STEPS = (1e-6, 1e-7)  # of the differences
TOLERANCE = 1e-4  # relative to the derivative, or to one where that is smaller
Random = np.random.Generator


class FlatScene(NamedTuple):
    """Scene of flat contact: its engine, the state that it starts from, and its number of steps."""

    kind: str
    engine: articulated.Articulation
    start: State
    steps: int


def box(name: str, rng: Random, size: tuple[float, float, float]) -> Body:
    """Return a free homogeneous box."""
    mass = float(rng.uniform(0.5, 2.0))
    inertia = tuple(mass / 12 * (size[(k + 1) % 3] ** 2 + size[(k + 2) % 3] ** 2) for k in range(3))
    return Body(name, None, [Joint("free")], mass, (0, 0, 0), inertia, shapes=[Placed(Box(size))])


def yaw(angle: float) -> list[float]:
    """Return the quaternion of a rotation about z."""
    return [math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)]


def random_size(rng: Random, low: float, high: float, scale: float = 1.0) -> tuple[float, float, float]:
    """Return the sizes of a box, m."""
    a, b, c = (scale * float(x) for x in rng.uniform(low, high, 3))
    return a, b, c


def slide(rng: Random) -> tuple:
    """Return a box that slides flat on a slope."""
    size, slope = random_size(rng, 0.2, 0.4), float(rng.uniform(0, 0.3))
    v = [*rng.normal(size=2).tolist(), 0.0, 0.0, 0.0, float(rng.choice([0.0, 0.5 * rng.normal()]))]
    gravity = (10 * math.sin(slope), 0.0, -10 * math.cos(slope))
    return [box("box", rng, size)], gravity, [0.0, 0.0, size[2] / 2, *yaw(rng.uniform(0, 6))], v


def stack(rng: Random) -> tuple:
    """Return three boxes on each other, each smaller than the one below, on a slope."""
    bodies, q, height = [], [], 0.0
    for k in range(3):
        size = random_size(rng, 0.35, 0.4, 1 - 0.15 * k)
        bodies.append(box(f"box {k}", rng, size))
        q += [*(0.01 * rng.normal(size=2)).tolist(), height + size[2] / 2, *yaw(0.1 * rng.normal())]
        height += size[2]
    return bodies, (float(rng.uniform(0, 1)), 0.0, -10.0), q, [0.0] * 18


def push(rng: Random) -> tuple:
    """Return a box that an arm of two links strikes, and pushes on."""
    size, radius = random_size(rng, 0.2, 0.4), 0.05
    place = (-size[0] / 2 - radius - 0.002, 0.0, 0.6 + 0.6 * size[2])
    upper = Body(
        "upper", None, [Joint("revolute", (0, 1, 0), damping=0.1)], 1.0, (0, 0, -0.3), (0.03, 0.03, 0.01), place
    )
    tip = [Placed(Sphere(radius))]
    hinge = [Joint("revolute", (0, 1, 0), damping=0.1)]
    lower = Body("lower", "upper", hinge, 0.5, (0, 0, 0), (0.01,) * 3, (0.0, 0.0, -0.6), shapes=tip)
    v = [0.0] * 6 + [-float(rng.uniform(0.5, 2.0)), 0.0]
    return [box("box", rng, size), upper, lower], (0.0, 0.0, -10.0), [0, 0, size[2] / 2, *yaw(0.0), 0.0, 0.0], v


KINDS = {"slide": slide, "stack": stack, "push": push}


def scene(seed: int) -> FlatScene:
    """Return the scene of a seed."""
    rng = np.random.default_rng([seed, 392])
    kind = list(KINDS)[seed % len(KINDS)]
    bodies, gravity, q, v = KINDS[kind](rng)
    friction = float(rng.choice([0.0, rng.uniform(0.1, 0.4), rng.uniform(0.4, 1.0)]))
    settings = articulated.ContactSettings(friction=friction, restitution=0.0)
    engine = articulated.tree(bodies, static_shapes=[Placed(Plane())], gravity=gravity, contact=settings)
    start = State(torch.tensor([q], dtype=DOUBLE), torch.tensor([v], dtype=DOUBLE))
    return FlatScene(kind, engine, start, int(rng.integers(10, 60)))


class Derivatives(NamedTuple):
    """Derivatives of a scene.

    Attributes:
        is_named: If true, the status names a step without a derivative.
        values: Gradient along a direction of each input, and the differences, (steps, sides).
    """

    is_named: bool
    values: dict[str, tuple[float, np.ndarray]]


def one_sided(of: FlatScene, seed: int) -> Derivatives:
    """Return the gradients along a direction of each input beside the differences on both sides."""
    engine, start = of.engine, of.start
    rng = torch.Generator().manual_seed(seed)
    weights = torch.randn(2, engine.nq, generator=rng, dtype=DOUBLE)
    values = {"q": torch.zeros(1, engine.nv, dtype=DOUBLE), "v": start.v}
    values |= {name: getattr(engine.properties, name)[None] for name in LEAVES}
    along = {}
    for name, value in values.items():
        direction = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        if name in SCALED:
            direction = direction * value
        if name == "inertia":
            direction = 1e-3 * (direction + direction.mT)
        along[name] = direction / direction.norm().clamp(min=1.0)

    def final(given: dict[str, torch.Tensor]) -> tuple[torch.Tensor, bool]:
        worlds = max(len(value) for value in given.values())
        given = {name: value.expand(worlds, *value.shape[1:]) for name, value in given.items()}
        q = engine.integrate(start.q.expand(worlds, -1), given["q"])
        path = engine.rollout(State(q, given["v"]), of.steps, None, {name: given[name] for name in LEAVES})
        assert path.status is not None
        result = path.q[:, -1] @ weights[0] + path.v[:, -1] @ weights[1, : engine.nv]
        return torch.where(path.status.converged, result, torch.nan), int(path.status.first_grazing_step[0]) >= 0

    variables = {name: value.clone().requires_grad_() for name, value in values.items()}
    end, is_named = final(variables)
    gradients = torch.autograd.grad(end.sum(), list(variables.values()))
    shifts = torch.tensor([sign * h for step in STEPS for h in (step, step / 2) for sign in (1, -1)], dtype=DOUBLE)
    result = {}
    for name, gradient in zip(values, gradients, strict=True):
        moved = values[name] + shifts.reshape(-1, *[1] * (along[name].dim() - 1)) * along[name]
        slopes = (final(values | {name: moved})[0] - end.detach()) / shifts
        first, half = slopes.detach().reshape(len(STEPS), 2, 2).unbind(1)
        second = 2 * half - first
        closest = torch.where(first.diff(dim=0).abs() < second.diff(dim=0).abs(), first, second)
        result[name] = float((gradient * along[name]).sum()), closest.numpy()
    return Derivatives(is_named, result)


def verdict(gradient: float, slopes: np.ndarray) -> str:
    """Return "derivative", "one side", "between", "jump", or "neither"."""
    size = max(1.0, abs(gradient))
    has_derivative = np.abs(np.diff(slopes, axis=0))[0] <= TOLERANCE * size
    is_equal = has_derivative & (np.abs(slopes[-1] - gradient) <= TOLERANCE * size)
    if is_equal.all():
        return "derivative"
    if is_equal.any():
        return "one side"
    if not has_derivative.any():
        return "jump"
    low, high = slopes[-1].min() - TOLERANCE * size, slopes[-1].max() + TOLERANCE * size
    return "between" if has_derivative.all() and low <= gradient <= high else "neither"


def main(scenes: int = 100, first: int = 0) -> int:
    """Print how gradients of flat contact compare with one-sided derivatives; returns how many are wrong, not named.

    Args:
        scenes: Number of scenes.
        first: Seed of the first scene.
    """
    torch.set_num_threads(1)
    began = time.process_time()
    verdicts = ("derivative", "one side", "between", "jump", "neither")
    columns = (*verdicts, *(f"{name}, named" for name in verdicts))
    counts = {kind: dict.fromkeys(columns, 0) for kind in KINDS}
    needless = 0
    for seed in range(first, first + scenes):
        of = scene(seed)
        is_named, values = one_sided(of, seed)
        results = {name: verdict(*value) for name, value in values.items()}
        needless += is_named and set(results.values()) == {"derivative"}
        for name, (gradient, slopes) in values.items():
            result = results[name]
            counts[of.kind][f"{result}, named" if is_named else result] += 1
            if result in ("neither", "jump") and not is_named:
                print(
                    f"{result}: seed {seed}, {of.kind}, {of.steps} steps, {name}: {gradient:.6g} for {slopes.tolist()}"
                )
    print(f"{'':<8}" + "".join(f"{name:>19}" for name in columns))
    for kind, count in counts.items():
        print(f"{kind:<8}" + "".join(f"{count[name]:>19}" for name in columns))
    print(f"{needless} scenes are named whose gradients are all derivatives; {time.process_time() - began:.0f} s")
    return sum(count["neither"] + count["jump"] for count in counts.values())


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
