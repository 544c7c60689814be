"""Settings of the training of a prediction autoencoder: its forecasts, and the samples that its parts learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from physvision.core import InputError
from physvision.trainers.symmetries import Symmetry


@dataclass(frozen=True)
class ForecastSettings:
    """Length of the forecasts in training and evaluation, and the frames that are rendered of them.

    Attributes:
        horizon_schedule: Predicted steps by first epoch, e.g. {0: 1, 3: 5}; the samples' horizon if not given. A short
            horizon at first limits the growth of gradients.
        truncate: Largest number of steps into the past that the gradient of a state reaches; None for no limit.
        rendered_frames: Number of random states a batch that are rendered and compared with frames; "last" for the
            state at the end of the horizon. Raising it costs time and lowers the noise of the frame loss.
        eval_steps: Steps at which predictions are evaluated, as far as samples reach.
    """

    horizon_schedule: dict[int, int] | None = None
    truncate: int | None = None
    rendered_frames: int | Literal["last"] = 2
    eval_steps: tuple[int, ...] = (0, 10, 20, 60)

    def __post_init__(self) -> None:
        schedule = self.horizon_schedule
        if schedule and (0 not in schedule or min(schedule.values()) < 1):
            raise InputError(f"horizon_schedule: expected steps of at least 1 from epoch 0 on, got {schedule}")

    def steps_at(self, epoch: int, horizon: int) -> int:
        """Return the number of steps to predict.

        Args:
            epoch: Number of the epoch, from 0.
            horizon: Horizon of the samples, steps.
        """
        if not self.horizon_schedule:
            return horizon
        steps = self.horizon_schedule[max(first for first in self.horizon_schedule if first <= epoch)]
        if steps > horizon:
            raise InputError(
                f"horizon_schedule: {steps} steps are more than the horizon of {horizon} frames of the data's samples"
            )
        return steps


@dataclass(frozen=True)
class SampleSettings:
    """Samples that the parts of the model learn from.

    Attributes:
        encoder_windows: Windows of a labeled sample that the encoder loss uses: the "first", where predictions start,
            or "all", since later frames have labels too.
        decoder_samples: Samples that decoder and physical parameters learn from: "all", or only "labeled" ones, at true
            states. At an encoder's wrong states decoders learn blurred averages, and parameters are biased.
        symmetries: Symmetries of the scene, see `transformed`; each is applied to a batch with probability ½.
    """

    encoder_windows: Literal["first", "all"] = "first"
    decoder_samples: Literal["all", "labeled"] = "all"
    symmetries: tuple[Symmetry, ...] = ()
