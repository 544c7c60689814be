"""Camera model of a single clip of plane motion: homography, radial distortion and rolling shutter.

A projective transformation of a plane consists of scale, roll and shift, which are unknowns of the motion's own model,
and of keystone κ and foreshortening (a, b), which are unknowns here. `camera_posterior` derives the focal length and
the tilt from them, and how far a motion determines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.camera import Calibration
from physvision.estimation import Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.settings import CameraPrior, ViewSettings
from physvision.perception import Track

_DEFAULTS = ViewSettings()
# Reasonable steps of a search; those of the keystone follow from its bounds.
_ROLL_STEP, _FORESHORTENING_STEP, _DISTORTION_STEP = 0.02, 1e-3, 5e-3


@dataclass(frozen=True)
class View:
    """Picture in which tracks were found, with the priors of its camera.

    Attributes:
        width: Width of the picture, pixels.
        height: Height of the picture, pixels.
        corner: Position of its upper left corner, pixels.
        has_camera: If true, a camera took the picture: at an angle, and one row after another.
        has_picture: If true, the picture is known, and with it where the lens is centered.
        arbitrary: If true, the camera may stand at any angle and have any lens.
        settings: Priors of the camera.
    """

    width: float
    height: float
    corner: tuple[float, float] = (0.0, 0.0)
    has_camera: bool = True
    has_picture: bool = True
    arbitrary: bool = False
    settings: ViewSettings = _DEFAULTS

    @classmethod
    def around(cls, tracks: Sequence[Track], settings: ViewSettings = _DEFAULTS) -> View:
        """Return the view of tracks without a picture: around their positions, frontal, with all rows read at once."""
        positions = np.concatenate([track.positions[track.observed] for track in tracks])
        center = (positions.min(0) + positions.max(0)) / 2
        span = settings.table_margin * max(float(np.ptp(positions, axis=0).max()), 1e-9)
        corner = (float(center[0]) - span / 2, float(center[1]) - span / 2)
        return cls(span, span, corner, has_camera=False, has_picture=False, settings=settings)

    @property
    def prior(self) -> CameraPrior:
        """Prior of the camera's pose and lens."""
        careful, arbitrary = self.settings.careful, self.settings.arbitrary
        if not self.arbitrary:
            return careful
        # The axes of a table are upright, wherever its camera stood.
        return arbitrary if self.has_picture else replace(arbitrary, roll=careful.roll)

    @property
    def calibration(self) -> Calibration | None:
        """Calibration of the camera for this picture; None if unknown."""
        calibration = self.settings.calibration
        return calibration.resized(self.width, self.height) if calibration and self.has_picture else None

    @property
    def center(self) -> tuple[float, float]:
        """Point of the picture that the lens is centered on, pixels."""
        calibration = self.calibration
        offset = (self.width / 2, self.height / 2) if calibration is None else calibration.center
        return self.corner[0] + offset[0], self.corner[1] + offset[1]

    def roll_unknown(self) -> Unknown:
        """Return the unknown roll of the camera."""
        return Unknown("roll", 0.0, scale=_ROLL_STEP, std=self.prior.roll, unit="rad")

    def unknowns(self, dt: float) -> list[Unknown]:
        """Return the unknowns of a camera that takes a frame every `dt` seconds."""
        if not self.has_camera:
            return []
        settings, prior, bound = self.settings, self.prior, self.settings.max_keystone
        # The rows of a frame are read before the next frame begins.
        readout = min(settings.readout, 0.4 * dt)
        unknowns = [
            Unknown("keystone", [0.0, 0.0], -bound, bound, std=prior.keystone),
            Unknown("readout", readout, 0.0, min(settings.max_readout, dt), std=settings.readout, unit="s"),
            Unknown("foreshortening", [0.0, 0.0], scale=_FORESHORTENING_STEP, std=prior.foreshortening),
        ]
        calibration = self.calibration
        if self.has_picture and (calibration is None or not calibration.coefficients):
            unknowns.append(Unknown("distortion", 0.0, scale=_DISTORTION_STEP, std=prior.distortion))
        return unknowns

    def project(self, positions: Float[Tensor, "worlds 2"], values: Values) -> Float[Tensor, "worlds 2"]:
        """Return the pixels at which the camera shows positions as seen from the normal of their plane."""
        if "keystone" not in values:
            return positions
        center = positions.new_tensor(self.center)
        offset = positions - center
        depth = (values["keystone"] * offset).sum(1, keepdim=True) / (self.width / 2)
        x, y = offset.unbind(1)
        a, b = values["foreshortening"].unbind(1)
        offset = torch.stack([x + a * x + b * y, y + b * x - a * y], 1) / (1 + depth)
        calibration = self.calibration
        if "distortion" in values:
            square = offset.square().sum(1, keepdim=True) / (self.width / 2) ** 2
            offset = offset * (1 + values["distortion"][:, None] * square)
        elif calibration is not None:
            offset = calibration.distort(offset)
        return center + offset

    def rectify(self, positions: Float[np.ndarray, "samples numbers"]) -> Float[np.ndarray, "samples numbers"]:
        """Return positions as a calibrated lens would show them without distortion; unchanged without calibration."""
        calibration = self.calibration
        if calibration is None:
            return positions
        corner = np.array(self.corner)
        undistorted = calibration.undistort(positions.reshape(-1, 2) - corner) + corner
        return undistorted.reshape(positions.shape)

    def image_rows(self, positions: Float[Tensor, "samples numbers"]) -> Float[Tensor, "samples objects"]:
        """Return the image rows of positions; the middle row where they are NaN."""
        top = self.corner[1]
        return positions[:, 1::2].nan_to_num(top + self.height / 2).clamp(top, top + self.height)

    def readout_delay(
        self, rows: Float[Tensor, "samples objects"], values: Values, sample: Int[Tensor, " worlds"]
    ) -> Float[Tensor, "worlds objects"]:
        """Return how much later than a picture's first row the rows of these samples were read, s."""
        return values["readout"][:, None] * (rows[sample] - self.corner[1]) / self.height


def rotate(vectors: Tensor, angle: Tensor) -> Tensor:
    """Rotate vectors, (…, 2), from x towards y."""
    x, y = vectors.unbind(-1)
    return torch.stack([x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()], -1)
