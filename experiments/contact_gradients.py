"""Gradients through contact on random scenes, against differences at several step sizes.

Free bodies that run into each other, bodies that fall on the ground and on obstacles, that slide, robots on the ground
and an arm that strikes a ball: spheres, capsules, boxes and cylinders, with and without friction and restitution, 20 to
200 steps of 10 ms. In each scene the derivative of a random sum of the final state along a random direction of each
input and property is compared with central differences at eleven step sizes. Where no two neighboring ones agree to
3e-6 there is no derivative to compare with, mostly because a mode changes in between: such are told apart.

    python experiments/contact_gradients.py [--scenes 300] [--first 0] [--out out]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from claims import Claim, write_claims
from jsonargparse import auto_cli

from physvision import State
from physvision.core import Box, Capsule, Cylinder, Placed, Plane, Shape, Sphere
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint

BAR, SHARE = 1e-5, 0.99
DOUBLE = torch.float64
STEPS = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8)  # of the differences
CONVERGED = 3e-6
LEAVES = (
    "mass", "center_of_mass", "inertia", "position", "joint_damping", "joint_stiffness", "gravity", "friction",
    "restitution", "shape_pose", "shape_size",
)  # fmt: skip
# Of these, what is zero stays zero.
SCALED = (
    "mass",
    "joint_damping",
    "joint_stiffness",
    "friction",
    "restitution",
    "shape_size",
)

Random = np.random.Generator


def at(x: float, y: float, z: float) -> tuple:
    """The pose of a shape that is shifted and not turned."""
    return ((1.0, 0.0, 0.0, x), (0.0, 1.0, 0.0, y), (0.0, 0.0, 1.0, z), (0.0, 0.0, 0.0, 1.0))


def some_shape(rng: Random, kinds: str = "scb") -> Shape:
    """A sphere, capsule, box or cylinder (s, c, b, d) of about 0.2 m."""
    a, b, c = (float(x) for x in rng.uniform(0.1, 0.2, 3))
    return {"s": Sphere(a), "c": Capsule(a / 2, 2 * b), "b": Box((2 * a, 2 * b, 2 * c)), "d": Cylinder(a, 2 * b)}[
        kinds[rng.integers(len(kinds))]
    ]


def free(name: str, shape: Shape, rng: Random) -> Body:
    """A free body of about 1 kg."""
    moments = tuple(float(x) for x in rng.uniform(0.008, 0.015, 3))
    return Body(name, None, [Joint("free")], float(rng.uniform(0.5, 2.0)), (0, 0, 0), moments, shapes=[Placed(shape)])


def placed(rng: Random, positions: list, speed: float = 1.0, spin: float = 3.0) -> tuple[list, list]:
    """Positions and velocities of free bodies there, turned at random."""
    q, v = [], []
    for position in positions:
        turn = rng.normal(size=4)
        q += [*position, *(turn / np.linalg.norm(turn))]
        v += [*rng.normal(size=3) * speed, *rng.normal(size=3) * spin]
    return q, v


def collision(rng: Random, shape: Callable[[Random], Shape] = some_shape) -> tuple:
    """Two or three bodies, of random shapes, in empty space that run into each other."""
    count = int(rng.integers(2, 4))
    places = [np.array([0.75 * k, 0.0, 0.0]) + rng.normal(size=3) * 0.06 for k in range(count)]
    q, v = placed(rng, places, 0.3, 2.0)
    for k in range(count):
        v[6 * k] += 1.5 * (1 - k)
    return [free(f"{k}", shape(rng), rng) for k in range(count)], [], (0, 0, 0), q, v


def drop(rng: Random) -> tuple:
    """One or two bodies that fall on the ground."""
    count = int(rng.integers(1, 3))
    kinds = "scbd" if count == 1 else "scb"
    places = [[0.5 * k, 0.0, rng.uniform(0.3, 0.6) + 0.5 * k] for k in range(count)]
    bodies = [free(f"{k}", some_shape(rng, kinds), rng) for k in range(count)]
    return bodies, [Placed(Plane())], (0, 0, -10), *placed(rng, places)


def obstacle(rng: Random) -> tuple:
    """A body that falls on a shape that stands still."""
    shape = [Sphere(0.5), Capsule(0.4, 1.0), Box((1.2, 1.0, 0.8))][rng.integers(3)]
    bodies = [free("body", some_shape(rng), rng)]
    return bodies, [Placed(shape)], (0, 0, -10), *placed(rng, [[*rng.normal(size=2) * 0.15, 1.1]])


def slide(rng: Random) -> tuple:
    """A box or a ball that is set down, a little tilted, on a slope, and slides, sticks or rolls."""
    angle = float(rng.uniform(0.0, 0.5))
    gravity = (10 * np.sin(angle), 0.0, -10 * np.cos(angle))
    shape = some_shape(rng, "sb")
    height = shape.sizes[2] / 2 if isinstance(shape, Box) else shape.sizes[0]
    tilt = np.concatenate([[1.0], rng.normal(size=3) * 0.005])
    q = [0.0, 0.0, height + 0.005, *(tilt / np.linalg.norm(tilt))]
    v = [*rng.normal(size=2), 0.0, *rng.normal(size=3) * 0.1]
    return [free("body", shape, rng)], [Placed(Plane())], gravity, q, v


def robot(rng: Random) -> tuple:
    """A body on two to four legs with springs and feet of their own."""
    legs = int(rng.integers(2, 5))
    trunk = free("trunk", Box((0.4, 0.3, 0.1)), rng)
    bodies = [trunk]
    for k in range(legs):
        x, y = 0.2 * np.cos(2 * np.pi * k / legs), 0.15 * np.sin(2 * np.pi * k / legs)
        thigh = [Joint("revolute", tuple(rng.normal(size=3) * 0.2 + [0, 1, 0]), damping=0.1, stiffness=8.0)]
        shin = [Joint("prismatic", (0, 0, 1), damping=3.0, stiffness=300.0)]
        limb = Placed(Capsule(0.03, 0.15), pose=at(0, 0, -0.1))
        weight = {"mass": 0.3, "inertia": (0.002, 0.002, 0.001)}
        bodies.append(
            Body(
                f"thigh {k}",
                "trunk",
                thigh,
                position=(x, y, -0.06),
                center_of_mass=(0, 0, -0.1),
                shapes=[limb],
                **weight,
            )
        )
        foot = [Placed(Sphere(0.04))]
        bodies.append(Body(f"foot {k}", f"thigh {k}", shin, position=(0, 0, -0.25), shapes=foot, **weight))
    q = [0.0, 0.0, 0.5, *(np.array([1, 0.1, 0.1, 0]) / np.sqrt(1.02)), *rng.normal(size=2 * legs) * 0.02]
    return bodies, [Placed(Plane())], (0, 0, -10), q, [*rng.normal(size=6) * 0.5, *rng.normal(size=2 * legs) * 0.3]


def arm(rng: Random) -> tuple:
    """An arm of two links that swings and strikes a ball."""
    limb = Placed(Capsule(0.04, 0.3), pose=at(0, 0, -0.2))
    shared = {"mass": 0.8, "center_of_mass": (0, 0, -0.2), "inertia": (0.02, 0.02, 0.01), "shapes": [limb]}
    bodies = [
        Body("upper", None, [Joint("ball", damping=0.1)], **shared),
        Body("lower", "upper", [Joint("revolute", (0, 1, 0.1), damping=0.05)], position=(0, 0, -0.45), **shared),
        free("ball", Sphere(0.1), rng),
    ]
    q = [np.cos(0.4), 0.0, np.sin(0.4), 0.0, 0.3, -0.3, float(rng.normal() * 0.03), -0.6, 1.0, 0.0, 0.0, 0.0]
    return bodies, [], (0, 0, -3), q, [*rng.normal(size=4), *rng.normal(size=6) * 0.3]


KINDS: dict[str, Callable[[Random], tuple]] = {
    "collision": collision, "drop": drop, "obstacle": obstacle, "slide": slide, "robot": robot, "arm": arm,
}  # fmt: skip


@dataclass
class Scene:
    """An engine and where it starts."""

    kind: str
    engine: articulated.Articulation
    start: State
    steps: int


def scene(seed: int) -> Scene:
    """The scene of a seed; drawn again while shapes overlap at the start."""
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    while True:
        bodies, scenery, gravity, q, v = KINDS[kind](rng)
        friction = float(rng.choice([0.0, rng.uniform(0.1, 0.4), rng.uniform(0.4, 1.0)]))
        restitution = float(rng.choice([0.0, rng.uniform(0.2, 0.9)]))
        engine = articulated.tree(
            bodies,
            static_shapes=scenery,
            gravity=gravity,
            contact=articulated.ContactSettings(friction=friction, restitution=restitution),
        )
        start = State(torch.tensor([q], dtype=DOUBLE), torch.tensor([v], dtype=DOUBLE))
        gap = engine.contacts(start, max_separation=0.0).separation
        if gap.numel() == 0 or float(gap.min()) > -1e-9:
            return Scene(kind, engine, start, int(rng.integers(20, 201)))


def direction(name: str, value: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    """Along which an input or property is moved."""
    result = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
    if name in SCALED:
        return result * value
    return (result + result.mT) * 1e-3 if name == "inertia" else result


def checked(of: Scene, seed: int) -> list[tuple[str, float | None]] | None:
    """Error of each input's and property's derivative; None where there is none to compare with, or no motion."""
    rng = torch.Generator().manual_seed(seed)
    engine, steps = of.engine, of.steps
    values = {
        "q": of.start.q,
        "v": of.start.v,
        "u": 0.3 * torch.randn(1, steps, engine.nu, generator=rng, dtype=DOUBLE),
    }
    values |= {name: getattr(engine.properties, name)[None] for name in LEAVES}
    weights = torch.randn(2, engine.nq, generator=rng, dtype=DOUBLE)
    along = {name: direction(name, value, rng) for name, value in values.items()}

    def ends(given: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        leaves = {name: given[name] for name in LEAVES}
        path = engine.rollout(State(given["q"], given["v"]), steps, given["u"], leaves)
        assert path.status is not None
        return path.q[:, -1] @ weights[0] + path.v[:, -1] @ weights[1, : engine.nv], path.status.converged

    variables = {name: value.clone().requires_grad_() for name, value in values.items()}
    end, good = ends(variables)
    if not bool(good.all()):
        return None
    gradients = dict(zip(values, torch.autograd.grad(end.sum(), list(variables.values())), strict=True))
    # All differences are worlds of one batch: inputs, then step sizes, then both signs.
    worlds = len(values) * len(STEPS) * 2
    moved = {name: value.expand(worlds, *value.shape[1:]).clone() for name, value in values.items()}
    for k, name in enumerate(values):
        shifts = torch.tensor([sign * h for h in STEPS for sign in (1, -1)], dtype=DOUBLE)
        rows = slice(k * len(shifts), (k + 1) * len(shifts))
        moved[name][rows] += shifts.reshape(-1, *[1] * (along[name].dim() - 1)) * along[name]
    result, good = ends(moved)
    sides = torch.where(good, result.detach(), torch.nan).reshape(len(values), len(STEPS), 2)
    slopes = ((sides[..., 0] - sides[..., 1]) / (2 * torch.tensor(STEPS, dtype=DOUBLE))).numpy()
    return [(name, error(slopes[k], float((gradients[name] * along[name]).sum()))) for k, name in enumerate(values)]


def error(slopes: np.ndarray, gradient: float) -> float | None:
    """Relative to the derivative, or to one where that is smaller; None where differences do not converge."""
    apart = np.abs(np.diff(slopes))
    if np.isnan(apart).all():
        return None
    best = int(np.nanargmin(apart))
    size = max(1.0, abs(slopes[best + 1]))
    if apart[best] > CONVERGED * size:
        return None
    return float(np.min(np.abs(gradient - slopes[best : best + 2]))) / size


def main(scenes: int = 300, first: int = 0, out: Path = Path("out")) -> float:
    """Compare; returns the share of derivatives within 1e-5, of those that can be compared.

    Args:
        scenes: Number of random scenes.
        first: seed of the first.
        out: folder of the figure.
    """
    torch.set_num_threads(1)
    errors: dict[str, list[float]] = {kind: [] for kind in KINDS}
    without = dict.fromkeys(KINDS, 0)
    failed = 0
    for seed in range(first, first + scenes):
        entry = scene(seed)
        result = checked(entry, seed)
        if result is None:
            failed += 1
            print(f"seed {seed}, {entry.kind}, {entry.steps} steps: the motion itself failed", flush=True)
            continue
        for name, value in result:
            if value is None:
                without[entry.kind] += 1
            else:
                errors[entry.kind].append(value)
                if value > BAR:
                    print(f"seed {seed}, {entry.kind}, {entry.steps} steps: {name} is off by {value:.1e}", flush=True)
    print(f"{'':<12} {'compared':>9} {'within 1e-5':>12} {'median':>9} {'left out':>9}")
    for kind in (*KINDS, "all"):
        values = np.concatenate([errors[k] for k in KINDS]) if kind == "all" else np.array(errors[kind])
        count = sum(without.values()) if kind == "all" else without[kind]
        if len(values) + count:
            within, middle = np.mean(values <= BAR), np.median(values) if len(values) else np.nan
            left = count / (len(values) + count)
            print(f"{kind:<12} {len(values):>9} {within:>12.2%} {middle:>9.1e} {left:>9.1%}")
    print(f"scenes whose own motion failed: {failed} of {scenes}")
    together = np.concatenate([errors[kind] for kind in KINDS])
    fraction, numbers = float(np.mean(together <= BAR)), (first, first + scenes - 1)
    quantity = f"contact gradients in {scenes} random scenes within {BAR:g} of converged differences"
    print(write_claims(__file__, [Claim(quantity, 100 * fraction, "%", seeds=numbers)]))
    draw(errors, out)
    return fraction


def draw(errors: dict[str, list[float]], out: Path) -> None:
    """Draw a histogram of errors by kind of scene."""
    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    edges = np.logspace(-16, 0, 49)
    axes.hist([np.clip(values, 1e-16, 1.0) for values in errors.values()], edges, stacked=True, label=list(errors))
    axes.axvline(BAR, color="black", linestyle=":")
    axes.set(xscale="log", xlabel="error of a derivative", ylabel="derivatives", title="Gradients through contact")
    axes.legend()
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "contact_gradients.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
