"""Correlation in time of the errors of balls' positions, as windows of a clip are read: fits of motions need it.

Errors of windows that end k frames apart have the correlation a + (1 − a) c^k, if a part a of their variance is the
same in the whole clip and the rest has correlation c from one frame to the next.

    physvision generate tabletop --trials 1250 --out data/tabletop
    python experiments/tabletop_errors.py [--model tabletop] [--data data/tabletop] [--splits [valid,test]]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from held_out import held_out
from jsonargparse import auto_cli
from scipy.optimize import curve_fit
from torch import Tensor

from physvision.core import State
from physvision.datasets import Sample, WindowShape
from physvision.models import ClipContext, TableEncoder, load
from physvision.models.object_order import aligned
from physvision.models.segmenting_encoder import FRAMES
from physvision.trainers.batches import context_of

GIVEN = 30  # frames
# Distance of a ball from its true place beyond which another is read, px.
MAX_ERROR = 2.0


@torch.no_grad()
def errors(sample: Sample, encoder: TableEncoder, ends: Sequence[int]) -> Tensor:
    """Error of each ball in all windows, (balls, windows, 2), of balls that every window reads."""
    context, true = context_of(sample), sample.trajectory
    assert context is not None
    assert context.extrinsics is not None
    assert true is not None
    assert sample.properties is not None
    present = sample.properties["present"] > 0.5
    windows = []
    for end in ends:
        part = ClipContext(context.extrinsics[:, : end + 1], context.properties)
        window = encoder.observe_window(sample.observed[:, : end + 1], part)
        now = State(true.q[:, end], true.v[:, end])
        placed = aligned(window, now, present, torch.ones(sample.batch, dtype=torch.bool))
        windows.append((placed.positions[:, -1] - now.q).unflatten(1, (-1, 3))[..., :2][present])
    apart = torch.stack(windows, 1)
    return apart[(apart.norm(dim=-1) < MAX_ERROR).all(1)]


def main(
    model: str = "tabletop",
    data: Path = Path("data/tabletop"),
    splits: tuple[str, ...] = ("valid", "test"),
    batches: int = 4,
) -> tuple[float, float]:
    """Print correlations of errors, and return the constant part of their variance and the correlation of the rest.

    Args:
        model: Trained model of `trainers/tabletop.yaml`.
        data: Data set `tabletop`.
        splits: Splits whose trials are read.
        batches: Largest number of batches of 16 windows of each split.
    """
    encoder, shape = load(model).eval().encoder, WindowShape(GIVEN, 10, 20)
    assert isinstance(encoder, TableEncoder)
    assert encoder.motion is not None
    settings = encoder.motion.settings
    ends = settings.ends(GIVEN, FRAMES)
    samples = (s for split in splits for s in held_out(data, shape, batches, split, given_properties=["walls"]))
    apart = torch.cat([errors(sample, encoder, ends) for sample in samples])
    gaps = np.arange(1, apart.shape[1] - 1)
    steps = settings.step * gaps
    variance = float(apart.square().mean())
    correlations = [float((apart[:, gap:] * apart[:, :-gap]).mean()) / variance for gap in gaps]
    (constant, correlation), _ = curve_fit(
        lambda frames, a, c: a + (1.0 - a) * c**frames, steps, correlations, (0.3, 0.7), bounds=(0.0, 1.0)
    )
    print(f"{len(apart)} balls, errors of {variance**0.5:.3f} px of each coordinate")
    for frames, value in zip(steps, correlations, strict=True):
        fitted = constant + (1.0 - constant) * correlation**frames
        print(f"{frames:>3} frames apart: {value:.2f}, fitted {fitted:.2f}")
    print(f"constant_error {constant:.2f}, correlation {correlation:.2f}")
    return float(constant), float(correlation)


if __name__ == "__main__":
    auto_cli(main)
