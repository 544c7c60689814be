"""Prediction from video: a sliding window of frames in, states and their rollouts out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from physvision.core import Clip, DeviceError, InputError, State, StrPath, Trajectory, brightness
from physvision.core.checks import check_count, check_positive
from physvision.losses import psnr, ssim
from physvision.models import Observation, PredictiveAutoencoder, load
from physvision.prediction.appearance_check import reprojection_score
from physvision.prediction.clip_fit import ClipFit, FittedStates
from physvision.prediction.clip_parameters import clip_parameters
from physvision.prediction.confidence import confidence as position_confidence, limit_by_frames
from physvision.prediction.domain_check import DomainCheck
from physvision.prediction.prediction import Prediction, Segment, concatenate
from physvision.video import Conversion, SceneStream, TimedFrame, open_scene_stream

Video = StrPath | Clip | np.ndarray | Tensor | Iterable[np.ndarray | Tensor]

# Frames ahead that a prediction may reach: hours of video, and a few hundred megabytes.
_MAX_STEPS = 100_000


class Predictor:
    """Model that observes videos and predicts them.

    Attributes:
        model: Autoencoder.
        scene: Scene that the model expects.
        steps: Number of frames that it predicts ahead.
        device: Device of the model.
    """

    def __init__(
        self,
        model: PredictiveAutoencoder,
        *,
        horizon: float = 1.0,
        device: str = "auto",
        batch: int = 32,
        adapt: bool = True,
    ) -> None:
        """Prepare a model for prediction.

        Args:
            model: Autoencoder with a `scene`.
            horizon: Time to predict ahead, s; rounded to whole frames.
            device: Device of torch, such as "cpu" or "cuda"; "auto" uses a GPU if there is one.
            batch: Number of windows that are computed at a time.
            adapt: If true, states and physical parameters are fitted to each clip; otherwise states are what the
                encoder estimates, and parameters the checkpoint's.

        Raises:
            InputError: A value is out of range, or the model has no scene.
            DeviceError: There is no such device.
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
        self.device = _select_device(device)
        self.model = model.to(self.device).eval()
        self.steps = max(1, round(check_positive("horizon", horizon) * self.scene.fps))
        if self.steps > _MAX_STEPS:
            raise InputError(
                f"horizon: expected at most {_MAX_STEPS:,} frames, {_MAX_STEPS / self.scene.fps:g} s, got {horizon:g} s"
            )
        self.batch = check_count("batch", batch)
        self.adapt = adapt

    @classmethod
    def from_checkpoint(
        cls, name: StrPath, *, horizon: float = 1.0, device: str = "auto", batch: int = 32, adapt: bool = True
    ) -> Predictor:
        """Load a model by its name, such as "pendulum", or by the path of a file; other arguments as above."""
        return cls(load(name), horizon=horizon, device=device, batch=batch, adapt=adapt)

    def __repr__(self) -> str:
        return f"Predictor({self.scene.title}, {self.horizon:.3g} s ahead, on {self.device})"

    @property
    def horizon(self) -> float:
        """Time that it predicts ahead, s."""
        return self.steps / self.scene.fps

    def __call__(self, video: Video, conversion: Conversion | None = None, *, force: bool = False) -> Prediction:
        """Observe a video, and predict it.

        Args:
            video: File; clip; frames (times, height, width), also with channels last or first, uint8 or 0 to 1; or
                iterator of single frames, such as a camera. Frames in memory must be as the scene expects them.
            conversion: Conversion of a file to what the model expects.
            force: If true, a video outside the model's domain is processed with warnings.

        Raises:
            InputError: The video does not fit the model; the message says what to do.
        """
        stream = self.open_stream(video, conversion)
        check = self.domain_check(stream, force=force)
        arrays, last = concatenate(self.run(stream, check))

        def state(name: str) -> State:
            return State(arrays.pop(f"{name}_q"), arrays.pop(f"{name}_v"))

        return Prediction(
            scene=self.scene,
            observed=state("observed"),
            states=state("states"),
            state_std=state("state_std"),
            predicted=state("predicted"),
            predicted_std=state("predicted_std"),
            horizon=self.steps,
            future=last.future,
            future_std=last.future_std,
            parameters=() if last.fit is None else last.fit.estimates(),
            future_frames=self.decode(last),
            warnings=tuple(check.warnings()),
            **arrays,
        )

    def stream(self, video: Video, conversion: Conversion | None = None, *, force: bool = False) -> Iterator[Segment]:
        """Yield states and predictions segment by segment, in constant memory, such as for a live camera."""
        stream = self.open_stream(video, conversion)
        return self.run(stream, self.domain_check(stream, force=force))

    def open_stream(self, video: Video, conversion: Conversion | None = None) -> SceneStream:
        """Open the frames of a video as the scene expects them."""
        return open_scene_stream(video, self.scene, conversion)

    def domain_check(self, stream: SceneStream, *, force: bool = False) -> DomainCheck:
        """Create the check that a stream is in the model's domain."""
        return DomainCheck(self.model, self.device, stream.source, force=force)

    def run(self, stream: SceneStream, check: DomainCheck) -> Iterator[Segment]:
        """Yield the segments of a stream that fits the scene; `check` rejects it outside the model's domain."""
        window, iterator = self.scene.frames_in, iter(stream)
        context = list(islice(iterator, window - 1))
        start, stream_state = len(context), _StreamState(self.steps)
        number = start
        while frames := list(islice(iterator, self.batch)):
            segment = self._make_segment(number, context, frames, stream_state)
            check.update(segment)
            yield segment
            number += len(frames)
            context = [*context, *frames][-(window - 1) :] if window > 1 else []
        if number == start:
            needed = f"the checkpoint needs a window of {window}"
            raise InputError(f"{stream.source}: has {number} frames, {needed}; give a longer video")
        if stream_state.fit is not None:
            stream_state.fit.fit()
        check.finish()

    @torch.no_grad()
    def decode(self, segment: Segment, steps: Sequence[int] | None = None) -> Tensor:
        """Decode frames (times, channels, height, width) of a segment's future, by default at all steps."""
        future = segment.future
        trajectory = Trajectory(future.q.to(self.device), future.v.to(self.device))
        indices = range(len(trajectory)) if steps is None else steps
        frames = self.model.decode(trajectory, indices, segment.properties, segment.appearance)
        return frames[0].float().clamp(0, 1).cpu()

    def _observe(self, windows: Tensor, stream_state: _StreamState) -> Observation:
        """Observe windows that follow those of the last segment; the first ones decide whether the clip is fitted."""
        # An encoder's own fit of each window is left out where the clip is fitted, unless it is photometric: the fit of
        # the clip needs its accuracy.
        observed = self.model.observe(windows, fitted=self.model.photometric is not None)
        is_first = stream_state.observation is None
        colors = self._colors() if is_first else None
        observation = self.model.encoder.linked(observed, stream_state.observation, colors)
        # Where the encoder estimates the properties, they are not fitted.
        if is_first and self.adapt and not observation.property_std and clip_parameters(self.model) is not None:
            stream_state.fit = ClipFit(self.model)
        stream_state.observation = observation
        return observation

    def _colors(self) -> Tensor | None:
        """Colors of the scene's objects, if all have one."""
        colors = [item.color for item in self.scene.objects if item.color is not None]
        return torch.tensor(colors) if len(colors) == len(self.scene.objects) else None

    def _simulate(
        self, observation: Observation, fit: ClipFit | None
    ) -> tuple[Trajectory, State, State, State, Tensor]:
        """Simulate motions from the observed or fitted states, with standard deviations that are NaN without a fit.

        Returns:
            Motions, states to report, their standard deviations, those at the ends of the motions, and a mask of the
            frames that the fit explains.
        """
        state = self.model.initial_state(observation)
        if fit is None:
            rollout = self.model.simulate(state, self.steps, None, observation.properties)
            states = State(rollout.q[:, 0], rollout.v[:, 0]).to("cpu")
            nan = State(*(torch.full_like(part, torch.nan) for part in (states.q, states.v)))
            return rollout, states, nan, nan, torch.zeros(len(states.q), dtype=torch.bool)
        start, fitted = _fitted_start(fit, observation, state)
        rollout = self.model.simulate(start, self.steps, None, observation.properties, fit.leaves(len(start.q)))
        path = Trajectory(rollout.q.cpu(), rollout.v.cpu(), dt=rollout.dt)
        final_std = fit.spread(start.to("cpu"), fitted.filtered_covariance, path, fit.settings.frame_ensemble).final
        states, stds = fitted.smoothed.to(torch.float32), fitted.smoothed_std.to(torch.float32)
        return rollout, states, stds, final_std, fitted.is_explained

    @torch.no_grad()
    def _make_segment(
        self, number: int, context: list[TimedFrame], new: list[TimedFrame], stream_state: _StreamState
    ) -> Segment:
        pixels = torch.from_numpy(np.stack([item.frame for item in (*context, *new)])).to(self.device)
        frames = brightness(pixels.permute(0, 3, 1, 2))
        windows = frames.unfold(0, self.scene.frames_in, 1).movedim(-1, 1)
        observation = self._observe(windows, stream_state)
        properties, appearance = observation.properties, observation.appearance
        rollout, states, stds, final_stds, is_explained = self._simulate(observation, stream_state.fit)
        decoded = self.model.decode(rollout, (0, self.steps), properties, appearance).float().clamp(0, 1)
        current = frames[len(context) :]
        score = reprojection_score(current, decoded[:, 0])
        confidence = score[:, None].expand(-1, len(self.scene.objects))
        if observation.confidence is not None:
            confidence = observation.confidence[:, -1]
        fit_confidence = position_confidence(stds.q, self.scene).to(confidence)
        confidence = torch.where(is_explained[:, None].to(confidence.device), fit_confidence, confidence)
        confidence = limit_by_frames(confidence, score, self.scene)
        present = torch.ones_like(confidence)
        if properties and "present" in properties:
            present = properties["present"].to(confidence)
        has_prediction, predicted, predicted_stds, predicted_frames, predicted_present = stream_state.exchange(
            rollout.final, final_stds, decoded[:, 1], present
        )
        valid = torch.ones_like(has_prediction) if rollout.status is None else rollout.status.converged
        has_prediction, predicted_frames = has_prediction.cpu(), predicted_frames.cpu()
        psnr_values, ssim_values = _image_quality(predicted_frames, current.cpu(), has_prediction)
        return Segment(
            first_frame=number,
            frames=new,
            observed=observation.state.to("cpu"),
            states=states.to("cpu"),
            state_std=stds,
            present=present.cpu() > 0.5,
            confidence=confidence.cpu(),
            reprojection_score=score.cpu(),
            valid=valid.cpu(),
            rollout=Trajectory(rollout.q.cpu(), rollout.v.cpu()),
            has_prediction=has_prediction,
            predicted=predicted.to("cpu"),
            predicted_std=predicted_stds,
            predicted_confidence=limit_by_frames(
                position_confidence(predicted_stds.q, self.scene), score.cpu(), self.scene
            ),
            predicted_present=predicted_present.cpu() > 0.5,
            predicted_frames=predicted_frames,
            psnr=psnr_values,
            ssim=ssim_values,
            properties={name: value[-1:] for name, value in (properties or {}).items()},
            appearance=None if appearance is None else appearance[-1:],
            fit=stream_state.fit,
        )


