"""Camera sensor: noise, rounding to bytes and lossy compression."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float, UInt8

from physvision.core import DataError


@dataclass(frozen=True)
class Sensor:
    """Noise and compression of a trial.

    Attributes:
        noise: Standard deviation of a pixel at full brightness, 1 being full scale. Its square falls linearly with the
            brightness, to a fifth in the dark: shot noise and read-out noise.
        quality: Quality of JPEG compression, 1 to 100; None for none.
    """

    noise: float
    quality: int | None

    def record(
        self, light: Float[np.ndarray, "height width channels"], random: np.random.Generator
    ) -> UInt8[np.ndarray, "height width channels"]:
        """Convert light from 0 to 1 to a frame in bytes."""
        light = np.clip(light, 0.0, 1.0)
        if self.noise > 0.0:
            deviation = np.float32(self.noise) * np.sqrt(0.2 + 0.8 * light)
            light = np.clip(light + deviation * random.standard_normal(light.shape, dtype=np.float32), 0.0, 1.0)
        frame = np.rint(255.0 * light).astype(np.uint8)
        if self.quality is None:
            return frame
        _, data = cv2.imencode(".jpg", frame[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, self.quality])
        decoded = cv2.imdecode(data, cv2.IMREAD_COLOR)
        if decoded is None:
            raise DataError(f"OpenCV cannot read back a frame of shape {frame.shape} that it compressed as JPEG")
        return decoded[..., ::-1]
