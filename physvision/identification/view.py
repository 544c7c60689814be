"""Camera model of a single clip of plane motion: keystone, foreshortening and rolling shutter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation import Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.settings import ViewSettings
from physvision.perception import Track

_DEFAULTS = ViewSettings()


@dataclass(frozen=True)
class View:
    """Picture in which tracks were found, with the priors of its camera.

    Attributes:
        width: Width of the picture, pixels.
        height: Height of the picture, pixels.
        corner: Position of its upper left corner, pixels.
        filmed: If true, a camera took the picture: at an angle, and one row after another.
        keystone_std: Standard deviation of the relative change of scale over half a picture.
        settings: Priors of the camera.
    """

    width: float
    height: float
    corner: tuple[float, float] = (0.0, 0.0)
    filmed: bool = True
    keystone_std: float = _DEFAULTS.keystone_std
    settings: ViewSettings = _DEFAULTS

    @classmethod
    def around(cls, tracks: Sequence[Track], settings: ViewSettings = _DEFAULTS) -> View:
        """Return the view of tracks without a picture: around their positions, straight on, all rows at once."""
        positions = np.concatenate([track.positions[track.observed] for track in tracks])
        center = (positions.min(0) + positions.max(0)) / 2
        span = settings.table_margin * max(float(np.ptp(positions, axis=0).max()), 1e-9)
        corner = (float(center[0]) - span / 2, float(center[1]) - span / 2)
        return cls(span, span, corner, filmed=False, settings=settings)

    def as_filmed(self) -> View:
        """Return the view by a camera at an unknown angle; people measure from close by, and from one side."""
        return replace(self, filmed=True, keystone_std=self.settings.unknown_keystone_std)

    def tilt_unknown(self) -> Unknown:
        """Return the unknown roll of a camera that is meant to stand upright."""
        return Unknown("tilt", 0.0, scale=self.settings.tilt_std, std=self.settings.tilt_std, unit="rad")

    def unknowns(self, dt: float) -> list[Unknown]:
        """Return the unknowns of a camera that takes a frame every `dt` seconds."""
        if not self.filmed:
            return []
        settings, keystone = self.settings, self.keystone_std
        at_angle = keystone > settings.keystone_std
        foreshortening = settings.unknown_foreshortening_std if at_angle else settings.foreshortening_std
        bound = settings.max_keystone_ratio * keystone
        # The rows of a frame are read before the next frame begins.
        readout = min(settings.readout, 0.4 * dt)
        return [
            Unknown("keystone", [0.0, 0.0], -bound, bound, std=keystone),
            Unknown("readout", readout, 0.0, min(settings.max_readout, dt), std=settings.readout, unit="s"),
            Unknown("foreshortening", [0.0, 0.0], scale=foreshortening, std=foreshortening),
        ]

    def project(self, positions: Float[Tensor, "worlds 2"], values: Values) -> Float[Tensor, "worlds 2"]:
        """Return the pixels at which the camera shows positions as seen from the normal of their plane."""
        if "keystone" not in values:
            return positions
        center = positions.new_tensor(self.corner) + positions.new_tensor([self.width / 2, self.height / 2])
        offset = positions - center
        depth = (values["keystone"] * offset).sum(1, keepdim=True) / (self.width / 2)
        # With scale, rotation, shift and keystone, these make up every projective transformation of a plane.
        x, y = offset.unbind(1)
        a, b = values["foreshortening"].unbind(1)
        return center + torch.stack([x + a * x + b * y, y + b * x - a * y], 1) / (1 + depth)

    def image_rows(self, positions: Float[Tensor, "samples numbers"]) -> Float[Tensor, "samples objects"]:
        """Return the image rows of positions; the middle row where they are NaN."""
        top = self.corner[1]
        return positions[:, 1::2].nan_to_num(top + self.height / 2).clamp(top, top + self.height)

    def readout_delay(self, values: Values, rows: Float[Tensor, "worlds objects"]) -> Float[Tensor, "worlds objects"]:
        """Return how much later than a picture's first row these rows were read, s."""
        return values["readout"][:, None] * (rows - self.corner[1]) / self.height


def rotate(vectors: Tensor, angle: Tensor) -> Tensor:
    """Rotate vectors, (…, 2), from x towards y."""
    x, y = vectors.unbind(-1)
    return torch.stack([x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()], -1)
