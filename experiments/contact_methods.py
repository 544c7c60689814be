"""Methods of contact side by side: events, forces, MuJoCo's, and complementarity once a step, exact and relaxed.

Each scene is stepped at several lengths of step; stiffness, the speed below which friction falls off, and how much
complementarity is relaxed go over two decades each. The table tells how far the final state is from the exact one, its
derivative with respect to the start, the deepest overlap, the longest step of those tried at which the motion stays
bounded, and microseconds a step of 1 ms forward and backward. A second table follows the size of the gradient over 1,
10 and 100 bounces.

    python experiments/contact_methods.py [--out out]
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import torch
from contact_comparison import Complementarity, Penalty, Relaxed, Soft  # pyright: ignore[reportMissingImports]
from contact_scenes import (  # pyright: ignore[reportMissingImports]
    DOUBLE,
    GRAVITY,
    Method,
    Scene,
    dropped,
    head_on,
    landing,
    row,
    sliding,
    sticking,
)
from jsonargparse import auto_cli

from physvision.physics.articulated import Compliant

STEPS = (1e-2, 1e-3, 1e-4)
LONGER = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1)
BOUNDED = 10.0  # m and m/s beyond which no exact motion of these scenes goes
STIFFNESS = 1e3, 1e4, 1e5


def methods(scene: Scene) -> dict[str, Method]:
    """Those that are compared on a scene; a spring that should not bounce is damped, critically for 0.25 kg."""
    results: dict[str, Method] = {"event": "event"}
    for k in STIFFNESS:
        results[f"penalty, k = {k:.0e}"] = Penalty(k, damping=0.0 if scene.elastic else math.sqrt(k))
    if scene.rubs:
        for speed in (1e-1, 1e-3):
            results[f"penalty, ε = {speed:.0e}"] = Penalty(1e4, damping=100.0, slip_speed=speed)
    for k in STIFFNESS:
        results[f"soft, k = {k:.0e}"] = Soft(k, distance=1e-3)
    if not scene.elastic:
        results["compliant"] = Compliant()
    results["complementarity"] = Complementarity()
    for smoothing in (1e-8, 1e-6, 1e-4):
        results[f"relaxed, κ = {smoothing:.0e}"] = Relaxed(smoothing)
    return results


@dataclass(frozen=True)
class Found:
    """Result of a method for a scene and time step; the derivative is None if the motion failed."""

    error: float
    derivative: float | None
    penetration: float
    forward: float
    backward: float


def run(scene: Scene, method: Method, dt: float) -> Found:
    """Simulate and differentiate; microseconds a step are the least of three."""
    engine = scene.engine(method, dt)
    steps = round(scene.seconds / dt)
    value = torch.tensor(scene.start, dtype=DOUBLE, requires_grad=True)
    forward = backward = math.inf
    result, derivative, penetration = value, value, math.nan
    for _ in range(3):
        state = scene.state(engine, value)
        began = time.thread_time()
        path = engine.rollout(state, steps)
        forward = min(forward, (time.thread_time() - began) / steps * 1e6)
        assert path.status is not None
        if not bool(path.status.converged.all()):
            return Found(math.inf, None, math.nan, forward, math.nan)
        result, penetration = scene.read(path.final), float(path.status.penetration.max())
        began = time.thread_time()
        (derivative,) = torch.autograd.grad(result, value)
        backward = min(backward, (time.thread_time() - began) / steps * 1e6)
    return Found(abs(result.item() - scene.exact[0]), derivative.item(), penetration, forward, backward)


def longest(scene: Scene, method: Method) -> float:
    """The longest of the steps tried up to which the motion does not run away, nor fail."""
    result = math.nan
    for dt in LONGER:
        engine = scene.engine(method, dt)
        value = torch.tensor(scene.start, dtype=DOUBLE)
        path = engine.rollout(scene.state(engine, value), round(scene.seconds / dt))
        assert path.status is not None
        if not bool(path.status.converged.all()) or not float(path.q[0, :, :3].abs().max()) < BOUNDED:
            break
        result = dt
    return result


def table(scene: Scene) -> dict[str, list[Found]]:
    """Run and print all methods and steps."""
    print(f"{scene.name}: exact {scene.exact[0]:.4f} m, derivative {scene.exact[1]:.4f}")
    print(
        f"  {'':<20}{'error, m, at dt =':<30}{'derivative at dt =':<30}{'deepest':>9}{'longest dt':>11}"
        f"{'µs forward':>11}{'backward':>9}"
    )
    print(f"  {'':<20}{''.join(f'{dt:<10.0e}' for dt in STEPS)}{''.join(f'{dt:<10.0e}' for dt in STEPS)}")
    results = {}
    for name, method in methods(scene).items():
        results[name] = rows = [run(scene, method, dt) for dt in STEPS]
        errors = "".join(f"{row.error:<10.1e}" for row in rows)
        slopes = "".join(f"{'–' if row.derivative is None else f'{row.derivative:.3g}':<10}" for row in rows)
        deepest = max(row.penetration for row in rows)
        times = f"{rows[1].forward:>11.2f}{rows[1].backward:>9.2f}"
        print(f"  {name:<20}{errors}{slopes}{deepest:>9.1e}{longest(scene, method):>11.0e}{times}", flush=True)
    print()
    return results


def growth(bounces: tuple[int, ...] = (1, 10, 100), dt: float = 1e-3) -> None:
    """Print the derivative of the height of an elastic ball by its start, half a flight after so many bounces."""
    scene = dropped()
    fall = math.sqrt(2 * scene.start / GRAVITY)
    print(f"size of the gradient of the end by the start, half way up after the n-th bounce, dt = {dt:.0e}")
    print(f"  {'':<20}" + "".join(f"{count:>10}" for count in bounces))
    for name, method in methods(scene).items():
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


COLORS = {"event": "k", "penalty": "C0", "soft": "C2", "compliant": "C4", "complementarity": "C3", "relaxed": "C1"}
MARKS = "osv^d"


def draw(results: dict[str, dict[str, list[Found]]], scenes: list[Scene], path: Path) -> None:
    """The error of the derivative over the step, a panel a scene."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 3, figsize=(14, 8.5), layout="constrained", sharex=True)
    for scene, axes in zip(scenes, panels.flat, strict=True):
        marks = {kind: iter(MARKS) for kind in COLORS}
        for name, rows in results[scene.name].items():
            kind = name.split(",")[0]
            there = [
                (dt, entry.derivative) for dt, entry in zip(STEPS, rows, strict=True) if entry.derivative is not None
            ]
            errors = [max(abs(slope - scene.exact[1]), 1e-12) for _, slope in there]
            # What others hide is drawn last, as rings.
            hollow = {"mfc": "none", "ms": 11, "ls": "--", "zorder": 5} if kind == "complementarity" else {}
            axes.loglog(
                [dt for dt, _ in there], errors, label=name, color=COLORS[kind], marker=next(marks[kind]), **hollow
            )
        axes.axhline(abs(scene.exact[1]), color="0.5", linestyle=":", linewidth=1)
        axes.set(title=f"{scene.name}, derivative {scene.exact[1]:.3f}", ylim=(3e-13, 1e5))
        axes.grid(alpha=0.3)
    for axes in panels[1]:
        axes.set_xlabel("step, s")
    figure.supylabel("error of the derivative, from 1e-12 on; dotted: the derivative's own size")
    handles, labels = panels[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", fontsize=8, ncols=5)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(out: Path = Path("out")) -> dict[str, dict[str, list[Found]]]:
    """Print the tables and draw the errors of derivatives.

    Args:
        out: folder of the picture.
    """
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    scenes = [dropped(), head_on(), row(), sticking(), sliding(), landing()]
    results = {scene.name: table(scene) for scene in scenes}
    growth()
    path = out / "contact_methods.png"
    draw(results, scenes, path)
    print(f"drawn: {path}")
    return results


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
