"""Figures of the derivations in docs: an implicit derivative, a time of impact, an LCP, a friction cone and an edge.

    python experiments/derivations.py [--out docs/images]

Every curve is computed from a closed form that its page derives.
"""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib as mpl
import numpy as np
from jsonargparse import auto_cli
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Polygon, Rectangle

mpl.use("Agg")
from matplotlib import pyplot as plt

BLUE, ORANGE, GREEN, GRAY = "#1f77b4", "#d95f02", "#2a9d4a", "#777777"
STYLE = {"font.size": 10, "svg.hashsalt": "physvision", "svg.fonttype": "path", "axes.spines.top": False}
STYLE |= {"axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 9}
GRAVITY, DURATION = 10.0, 0.8  # m/s², s


def draw_implicit(axes: Axes) -> None:
    """Draw the root x(θ) of r = x³ + x − θ, Newton's way to it, and the derivative that one linear solve gives."""
    x = np.linspace(-0.2, 1.6, 200)
    axes.plot(x**3 + x, x, color=BLUE, label="r(x, θ) = 0")
    theta, iterates = 2.5, [0.35]
    for _ in range(6):
        value = iterates[-1]
        iterates.append(value - (value**3 + value - theta) / (3 * value**2 + 1))
    root = iterates[-1]
    axes.plot([theta] * len(iterates), iterates, "o", color=GRAY, markersize=4, label="iterates of a solver")
    slope = 1 / (3 * root**2 + 1)  # −(∂r/∂x)⁻¹ ∂r/∂θ
    near = np.array([theta - 1.6, theta + 1.6])
    axes.plot(near, root + slope * (near - theta), color=ORANGE, label="derivative of the root")
    axes.set(xlabel="parameter θ", ylabel="solution x", xlim=(0, 4.5), ylim=(-0.1, 1.75))
    axes.legend(loc="lower right")


def height(start: float, time: np.ndarray, impact: float | None = None) -> np.ndarray:
    """Height of an elastic ball dropped from rest, m.

    Args:
        start: Height at the start, m.
        time: Times, s.
        impact: Time at which the velocity is reversed, s; that of the floor if not given.
    """
    impact = math.sqrt(2 * start / GRAVITY) if impact is None else impact
    after = time - impact
    bottom, speed = start - GRAVITY * impact**2 / 2, GRAVITY * impact
    return np.where(after < 0, start - GRAVITY * time**2 / 2, bottom + speed * after - GRAVITY * after**2 / 2)


def draw_impact(axes: Axes) -> None:
    """Draw a ball that bounces, one that starts higher, and the latter with its impact at the time of the former."""
    time, raised = np.linspace(0, 0.95, 400), 1.12
    axes.plot(time, height(1.0, time), color=BLUE, label="dropped from 1 m")
    axes.plot(time, height(raised, time), color=ORANGE, label="dropped from 1.12 m")
    undelayed = height(raised, time, math.sqrt(2 / GRAVITY))
    axes.plot(time, undelayed, "--", color=GRAY, label="the same, impact not delayed")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.axvline(DURATION, color="black", linewidth=0.8, linestyle=":")
    axes.text(DURATION - 0.01, 0.05, "T = 0.8 s", ha="right")
    axes.set(xlabel="time, s", ylabel="height, m", xlim=(0, 0.95), ylim=(-0.05, 1.6))
    axes.legend(loc="upper left", ncols=1)


def draw_lcp(axes: Axes) -> None:
    """Draw the corner 0 ≤ λ ⟂ u ≥ 0, and the lines u = a λ + b of a contact that closes and of one that opens."""
    axes.plot([0, 0, 2.6], [2.2, 0, 0], color="black", linewidth=3, solid_capstyle="butt", label="0 ≤ λ ⊥ u ≥ 0")
    impulse = np.array([-0.4, 2.6])
    for offset, color, name in ((-1.2, BLUE, "closes: λ = −b / a"), (0.7, ORANGE, "opens: λ = 0")):
        axes.plot(impulse, 0.8 * impulse + offset, color=color, label=name)
        solution = max(0.0, -offset / 0.8)
        axes.plot(solution, 0.8 * solution + offset, "o", color=color)
    axes.axhline(0, color=GRAY, linewidth=0.5, zorder=0)
    axes.axvline(0, color=GRAY, linewidth=0.5, zorder=0)
    axes.set(xlabel="impulse λ", ylabel="velocity u of the gap", xlim=(-0.4, 2.6), ylim=(-1.6, 2.2))
    axes.legend(loc="lower right")


def draw_cone(axes: Axes) -> None:
    """Draw the impulses of a ball of 1 kg that strikes the floor at 1 m/s with ever more slip, e = 0.5, μ = 0.5."""
    friction, normal = 0.5, 1.5  # (1 + e) m |u_n|, N s
    axes.add_patch(Polygon([(0, 0), (-1.2, 2.4), (1.2, 2.4)], color=BLUE, alpha=0.15, linewidth=0))
    axes.plot([-1.2, 0, 1.2], [2.4, 0, 2.4], color=BLUE, label="|λ_t| = μ λ_n")
    slips = np.array([0.0, 0.6, 1.2, 1.8, 2.4, 3.0, 4.2])
    sticking = 2 / 7 * slips
    sticks = sticking <= friction * normal
    axes.plot(-sticking[sticks], np.full(sticks.sum(), normal), "o", color=GREEN, label="sticks: λ_t = −2/7 m u_t")
    axes.plot(-friction * normal, normal, "s", color=ORANGE, label="slides: λ_t = −μ λ_n")
    axes.plot(-sticking[~sticks], np.full((~sticks).sum(), normal), "x", color=GRAY, label="would be needed to stick")
    axes.set(xlabel="impulse of friction λ_t, N s", ylabel="normal impulse λ_n, N s", xlim=(-1.5, 1.5), ylim=(0, 3.6))
    axes.legend(loc="upper right")


def covered(place: float, radius: float = 2.0, samples: int = 400) -> float:
    """Area of the pixel from −½ to ½ that a disc covers.

    Args:
        place: Center of the disc on the axis through the pixel's center, in pixels.
        radius: Radius of the disc, in pixels.
        samples: Number of rows of the pixel, each of which is covered along one interval.
    """
    rows = (np.arange(samples) + 0.5) / samples - 0.5
    right = place + np.sqrt(radius**2 - rows**2)
    return float(np.clip(right + 0.5, 0, 1).mean())


def draw_edge(axes: Axes) -> None:
    """Draw the color of a pixel over the place of a white disc, by area and by one ray, and the pixel itself."""
    places = np.linspace(-3.0, -1.0, 201)
    axes.plot(places, [covered(place) for place in places], color=BLUE, label="mean over the pixel's area")
    axes.plot(places, np.where(places + 2.0 > 0, 1.0, 0.0), color=ORANGE, label="ray through its center")
    axes.set(xlabel="place of the disc, pixels", ylabel="color of the pixel", xlim=(-3, -1), ylim=(-0.05, 1.75))
    axes.set_yticks([0, 0.5, 1])
    axes.legend(loc="upper right")
    inset = axes.inset_axes((0.02, 0.56, 0.3, 0.44))
    inset.add_patch(Rectangle((-0.5, -0.5), 1, 1, facecolor="#444444"))
    for place, color in ((-1.85, ORANGE), (-2.0, "#dddddd")):
        inset.add_patch(Circle((place, 0), 2.0, facecolor=color, linewidth=0))
    inset.add_patch(Rectangle((-0.5, -0.5), 1, 1, fill=False, edgecolor="black"))
    inset.annotate("", (0.42, 0), (0.0, 0), arrowprops={"arrowstyle": "->", "color": "white"})
    inset.text(0.2, 0.12, "v_n", color="white", fontsize=9)
    inset.set(xlim=(-0.75, 0.75), ylim=(-0.75, 0.75), aspect="equal")
    inset.axis("off")


FIGURES = {
    "implicit_derivative": draw_implicit,
    "time_of_impact": draw_impact,
    "lcp": draw_lcp,
    "friction_cone": draw_cone,
    "edge": draw_edge,
}


def main(out: Path = Path("docs/images")) -> None:
    """Write the figures as SVG files.

    Args:
        out: Folder of the figures.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        with mpl.rc_context(STYLE):
            figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
            draw(axes)
            figure.savefig(out / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)
        print(out / f"{name}.svg")


if __name__ == "__main__":
    auto_cli(main)
