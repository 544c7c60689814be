"""Known values, labels and faults of a batch of samples, and parameters held constant for a part of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from physvision.core import TrainingError
from physvision.datasets import Sample
from physvision.models import ClipContext, Forecast


def context_of(sample: Sample) -> ClipContext | None:
    """Known values of a batch's clips: camera poses, and properties that no sample lacks."""
    given = {name: value for name, value in (sample.properties or {}).items() if not bool(torch.isnan(value).any())}
    # Labels of a batch that happens to be all labeled are not known values.
    given = {name: value for name, value in given.items() if name == "walls"}
    if sample.extrinsics is None and not given:
        return None
    return ClipContext(sample.extrinsics, given or None)


def with_labels(values: Mapping[str, Tensor] | None, sample: Sample) -> dict[str, Tensor]:
    """The encoder's properties, replaced by true ones where a sample has them."""
    known = sample.properties or {}
    result = dict(values or {})
    for name, value in result.items():
        if name in known:
            labeled = sample.labeled.reshape(-1, *(1,) * (value.dim() - 1))
            result[name] = torch.where(labeled, known[name].to(value), value)
    return result


def check_finite(sample: Sample) -> None:
    """Raise at the first sample with a frame or label that is not finite."""
    parts = {"frames": sample.frames}
    if sample.trajectory is not None:
        parts |= {"trajectory.q": sample.trajectory.q, "trajectory.v": sample.trajectory.v}
    for name, values in parts.items():
        good = torch.isfinite(values).flatten(1).all(1)
        good = good if name == "frames" else good | ~sample.labeled
        if not bool(good.all()):
            raise TrainingError(
                f"{name} of {_place(sample, good)} holds a value that is not finite; "
                "repair the data set. The last checkpoint is kept"
            )


def _place(sample: Sample, good: Tensor) -> str:
    index = int(torch.nonzero(~good)[0])
    return f"the sample of trial {int(sample.trial[index])} that starts at frame {int(sample.start[index])}"


def divergence_message(forecast: Forecast | None, sample: Sample) -> str:
    """Describe a loss that is not finite, with the first sample at fault if its forecast shows it."""
    good = torch.ones_like(sample.labeled)
    if forecast is not None:
        parts = (forecast.trajectory.q, forecast.trajectory.v, forecast.frames)
        good = torch.stack([torch.isfinite(part.detach()).flatten(1).all(1) for part in parts]).all(0)
    where = "" if bool(good.all()) else f", first in {_place(sample, good)}"
    return (
        f"the loss is not finite{where}, though the batch is; go on from the last checkpoint, which is kept, "
        "with a lower learning rate or a lower clip"
    )


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Hold a module's parameters constant for what is computed inside, gradients to its inputs remain."""
    trained = [value for value in module.parameters() if value.requires_grad]
    for value in trained:
        value.requires_grad_(False)
    try:
        yield
    finally:
        for value in trained:
            value.requires_grad_(True)


@contextmanager
def evaluated(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode for what is computed inside."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)