def predict(
    video: Video,
    checkpoint: StrPath,
    *,
    horizon: float = 1.0,
    conversion: Conversion | None = None,
    device: str = "auto",
    force: bool = False,
    adapt: bool = True,
) -> Prediction:
    """Estimate the states in a video with a checkpoint, and predict the motion that follows.

    Args:
        video: Video file, clip, array of frames or iterator of frames, see `Predictor.__call__`.
        checkpoint: Name of a shipped checkpoint, or the path of a file.
        horizon: Prediction horizon, s.
        conversion: Conversion of the video to what the model takes: rate, crop, size.
        device: Device of torch; "auto" takes a GPU if there is one.
        force: If true, continue although the video is outside the domain of the checkpoint.
        adapt: If true, fit states and physical parameters to the clip; otherwise take the checkpoint's.
    """
    predictor = Predictor.from_checkpoint(checkpoint, horizon=horizon, device=device, adapt=adapt)
    return predictor(video, conversion, force=force)


def _fitted_start(fit: ClipFit, observation: Observation, initial: State) -> tuple[State, FittedStates]:
    """Fitted states to predict from, and all states of the fit.

    Args:
        fit: Fit of the clip.
        observation: Observation of new windows.
        initial: States to predict from where the fit does not explain the observation.
    """
    observed, confidence = observation.state, observation.confidence
    visible = torch.ones(len(observed.q), 1) if confidence is None else confidence[:, -1]
    fitted = fit.update(observed, visible)
    mask = fitted.is_explained[:, None].to(observed.q.device)
    filtered = State(*(part.to(observed.q) for part in (fitted.filtered.q, fitted.filtered.v)))
    return State(torch.where(mask, filtered.q, initial.q), torch.where(mask, filtered.v, initial.v)), fitted


