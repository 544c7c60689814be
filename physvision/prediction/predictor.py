"""A model looking at a video: a sliding window of frames in, states and what follows from them out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from physvision.core import Clip, DeviceError, InputError, State, Trajectory, brightness
from physvision.core.checks import check_count, check_positive
from physvision.losses import psnr, ssim
from physvision.models import PredictiveAutoencoder, load
from physvision.prediction.domain_check import DomainCheck
from physvision.prediction.prediction import Prediction, Segment, joined
from physvision.prediction.reprojection import agreement
from physvision.video import Conversion, SceneStream, TimedFrame, open_scene_stream

Video = str | os.PathLike[str] | Clip | np.ndarray | Tensor | Iterable[np.ndarray | Tensor]


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
        if not isinstance(model, PredictiveAutoencoder):
            raise InputError(
                f"model: expected a PredictiveAutoencoder, got {type(model).__name__}; "
                "Predictor.from_checkpoint(name) loads one"
            )
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

    def __repr__(self) -> str:
        return f"Predictor({self.scene.title}, {self.horizon:.3g} s ahead, on {self.device})"

    @property
    def horizon(self) -> float:
        """How far ahead it predicts, s."""
        return self.steps / self.scene.fps

    def __call__(self, video: Video, conversion: Conversion | None = None, *, force: bool = False) -> Prediction:
        """What is seen in `video`, and what follows.

        Args:
            video: a file; a clip; frames (times, height, width) or (times, height, width, channels) or, as networks
                have them, (times, channels, height, width), uint8 or 0 to 1; or an iterator of single frames, as a
                camera is. Other than a file's, frames must come as the scene wants them.
            conversion: how a file is brought to what the model takes.
            force: go on though the video does not look like what the model was made for.

        Raises:
            InputError: the video does not fit the model, with what to do.
        """
        stream = self.open(video, conversion)
        judge = self.judge(stream, force=force)
        arrays, last = joined(self.look(stream, judge))
        states = {name: arrays.pop(name) for name in ("q", "v", "expected_q", "expected_v")}
        future = last.future
        return Prediction(
            scene=self.scene,
            states=State(states["q"], states["v"]),
            expected=State(states["expected_q"], states["expected_v"]),
            horizon=self.steps,
            future=future,
            future_frames=self.draw(future),
            warnings=tuple(judge.findings()),
            **arrays,
        )

    def stream(self, video: Video, conversion: Conversion | None = None, *, force: bool = False) -> Iterator[Segment]:
        """The same, segment by segment and in constant memory; for a camera, as its frames come."""
        stream = self.open(video, conversion)
        return self.look(stream, self.judge(stream, force=force))

    def open(self, video: Video, conversion: Conversion | None = None) -> SceneStream:
        """The frames of `video` as the scene wants them."""
        return open_scene_stream(video, self.scene, conversion)

    def judge(self, stream: SceneStream, *, force: bool = False) -> DomainCheck:
        """What judges whether `stream` shows what the model was made for."""
        return DomainCheck(self.model, self.device, stream.source, force=force)

    def look(self, stream: SceneStream, judge: DomainCheck) -> Iterator[Segment]:
        """What is seen in `stream`, which fits the scene; `judge` refuses what does not look like it."""
        span, iterator = self.scene.frames_in, iter(stream)
        before = list(islice(iterator, span - 1))
        start, memory = len(before), _Memory(self)
        number = start
        while new := list(islice(iterator, self.batch)):
            segment = self._segment(number, before, new, memory)
            judge.add(segment)
            yield segment
            number += len(new)
            before = [*before, *new][-(span - 1) :] if span > 1 else []
        if number == start:
            raise InputError(
                f"{stream.source}: {number} frames are fewer than the {span} that the checkpoint looks at together; "
                "give a longer video"
            )
        judge.end()

    @torch.no_grad()
    def draw(self, trajectory: Trajectory, steps: Sequence[int] | None = None) -> Tensor:
        """The frames (times, channels, height, width) of a trajectory of one world; of all its states by default."""
        moved = Trajectory(trajectory.q.to(self.device), trajectory.v.to(self.device))
        chosen = range(len(trajectory)) if steps is None else steps
        return self.model.decode(moved, chosen)[0].float().clamp(0, 1).cpu()

    @torch.no_grad()
    def _segment(self, number: int, before: list[TimedFrame], new: list[TimedFrame], memory: _Memory) -> Segment:
        pixels = torch.from_numpy(np.stack([each.frame for each in (*before, *new)])).to(self.device)
        frames = brightness(pixels.permute(0, 3, 1, 2))
        windows = frames.unfold(0, self.scene.frames_in, 1).movedim(-1, 1)
        observed = self.model.observe(windows)
        ahead = self.model.simulate(self.model.initial_state(observed), self.steps)
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
        return Segment(
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


def predict(
    video: Video,
    checkpoint: str | os.PathLike[str],
    *,
    horizon: float = 1.0,
    conversion: Conversion | None = None,
    device: str = "auto",
    force: bool = False,
) -> Prediction:
    """Estimate the states in a video with a checkpoint, and predict the motion that follows.

    Args:
        video: Video file, clip, array of frames or iterator of frames, see `Predictor.__call__`.
        checkpoint: Name of a shipped checkpoint, or the path of a file.
        horizon: Prediction horizon, s.
        conversion: Conversion of the video to what the model takes: rate, crop, size.
        device: Device of torch; "auto" takes a GPU if there is one.
        force: If true, continue although the video does not look like those that the model was trained on.
    """
    return Predictor.from_checkpoint(checkpoint, horizon=horizon, device=device)(video, conversion, force=force)


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
