"""Frames in, the motion that follows in the middle, the frames that follow out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from physvision.core import Coordinates, InputError, Scene, State, Trajectory, brightness
from physvision.core.checks import check_positive
from physvision.models.consistency import consistent_state
from physvision.physics.engine import Engine


@dataclass(frozen=True)
class Prediction:
    """What an autoencoder sees coming.

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
        encoder: frames (batch, times, channels, height, width) to the `State` at the last of them.
        engine: moves that state.
        decoder: a `State` and the engine's properties to its frame (batch, channels, height, width); a network, or a
            camera bound to a scene.
        scene: what videos it was made for; None if nobody said.
    """

    def __init__(
        self,
        encoder: nn.Module,
        engine: Engine,
        decoder: nn.Module,
        fastest: float | None = None,
        scene: Scene | None = None,
        consistency: float | None = None,
    ) -> None:
        """Put them together.

        Args:
            encoder: frames to a state.
            engine: a state to those that follow.
            decoder: a state to its frame.
            fastest: a prediction in which any velocity is beyond this has failed; None for no limit.
            scene: what it expects of a video and what its numbers mean, which `physvision predict` needs to know.
            consistency: predictions start on the motion of the engine that comes closest to what the encoder reads in
                all frames given, an error of velocity of this size, in 1/s, being as likely as one of position of
                size one; see `consistent_state`. In training, or if not given, they start where the encoder says.
        """
        super().__init__()
        self.scene = scene
        if scene is not None and engine.nq != scene.positions:
            raise InputError(f"scene: {scene.positions} coordinates of all objects, but the engine has {engine.nq}")
        self.encoder, self.engine, self.decoder = encoder, engine, decoder
        self.fastest = None if fastest is None else check_positive("fastest", fastest)
        self.consistency = None if consistency is None else check_positive("consistency", consistency)
        if consistency is not None and not hasattr(encoder, "read"):
            raise InputError(
                f"consistency: {type(encoder).__name__} reads no positions in single frames; it needs a method `read`"
            )

    def forward(
        self,
        frames: Float[Tensor, "batch times channels height width"],
        steps: int,
        draw: Sequence[int] | None = None,
        truncate: int | None = None,
    ) -> Prediction:
        """Predict `steps` steps past the last of `frames`.

        Args:
            frames: consecutive, brightness 0 to 1.
            steps: of the engine, one a frame.
            draw: which states to decode, 0 being that of the last frame given; all predicted ones if not given.
            truncate: backward, the gradient of a state reaches at most so many steps into the past.
        """
        trajectory = self.simulate(self.encode(frames), steps, truncate)
        draw = tuple(range(1, steps + 1)) if draw is None else tuple(draw)
        return Prediction(trajectory, draw, self.decode(trajectory, draw))

    def encode(self, frames: Float[Tensor, "batch times channels height width"]) -> State:
        """The state at the last of `frames`, in float32 at least."""
        if self.consistency is None:
            state: State = self.encoder(frames)
            return state.to(torch.promote_types(state.q.dtype, torch.float32))
        positions, velocities = self._read(frames)
        with torch.autocast(frames.device.type, enabled=False):
            coordinates: Coordinates = self.encoder.coordinates  # pyright: ignore[reportAssignmentType]
            return consistent_state(self.engine, coordinates, positions, velocities[:, -1], self.consistency)

    def track(self, frames: Shaped[Tensor, "batch times channels height width"], given: int) -> Trajectory:
        """The encoder's states at all of `frames` but the first `given` − 1, each from the `given` that end with it.

        Frames are of brightness 0 to 1, or bytes. An encoder that can share work between them does so in a method
        `read`, such frames to positions in all of them and velocities from the number `given` on; what its positions
        are it says by its `coordinates`.
        """
        if hasattr(self.encoder, "read"):
            positions, velocities = self._read(frames)
            return Trajectory(positions[:, given - 1 :], velocities)
        windows = brightness(frames).unfold(1, given, 1).movedim(-1, 2)
        state = self.encode(windows.flatten(0, 1))
        q, v = (part.unflatten(0, windows.shape[:2]) for part in (state.q, state.v))
        return Trajectory(q, v)

    def _read(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        positions, velocities = self.encoder.read(frames)  # pyright: ignore[reportCallIssue]
        kind = torch.promote_types(positions.dtype, torch.float32)
        return positions.to(kind), velocities.to(kind)

    def observe(
        self, frames: Float[Tensor, "batch times channels height width"]
    ) -> tuple[State, Float[Tensor, "batch objects"] | None]:
        """The state at the last of `frames`, and how sure the encoder is of each object, 0 to 1.

        An encoder that knows how sure it is says so by a method `observe` of the same shape; for others it is None.
        """
        observe = getattr(self.encoder, "observe", None)
        if observe is None:
            return self.encode(frames), None
        state, confidence = observe(frames)
        return state.to(torch.promote_types(state.q.dtype, torch.float32)), confidence

    def simulate(self, state: State, steps: int, truncate: int | None = None) -> Trajectory:
        """What the engine makes of `state`; worlds that failed stand still, and the status says which."""
        # Motion is not computed in half precision: what is lost there grows with every step.
        with torch.autocast(state.q.device.type, enabled=False):
            return _sound(self.engine.rollout(state, steps, truncate=truncate), self.fastest)

    def decode(
        self, trajectory: Trajectory, steps: Sequence[int]
    ) -> Float[Tensor, "batch drawn channels height width"]:
        """The frames of the states number `steps` of `trajectory`."""
        chosen = list(steps)
        states = Trajectory(trajectory.q[:, chosen], trajectory.v[:, chosen]).flatten()
        frames = self.decoder(states, self.engine.properties)
        return frames.unflatten(0, (trajectory.batch, len(chosen)))


def _sound(trajectory: Trajectory, fastest: float | None) -> Trajectory:
    """The trajectory with worlds that failed standing still, cut off from the graph, and the status saying so.

    An encoder that knows nothing yet throws things at speeds that no step of time can follow. Such a sample
    must teach nothing, rather than turn the gradient of its whole batch into NaN.
    """
    status = trajectory.status
    if status is None:
        return trajectory
    if fastest is not None:
        slow = trajectory.v.detach().abs().amax(-1) <= fastest
        first = torch.where(slow.all(1), status.first_bad_step, (~slow).int().argmax(1).to(status.first_bad_step))
        status = replace(status, converged=status.converged & slow.all(1), first_bad_step=first)
    good = status.converged[:, None, None]
    q, v = (torch.where(good, whole, whole[:, :1].detach()) for whole in (trajectory.q, trajectory.v))
    return Trajectory(q, v, status)