class _StreamState:
    """State of a stream between segments: predictions of frames to come, the last observation, the fit of the clip."""

    def __init__(self, steps: int) -> None:
        self._steps, self._pending = steps, None
        self.fit: ClipFit | None = None
        self.observation: Observation | None = None

    def exchange(
        self, state: State, std: State, frames: Tensor, present: Tensor
    ) -> tuple[Tensor, State, State, Tensor, Tensor]:
        """Store new predictions, and take those for the current frames.

        Args:
            state: States predicted for the times `steps` after the current frames.
            std: Their standard deviations.
            frames: Frames predicted for these times.
            present: Objects that are predicted.

        Returns:
            Mask of the current frames with a prediction, predicted states, their standard deviations, frames, objects.
        """
        new = (state.q, state.v, std.q, std.v, frames, present)
        if self._pending is None:
            self._pending = tuple(part.new_full((self._steps, *part.shape[1:]), torch.nan) for part in new)
        parts = [torch.cat(pair) for pair in zip(self._pending, new, strict=True)]
        count = len(frames)
        self._pending = tuple(part[count:].clone() for part in parts)
        q, v, q_std, v_std, predicted_frames, predicted_present = (part[:count] for part in parts)
        has_prediction = ~predicted_frames.flatten(1).isnan().any(1)
        return has_prediction, State(q, v), State(q_std, v_std), predicted_frames, predicted_present


def _image_quality(predicted: Tensor, frames: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Compute PSNR, dB, and SSIM of predicted frames; NaN outside the mask."""
    values = torch.full((2, len(mask)), torch.nan)
    for row, metric in zip(values, (psnr, ssim), strict=True):
        row[mask] = metric(predicted[mask], frames[mask])
    return values[0], values[1]


def _select_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise DeviceError(f"device: {name!r} cannot be used ({reason}); give cpu, or leave it out") from error
    return device
