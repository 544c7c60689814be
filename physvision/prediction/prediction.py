"""Results of a prediction: of some consecutive frames, and of a whole video."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.core import Scene, State, Trajectory
from physvision.models import AppearanceCode
from physvision.prediction.clip_fit import ClipFit
from physvision.prediction.clip_parameters import ParameterEstimate
from physvision.video import TimedFrame


class Difference(NamedTuple):
    """Difference from the model's domain; a severe one rejects the video."""

    is_severe: bool
    text: str


@dataclass(frozen=True, repr=False)
class Segment:
    """Consecutive frames of a video, with their states and predictions.

    `predicted` is what the state observed `horizon` steps earlier became; the first frames have no prediction.

    Attributes:
        first_frame: Number of the first frame in the video.
        frames: Frames of the segment.
        observed: States that the encoder estimates from each window alone.
        states: States of the motion that is closest to the encoder's observations, or these themselves without a fit.
        state_std: Their standard deviations; NaN without a fit.
        present: Mask of the objects that the encoder finds in each frame; the states of others mean nothing.
        confidence: Probability that each object's position in `states` is correct, see `prediction.confidence`. Without
        a fit,
            and where the motion of the engine explains nothing, the encoder's own or else the reprojection score.
        reprojection_score: Fraction of each frame's variance that its rendered state explains.
        valid: Mask of the states whose rollout succeeded.
        rollout: Trajectory from each state over `horizon` steps.
        has_prediction: Mask of the frames with a prediction.
        predicted: Predicted states; NaN where there is none.
        predicted_std: Their standard deviations; NaN without a fit.
        predicted_confidence: Probability that each object's position in `predicted` is correct; NaN without a fit.
        predicted_present: Mask of the objects that have a prediction.
        predicted_frames: Predicted frames; NaN where there is none.
        psnr: PSNR of the predicted frames, dB; NaN where there is none.
        ssim: SSIM of the predicted frames; NaN where there is none.
        properties: Estimated properties of the clip at its last frame, by name, batches of one.
        appearance: Looks of the clip at its last frame, a batch of one, for decoders that take them.
        fit: Fit of the clip up to its last frame so far; None for predictions that are not adapted to the clip.
    """

    first_frame: int
    frames: Sequence[TimedFrame]
    observed: State
    states: State
    state_std: State
    present: Bool[Tensor, "frames objects"]
    confidence: Float[Tensor, "frames objects"]
    reprojection_score: Float[Tensor, " frames"]
    valid: Bool[Tensor, " frames"]
    rollout: Trajectory
    has_prediction: Bool[Tensor, " frames"]
    predicted: State
    predicted_std: State
    predicted_confidence: Float[Tensor, "frames objects"]
    predicted_present: Bool[Tensor, "frames objects"]
    predicted_frames: Float[Tensor, "frames channels height width"]
    psnr: Float[Tensor, " frames"]
    ssim: Float[Tensor, " frames"]
    properties: Mapping[str, Tensor]
    appearance: AppearanceCode | None
    fit: ClipFit | None = None

    @property
    def future(self) -> Trajectory:
        """Trajectory after the last frame, a batch of one; of the last segment, by all of the clip."""
        if self.fit is not None:
            return self.fit.future(self.rollout.steps)[0]
        return Trajectory(self.rollout.q[-1:], self.rollout.v[-1:], dt=self.rollout.dt)

    @property
    def future_std(self) -> Trajectory:
        """Standard deviations of the states of `future`; NaN without a fit."""
        if self.fit is not None:
            return self.fit.future(self.rollout.steps)[1]
        q, v = (torch.full_like(part[-1:], torch.nan) for part in (self.rollout.q, self.rollout.v))
        return Trajectory(q, v, dt=self.rollout.dt)

    def __repr__(self) -> str:
        last = self.first_frame + len(self.frames) - 1
        return f"Segment(frames {self.first_frame} to {last}, from {self.frames[0].time:.2f} s)"


@dataclass(frozen=True, repr=False)
class Prediction:
    """States and predictions of a whole video, from the last frame of the first window on.

    Attributes:
        scene: Names and units of the states' coordinates.
        frames: Numbers of the frames in the video.
        times: Times since the first frame, s.
        observed: States that the encoder estimates from each window alone, (frames, …).
        states: States of the motion that is closest to the encoder's observations.
        state_std: Their standard deviations; NaN where the clip is not fitted.
        confidence: Probability that each object's position in `states` is correct; without a fit the encoder's own, or
        else the
            reprojection score.
        reprojection_score: Fraction of each frame's variance that its rendered state explains.
        predicted: States predicted for each frame `horizon` steps earlier; NaN for the first ones.
        predicted_std: Their standard deviations; NaN where the clip is not fitted.
        predicted_confidence: Probability that each object's position in `predicted` is correct; NaN where it is not
        fitted.
        psnr: PSNR of the predicted frames, dB; NaN for the first ones.
        ssim: SSIM of the predicted frames; NaN for the first ones.
        horizon: Number of predicted steps, of one frame each.
        future: Trajectory after the last frame, a batch of one.
        future_std: Standard deviations of its states: what states, parameters and chaos allow.
        parameters: Physical parameters of the clip with their intervals; empty without a fit.
        future_frames: Rendered frame of each state of `future`.
        warnings: Differences from the model's domain.
    """

    scene: Scene
    frames: Int[Tensor, " frames"]
    times: Float[Tensor, " frames"]
    observed: State
    states: State
    state_std: State
    confidence: Float[Tensor, "frames objects"]
    reprojection_score: Float[Tensor, " frames"]
    predicted: State
    predicted_std: State
    predicted_confidence: Float[Tensor, "frames objects"]
    psnr: Float[Tensor, " frames"]
    ssim: Float[Tensor, " frames"]
    horizon: int
    future: Trajectory
    future_std: Trajectory
    parameters: tuple[ParameterEstimate, ...]
    future_frames: Float[Tensor, "times channels height width"]
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"Prediction({self.scene.title}: {len(self.frames)} frames, {float(self.times[-1]):.2f} s, "
            f"{self.horizon / self.scene.fps:.3g} s ahead, "
            f"reprojection score {float(self.reprojection_score.median()):.0%}, {len(self.warnings)} warnings)"
        )


_STATES = ("observed", "states", "state_std", "predicted", "predicted_std")
_NUMBERS = ("confidence", "predicted_confidence", "reprojection_score", "psnr", "ssim")


def concatenate(segments: Iterable[Segment]) -> tuple[dict[str, Tensor], Segment]:
    """Concatenate the arrays of all segments, as those of a `Prediction`; also return the last segment."""
    parts, segment = [], None
    for segment in segments:
        parts.append(
            {
                "frames": torch.arange(segment.first_frame, segment.first_frame + len(segment.frames)),
                "times": torch.tensor([frame.time for frame in segment.frames], dtype=torch.float64),
                **{f"{name}_{part}": getattr(getattr(segment, name), part) for name in _STATES for part in ("q", "v")},
                **{name: getattr(segment, name) for name in _NUMBERS},
            }
        )
    assert segment is not None
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}, segment
