"""The loss of a forecast: of states where a sample has labels, of frames always."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import Coordinates, Trajectory, brightness
from physvision.core.checks import check_positive
from physvision.datasets import Sample
from physvision.losses import mean_square, state_loss
from physvision.models import Forecast


class Supervision(nn.Module):
    """Strong loss L_enc + L_phy + L_dec where a sample is labeled, weak loss L_dec alone where it is not.

    L_enc compares the encoder's state with the true one, L_phy the states that the engine predicts, both by
    `state_loss`, L_dec the predicted frames. The loss of a batch is the mean over its samples, so that equal shares of
    it on several processes give the same.

    In training a labeled sample feeds its true state onward, to the engine and from there to the decoder, unless
    `onward` is "encoder". If the encoder's own goes on, its errors are taken for the motion's, what is learned of the
    engine is biased by them, and the decoder learns from frames that do not show what it was given.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        encoder_weight: float = 1.0,
        physics_weight: float = 1.0,
        frame_weight: float = 10.0,
        velocity_weight: float = 1.0,
        position_scale: float = 1.0,
        velocity_scale: float = 1.0,
        onward: Literal["label", "encoder"] = "label",
    ) -> None:
        """Choose weights and scales.

        Args:
            coordinates: Meaning of the positions: number of them, and which are angles.
            encoder_weight: Weight of L_enc.
            physics_weight: Weight of L_phy.
            frame_weight: Weight of L_dec.
            velocity_weight: Weight of velocities beside positions in L_enc and L_phy.
            position_scale: an error of position of this size counts as one. What is far below the errors that are left
                after training makes their sum the loss rather than that of their squares.
            velocity_scale: an error of velocity of this size counts as one.
            onward: where forecasts of labeled samples start in training: at the true state, or the encoder's.
        """
        super().__init__()
        self.coordinates = coordinates
        self.encoder_weight, self.physics_weight, self.frame_weight = encoder_weight, physics_weight, frame_weight
        self.onward = onward
        self.state_loss = partial(
            state_loss,
            coordinates=coordinates,
            velocity_weight=velocity_weight,
            position_scale=check_positive("position_scale", position_scale),
            velocity_scale=check_positive("velocity_scale", velocity_scale),
        )

    def forward(
        self, forecast: Forecast, sample: Sample, estimate: Trajectory | None = None
    ) -> dict[str, Float[Tensor, ""]]:
        """Each weighted term and their sum, `loss`.

        Args:
            forecast: Prediction of the autoencoder.
            sample: Batch with frames and labels.
            estimate: the encoder's states from the last frame given on, of one frame or of several; where the
                forecast starts if not given.
        """
        true_frames = brightness(sample.frames_at(forecast.steps)).flatten(0, 1)
        terms = {"frames": self.frame_weight * mean_square(forecast.frames.flatten(0, 1).float(), true_frames)}
        true, predicted = sample.ahead, forecast.trajectory
        if true is not None:
            estimate = predicted[:1] if estimate is None else estimate
            terms["encoder"] = self.encoder_weight * self.state_loss(
                estimate, true[: len(estimate)], labeled=sample.labeled
            )
            terms["physics"] = self.physics_weight * self.state_loss(
                found[1:], true[1 : len(found)], labeled=sample.labeled
            )
        return {**terms, "loss": torch.stack(list(terms.values())).sum()}
