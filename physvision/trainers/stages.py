"""Stages of a training before that of the whole model."""

from __future__ import annotations

from dataclasses import dataclass

from physvision.core.checks import check_count


@dataclass(frozen=True)
class Stages:
    """Start of a training, and the parts of the model that its first updates train.

    What reads motion from masks learns better once these have settled, and a decoder learns only fog from a blind
    encoder.

    Attributes:
        weights: Name or path of a model of the same architecture that the training starts from; random weights if not
            given.
        segmentation_updates: Number of first updates that train the segmentation of a `SegmentingEncoder` alone.
        encoder_updates: Number of the update until which the rest of that encoder is trained alone, on the labeled
            samples of each batch and with the segmentation held fixed.
        synthetic: If true, these first updates train on synthetic samples instead of labeled ones: random motions of
            balls, which the model's own engine and camera draw on the backgrounds of the batch.
    """

    weights: str | None = None
    segmentation_updates: int = 0
    encoder_updates: int = 0
    synthetic: bool = False

    def __post_init__(self) -> None:
        for name in ("segmentation_updates", "encoder_updates"):
            check_count(name, getattr(self, name), minimum=0)


FROM_RANDOM_WEIGHTS = Stages()
