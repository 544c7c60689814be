"""Symmetries of a scene: seen in a mirror, or played backwards, it is as true, and needs no new data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from physvision.core import Trajectory
from physvision.datasets import Sample

Symmetry = Literal["mirror", "reversal"]


def transformed(sample: Sample, symmetries: Collection[Symmetry]) -> Sample:
    """The batch as each of `symmetries` shows it: its frames, and its states where it has any.

    A "mirror" exchanges left and right and turns the sign of all states: of hinges in a plane that is seen face on,
    with gravity pointing down in the picture. A "reversal" plays samples backwards, which turns the sign of velocities;
    it is physics where nothing rubs and nothing is lost.
    """
    frames, true = sample.frames, sample.trajectory
    if "mirror" in symmetries:
        frames = frames.flip(-1)
        true = true and Trajectory(-true.q, -true.v, dt=true.dt)
    if "reversal" in symmetries:
        frames = frames.flip(1)
        true = true and Trajectory(true.q.flip(1), -true.v.flip(1), dt=true.dt)
    return replace(sample, frames=frames, trajectory=true)
