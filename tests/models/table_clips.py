"""Clips of discs with exact coverage, and the true positions of the discs."""

import numpy as np
import torch

from physvision.datasets.billiards.drawing import draw_discs
from physvision.datasets.billiards.simulation import Table, simulate

SIZE, RADIUS = 64, 3.2


def clip(colors, frames=60, seed=0, background=0.0, noise=0.0, speed=1.2):
    """Frames of 0 to 1, (frames, 3, SIZE, SIZE), and true positions, (frames, balls, 2), pixels."""
    rng = np.random.default_rng(seed)
    count = len(colors)
    angles = rng.uniform(0, 2 * np.pi, count)
    velocities = speed * 30 * np.stack([np.cos(angles), np.sin(angles)], 1)
    table = Table(np.full(count, RADIUS), np.ones(count), (SIZE, SIZE))
    centers = simulate(table, apart(rng, count), velocities, np.arange(frames) / 30).positions
    canvas = np.full((frames, SIZE, SIZE, 3), round(255 * background), np.uint8)
    draw_discs(canvas, centers, table.radii, np.asarray(colors, float))
    levels = canvas / 255 + noise * rng.normal(size=canvas.shape)
    return torch.from_numpy(levels.clip(0, 1)).float().permute(0, 3, 1, 2), centers


def apart(rng, count):
    while True:
        centers = rng.uniform(RADIUS + 1, SIZE - RADIUS - 1, (count, 2))
        distances = np.linalg.norm(centers[:, None] - centers, axis=-1) + 1e9 * np.eye(count)
        if distances.min() > 3 * RADIUS:
            return centers
