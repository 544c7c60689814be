"""Methods of contact side by side: by events, by a penalty and by a soft force, on scenes with closed forms.

Each scene is stepped at several lengths of step; a force has three stiffnesses over two decades. The table tells how
far the final state is from the exact one, its derivative with respect to the start, the deepest overlap, the longest
step at which the motion stays bounded, and microseconds a step of 1 ms forward and backward. A second table follows
the size of the gradient over 1, 10 and 100 bounces. Methods that solve complementarity at a fixed step, and relaxed
ones, are not there yet.

    python experiments/contact_methods.py [--out out]
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision import State
from physvision.core import Box, Placed, Plane, Sphere
from physvision.physics import articulated
from physvision.physics.articulated import Articulation, Body, Joint, Penalty, Soft

DOUBLE = torch.float64
STEPS = (1e-2, 1e-3, 1e-4)
GRAVITY, RADIUS = 10.0, 0.1
BOUNDED = 10.0  # m and m/s beyond which no exact motion of these scenes goes

Method = str | Penalty | Soft


@dataclass(frozen=True)
class Scene:
    """A motion with a closed form.

    Attributes:
        name: what moves.
        engine: made for a method and a step.
        start: the value that the derivative is taken by.
        state: where it starts, from an engine and that value.
        seconds: how long it moves.
        read: the number that is compared, from the final state.
        exact: that number and its derivative.
    """

    name: str
    engine: Callable[[Method, float], Articulation]
    start: float
    state: Callable[[Articulation, Tensor], State]
    seconds: float
    read: Callable[[State], Tensor]
    exact: tuple[float, float]


def methods() -> dict[str, Method]:
    found: dict[str, Method] = {"event": "event"}
    for stiffness in (1e3, 1e4, 1e5):
        found[f"penalty, k = {stiffness:.0e}"] = Penalty(stiffness, damping=0.0)
    for stiffness in (1e3, 1e4, 1e5):
        found[f"soft, k = {stiffness:.0e}"] = Soft(stiffness, distance=1e-3)
    return found


def ball(name: str) -> Body:
    return Body(name, None, [Joint("free")], mass=1.0, inertia=(0.004,) * 3, shapes=[Placed(Sphere(RADIUS))])


def dropped() -> Scene:
    """An elastic ball from a height of 1 m, one bounce: z = s d − g d²/2, ∂z/∂h = −1 + 2 g d / s."""
    height, seconds = 1.0, 0.8
    speed = math.sqrt(2 * GRAVITY * height)
    after = seconds - speed / GRAVITY

    def engine(method: Method, dt: float) -> Articulation:
        return articulated.tree(
            [ball("ball")], dt=dt, gravity=(0, 0, -GRAVITY), scenery=[Placed(Plane())], contact=method, restitution=1.0
        )

    def state(made: Articulation, value: Tensor) -> State:
        rest = made.initial_state(dtype=DOUBLE)
        up = torch.tensor([0, 0, 1, 0, 0, 0, 0], dtype=DOUBLE)
        return State(rest.q + up * (value + RADIUS), rest.v)

    exact = speed * after - GRAVITY * after**2 / 2, -1 + 2 * GRAVITY * after / speed
    return Scene("bounce", engine, height, state, seconds, lambda final: final.q[0, 2] - RADIUS, exact)


def head_on() -> Scene:
    """Two equal elastic balls: the one that was struck goes on with the other's place, ∂x₂/∂x₁ = 1."""
    speed, seconds = 2.0, 0.8

    def engine(method: Method, dt: float) -> Articulation:
        return articulated.tree([ball("one"), ball("two")], dt=dt, gravity=(0, 0, 0), contact=method, restitution=1.0)

    def state(made: Articulation, value: Tensor) -> State:
        rest = made.initial_state(dtype=DOUBLE)
        along = torch.eye(14, dtype=DOUBLE)
        v = torch.zeros_like(rest.v)
        v[0, 0] = speed
        return State(rest.q + value * along[0] + 0.6 * along[7], v)

    # Had they passed through each other, the first would be where the second is, but for their diameter.
    exact = speed * seconds + 2 * RADIUS, 1.0
    return Scene("head on", engine, 0.0, state, seconds, lambda final: final.q[0, 7], exact)


def sliding() -> Scene:
    """A block on a slope slides to rest on it, at v² / 2a: a = g (μ cos α − sin α), ∂x/∂v = v / a."""
    angle, friction, speed, seconds = 0.3, 0.8, 1.5, 0.8
    slowing = GRAVITY * (friction * math.cos(angle) - math.sin(angle))

    def engine(method: Method, dt: float) -> Articulation:
        block = Body(
            "block", None, [Joint("free")], mass=1.0, inertia=(0.02,) * 3, shapes=[Placed(Box((0.4, 0.4, 0.05)))]
        )
        down = (GRAVITY * math.sin(angle), 0.0, -GRAVITY * math.cos(angle))
        return articulated.tree(
            [block], dt=dt, gravity=down, scenery=[Placed(Plane())], contact=method, friction=friction
        )

    def state(made: Articulation, value: Tensor) -> State:
        rest = made.initial_state(dtype=DOUBLE)
        up = torch.tensor([0, 0, 0.025, 0, 0, 0, 0], dtype=DOUBLE)
        return State(rest.q + up, rest.v + value * torch.eye(6, dtype=DOUBLE)[0])

    exact = speed**2 / (2 * slowing), speed / slowing
    return Scene("block on a slope", engine, speed, state, seconds, lambda final: final.q[0, 0], exact)


