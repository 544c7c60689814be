"""Drawn clips of simple motions with their truth: what `identify` is tested with, and what its examples show."""

from physvision.datasets.clips.filming import KINDS, LEADING, DrawnClip, Filming, draw, film
from physvision.datasets.clips.motion import Body, Line, Motion

__all__ = ["KINDS", "LEADING", "Body", "DrawnClip", "Filming", "Line", "Motion", "draw", "film"]
