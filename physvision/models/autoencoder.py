"""The prediction autoencoder: frames, an engine in the middle, predicted frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from physvision.core import InputError, Scene, State, Trajectory, brightness
from physvision.core.checks import check_positive, check_shape
from physvision.models.consistency import consistent_state, motion_residual
from physvision.models.interfaces import AppearanceCode, ClipContext, Encoder, Observation
from physvision.models.photometric import PhotometricSettings, photometric_motion
from physvision.models.tabletop import park_states
from physvision.physics.engine import Engine
from physvision.physics.properties import Properties


@dataclass(frozen=True)
class Forecast:
    """States and frames that an autoencoder predicts.

    Attributes:
        trajectory: States from the last given frame on, (batch, steps + 1, …).
        steps: Steps of the trajectory whose frames were rendered.
        frames: Frames of these states, (batch, len(steps), channels, height, width).
        observation: Output of the encoder that the prediction starts from, if it was kept.
    """

    trajectory: Trajectory
    steps: tuple[int, ...]
    frames: Float[Tensor, "batch rendered channels height width"]
    observation: Observation | None = None


class PredictiveAutoencoder(nn.Module):
    """An encoder, an engine and a decoder, each replaceable by anything with its interface.

    Attributes:
        encoder: Frames to states, and to properties and appearance where it estimates them.
        engine: States to later states.
        decoder: States and properties to frames; a network, a camera bound to a scene, or both in series.
        scene: Videos that the model expects; None if unspecified.
    """

    def __init__(
        self,
        encoder: Encoder,
        engine: Engine,
        decoder: nn.Module,
        max_speed: float | None = None,
        scene: Scene | None = None,
        consistency: float | None = None,
        property_leaves: Callable | None = None,
        photometric: PhotometricSettings | None = None,
    ) -> None:
        """Assemble encoder, engine and decoder.

        Args:
            encoder: Frames to a state.
            engine: A state to later states.
            decoder: A state and the engine's properties to a frame; see `Decoder`.
            max_speed: Largest velocity of a valid prediction; a world beyond it counts as failed. None for no limit.
            scene: Expected videos and the meaning of the numbers, needed by `physvision predict`.
            consistency: Velocity error, 1/s, as likely as a position error of one. If given, predictions start on the
                engine's motion closest to the observations in all given frames, see `consistent_state`. Training, and
                None, start at the encoder's state.
            property_leaves: Function from the encoder's properties of a trial to leaves of the engine's properties,
                such as `tabletop_leaves`; None where the encoder's names are leaves.
            photometric: Tuning numbers of a fit of the engine's motion to the given frames themselves, as the decoder
                renders them, in evaluation; see `photometric_motion`. It starts from what `consistency` describes, and
                needs it; it has no gradient. None for no such fit.
        """
        super().__init__()
        self.scene = scene
        if scene is not None and engine.nq != scene.positions:
            raise InputError(f"scene: {scene.positions} coordinates of all objects, but the engine has {engine.nq}")
        self.encoder, self.engine, self.decoder = encoder, engine, decoder
        self.max_speed = None if max_speed is None else check_positive("max_speed", max_speed)
        self.consistency = None if consistency is None else check_positive("consistency", consistency)
        if consistency is not None and encoder.coordinates is None:
            raise InputError(
                f"consistency: {type(encoder).__name__} reads no positions in single frames, it has no `coordinates`; "
                "leave consistency out (null), or give it `coordinates` and a position in every frame"
            )
        if photometric is not None and consistency is None:
            raise InputError("photometric: the fit starts from positions and a velocity; give consistency, too")
        self.property_leaves, self.photometric = property_leaves, photometric
        # A camera has to show the bodies that the engine moves.
        bound = getattr(decoder, "mechanics", None)
        if bound is not None and bound.nq != engine.nq:
            raise InputError(
                f"decoder: its camera is bound to an engine with {bound.nq} positions, the model's has {engine.nq}; "
                "bind both to one scene"
            )

    def forward(
        self,
        frames: Shaped[Tensor, "batch times channels height width"],
        steps: int,
        rendered_steps: Sequence[int] | None = None,
        truncate: int | None = None,
        context: ClipContext | None = None,
    ) -> Forecast:
        """Predict `steps` steps past the last of `frames`.

        Args:
            frames: Consecutive frames, bytes or brightness 0 to 1.
            steps: Engine steps, one a frame.
            rendered_steps: Steps to render, 0 being the last given frame; all predicted ones if not given.
            truncate: Largest number of steps into the past that the gradient of a state reaches.
            context: Known values of the clip; camera poses may reach into the predicted frames.
        """
        observation = self.observe(frames, context)
        trajectory = self.simulate(self.initial_state(observation), steps, truncate, observation.properties)
        indices = tuple(range(1, steps + 1)) if rendered_steps is None else tuple(rendered_steps)
        poses = None if context is None else context.extrinsics_at(frames.shape[1] - 1, indices)
        images = self.decode(trajectory, indices, observation.properties, observation.appearance, poses)
        return Forecast(trajectory, indices, images, observation)

    def observe(
        self,
        frames: Shaped[Tensor, "batch times channels height width"],
        context: ClipContext | None = None,
        fitted: bool = True,
    ) -> Observation:
        """Encode `frames`, in float32 at least.

        Args:
            frames: Consecutive frames, bytes or brightness 0 to 1.
            context: Known values of the clip.
            fitted: If true, by the fit of the engine's motion to all frames, where encoder or model have one.
        """
        observe = self.encoder.observe if fitted else self.encoder.observe_window
        observation = observe(frames) if context is None else observe(frames, context)
        for name, size in (("positions", self.engine.nq), ("velocities", self.engine.nv)):
            title = f"{type(self.encoder).__name__}.observe: {name}"
            check_shape(title, getattr(observation, name), (len(frames), None, size))
        observation = observation.to(torch.promote_types(observation.positions.dtype, torch.float32))
        if fitted and self._fits_frames:
            with torch.autocast(frames.device.type, enabled=False):
                return self._photometric(observation, frames, context)
        return observation

    @property
    def _fits_frames(self) -> bool:
        """If true, observations are those of the motion whose rendered frames are closest to the given ones."""
        return self.photometric is not None and not self.training

    @torch.no_grad()
    def _photometric(self, observation: Observation, frames: Tensor, context: ClipContext | None) -> Observation:
        """Replace positions and velocities by those of `photometric_motion`, where it is finite."""
        assert self.encoder.coordinates is not None
        assert self.consistency is not None
        assert self.photometric is not None
        positions, velocities = observation.positions, observation.velocities
        arguments = self.engine, self.encoder.coordinates, positions, velocities[:, -1], self.consistency

        def render(path: Tensor, times: Sequence[int]) -> Tensor:
            poses = None if context is None else context.extrinsics_at(0, times)
            trajectory = Trajectory(path, torch.zeros_like(path))
            return self.decode(trajectory, range(len(times)), observation.properties, observation.appearance, poses)

        coordinates, given = self.encoder.coordinates, brightness(frames).to(positions)
        motion = photometric_motion(*motion_residual(*arguments), coordinates, render, given, self.photometric)
        finite = (motion.q.isfinite() & motion.v.isfinite()).all(2).all(1)[:, None, None]
        rates = motion.v[:, -velocities.shape[1] :]
        return replace(
            observation,
            positions=torch.where(finite, motion.q, positions),
            velocities=torch.where(finite, rates, velocities),
        )

    def initial_state(self, observation: Observation) -> State:
        """Estimate the state at the last frame, from which a prediction starts."""
        if self.consistency is None or self._fits_frames:
            return observation.state
        assert self.encoder.coordinates is not None
        positions, velocity = observation.positions, observation.velocities[:, -1]
        with torch.autocast(positions.device.type, enabled=False):
            return consistent_state(self.engine, self.encoder.coordinates, positions, velocity, self.consistency)

    def simulate(
        self,
        state: State,
        steps: int,
        truncate: int | None = None,
        properties: Mapping[str, Tensor] | None = None,
        leaves: Mapping[str, Tensor] | None = None,
    ) -> Trajectory:
        """Roll the engine out from `state`; failed worlds stand still, and the status names them.

        Leaves of the engine's properties follow from those of trials, unless given.
        """
        # Half precision would lose what every later step depends on.
        with torch.autocast(state.q.device.type, enabled=False):
            if properties and "present" in properties:
                state = park_states(Trajectory(state.q[:, None], state.v[:, None]), properties["present"] > 0.5).state(
                    0
                )
            leaves = self._leaves(properties) if leaves is None else leaves
            trajectory = self.engine.rollout(state, steps, properties=leaves, truncate=truncate)
            return _freeze_failed(trajectory, self.max_speed)

    def _leaves(self, properties: Mapping[str, Tensor] | None) -> Mapping[str, Tensor] | None:
        """Leaves of the engine's properties that follow from those of trials."""
        if not properties:
            return None
        return properties if self.property_leaves is None else self.property_leaves(properties)

    def decode(
        self,
        trajectory: Trajectory,
        steps: Sequence[int],
        properties: Mapping[str, Tensor] | None = None,
        appearance: AppearanceCode | None = None,
        extrinsics: Tensor | None = None,
    ) -> Float[Tensor, "batch rendered channels height width"]:
        """Render the states at `steps` of `trajectory`.

        Args:
            trajectory: States of some trials.
            steps: Indices of the states to render.
            properties: Properties of the trials; the engine's own if not given.
            appearance: Looks of the trials.
            extrinsics: Pose of the camera at each step, (batch, steps, 4, 4).
        """
        indices = list(steps)
        states = Trajectory(trajectory.q[:, indices], trajectory.v[:, indices]).flatten()
        own = self._repeated(properties, len(indices))
        poses = None if extrinsics is None else extrinsics.flatten(0, 1)
        given = () if appearance is None else (appearance.repeat(len(indices), poses),)
        frames = self.decoder(states, own, *given)
        return frames.unflatten(0, (trajectory.batch, len(indices)))

    def coverage(
        self, states: Trajectory, properties: Mapping[str, Tensor] | None = None, extrinsics: Tensor | None = None
    ) -> Float[Tensor, "frames shapes height width"]:
        """Render the silhouettes of all states of all trials, for decoders with a camera."""
        poses = None if extrinsics is None else extrinsics.flatten(0, 1)
        own = self._repeated(properties, states.q.shape[1])
        return self.decoder.layers(states.flatten(), own, poses).coverage  # pyright: ignore

    def _repeated(self, properties: Mapping[str, Tensor] | None, times: int) -> Properties:
        """The engine's properties, with those of each trial `times` times in a row."""
        own, leaves = self.engine.properties, self._leaves(properties)
        if not leaves:
            return own
        return own.overridden(
            {
                name: value.repeat_interleave(times, 0) if value.dim() > getattr(own, name).dim() else value
                for name, value in leaves.items()
            }
        )


def _freeze_failed(trajectory: Trajectory, max_speed: float | None) -> Trajectory:
    """Hold failed worlds still, without gradient, and mark them in the status.

    An untrained encoder predicts speeds that no time step can follow. Such a sample must not turn the gradient of
    its whole batch into NaN.
    """
    status = trajectory.status
    if status is None:
        return trajectory
    if max_speed is not None:
        slow = trajectory.v.detach().abs().amax(-1) <= max_speed
        first = torch.where(slow.all(1), status.first_failed_step, (~slow).int().argmax(1).to(status.first_failed_step))
        status = replace(status, converged=status.converged & slow.all(1), first_failed_step=first)
    valid = status.converged[:, None, None]
    q, v = (torch.where(valid, states, states[:, :1].detach()) for states in (trajectory.q, trajectory.v))
    return Trajectory(q, v, status)
