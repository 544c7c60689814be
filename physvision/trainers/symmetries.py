"""Symmetries of a scene: seen in a mirror, or played backwards, it is as true, and needs no new data."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import torch

from physvision.trainers.supervision import Batch

Symmetry = Literal["mirror", "reversal"]


def transformed(batch: Batch, symmetries: Collection[Symmetry]) -> Batch:
    """The batch as each of `symmetries` shows it: its frames, and its states where it has any.

    A "mirror" exchanges left and right and turns the sign of all states: of hinges in a plane that is seen face on,
    with gravity pointing down in the picture. A "reversal" plays samples backwards, which turns the sign of velocities;
    it is physics where nothing rubs and nothing is lost.
    """
    if "mirror" in symmetries:
        shown = {name: batch[name].flip(-1) for name in ("frames", "target_frames")}
        turned = {name: -batch[name] for name in ("q", "v", "target_q", "target_v") if name in batch}
        batch = {**batch, **shown, **turned}
    if "reversal" in symmetries:
        given = batch["frames"].shape[1]
        back = {}
        for name in ("frames", "q", "v"):
            if name in batch:
                whole = torch.cat([batch[name], batch[f"target_{name}"]], 1).flip(1)
                back[name], back[f"target_{name}"] = (-whole if name == "v" else whole).tensor_split([given], 1)
        batch = {**batch, **back}
    return batch
