"""The loss of a prediction: of states and properties where a sample has labels, of frames always."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision import losses
from physvision.core import Coordinates, Trajectory, brightness
from physvision.core.checks import check_count, check_positive
from physvision.datasets import Sample
from physvision.losses import FrameLoss
from physvision.models import Forecast

# Frames whose median shows the clip without what moves.
_MEDIAN_FRAMES = 9
_COARSEST_SCALE = 3


@dataclass(frozen=True)
class StateLossSettings:
    """Scales of the distance between states in L_enc and L_phy, see `state_loss`.

    Attributes:
        velocity_weight: Weight of velocities beside positions; raising it favors motion over places.
        position_scale: Error of position that counts as one, in the position's unit. Larger errors count by their size,
            smaller ones by their square: what is far below the errors that are left after training makes their sum the
            loss.
        velocity_scale: Error of velocity that counts as one, in the position's unit a second.
    """

    velocity_weight: float = 1.0
    position_scale: float = 1.0
    velocity_scale: float = 1.0

    def __post_init__(self) -> None:
        for name in ("position_scale", "velocity_scale"):
            check_positive(name, getattr(self, name))


@dataclass(frozen=True)
class FrameLossSettings:
    """Kind of the distance between frames in L_dec.

    Attributes:
        kind: Kind of distance, see `frame_losses`; "multi_scale" goes from coarse to fine during the ramp.
        balance_foreground: If true, moving foreground and background have half of L_dec each.
    """

    kind: FrameLoss = "l2"
    balance_foreground: bool = False


_STATE_LOSS, _FRAME_LOSS = StateLossSettings(), FrameLossSettings()


@dataclass(frozen=True)
class Estimate:
    """States of the encoder itself, in the order of the labels' objects.

    Attributes:
        states: Encoder states from the last given frame on, of one frame or of several.
        future: Rollout from the encoder's own state and properties, (batch, steps + 1, …); rows without labels may
            hold anything. None if it was not simulated.
    """

    states: Trajectory
    future: Trajectory | None = None


class Supervision(nn.Module):
    """Strong loss L_enc + L_phy + L_dec where a sample is labeled, weak loss L_dec alone where it is not.

    L_enc compares the encoder's state with the true one, L_phy the states that the engine predicts, both by
    `state_loss`, L_dec the predicted frames. The loss of a batch is the mean over its samples, so that equal shares of
    it on several processes give the same.

    In training a labeled sample feeds its true state and properties onward, to the engine and from there to the
    decoder, unless `onward` is "encoder". Otherwise the encoder's errors would bias what is learned of the engine, and
    the decoder would learn from frames that do not show its input. L_phy then teaches the encoder nothing; so it is
    also computed for the future that the engine predicts from the encoder's own state.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        encoder_weight: float = 1.0,
        physics_weight: float = 1.0,
        frame_weight: float = 10.0,
        later_weight: float = 0.0,
        property_weight: float = 0.1,
        ramp_updates: int = 0,
        onward: Literal["label", "encoder"] = "label",
        state_loss: StateLossSettings = _STATE_LOSS,
        frame_loss: FrameLossSettings = _FRAME_LOSS,
    ) -> None:
        """Choose weights, and how states and frames are compared.

        Args:
            coordinates: Meaning of the positions: number of them, and which are angles.
            encoder_weight: Weight of L_enc.
            physics_weight: Weight of L_phy.
            frame_weight: Weight of L_dec.
            later_weight: Weight of the distance between predicted positions and those that a segmenting encoder sees
                later, in samples without labels.
            property_weight: Weight of the likelihood of true properties, for segmenting encoders that estimate any.
            ramp_updates: Number of updates in which the weight of unlabeled samples' L_dec grows from zero.
            onward: Start of the forecasts of labeled samples in training: the true state, or the encoder's.
            state_loss: Scales of L_enc and L_phy.
            frame_loss: Kind of L_dec.
        """
        super().__init__()
        self.coordinates = coordinates
        self.encoder_weight, self.physics_weight, self.frame_weight = encoder_weight, physics_weight, frame_weight
        self.later_weight, self.property_weight = later_weight, property_weight
        self.ramp_updates, self.onward = check_count("ramp_updates", ramp_updates, 0), onward
        self.state_loss = partial(losses.state_loss, coordinates=coordinates, **asdict(state_loss))
        self.frame_loss = frame_loss

    def forward(
        self,
        forecast: Forecast,
        sample: Sample,
        estimate: Estimate | Trajectory | None = None,
        update: int | None = None,
    ) -> dict[str, Float[Tensor, ""]]:
        """Compute each weighted term and their sum, `loss`.

        Args:
            forecast: Prediction of the autoencoder.
            sample: Batch with frames and labels.
            estimate: States of the encoder; where the forecast starts if not given.
            update: Number of the training update, for the ramp; its end if not given.
        """
        terms = {"frames": self.frame_weight * self._frames(forecast, sample, update)}
        true, predicted = sample.ahead, forecast.trajectory
        if true is not None:
            estimate = estimate if isinstance(estimate, Estimate) else Estimate(estimate or predicted[:1])
            states = estimate.states
            compare = partial(self.state_loss, labeled=sample.labeled)
            terms["encoder"] = self.encoder_weight * compare(states, true[: len(states)])
            terms["physics"] = self.physics_weight * compare(predicted[1:], true[1 : len(predicted)])
            if estimate.future is not None:
                own = estimate.future
                terms["physics_encoder"] = self.physics_weight * compare(own[1:], true[1 : len(own)])
        return {**terms, "loss": torch.stack(list(terms.values())).sum()}

    def _frames(self, forecast: Forecast, sample: Sample, update: int | None) -> Float[Tensor, ""]:
        true_frames = brightness(sample.frames_at(forecast.steps))
        weights = None
        if self.frame_loss.balance_foreground:
            count = sample.frames.shape[1]
            indices = sorted({round(i * (count - 1) / (_MEDIAN_FRAMES - 1)) for i in range(_MEDIAN_FRAMES)})
            weights = losses.foreground_weights(true_frames, brightness(sample.frames[:, indices].median(1).values))
        ramp = 1.0 if update is None or not self.ramp_updates else min(1.0, update / self.ramp_updates)
        finest = round(_COARSEST_SCALE * (1.0 - ramp))
        values = losses.frame_losses(self.frame_loss.kind, forecast.frames.float(), true_frames, weights, finest)
        return (values if ramp == 1.0 else torch.where(sample.labeled, values, ramp * values)).mean()
