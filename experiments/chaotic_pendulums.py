"""Pendulums that start almost alike and part, simulated in one call; draws a film and a picture to out/."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import matplotlib as mpl
import numpy as np
import torch

from physvision import video
from physvision.core import State, Trajectory
from physvision.physics import articulated

mpl.use("Agg")
from matplotlib import pyplot as plt

LENGTHS = (0.5, 0.5, 0.5)  # m
START = (2.1, 0.4, 0.3)  # rad
SPREAD = 1e-3  # rad between the first angles of the first and of the last pendulum
PENDULUMS = 32
SECONDS = 8
FPS = 30
STATES = 8  # to a frame, so that trails are smooth
FADING = 0.92  # of the trails, from frame to frame
STILL = 3.07  # s, shown in the picture
SIDE = 640  # pixels
BACKGROUND = (14, 17, 24)
SHIFT = 4  # OpenCV's fractional bits of a coordinate


def main(out: Path = Path("out")) -> None:
    """Simulate 3-link pendulums, draw them to a video and a picture, and print where those are.

    Args:
        out: folder for both; made where it is missing.
    """
    out.mkdir(parents=True, exist_ok=True)
    engine = articulated.chain(LENGTHS, dt=1 / (FPS * STATES), integrator="runge_kutta_4", substeps=4)
    first = torch.tensor(START, dtype=torch.float64).repeat(PENDULUMS, 1)
    first[:, 0] += torch.linspace(0.0, SPREAD, PENDULUMS, dtype=torch.float64)
    start = State(first, torch.zeros_like(first))
    engine.rollout(start, 1)
    began = time.perf_counter()
    swings = engine.rollout(start, SECONDS * FPS * STATES)
    took = time.perf_counter() - began
    steps = swings.steps * engine.substeps
    print(f"Simulated {PENDULUMS} pendulums for {SECONDS} s, {steps} steps each, in {took:.2f} s.")
    points = joints(engine, swings)
    frames = list(draw(points))
    film = video.write(out / "pendulum.mp4", iter(frames), fps=FPS)
    picture = draw_picture(engine, swings, frames[round(STILL * FPS)], out / "pendulum.png")
    print(f"video:   {film}\npicture: {picture}")


def joints(engine: articulated.Articulation, swings: Trajectory) -> np.ndarray:
    """Positions of the hinges and the tip of each pendulum, (batch, times, rods + 1, 2), m; x right, z up."""
    poses = engine.poses(swings.flatten())
    tip = poses[:, -1, :3, 3] - LENGTHS[-1] * poses[:, -1, :3, 2]
    points = torch.cat([poses[:, :, :3, 3], tip.unsqueeze(1)], 1)
    return points[..., [0, 2]].unflatten(0, (swings.batch, -1)).numpy()


def draw(points: np.ndarray) -> Iterator[np.ndarray]:
    """Frames, (SIDE, SIDE, 3) uint8: every tip leaves a fading trail; the first pendulum stands out."""
    colors = mpl.colormaps["plasma"](np.linspace(0.25, 0.95, len(points)))[:, :3] * 255
    reach = 1.12 * sum(LENGTHS)
    pixels = np.rint((points * (1, -1) / reach + 1) * SIDE / 2 * 2**SHIFT).astype(np.int32)
    light = np.zeros((SIDE, SIDE, 3), np.uint8)
    for step in range(0, pixels.shape[1], STATES):
        # Rounding alone would never let the last traces go.
        light = cv2.convertScaleAbs(light, alpha=FADING)
        light -= (light > 0).astype(np.uint8)
        for way, color in zip(pixels[:, max(step - STATES, 0) : step + 1, -1], colors, strict=True):
            _line(light, way, color, 2)
        frame = cv2.add(cv2.add(np.full_like(light, BACKGROUND), light), cv2.GaussianBlur(light, (0, 0), 5))
        ghosts = frame.copy()
        for rods, color in zip(pixels[1:, step], colors[1:], strict=True):
            _line(ghosts, rods, color, 2)
        frame = cv2.addWeighted(ghosts, 0.35, frame, 0.65, 0)
        _line(frame, pixels[0, step], (236, 239, 244), 5)
        for point in pixels[0, step]:
            cv2.circle(frame, point.tolist(), 8 << SHIFT, (236, 239, 244), -1, cv2.LINE_AA, SHIFT)
            cv2.circle(frame, point.tolist(), 4 << SHIFT, BACKGROUND, -1, cv2.LINE_AA, SHIFT)
        yield frame


def _line(image: np.ndarray, points: np.ndarray, color: tuple[float, ...] | np.ndarray, width: int) -> None:
    cv2.polylines(image, [np.ascontiguousarray(points)], False, tuple(map(float, color)), width, cv2.LINE_AA, SHIFT)


def draw_picture(engine: articulated.Articulation, swings: Trajectory, frame: np.ndarray, path: Path) -> Path:
    """One frame, how the angles part, and the energy of the first pendulum."""
    times = np.arange(swings.steps + 1) * engine.dt
    kinetic, potential = engine.energy(State(swings.q[0], swings.v[0]))
    total = kinetic + potential
    colors = mpl.colormaps["plasma"](np.linspace(0.25, 0.95, swings.batch))
    with plt.style.context("dark_background"):
        background = tuple(level / 255 for level in BACKGROUND)
        plt.rcParams.update({"figure.facecolor": background, "axes.facecolor": background, "font.size": 9})
        figure, panels = plt.subplot_mosaic(
            [["still", "angle"], ["still", "energy"]], figsize=(10, 5), width_ratios=[1, 1], layout="constrained"
        )
        panels["still"].imshow(frame)
        panels["still"].axis("off")
        for angles, color in zip(swings.q[..., 0].numpy(), colors, strict=True):
            panels["angle"].plot(times, angles, color=color, linewidth=0.8)
        panels["angle"].set(ylabel="first angle, rad", xticklabels=[])
        panels["angle"].set_title(f"{swings.batch} starts within {1000 * SPREAD:g} mrad", fontsize=10)
        for values, name, color in (
            (kinetic, "kinetic", "#f0804f"),
            (potential, "potential", "#a05bd6"),
            (total, "total", "#eceff4"),
        ):
            panels["energy"].plot(times, values, color=color, linewidth=1.2, label=name)
        drift = float((total - total[0]).abs().max() / (kinetic.max() - kinetic.min()))
        panels["energy"].set(xlabel="time, s", ylabel="energy, J")
        panels["energy"].set_title(f"total energy constant to {drift:.0e} of the kinetic energy's range", fontsize=10)
        panels["energy"].legend(frameon=False, ncols=3, loc="upper right")
        for name in ("angle", "energy"):
            panels[name].margins(x=0)
            panels[name].spines[["top", "right"]].set_visible(False)
        figure.savefig(path, dpi=100)
        plt.close(figure)
    return path


if __name__ == "__main__":
    main()
