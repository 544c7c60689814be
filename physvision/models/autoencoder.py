"""The prediction autoencoder: frames, an engine in the middle, predicted frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from physvision.core import InputError, Scene, State, Trajectory
from physvision.core.checks import check_positive
from physvision.models.consistency import consistent_state
from physvision.models.interfaces import Appearance, Encoder, Observation
from physvision.physics.engine import Engine


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
                f"consistency: {type(encoder).__name__} reads no positions in single frames, it has no `coordinates`"
            )
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
    ) -> Forecast:
        """Predict `steps` steps past the last of `frames`.

        Args:
            frames: Consecutive frames, bytes or brightness 0 to 1.
            steps: Engine steps, one a frame.
            rendered_steps: Steps to render, 0 being the last given frame; all predicted ones if not given.
            truncate: Largest number of steps into the past that the gradient of a state reaches.
        """
        observation = self.observe(frames)
        trajectory = self.simulate(self.initial_state(observation), steps, truncate, observation.properties)
        indices = tuple(range(1, steps + 1)) if rendered_steps is None else tuple(rendered_steps)
        images = self.decode(trajectory, indices, observation.properties, observation.appearance)
        return Forecast(trajectory, indices, images, observation)

    def observe(self, frames: Shaped[Tensor, "batch times channels height width"]) -> Observation:
        """Encode `frames`, in float32 at least."""
        observation = self.encoder.observe(frames)
        return observation.to(torch.promote_types(observation.positions.dtype, torch.float32))

    def initial_state(self, observation: Observation) -> State:
        """Estimate the state at the last frame, from which a prediction starts."""
        if self.consistency is None:
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
    ) -> Trajectory:
        """Roll the engine out from `state`; failed worlds stand still, and the status names them."""
        # Half precision would lose what every later step depends on.
        with torch.autocast(state.q.device.type, enabled=False):
            trajectory = self.engine.rollout(state, steps, properties=properties, truncate=truncate)
            return _freeze_failed(trajectory, self.max_speed)

    def decode(
        self,
        trajectory: Trajectory,
        steps: Sequence[int],
        properties: Mapping[str, Tensor] | None = None,
        appearance: Appearance | None = None,
    ) -> Float[Tensor, "batch rendered channels height width"]:
        """Render the states at `steps` of `trajectory`."""
        indices = list(steps)
        states = Trajectory(trajectory.q[:, indices], trajectory.v[:, indices]).flatten()
        own = self.engine.properties
        if properties:
            # Each state of a world has the world's properties.
            repeated = {
                name: value.repeat_interleave(len(indices), 0) if value.dim() > getattr(own, name).dim() else value
                for name, value in properties.items()
            }
            own = own.overridden(repeated)
        given = () if appearance is None else (appearance.repeat(len(indices)),)
        frames = self.decoder(states, own, *given)
        return frames.unflatten(0, (trajectory.batch, len(indices)))


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