@dataclass(frozen=True)
class Found:
    """What a method made of a scene at one step; the derivative is None where the motion failed."""

    error: float
    derivative: float | None
    overlap: float
    forward: float
    backward: float

    @property
    def bounded(self) -> bool:
        """Whether the motion did not run away."""
        return self.derivative is not None and self.error < BOUNDED


def run(scene: Scene, method: Method, dt: float) -> Found:
    """Simulate and differentiate; microseconds a step are the least of three."""
    engine = scene.engine(method, dt)
    steps = round(scene.seconds / dt)
    value = torch.tensor(scene.start, dtype=DOUBLE, requires_grad=True)
    forward = backward = math.inf
    found, derivative, overlap = value, value, math.nan
    for _ in range(3):
        state = scene.state(engine, value)
        began = time.thread_time()
        path = engine.rollout(state, steps)
        forward = min(forward, (time.thread_time() - began) / steps * 1e6)
        assert path.status is not None
        if not bool(path.status.converged.all()):
            return Found(math.inf, None, math.nan, forward, math.nan)
        found, overlap = scene.read(path.final), float(path.status.overlap.max())
        began = time.thread_time()
        (derivative,) = torch.autograd.grad(found, value)
        backward = min(backward, (time.thread_time() - began) / steps * 1e6)
    return Found(abs(found.item() - scene.exact[0]), derivative.item(), overlap, forward, backward)


def table(scene: Scene) -> dict[str, list[Found]]:
    """Run and print all methods and steps."""
    print(f"{scene.name}: exact {scene.exact[0]:.4f} m, derivative {scene.exact[1]:.4f}")
    print(
        f"  {'':<20}{'error, m, at dt =':<30}{'derivative at dt =':<30}{'deepest':>9}{'longest dt':>11}"
        f"{'µs forward':>11}{'backward':>9}"
    )
    print(f"  {'':<20}{''.join(f'{dt:<10.0e}' for dt in STEPS)}{''.join(f'{dt:<10.0e}' for dt in STEPS)}")
    found = {}
    for name, method in methods().items():
        found[name] = rows = [run(scene, method, dt) for dt in STEPS]
        longest = max((dt for dt, each in zip(STEPS, rows, strict=True) if each.bounded), default=math.nan)
        errors = "".join(f"{each.error:<10.1e}" for each in rows)
        slopes = "".join(f"{'–' if each.derivative is None else f'{each.derivative:.3g}':<10}" for each in rows)
        deepest = max(each.overlap for each in rows)
        last = rows[1]
        print(
            f"  {name:<20}{errors}{slopes}{deepest:>9.1e}{longest:>11.0e}{last.forward:>11.2f}{last.backward:>9.2f}",
            flush=True,
        )
    print()
    return found


def growth(bounces: tuple[int, ...] = (1, 10, 100), dt: float = 1e-3) -> None:
    """Print the derivative of the height of an elastic ball by its start, half a flight after so many bounces."""
    scene = dropped()
    fall = math.sqrt(2 * scene.start / GRAVITY)
    print(f"size of the gradient of the end by the start, half way up after the n-th bounce, dt = {dt:.0e}")
    print(f"  {'':<20}" + "".join(f"{count:>10}" for count in bounces))
    for name, method in methods().items():
        engine = scene.engine(method, dt)
        sizes = []
        for count in bounces:
            value = torch.tensor(scene.start, dtype=DOUBLE, requires_grad=True)
            path = engine.rollout(scene.state(engine, value), round(fall * (2 * count - 0.5) / dt))
            parts = [path.final.q[0, 2], path.final.v[0, 2]]
            slopes = [torch.autograd.grad(part, value, retain_graph=True)[0] for part in parts]
            sizes.append(float(torch.stack(slopes).norm()))
        print(f"  {name:<20}" + "".join(f"{size:>10.3g}" for size in sizes), flush=True)
    # The state repeats with the period 2 √(2h/g): half way up after n bounces, t = (2n − ½) f, f = √(2h/g) is fixed.
    exact = []
    for count in bounces:
        speed, since = GRAVITY * fall, 0.5 * fall  # after the last bounce; its time moves by (2n − 1) ∂f/∂h
        later = (2 * count - 1) / speed
        rise = since * GRAVITY / speed - (speed - GRAVITY * since) * later
        exact.append(math.hypot(rise, GRAVITY / speed + GRAVITY * later))
    print(f"  {'exact':<20}" + "".join(f"{size:>10.3g}" for size in exact) + "\n")


def draw(found: dict[str, dict[str, list[Found]]], scenes: list[Scene], path: Path) -> None:
    """The error of the derivative over the step, a panel a scene."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(scenes), figsize=(13, 4.2), layout="constrained")
    for scene, axes in zip(scenes, panels, strict=True):
        for name, rows in found[scene.name].items():
            seen = [(dt, each.derivative) for dt, each in zip(STEPS, rows, strict=True) if each.derivative is not None]
            errors = [max(abs(slope - scene.exact[1]), 1e-12) for _, slope in seen]
            axes.loglog([dt for dt, _ in seen], errors, "o-", label=name)
        axes.set(title=scene.name, xlabel="step, s", ylabel="error of the derivative")
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize=7)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(out: Path = Path("out")) -> dict[str, dict[str, list[Found]]]:
    """Print the tables and draw the errors of derivatives.

    Args:
        out: folder of the picture.
    """
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    scenes = [dropped(), head_on(), sliding()]
    found = {scene.name: table(scene) for scene in scenes}
    growth()
    path = out / "contact_methods.png"
    draw(found, scenes, path)
    print(f"drawn: {path}")
    return found


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
