"""A model looking at a video: a sliding window of frames in, states and what follows from them out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.core import Clip, DeviceError, InputError, Scene, State, Trajectory, brightness
from physvision.core.checks import check_count, check_positive
from physvision.losses import psnr, ssim
from physvision.models import PredictiveAutoencoder, load
from physvision.predict.agreement import agreement, check_kind
from physvision.video import Conversion, SceneStream, TimedFrame, scene_stream

Video = str | os.PathLike[str] | Clip | np.ndarray | Tensor | Iterable[np.ndarray | Tensor]

# Windows whose look decides whether a video is of the kind that a model was made for.
FIRST = 32


@dataclass(frozen=True)
class Piece:
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


@dataclass(frozen=True)
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


class Predictor:
    """A model, ready to look at videos.

    Attributes:
        model: the autoencoder.
        scene: what it expects of a video.
        steps: how many frames ahead it predicts.
        device: where it computes.
    """

    def __init__(
        self, model: PredictiveAutoencoder, *, horizon: float = 1.0, device: str = "auto", batch: int = 32
    ) -> None:
        """Prepare `model`.

        Args:
            model: one with a `scene`.
            horizon: how far it predicts, s; rounded to whole frames.
            device: of torch, as "cpu" or "cuda"; "auto" takes a GPU where there is one.
            batch: windows that are computed together.

        Raises:
            InputError: a value makes no sense, or the model does not say what it expects of a video.
            DeviceError: there is no such device.
        """
        if model.scene is None:
            raise InputError(
                "the checkpoint does not say what videos it was made for; add a `scene:` to its configuration, "
                "as trainers/pendulum.yaml has one"
            )
        self.scene = model.scene
        self.device = _device(device)
        self.model = model.to(self.device).eval()
        self.steps = max(1, round(check_positive("horizon", horizon) * self.scene.fps))
        self.batch = check_count("batch", batch)

    @classmethod
    def from_checkpoint(
        cls, name: str | os.PathLike[str], *, horizon: float = 1.0, device: str = "auto", batch: int = 32
    ) -> Predictor:
        """The model `name`: one that comes with physvision ("pendulum"), or the path of a file; arguments as above."""
        return cls(load(name), horizon=horizon, device=device, batch=batch)

    def __call__(self, video: Video, conversion: Conversion | None = None, *, anyway: bool = False) -> Prediction:
        """What is seen in `video`, and what follows.

        Args:
            video: a file; a clip; frames (times, height, width) or (times, height, width, channels) or, as networks
                have them, (times, channels, height, width), uint8 or 0 to 1; or an iterator of single frames, as a
                camera is. Other than a file's, frames must come as the scene wants them.
            conversion: how a file is brought to what the model takes.
            anyway: go on though the first frames do not look like what the model was made for.

        Raises:
            InputError: the video does not fit the model, with what to do.
        """
        return gather(self, self.stream(video, conversion, anyway=anyway))

    def stream(self, video: Video, conversion: Conversion | None = None, *, anyway: bool = False) -> Iterator[Piece]:
        """The same, piece by piece and in constant memory; for a camera, as its frames come."""
        return self.look(scene_stream(video, self.scene, conversion), anyway=anyway)

    def look(self, stream: SceneStream, *, anyway: bool = False) -> Iterator[Piece]:
        """What is seen in `stream`, which fits the scene."""
        span, iterator = self.scene.frames_in, iter(stream)
        before = list(islice(iterator, span - 1))
        number, memory, pieces = len(before), _Memory(self), 0
        while new := list(islice(iterator, self.batch)):
            piece = self._piece(number, before, new, memory)
            if not pieces and not anyway:
                first = slice(0, FIRST)
                check_kind(
                    stream.source, self.scene, [each.frame for each in new[first]], piece.agreement[first].numpy()
                )
            yield piece
            pieces, number = pieces + 1, number + len(new)
            before = [*before, *new][-(span - 1) :] if span > 1 else []
        if not pieces:
            raise InputError(
                f"{stream.source}: {number} frames are fewer than the {span} that the checkpoint looks at together; "
                "give a longer video"
            )

    @torch.no_grad()
    def _piece(self, number: int, before: list[TimedFrame], new: list[TimedFrame], memory: _Memory) -> Piece:
        pixels = torch.from_numpy(np.stack([each.frame for each in (*before, *new)])).to(self.device)
        frames = brightness(pixels.permute(0, 3, 1, 2))
        windows = frames.unfold(0, self.scene.frames_in, 1).movedim(-1, 1)
        observed = self.model.observe(windows)
        ahead = self.model.simulate(self.model.start(observed), self.steps)
        both = self.model.decode(ahead, (0, self.steps)).float().clamp(0, 1)
        now, redrawn, foreseen = frames[len(before) :], both[:, 0], both[:, 1]
        alike = agreement(now, redrawn)
        sure = alike[:, None].expand(-1, len(self.scene.objects))
        if observed.confidence is not None:
            sure = observed.confidence[:, -1]
        known, expected, seen = memory.recall(ahead.final, foreseen)
        sound = torch.ones_like(known) if ahead.status is None else ahead.status.converged
        moved = (ahead.q, ahead.v, redrawn, seen, sure, alike, sound, known, expected.q, expected.v, now)
        q, v, redrawn, seen, sure, alike, sound, known, before_q, before_v, now = (each.cpu() for each in moved)
        quality = _likeness(seen, now, known)
        return Piece(
            first=number,
            frames=new,
            states=State(q[:, 0], v[:, 0]),
            confidence=sure,
            agreement=alike,
            sound=sound,
            ahead=Trajectory(q, v),
            redrawn=redrawn,
            known=known,
            expected=State(before_q, before_v),
            foreseen=seen,
            psnr=quality[0],
            ssim=quality[1],
        )


class _Memory:
    """What was predicted for the frames to come."""

    def __init__(self, predictor: Predictor) -> None:
        self._steps, self._kept = predictor.steps, None

    def recall(self, state: State, frames: Tensor) -> tuple[Tensor, State, Tensor]:
        """Whether, which state and which frame was predicted for each of some frames; keeps the new predictions.

        Args:
            state: predicted for the moments `steps` after these frames.
            frames: likewise.
        """
        new = (state.q, state.v, frames)
        if self._kept is None:
            self._kept = tuple(each.new_full((self._steps, *each.shape[1:]), torch.nan) for each in new)
        joined = [torch.cat(pair) for pair in zip(self._kept, new, strict=True)]
        count = len(frames)
        self._kept = tuple(each[count:].clone() for each in joined)
        q, v, seen = (each[:count] for each in joined)
        return ~seen.flatten(1).isnan().any(1), State(q, v), seen


def _likeness(seen: Tensor, true: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """PSNR, dB, and SSIM of frames against the true ones; NaN where they are not known."""
    found = torch.full((2, len(known)), torch.nan)
    for row, measure in zip(found, (psnr, ssim), strict=True):
        row[known] = measure(seen[known], true[known])
    return found[0], found[1]


def gather(predictor: Predictor, pieces: Iterable[Piece]) -> Prediction:
    """All pieces as one; their frames are left out."""
    kept: dict[str, list[Tensor]] = {}
    last = None
    for piece in pieces:
        last = piece
        count = len(piece.frames)
        parts = {
            "frames": torch.arange(piece.first, piece.first + count),
            "times": torch.tensor([each.time for each in piece.frames], dtype=torch.float64),
            "q": piece.states.q,
            "v": piece.states.v,
            "confidence": piece.confidence,
            "agreement": piece.agreement,
            "expected_q": piece.expected.q,
            "expected_v": piece.expected.v,
            "psnr": piece.psnr,
            "ssim": piece.ssim,
        }
        for name, value in parts.items():
            kept.setdefault(name, []).append(value)
    assert last is not None
    whole = {name: torch.cat(values) for name, values in kept.items()}
    future = Trajectory(last.ahead.q[-1:], last.ahead.v[-1:])
    with torch.no_grad():
        there = Trajectory(future.q.to(predictor.device), future.v.to(predictor.device))
        drawn = predictor.model.decode(there, range(future.steps + 1))[0].float().clamp(0, 1).cpu()
    return Prediction(
        scene=predictor.scene,
        frames=whole["frames"],
        times=whole["times"],
        states=State(whole["q"], whole["v"]),
        confidence=whole["confidence"],
        agreement=whole["agreement"],
        expected=State(whole["expected_q"], whole["expected_v"]),
        psnr=whole["psnr"],
        ssim=whole["ssim"],
        horizon=predictor.steps,
        future=future,
        future_frames=drawn,
    )


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(
            f"device: {name!r} cannot be used ({str(error).splitlines()[0]}); give cpu, or leave it out"
        ) from error
    return device
