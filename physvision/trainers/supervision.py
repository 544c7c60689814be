"""The loss of a prediction: of states where a sample has labels, of frames always."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from physvision.core import Trajectory
from physvision.core.checks import check_positive
from physvision.models import Coordinates, Prediction

Batch = dict[str, Tensor]


class Supervision(nn.Module):
    """Strong loss L_enc + L_phy + L_dec where a sample is labelled, weak loss L_dec alone where it is not.

    L_enc compares the encoder's state with the true one, L_phy the states that the engine predicts, L_dec the
    predicted frames. The loss of a batch is the mean over its samples, so that equal shares of it on several processes
    give the same.

    In training a labelled sample feeds its true state onward, to the engine and from there to the decoder, unless
    `onward` is "encoder". If the encoder's own goes on, its errors are taken for the motion's, what is learned of the
    engine is biased by them, and the decoder learns from frames that do not show what it was given.

    An angle's error d counts as 2(1 − cos d), which is d² where it is small and has no jump; another position's as
    d²; a velocity's as Huber's loss of the error over `velocity_scale`. All are bounded, or grow slowly: a
    chaotic prediction that has lost its way must not drown the others.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        encoder: float = 1.0,
        physics: float = 1.0,
        frames: float = 10.0,
        velocity: float = 1.0,
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
            velocity_scale: an error of velocity of this size counts as much as one of position of size one.
            frame_loss: of predicted and true frames (count, channels, height, width): one number, or one a
                frame; the mean square if not given.
            onward: where predictions of labelled samples start in training: at the true state, or the encoder's.
        """
        super().__init__()
        self.coordinates = coordinates
        self.encoder, self.physics, self.frames, self.velocity = encoder, physics, frames, velocity
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
        position = 2 * (1 - away[..., angles].cos()).sum(-1) + away[..., straight].square().sum(-1)
        speed = (torch.where(known, true_v, v.detach()) - v) / self.velocity_scale
        velocity = 2 * nn.functional.smooth_l1_loss(speed, torch.zeros_like(speed), reduction="none").sum(-1)
        return (position + self.velocity * velocity).mean() / self.coordinates.size


def frames_at(batch: Batch, steps: tuple[int, ...]) -> Float[Tensor, "batch drawn channels height width"]:
    """The true frames `steps` past the last one given, 0 being that one itself."""
    frames = [batch["target_frames"][:, step - 1] if step else batch["frames"][:, -1] for step in steps]
    return brightness(torch.stack(frames, 1))


def brightness(frames: Tensor) -> Float[Tensor, "..."]:
    """Frames as floats, 0 to 1, whether they come so or as bytes."""
    return frames if frames.is_floating_point() else frames * (1.0 / 255.0)
