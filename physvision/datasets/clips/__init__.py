"""Drawn clips of simple motions with their truth, for tests and examples of `identify`."""

from physvision.datasets.clips.filming import (
    DETERMINED_PARAMETERS as DETERMINED_PARAMETERS,
    KINDS as KINDS,
    DrawnClip as DrawnClip,
    Filming as Filming,
    draw as draw,
    film as film,
)
from physvision.datasets.clips.motion import Body as Body, Line as Line, Motion as Motion
