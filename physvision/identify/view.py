"""The camera, as far as a single clip of a plane motion tells of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation import Unknown
from physvision.estimation.unknowns import Values
from physvision.perception import Track

TILT = math.radians(1)  # of a camera that is meant to stand upright: people see a degree or two
_KEYSTONE = 0.005  # change of scale over half a picture for a camera held by hand, a degree or two off the normal
_SLOWEST = 0.035  # s, readout of the slowest phones
_READOUT = 0.008  # s from the first row to the last of a phone, and how far from that others are


@dataclass(frozen=True)
class View:
    """The picture that tracks were found in.

    Attributes:
        width: pixels.
        height: pixels.
        rolling: whether rows are read one after another, as far as is known.
    """

    width: float
    height: float
    rolling: bool = True

    @classmethod
    def around(cls, tracks: Sequence[Track]) -> View:
        """For tracks without a picture: what they fill, seen all at once and straight on."""
        places = np.concatenate([track.positions[track.seen] for track in tracks])
        span = np.maximum(np.ptp(places, axis=0), 1e-9)
        return cls(float(2 * span.max()), float(2 * span.max()), rolling=False)

    def unknowns(self, dt: float) -> list[Unknown]:
        """What is not known of a camera that takes a frame every `dt` seconds, and how far it may be off."""
        if not self.rolling:
            return []
        return [
            Unknown("keystone", [0.0, 0.0], -12 * _KEYSTONE, 12 * _KEYSTONE, deviation=_KEYSTONE),
            # The rows of a frame are read before the next frame begins.
            Unknown("readout", min(_READOUT, 0.4 * dt), 0.0, min(_SLOWEST, dt), deviation=_READOUT, unit="s"),
        ]

    def see(self, places: Float[Tensor, "worlds 2"], values: Values) -> Float[Tensor, "worlds 2"]:
        """Pixels of places that would be there if the camera stood on the normal of their plane."""
        if "keystone" not in values:
            return places
        middle = places.new_tensor([self.width / 2, self.height / 2])
        away = places - middle
        share = (values["keystone"] * away).sum(1, keepdim=True) / (self.width / 2)
        return middle + away / (1 + share)

    def delay(self, values: Values, rows: Float[Tensor, " worlds"]) -> Float[Tensor, " worlds"]:
        """How much later than a picture's first row these were read, s."""
        if "readout" not in values:
            return torch.zeros_like(rows)
        return values["readout"] * rows / self.height
