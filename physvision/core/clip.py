"""Frames of a video with the moments at which they were seen."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from physvision.core.errors import InputError, ShapeError


@dataclass(frozen=True, repr=False)
class Clip:
    """A piece of video.

    Attributes:
        frames: levels of 0 to 255, (times, height, width, channels); one channel is gray, three are red, green, blue.
            The pixel of row i and column j covers j ≤ x ≤ j + 1, i ≤ y ≤ i + 1; y points down.
        times: seconds since the first frame of the video, (times,), growing. Steps may differ from each other.
        source: where the frames come from, for people.
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
            raise ShapeError(
                f"times: expected one for each of {len(self.frames)} frames, got {tuple(self.times.shape)}"
            )
        if not bool(torch.isfinite(self.times).all()) or not bool((self.times.diff() > 0).all()):
            raise InputError("times: expected finite seconds, each later than the one before")

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        color = "gray" if self.frames.shape[-1] == 1 else "colour"
        rate = f", {self.fps:.5g} frames a second" if len(self) > 1 else ""
        source = f", from {self.source}" if self.source else ""
        return f"Clip({len(self)} frames of {self.width} x {self.height} pixels in {color}{rate}{source})"

    @property
    def height(self) -> int:
        """Rows of a frame."""
        return self.frames.shape[1]

    @property
    def width(self) -> int:
        """Columns of a frame."""
        return self.frames.shape[2]

    @property
    def fps(self) -> float:
        """Frames a second, by the steps that are like the median one; NaN for fewer than two frames."""
        return 1.0 / usual_step(self.times.diff()) if len(self) > 1 else float("nan")

    def window(self, start: int, stop: int) -> Clip:
        """Frames `start` to `stop` (excluded); the times stay those of the whole."""
        return Clip(self.frames[start:stop], self.times[start:stop], self.source)

    def gray(self) -> Clip:
        """The same in one channel: luma of Rec. 601, what PNG and JPEG readers make of colour."""
        if self.frames.shape[-1] == 1:
            return self
        weights = torch.tensor([0.299, 0.587, 0.114], device=self.frames.device)
        luma = (self.frames.float() @ weights).round().clamp(0, 255)
        return Clip(luma.to(torch.uint8).unsqueeze(-1), self.times, self.source)

    def images(self) -> Float[Tensor, "times channels height width"]:
        """The frames as networks take them: float32 in [0, 1], channels first."""
        return brightness(self.frames.permute(0, 3, 1, 2))


def usual_step(steps: Float[Tensor, " steps"]) -> float:
    """The mean of the steps that are like the median one, s."""
    # A file's clock rounds steps, to whole milliseconds in Matroska; their mean is exact where each is not.
    steps = steps.double()
    median = steps.median()
    return float(steps[(steps - median).abs() <= 0.25 * median].mean())


def brightness(frames: Tensor) -> Float[Tensor, "..."]:
    """Frames as floats, 0 to 1, whether they come so or as bytes."""
    return frames if frames.is_floating_point() else frames.float().div_(255.0)
