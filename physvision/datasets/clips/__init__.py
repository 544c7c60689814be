"""Drawn clips of simple motions with their truth, for tests and examples of `identify`."""

from physvision.datasets.clips.filming import (
    KINDS as KINDS,
    LEADING as LEADING,
    DrawnClip as DrawnClip,
    Filming as Filming,
    draw as draw,
    film as film,
)
from physvision.datasets.clips.motion import Body as Body, Line as Line, Motion as Motion
