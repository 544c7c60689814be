"""Evidence of a clip, and motion models: engines with unknowns and an observation model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.core import PhysvisionError
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.initial_guesses import Samples
from physvision.identification.settings import DEFAULT_SETTINGS, IdentificationSettings
from physvision.identification.view import View
from physvision.perception import Track
from physvision.physics import Engine


class UnsuitableError(PhysvisionError):
    """Tracks that a kind of motion cannot be fitted to, with the reason."""


@dataclass(frozen=True)
class KnownValue:
    """Value known beforehand, with its uncertainty.

    Attributes:
        value: Value in SI units.
        std: Standard deviation; zero for an exact value.
    """

    value: float
    std: float = 0.0


KnownTensors = Mapping[str, Tensor]
ParameterValues = dict[str, Tensor | str]


@dataclass(frozen=True)
class MotionModel:
    """Hypothesis about tracks, in pixels and seconds, so that it needs no scale.

    Attributes:
        kind: Name of the kind of motion.
        engine: Engine that simulates the motion, one step a frame.
        unknowns: Unknowns of the motion; the view adds the camera's.
        setup: Function from values to the inputs of the rollout.
        observe: Function from sampled states to positions in the picture of an upright camera on the normal of the
            plane, pixels, (worlds, 2 · objects).
        parameters: Function from values and known values to the physical parameters, (worlds,), SI units; a string
            instead says why a parameter is not identifiable.
        units: Units of the parameters.
        first: Sample at which the motion starts.
        end: One past the last sample for which the model holds.
        starts: Starts of the search: values of unknowns, shared or one a start.
        horizon: Duration of the first fit, s; None to fit all samples at once.
        length_powers: Power of length in each leaf of the engine's properties, for conversion to meters; None if the
            engine is in meters already.
        state_length_power: Power of length in the state.
        scale: Function from values and known values to the scale, pixels a meter; None if it is not identifiable.
        notes: Warnings if this is the selected model, in whole sentences.
        relaxations: Models with more unknowns, searched from this one's fit.
        alternatives: Other kinds that predict the same tracks, with what would distinguish them.
        bounds: Physical bounds of parameters that are not in the settings.
        meanings: Definitions of parameters whose names leave them open, such as which mass a ratio is relative to.
    """

    kind: str
    engine: Engine
    unknowns: Sequence[Unknown]
    setup: Callable[[Values], Setup]
    observe: Callable[[SampledState], Float[Tensor, "worlds numbers"]]
    parameters: Callable[[Values, KnownTensors], ParameterValues]
    units: Mapping[str, str]
    first: int
    end: int
    starts: Mapping[str, object] = field(default_factory=dict)
    horizon: float | None = None
    length_powers: Mapping[str, int] | None = field(default_factory=dict)
    state_length_power: int = 0
    scale: Callable[[Values, KnownTensors], Tensor | None] = lambda values, known_values: known_values.get("scale")
    notes: Sequence[str] = ()
    relaxations: Sequence[MotionModel] = ()
    alternatives: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """Data that a motion model is fitted to.

    Attributes:
        tracks: Tracks of the moving objects, all of the same times.
        view: Picture and camera priors.
        known_values: Values known beforehand.
        onsets: Onsets in the sound track, s; none without sound.
        settings: Tuning numbers.
    """

    tracks: Sequence[Track]
    view: View
    known_values: Mapping[str, KnownValue]
    onsets: Float[np.ndarray, " onsets"] = field(default_factory=lambda: np.zeros(0))
    settings: IdentificationSettings = DEFAULT_SETTINGS

    @property
    def times(self) -> Float[Tensor, " samples"]:
        """Times of the samples, s."""
        return torch.from_numpy(self.tracks[0].times.copy()).double()

    @property
    def observed(self) -> Float[Tensor, "samples numbers"]:
        """Positions of all objects, (samples, 2 · objects); NaN where not observed."""
        positions = [np.where(track.observed[:, None], track.positions, np.nan) for track in self.tracks]
        return torch.from_numpy(np.concatenate(positions, 1)).double()

    @property
    def known_tensors(self) -> dict[str, Tensor]:
        """Known values as scalar tensors."""
        return {name: torch.tensor(entry.value, dtype=torch.float64) for name, entry in self.known_values.items()}

    @property
    def unit(self) -> str:
        """Unit of positions: "px", or "m" for tables of lengths."""
        return self.tracks[0].unit

    @property
    def pixel(self) -> float:
        """Length that thresholds and scales in pixels stand for, in the unit of positions.

        A table of lengths has no pixels; it is treated as if its extent filled a picture.
        """
        return 1.0 if self.unit == "px" else max(self.extent, 1e-12) / self.settings.tracks.table_pixels

    @property
    def dt(self) -> float:
        """Median time between samples, s."""
        return float((self.times[1:] - self.times[:-1]).median())

    @property
    def extent(self) -> float:
        """Largest extent of a track, pixels."""
        return max(track.extent for track in self.tracks)

    def samples(
        self, min_count: int
    ) -> tuple[Int[np.ndarray, " samples"], Samples, Float[np.ndarray, "samples numbers"]]:
        """Return the indices, times and rectified positions of the samples in which all objects are observed.

        Raises:
            UnsuitableError: There are fewer than `min_count`.
        """
        positions = self.view.rectify(self.observed.numpy())
        indices = np.flatnonzero(np.isfinite(positions).all(1))
        if len(indices) < min_count:
            raise UnsuitableError(f"only {len(indices)} positions are observed, at least {min_count} are needed")
        return indices, self.times.numpy()[indices], positions[indices]

    def dissipation_unknown(
        self, name: str, guess: float, scale: float, std: float | None = None, unit: str = ""
    ) -> Unknown:
        """Return the unknown coefficient of damping or drag, which a known value determines if there is one.

        Args:
            name: Name of the unknown and of the known value.
            guess: Initial guess, and prior mean if `std` is given, where no value is known.
            scale: Reasonable step of a search.
            std: Standard deviation of the prior where no value is known.
            unit: Unit of the coefficient.
        """
        if name not in self.known_values:
            return Unknown(name, guess, scale=scale, std=std, unit=unit)
        prior = self.known_values[name]
        return Unknown(name, prior.value, scale=scale, std=max(prior.std, 1e-6 * scale), unit=unit)

    def noise(self, indices: Int[np.ndarray, " samples"]) -> float:
        """Return the typical standard deviation of a coordinate in these samples, in the unit of positions."""
        noise = float(np.median([np.median(track.sigma[indices]) for track in self.tracks]))
        return max(noise, self.settings.fit.min_noise * self.pixel)
