"""Scenes that several tests share."""

import sys
from pathlib import Path

import torch

from physvision.physics import rigid2d

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))  # where scenes stand that benchmarks share
from rigid2d_scenes import billiard, mixture, pile, push, struck_chain, walls

__all__ = ["SIX", "THREE", "ball", "billiard", "mixture", "pile", "push", "start", "struck_chain", "walls"]

THREE = ([(100, 100), (250, 120), (200, 300)], [(150, 80), (-120, 100), (60, -170)])
SIX = (THREE[0] + [(60, 300), (330, 330), (330, 60)], THREE[1] + [(90, -40), (-80, -130), (-30, 160)])


def ball(position, velocity=(0, 0), radius=20, **body):
    """An elastic, frictionless ball."""
    return rigid2d.Circle(radius, position, velocity=velocity, **{"restitution": 1.0, "friction": 0.0, **body})


def start(world, batch=1):
    """The initial state in float64."""
    return world.initial_state(batch, torch.float64)
