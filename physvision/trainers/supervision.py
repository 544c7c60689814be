"""The loss of a prediction: of states where a sample has labels, of frames always."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from physvision.core import Coordinates, Trajectory, brightness
from physvision.core.checks import check_positive
from physvision.models import Prediction

Batch = dict[str, Tensor]


class Supervision(nn.Module):
    """Strong loss L_enc + L_phy + L_dec where a sample is labelled, weak loss L_dec alone where it is not.

    L_enc compares the encoder's state with the true one, L_phy the states that the engine predicts, L_dec the
    predicted frames. The loss of a batch is the mean over its samples, so that equal shares of it on several processes
    give the same.

    In training a labelled sample feeds its true state onward, to the engine and from there to the decoder, unless
    `onward` is "encoder". If the encoder's own goes on, its errors are taken for the motion's, what is learned of the
    engine is biased by them, and the decoder learns from frames that do not show what it was given.

    An error of a position counts as the square of its distance d over `position_scale`, one of a velocity as that of
    its amount over `velocity_scale`; where that is more than one, as Huber's loss does, which goes on in a straight
    line: a chaotic prediction that has lost its way, or a frame that is hard to read, must not drown the others. The
    distance of two angles is that of their points on the unit circle, which has no jump.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        encoder: float = 1.0,
        physics: float = 1.0,
        frames: float = 10.0,
        velocity: float = 1.0,
        position_scale: float = 1.0,
        velocity_scale: float = 1.0,
        frame_loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        onward: Literal["label", "encoder"] = "label",
    ) -> None:
        """Weigh the terms.

        Args:
            coordinates: what the positions are.
            encoder: weight of L_enc.
            physics: weight of L_phy.
            frames: weight of L_dec.
            velocity: weight of velocities beside positions within L_enc and L_phy.
            position_scale: an error of position of this size counts as one. What is far below the errors that are left
                after training makes their sum the loss rather than that of their squares.
            velocity_scale: an error of velocity of this size counts as one.
            frame_loss: of predicted and true frames (count, channels, height, width): one number, or one a
                frame; the mean square if not given.
            onward: where predictions of labelled samples start in training: at the true state, or the encoder's.
        """
        super().__init__()
        self.coordinates = coordinates
        self.encoder, self.physics, self.frames, self.velocity = encoder, physics, frames, velocity
        self.position_scale = check_positive("position_scale", position_scale)
        self.velocity_scale = check_positive("velocity_scale", velocity_scale)
        self.onward = onward
        self.frame_loss = frame_loss or nn.functional.mse_loss

    def forward(
        self,
        prediction: Prediction,
        batch: Batch,
        estimate: Trajectory | None = None,
    ) -> dict[str, Float[Tensor, ""]]:
        """Each weighted term and their sum, `loss`.

        Args:
            prediction: of the autoencoder.
            batch: what it was made from, and what is true.
            estimate: the encoder's states from the last frame given on, of one frame or of several; where the
                prediction starts if not given.
        """
        labeled = batch["labeled"]
        q, v = prediction.trajectory.q, prediction.trajectory.v
        drawn = prediction.frames.flatten(0, 1)
        terms = {
            "frames": self.frames * self.frame_loss(drawn, frames_at(batch, prediction.steps).flatten(0, 1)).mean()
        }
        if "q" in batch:
            true_q, true_v = (torch.cat([batch[name][:, -1:], batch[f"target_{name}"]], 1) for name in ("q", "v"))
            found_q, found_v = (q[:, :1], v[:, :1]) if estimate is None else (estimate.q, estimate.v)
            seen, steps = found_q.shape[1], prediction.trajectory.steps
            now = self._state_loss(found_q, found_v, true_q[:, :seen], true_v[:, :seen], labeled)
            ahead = self._state_loss(q[:, 1:], v[:, 1:], true_q[:, 1 : steps + 1], true_v[:, 1 : steps + 1], labeled)
            terms["encoder"], terms["physics"] = self.encoder * now, self.physics * ahead
        return {**terms, "loss": torch.stack(list(terms.values())).sum()}

    def _state_loss(
        self,
        q: Float[Tensor, "batch times nq"],
        v: Float[Tensor, "batch times nv"],
        true_q: Float[Tensor, "batch times nq"],
        true_v: Float[Tensor, "batch times nv"],
        labeled: Bool[Tensor, " batch"],
    ) -> Float[Tensor, ""]:
        """Mean over all samples, zero for those without labels."""
        # What is unknown is NaN, and NaN times zero is NaN: it is replaced before anything is computed.
        known = labeled[:, None, None]
        away = torch.where(known, true_q, q.detach()) - q
        angles, straight = list(self.coordinates.angles), list(self.coordinates.straight)
        # The chord as 2 sin d/2, not the root of 2(1 − cos d), which rounds small angles away and has no slope at zero.
        distance = torch.cat([2 * torch.sin(0.5 * away[..., angles]), away[..., straight]], -1) / self.position_scale
        speed = (torch.where(known, true_v, v.detach()) - v) / self.velocity_scale
        return (_huber(distance) + self.velocity * _huber(speed)).sum(-1).mean() / self.coordinates.size


def _huber(error: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
    """The square of an error below one, and a straight line beyond."""
    return 2 * nn.functional.smooth_l1_loss(error, torch.zeros_like(error), reduction="none")


def frames_at(batch: Batch, steps: tuple[int, ...]) -> Float[Tensor, "batch drawn channels height width"]:
    """The true frames `steps` past the last one given, 0 being that one itself."""
    frames = [batch["target_frames"][:, step - 1] if step else batch["frames"][:, -1] for step in steps]
    return brightness(torch.stack(frames, 1))
