"""The camera, as far as a single clip of a plane motion tells of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation import Unknown
from physvision.estimation.unknowns import Values
from physvision.perception import Track

TILT = math.radians(1)  # of a camera that is meant to stand upright: people see a degree or two
_KEYSTONE = 0.005  # change of scale over half a picture for a camera held by hand, a degree or two off the normal
_UNKNOWN_KEYSTONE = 0.05  # the same where nothing is known of the camera
_FORESHORTENED = 0.01  # of lengths along one direction against those across it, for such a camera
_SQUASHED = 2e-4  # the same for one held by hand: half of what the cosine of two degrees lacks
_SLOWEST = 0.035  # s, readout of the slowest phones
_READOUT = 0.008  # s from the first row to the last of a phone, and how far from that others are


@dataclass(frozen=True)
class View:
    """The picture that tracks were found in.

    Attributes:
        width: pixels.
        height: pixels.
        corner: x and y of its upper left.
        filmed: whether a camera that has its own ways took it: one that does not look straight on, and reads rows one
            after another.
        oblique: standard deviation of the change of scale over half a picture, from how it looks.
    """

    width: float
    height: float
    corner: tuple[float, float] = (0.0, 0.0)
    filmed: bool = True
    oblique: float = _KEYSTONE

    @classmethod
    def around(cls, tracks: Sequence[Track]) -> View:
        """For tracks without a picture: what they fill, seen all at once and straight on."""
        places = np.concatenate([track.positions[track.observed] for track in tracks])
        middle = (places.min(0) + places.max(0)) / 2
        span = 1.2 * max(float(np.ptp(places, axis=0).max()), 1e-9)
        return cls(span, span, (float(middle[0]) - span / 2, float(middle[1]) - span / 2), filmed=False)

    def by_camera(self) -> View:
        """The same seen by a camera, nobody knows how: people measure from close by, and from one side."""
        return replace(self, filmed=True, oblique=_UNKNOWN_KEYSTONE)

    def unknowns(self, dt: float) -> list[Unknown]:
        """What is not known of a camera that takes a frame every `dt` seconds, and how far it may be off."""
        if not self.filmed:
            return []
        most = _FORESHORTENED if self.oblique > _KEYSTONE else _SQUASHED
        return [
            Unknown("keystone", [0.0, 0.0], -12 * self.oblique, 12 * self.oblique, std=self.oblique),
            # The rows of a frame are read before the next frame begins.
            Unknown("readout", min(_READOUT, 0.4 * dt), 0.0, min(_SLOWEST, dt), std=_READOUT, unit="s"),
            Unknown("foreshortening", [0.0, 0.0], scale=most, std=most),
        ]

    def see(self, places: Float[Tensor, "worlds 2"], values: Values) -> Float[Tensor, "worlds 2"]:
        """Pixels of places that would be there if the camera stood on the normal of their plane."""
        if "keystone" not in values:
            return places
        middle = places.new_tensor(self.corner) + places.new_tensor([self.width / 2, self.height / 2])
        away, slant = places - middle, values["keystone"]
        share = (slant * away).sum(1, keepdim=True) / (self.width / 2)
        if "foreshortening" in values:
            # With a scale, a turn, a shift and the keystone that is all that a camera can do to a plane.
            x, y = away.unbind(1)
            a, b = values["foreshortening"].unbind(1)
            away = torch.stack([x + a * x + b * y, y + b * x - a * y], 1)
        return middle + away / (1 + share)

    def rows(self, places: Float[Tensor, "samples numbers"]) -> Float[Tensor, "samples objects"]:
        """The rows of the picture in which things are seen at these places; the middle one where they are not seen."""
        top = self.corner[1]
        return places[:, 1::2].nan_to_num(top + self.height / 2).clamp(top, top + self.height)

    def delay(self, values: Values, rows: Float[Tensor, "worlds objects"]) -> Float[Tensor, "worlds objects"]:
        """How much later than a picture's first row these were read, s."""
        return values["readout"][:, None] * (rows - self.corner[1]) / self.height
