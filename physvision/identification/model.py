"""A hypothesis: an engine, what is unknown of it, and how it is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import PhysvisionError
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.view import View
from physvision.perception import Track
from physvision.physics import Engine


class UnsuitableError(PhysvisionError):
    """Tracks that a kind of motion cannot be tried on, and why."""


@dataclass(frozen=True)
class Known:
    """What somebody tells.

    Attributes:
        value: SI.
        deviation: its standard deviation; zero where it is exact.
    """

    value: float
    deviation: float = 0.0


Knowns = Mapping[str, Tensor]
Parameters = dict[str, "Tensor | str"]


@dataclass(frozen=True)
class Model:
    """One hypothesis about tracks, in pixels and seconds: nothing in it needs a scale.

    Attributes:
        kind: of the motion.
        engine: what moves; a step of it leads from frame to frame.
        unknowns: of the motion; the view adds the camera's.
        setup: from values, what the motion is made from.
        places: what is seen of a state if the camera stood straight, pixels, (worlds, 2 · objects).
        parameters: from values and what is known, each physical parameter, (worlds,), SI; or why it cannot be told.
        units: of the parameters.
        first: the sample that the motion starts at, and one past the last one that it holds for.
        last: see `first`.
        starts: where searches begin: values of each unknown, shared or one a start.
        horizon: seconds over which the first search goes; None for all at once.
        metric: by how many powers of a length each leaf of the engine's properties scales; others do not. None where
            the engine is in metres already, not in pixels.
        state_metric: the same of the state.
        scale: from values and what is known, pixels a metre; None where it is not identifiable.
        notes: what a person should know if this is the model, in whole sentences.
        wider: the same with more unknowns, each worth a search from where this one's led.
        also: other kinds that would predict the same tracks, and what would tell them apart.
        spans: the values that parameters can have at all, where their names do not say so.
    """

    kind: str
    engine: Engine
    unknowns: Sequence[Unknown]
    setup: Callable[[Values], Setup]
    places: Callable[[SampledState], Float[Tensor, "worlds numbers"]]
    parameters: Callable[[Values, Knowns], Parameters]
    units: Mapping[str, str]
    first: int
    last: int
    starts: Mapping[str, object] = field(default_factory=dict)
    horizon: float | None = None
    metric: Mapping[str, int] | None = field(default_factory=dict)
    state_metric: int = 0
    scale: Callable[[Values, Knowns], Tensor | None] = lambda values, known: known.get("scale")
    notes: Sequence[str] = ()
    wider: Sequence[Model] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """What a kind of motion is asked about.

    Attributes:
        tracks: of what moves, all at the same moments.
        view: of the camera.
        known: what was told.
        knocks: when the sound track knocks, s; none where there is no sound.
    """

    tracks: Sequence[Track]
    view: View
    known: Mapping[str, Known]
    knocks: Float[np.ndarray, " onsets"] = field(default_factory=lambda: np.zeros(0))

    @property
    def times(self) -> Float[Tensor, " samples"]:
        """Seconds."""
        return torch.from_numpy(self.tracks[0].times.copy()).double()

    def seen(self, number: int = 0) -> Float[Tensor, "samples 2"]:
        """Where an object was seen; NaN where it was not."""
        track = self.tracks[number]
        places = torch.from_numpy(track.positions.copy()).double()
        places[~torch.from_numpy(track.observed)] = torch.nan
        return places

    @property
    def unit(self) -> str:
        """Of places: "px", or "m" for tables of lengths."""
        return self.tracks[0].unit

    @property
    def dt(self) -> float:
        """The usual time from a sample to the next, s."""
        return float((self.times[1:] - self.times[:-1]).median())


def need(known: Knowns, *names: str) -> str | None:
    """Why something cannot be told that needs these: None if all of them are known."""
    missing = [name for name in names if name not in known]
    return f"needs {' and '.join(missing)}" if missing else None
