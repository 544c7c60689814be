"""Intrinsic calibration of a camera by OpenCV: its file, and its model of lens distortion."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import cv2
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import FileError, InputError, StrPath, UnsupportedError
from physvision.core.files import read_text

# Limits of a calibration file, far above every honest one, and of its distortion model.
_MAX_BYTES, _COEFFICIENTS = 1_000_000, (4, 5, 8)
# Relative difference of aspect ratios above which a calibration is of another format.
_MAX_ASPECT_DIFFERENCE = 0.01
_UNDISTORT_ITERATIONS, _UNDISTORT_TOLERANCE = 60, 1e-10
_SPHERICAL_MODELS = ("fisheye", "equidistant", "kannala_brandt", "omnidirectional", "omnidir", "mei")


@dataclass(frozen=True)
class Calibration:
    """Focal lengths, principal point and lens distortion of a camera, in OpenCV's model.

    With x and y the coordinates of a ray at unit depth and r² = x² + y², the lens moves them to
    x (1 + k₁r² + k₂r⁴ + k₃r⁶)/(1 + k₄r² + k₅r⁴ + k₆r⁶) + 2p₁xy + p₂(r² + 2x²), and y likewise.

    Attributes:
        focal: Focal lengths along x and y, pixels.
        center: Principal point, pixels from the upper left corner of the picture, so that pixel centers are at
            half-integers.
        coefficients: k₁, k₂, p₁, p₂, k₃, k₄, k₅ and k₆, as many as there are; empty for an unknown distortion.
        size: Width and height of the picture, pixels; None if unknown.
    """

    focal: tuple[float, float]
    center: tuple[float, float]
    coefficients: tuple[float, ...] = ()
    size: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        numbers = (*self.focal, *self.center, *self.coefficients)
        if not all(math.isfinite(number) for number in numbers) or min(self.focal) <= 0:
            raise InputError(f"calibration: expected finite numbers and focal lengths above zero, got {numbers}")
        if self.coefficients and len(self.coefficients) not in _COEFFICIENTS:
            raise UnsupportedError(
                f"calibration: expected 4, 5 or 8 distortion coefficients, got {len(self.coefficients)}; calibrate "
                "without the thin-prism and tilted-sensor models"
            )

    def resized(self, width: float, height: float) -> Calibration:
        """Return the calibration of a picture of this size that shows the same field of view.

        Raises:
            InputError: The calibration is of a picture of another aspect ratio.
        """
        if self.size is None:
            if not (0 < self.center[0] < width and 0 < self.center[1] < height):
                raise InputError(
                    f"camera: the principal point {self.center} lies outside of the picture of {width:g} × {height:g} "
                    "pixels; give the calibration's image_width and image_height"
                )
            return replace(self, size=(width, height))
        ratios = width / self.size[0], height / self.size[1]
        if abs(ratios[0] / ratios[1] - 1) > _MAX_ASPECT_DIFFERENCE:
            raise InputError(
                f"camera: calibrated for pictures of {self.size[0]:g} × {self.size[1]:g} pixels, but the clip has "
                f"{width:g} × {height:g}; calibrate in the mode of filming"
            )
        focal = self.focal[0] * ratios[0], self.focal[1] * ratios[1]
        center = self.center[0] * ratios[0], self.center[1] * ratios[1]
        return replace(self, focal=focal, center=center, size=(width, height))

    def distort(self, offsets: Float[Tensor, "points 2"]) -> Float[Tensor, "points 2"]:
        """Return where a lens images points, as offsets from the principal point.

        Args:
            offsets: Offsets from the principal point without distortion, in units of the focal length along x.

        Returns:
            Offsets from the principal point, pixels.
        """
        x, y = (offsets / self.focal[0]).unbind(1)
        k1, k2, p1, p2, k3, k4, k5, k6 = self.coefficients + (0.0,) * (8 - len(self.coefficients))
        square = x * x + y * y
        radial = 1 + square * (k1 + square * (k2 + square * k3))
        radial = radial / (1 + square * (k4 + square * (k5 + square * k6)))
        distorted_x = x * radial + 2 * p1 * x * y + p2 * (square + 2 * x * x)
        distorted_y = y * radial + p1 * (square + 2 * y * y) + 2 * p2 * x * y
        return torch.stack([self.focal[0] * distorted_x, self.focal[1] * distorted_y], 1)

    def undistort(self, positions: Float[np.ndarray, "points 2"]) -> Float[np.ndarray, "points 2"]:
        """Return the positions, pixels, that a lens without distortion and with square pixels would show."""
        matrix = np.array([[self.focal[0], 0, self.center[0]], [0, self.focal[1], self.center[1]], [0, 0, 1.0]])
        coefficients = np.array(self.coefficients or (0.0,) * 4)
        flags = cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS
        criteria = (flags, _UNDISTORT_ITERATIONS, _UNDISTORT_TOLERANCE)
        # OpenCV 4 takes the criteria in a function of its own.
        undistort = getattr(cv2, "undistortPointsIter", cv2.undistortPoints)
        rays = undistort(positions.reshape(-1, 1, 2), matrix, coefficients, R=None, P=None, criteria=criteria)
        return self.focal[0] * rays[:, 0] + np.array(self.center)


def read_calibration(path: StrPath) -> Calibration:
    """Read a calibration that OpenCV wrote (`cv2.FileStorage`), in YAML, XML or JSON.

    The file has `camera_matrix` and, unless the distortion is unknown, `distortion_coefficients`; `image_width` and
    `image_height` make it valid for the same picture in another resolution. Files of ROS are read too.

    Args:
        path: Path of the file.
    """
    text = read_text(path, _MAX_BYTES)
    try:
        if text.lstrip()[:1] not in ("%", "<", "{"):  # OpenCV 4 reads no YAML without a header, as ROS writes it
            text = f"%YAML:1.0\n---\n{text}"
        storage = cv2.FileStorage(text, cv2.FILE_STORAGE_READ | cv2.FILE_STORAGE_MEMORY)
        model = storage.getNode("distortion_model")
        name = model.string().lower() if model.isString() else ""
        matrix, coefficients = (_numbers(storage.getNode(key)) for key in ("camera_matrix", "distortion_coefficients"))
        sizes = [storage.getNode(key) for key in ("image_width", "image_height")]
        size = tuple(node.real() for node in sizes if node.isInt() or node.isReal())
    except (cv2.error, SystemError) as error:
        raise FileError(f"{path}: expected YAML, XML or JSON of cv2.FileStorage") from error
    if name in _SPHERICAL_MODELS:
        raise UnsupportedError(f"{path}: the distortion model is {name!r}, expected OpenCV's pinhole model")
    if len(matrix) != 9 or matrix[0] <= 0:
        raise FileError(f"{path}: expected a camera_matrix of nine numbers, got {len(matrix)}")
    center = matrix[2] + 0.5, matrix[5] + 0.5
    return Calibration((matrix[0], matrix[4]), center, coefficients, size if len(size) == 2 and min(size) > 0 else None)


def _numbers(node: cv2.FileNode) -> tuple[float, ...]:
    """Return the numbers of a matrix of OpenCV, or of ROS's mapping with `data`; none if there is no such node."""
    if node.empty() or node.isNone():
        return ()
    try:
        values = node.mat()
    except cv2.error:
        data = node.getNode("data")
        values = [data.at(index).real() for index in range(data.size())]
    return tuple(float(number) for number in np.ravel(() if values is None else np.asarray(values)))
