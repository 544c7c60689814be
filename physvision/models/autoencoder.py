"""Frames in, the motion that follows in the middle, the frames that follow out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from physvision.core import InputError, Scene, State, Trajectory
from physvision.core.checks import check_positive
from physvision.models.consistency import consistent_state
from physvision.models.parts import Encoder, Observation
from physvision.physics.engine import Engine


@dataclass(frozen=True)
class Forecast:
    """What an autoencoder expects to follow.

    Attributes:
        trajectory: states from the last frame given on, (batch, steps + 1, …).
        steps: those of its states that were drawn.
        frames: of those states, (batch, len(steps), channels, height, width).
    """

    trajectory: Trajectory
    steps: tuple[int, ...]
    frames: Float[Tensor, "batch drawn channels height width"]


class PredictiveAutoencoder(nn.Module):
    """An encoder, an engine and a decoder, each replaceable by whatever has its shape.

    Attributes:
        encoder: reads states in frames.
        engine: moves them.
        decoder: draws states with the engine's properties; a network, or a camera bound to a scene.
        scene: what videos it was made for; None if nobody said.
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
        """Put them together.

        Args:
            encoder: frames to a state.
            engine: a state to those that follow.
            decoder: a state and the engine's properties to a frame; see `Decoder`.
            max_speed: a forecast in which any velocity is beyond this has failed; None for no limit.
            scene: what it expects of a video and what its numbers mean, which `physvision predict` needs to know.
            consistency: forecasts start on the motion of the engine that comes closest to what the encoder reads in
                all frames given, an error of velocity of this size, in 1/s, being as likely as one of position of
                size one; see `consistent_state`. In training, or if not given, they start where the encoder says.
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

    def forward(
        self,
        frames: Shaped[Tensor, "batch times channels height width"],
        steps: int,
        draw: Sequence[int] | None = None,
        truncate: int | None = None,
    ) -> Forecast:
        """Predict `steps` steps past the last of `frames`.

        Args:
            frames: consecutive, bytes or of brightness 0 to 1.
            steps: of the engine, one a frame.
            draw: which states to decode, 0 being that of the last frame given; all predicted ones if not given.
            truncate: backward, the gradient of a state reaches at most so many steps into the past.
        """
        trajectory = self.simulate(self.start(self.observe(frames)), steps, truncate)
        draw = tuple(range(1, steps + 1)) if draw is None else tuple(draw)
        return Forecast(trajectory, draw, self.decode(trajectory, draw))

    def observe(self, frames: Shaped[Tensor, "batch times channels height width"]) -> Observation:
        """What the encoder reads in `frames`, in float32 at least."""
        seen = self.encoder.observe(frames)
        return seen.to(torch.promote_types(seen.positions.dtype, torch.float32))

    def start(self, seen: Observation) -> State:
        """The state at the last frame from which a forecast starts."""
        if self.consistency is None:
            return seen.state
        assert self.encoder.coordinates is not None
        with torch.autocast(seen.positions.device.type, enabled=False):
            return consistent_state(
                self.engine, self.encoder.coordinates, seen.positions, seen.velocities[:, -1], self.consistency
            )

    def simulate(self, state: State, steps: int, truncate: int | None = None) -> Trajectory:
        """What the engine makes of `state`; worlds that failed stand still, and the status says which."""
        # Motion is not computed in half precision: what is lost there grows with every step.
        with torch.autocast(state.q.device.type, enabled=False):
            return _sound(self.engine.rollout(state, steps, truncate=truncate), self.max_speed)

    def decode(
        self, trajectory: Trajectory, steps: Sequence[int]
    ) -> Float[Tensor, "batch drawn channels height width"]:
        """The frames of the states number `steps` of `trajectory`."""
        chosen = list(steps)
        states = Trajectory(trajectory.q[:, chosen], trajectory.v[:, chosen]).flatten()
        frames = self.decoder(states, self.engine.properties)
        return frames.unflatten(0, (trajectory.batch, len(chosen)))


def _sound(trajectory: Trajectory, max_speed: float | None) -> Trajectory:
    """The trajectory with worlds that failed standing still, cut off from the graph, and the status saying so.

    An encoder that knows nothing yet throws things at speeds that no step of time can follow. Such a sample
    must teach nothing, rather than turn the gradient of its whole batch into NaN.
    """
    status = trajectory.status
    if status is None:
        return trajectory
    if max_speed is not None:
        slow = trajectory.v.detach().abs().amax(-1) <= max_speed
        first = torch.where(slow.all(1), status.first_failed_step, (~slow).int().argmax(1).to(status.first_failed_step))
        status = replace(status, converged=status.converged & slow.all(1), first_failed_step=first)
    good = status.converged[:, None, None]
    q, v = (torch.where(good, whole, whole[:, :1].detach()) for whole in (trajectory.q, trajectory.v))
    return Trajectory(q, v, status)
