"""Clips of video: frames with their timestamps."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from physvision.core.errors import InputError, ShapeError


@dataclass(frozen=True, repr=False)
class Clip:
    """Video in memory, with a timestamp for every frame.

    Attributes:
        frames: Pixel values 0 to 255, (times, height, width, channels); one channel is gray, three are RGB. The pixel
            of row i and column j covers j ≤ x ≤ j + 1, i ≤ y ≤ i + 1; y points down.
        times: Timestamps, seconds since the first frame of the video, (times,), increasing, not necessarily evenly.
        source: Origin of the frames, shown to people.
    """

    frames: UInt8[Tensor, "times height width channels"]
    times: Float[Tensor, " times"]
    source: str = ""

    def __post_init__(self) -> None:
        if self.frames.ndim != 4 or self.frames.shape[-1] not in (1, 3) or self.frames.dtype != torch.uint8:
            raise ShapeError(
                "frames: expected uint8 of shape (times, height, width, 1 or 3), "
                f"got {self.frames.dtype} of shape {tuple(self.frames.shape)}"
            )
        if self.times.shape != self.frames.shape[:1]:
            raise ShapeError(f"times: expected one for each of {len(self)} frames, got {tuple(self.times.shape)}")
        if not bool(torch.isfinite(self.times).all()) or not bool((self.times.diff() > 0).all()):
            raise InputError("times: expected finite seconds, each later than the one before")

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        color = "gray" if self.frames.shape[-1] == 1 else "color"
        rate = f", {self.fps:.5g} frames a second" if len(self) > 1 else ""
        source = f", from {self.source}" if self.source else ""
        return f"Clip({len(self)} frames of {self.width} x {self.height} pixels in {color}{rate}{source})"

    @property
    def height(self) -> int:
        """Number of rows of a frame."""
        return self.frames.shape[1]

    @property
    def width(self) -> int:
        """Number of columns of a frame."""
        return self.frames.shape[2]

    @property
    def fps(self) -> float:
        """Frame rate, frames a second, from the typical frame interval; NaN for fewer than two frames."""
        return 1.0 / frame_interval(self.times.diff()) if len(self) > 1 else float("nan")

    def window(self, start: int, stop: int) -> Clip:
        """Cut out the frames from `start` to before `stop`; their timestamps stay."""
        return Clip(self.frames[start:stop], self.times[start:stop], self.source)

    def gray(self) -> Clip:
        """Convert to one channel by the luma of Rec. 601, as PNG and JPEG readers do."""
        if self.frames.shape[-1] == 1:
            return self
        weights = torch.tensor([0.299, 0.587, 0.114], device=self.frames.device)
        luma = (self.frames.float() @ weights).round().clamp(0, 255)
        return Clip(luma.to(torch.uint8).unsqueeze(-1), self.times, self.source)

    def images(self) -> Float[Tensor, "times channels height width"]:
        """Frames as networks take them: float32 in [0, 1], channels first."""
        return brightness(self.frames.permute(0, 3, 1, 2))


def frame_interval(steps: Float[Tensor, " steps"]) -> float:
    """Mean of the steps within a quarter of the median step, s."""
    # Containers round timestamps, Matroska to milliseconds: the mean of the steps is more exact than the steps.
    steps = steps.double()
    median = steps.median()
    return float(steps[(steps - median).abs() <= 0.25 * median].mean())


def brightness(frames: Tensor) -> Float[Tensor, "..."]:
    """Convert frames to floats in [0, 1]; frames of floats are returned unchanged."""
    return frames if frames.is_floating_point() else frames.float().div_(255.0)
