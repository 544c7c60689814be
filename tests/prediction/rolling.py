"""Two balls that roll straight on, a model that sees them exactly, and videos of them."""

from dataclasses import replace

import numpy as np
import torch

from physvision import video
from physvision.camera import Camera
from physvision.core import Scene, SceneObject
from physvision.datasets.billiards.drawing import draw_discs
from physvision.models import Encoder, Observation, PredictiveAutoencoder
from physvision.physics import rigid2d
from physvision.prediction import Predictor

SIZE, RADIUS, FPS = 48, 4.0, 20.0
COLORS = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
STARTS = np.array([[12.0, 14.0], [34.0, 30.0]])  # px
SPEEDS = np.array([[6.0, 1.5], [-5.0, -2.0]])  # px/s
# Levels are rounded to 1/255, so a centroid of some 50 pixels is off by less than this; px.
EXACT = 0.02


class Centroids(Encoder):
    """Where the red and the green light is in each frame, and its slope."""

    def observe(self, frames):
        light = frames[:, :, :2].flatten(3)
        grid = torch.arange(SIZE) + 0.5
        x, y = grid.repeat(SIZE), grid.repeat_interleave(SIZE)
        whole = light.sum(-1).clamp_min(1e-6)
        positions = torch.stack([(light * x).sum(-1) / whole, (light * y).sum(-1) / whole, torch.zeros_like(whole)], -1)
        rates = (positions[:, 2:] - positions[:, :-2]) / 2 * FPS
        return Observation(positions.flatten(2), rates.flatten(2))


def scene(**changes):
    balls = [
        SceneObject(name, body, radius=RADIUS, color=color)
        for body, (name, color) in enumerate(zip(("red ball", "green ball"), COLORS, strict=True))
    ]
    instance = Scene(
        title="two balls",
        appearance="a red and a green ball in front of black",
        size=(SIZE, SIZE),
        color="rgb",
        fps=FPS,
        frames_in=3,
        coordinates={"x": "px", "y": "px", "angle": "rad"},
        objects=balls,
        parameters={"mass": "kg", "restitution": "1"},
        min_reprojection_score=0.8,
    )
    return replace(instance, **changes)


def predictor(horizon=0.5, **options):
    circles = [rigid2d.Circle(RADIUS, tuple(place), color=color) for place, color in zip(STARTS, COLORS, strict=True)]
    world = rigid2d.World(circles, gravity=(0, 0), dt=1 / FPS)
    camera = Camera.table(SIZE, SIZE, y_down=True).bind(world)
    return Predictor(PredictiveAutoencoder(Centroids(), world, camera, scene=scene()), horizon=horizon, **options)


def positions(frames, fps=FPS):
    """True places (frames, balls, 2), px."""
    return STARTS + np.arange(frames)[:, None, None] / fps * SPEEDS


def pictures(frames=30, fps=FPS, colors=COLORS, count=2):
    canvas = np.zeros((frames, SIZE, SIZE, 3), np.uint8)
    draw_discs(canvas, positions(frames, fps)[:, :count], np.full(count, RADIUS), np.array(colors[:count]))
    return canvas


def film(path, frames=30, fps=FPS, **options):
    return video.write(path, pictures(frames, fps, **options), fps, lossless=True)
