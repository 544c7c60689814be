"""What a model makes of a video: of some frames as they come, and of all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.core import Scene, State, Trajectory
from physvision.video import TimedFrame


@dataclass(frozen=True, repr=False)
class Segment:
    """Some consecutive frames of a video, and what a model makes of them.

    What was *expected* at a frame is what the state seen `horizon` steps earlier became; nothing was at the first ones.

    Attributes:
        first: number of its first frame in the video.
        frames: the frames.
        states: that are seen at the frames.
        confidence: in each object, 0 to 1: the encoder's own, or else `agreement`.
        agreement: share of each frame's variance that its redrawn state explains, 0 to 1.
        sound: whether the motion that follows could be computed.
        ahead: from each state on, `horizon` steps.
        redrawn: frames of the states.
        known: whether something was expected at the frame.
        expected: states that were; NaN where nothing was.
        foreseen: frames that were; NaN where nothing was.
        psnr: of the foreseen frame against the frame, dB; NaN where nothing was expected.
        ssim: likewise.
    """

    first: int
    frames: Sequence[TimedFrame]
    states: State
    confidence: Float[Tensor, "frames objects"]
    agreement: Float[Tensor, " frames"]
    sound: Bool[Tensor, " frames"]
    ahead: Trajectory
    redrawn: Float[Tensor, "frames channels height width"]
    known: Bool[Tensor, " frames"]
    expected: State
    foreseen: Float[Tensor, "frames channels height width"]
    psnr: Float[Tensor, " frames"]
    ssim: Float[Tensor, " frames"]

    @property
    def future(self) -> Trajectory:
        """What follows the last of the frames, a batch of one."""
        return Trajectory(self.ahead.q[-1:], self.ahead.v[-1:], dt=self.ahead.dt)

    def __repr__(self) -> str:
        return f"Segment(frames {self.first} to {self.first + len(self.frames) - 1}, from {self.frames[0].time:.2f} s)"


@dataclass(frozen=True, repr=False)
class Prediction:
    """What a model makes of a whole video; it begins at the last frame of the first window.

    Attributes:
        scene: names and units of what the states hold.
        frames: numbers of the frames in the video.
        times: seconds since the first frame.
        states: that were seen, (frames, …).
        confidence: in each object.
        agreement: share of each frame's variance that its redrawn state explains.
        expected: states that were predicted for each frame `horizon` steps earlier; NaN for the first ones.
        psnr, ssim: of the frames that were predicted likewise; NaN for the first ones.
        horizon: steps; one is a frame.
        future: what follows the last frame, a batch of one.
        future_frames: how that looks, for each state of `future`.
        warnings: where the video differs from what the model was made for.
    """

    scene: Scene
    frames: Int[Tensor, " frames"]
    times: Float[Tensor, " frames"]
    states: State
    confidence: Float[Tensor, "frames objects"]
    agreement: Float[Tensor, " frames"]
    expected: State
    psnr: Float[Tensor, " frames"]
    ssim: Float[Tensor, " frames"]
    horizon: int
    future: Trajectory
    future_frames: Float[Tensor, "times channels height width"]
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"Prediction({self.scene.title}: {len(self.frames)} frames, {float(self.times[-1]):.2f} s, "
            f"{self.horizon / self.scene.fps:.3g} s ahead, agreement {float(self.agreement.median()):.0%}, "
            f"{len(self.warnings)} warnings)"
        )


def joined(segments: Iterable[Segment]) -> tuple[dict[str, Tensor], Segment]:
    """The arrays of all segments as those of a `Prediction`, and the last segment."""
    parts, last = [], None
    for last in segments:
        parts.append(
            {
                "frames": torch.arange(last.first, last.first + len(last.frames)),
                "times": torch.tensor([each.time for each in last.frames], dtype=torch.float64),
                "q": last.states.q,
                "v": last.states.v,
                "expected_q": last.expected.q,
                "expected_v": last.expected.v,
                **{name: getattr(last, name) for name in ("confidence", "agreement", "psnr", "ssim")},
            }
        )
    assert last is not None
    return {name: torch.cat([each[name] for each in parts]) for name in parts[0]}, last
