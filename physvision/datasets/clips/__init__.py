"""Drawn clips of simple motions with their truth, for tests and examples of `identify`."""

from physvision.datasets.clips.filming import KINDS, LEADING, DrawnClip, Filming, draw, film
from physvision.datasets.clips.motion import Body, Line, Motion

__all__ = ["KINDS", "LEADING", "Body", "DrawnClip", "Filming", "Line", "Motion", "draw", "film"]
