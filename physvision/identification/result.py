"""Result of an identification: kind of motion, parameters with intervals, fitted engine and trajectory."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from physvision.core import State, Trajectory
from physvision.identification.diagnostics import Holdout
from physvision.identification.fitting import Fit
from physvision.identification.model import Evidence, KnownValue
from physvision.identification.parameters import Parameter
from physvision.physics import Engine

_MAX_MISSING_SAMPLES = 3  # at the end of tracks that are fitted to their end


@dataclass(frozen=True)
class FrameRate:
    """Frame rate of a clip.

    Attributes:
        filming: Frame rate of filming, frames a second.
        file: Frame rate by the time stamps of the file, frames a second.
    """

    filming: float
    file: float

    @property
    def slow_motion(self) -> float:
        """Factor by which the file shows the motion more slowly than it was."""
        return self.filming / self.file


@dataclass(frozen=True)
class Identification:
    """Identified kind of motion, with its parameters and fit.

    Attributes:
        motion: Kind of motion that explains the tracks best.
        indistinguishable: Other kinds that explain them as well, with what would distinguish them.
        odds: Posterior odds of each acceptable kind against the best one, the best first.
        scores: Bayesian information criterion of each acceptable kind, signed so that larger is better.
        rejected: Reasons why the other kinds were rejected.
        parameters: Physical parameters by name, SI units.
        warnings: Warnings about the clip and the result, as full sentences.
        fit: Fit of the best kind.
        frame_rate: Frame rate of filming and that of the file. All times of the result are those of the motion.
        holdout: Prediction of the held-out last third of the clip; None with too few samples.
        camera: Values of an arbitrary camera, as far as the motion shows them: tilt of its line of sight from the
            normal of the plane and roll, rad; focal length, px; OpenCV's k1; relative radial displacement at half a
            picture's width ("distortion"); rolling-shutter readout time, s. Empty for tracks without a picture.
        scale_interval: Interval that contains the scale with a probability of 95 %, pixels a meter; None if it is given
            or not identifiable.
    """

    motion: str
    indistinguishable: Mapping[str, str]
    odds: Mapping[str, float]
    scores: Mapping[str, float]
    rejected: Mapping[str, str]
    parameters: Mapping[str, Parameter]
    warnings: tuple[str, ...]
    fit: Fit = field(repr=False)
    frame_rate: FrameRate
    holdout: Holdout | None = field(repr=False, default=None)
    camera: Mapping[str, Parameter] = field(default_factory=dict)
    scale_interval: tuple[float, float] | None = None

    @property
    def evidence(self) -> Evidence:
        """Tracks, camera and known values of the fit."""
        return self.fit.evidence

    @property
    def known_values(self) -> Mapping[str, KnownValue]:
        """Values that were known beforehand, SI units."""
        return self.evidence.known_values

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Interval at the 95 % level of each identifiable parameter."""
        return {name: entry.interval_95 for name, entry in self.parameters.items() if entry.interval_95 is not None}

    @property
    def scale(self) -> float | None:
        """Scale of the picture, pixels per meter; None if not identifiable."""
        scale = self.fit.model.scale(self.fit.values, self.evidence.known_tensors)
        return None if scale is None else float(scale)

    @property
    def noticeable_camera(self) -> dict[str, Parameter]:
        """Values of the camera that the motion shows and that widen an interval noticeably."""
        return {name: entry for name, entry in self.camera.items() if entry.identifiable and entry.meaning}

    @property
    def scale_sources(self) -> tuple[str, ...]:
        """Names of the known values that determine the scale; none if it is unknown, or that of a custom scene."""
        model, values, known_values = self.fit.model, self.fit.values, self.evidence.known_tensors
        names = []
        for name in known_values:
            remaining = {key: value for key, value in known_values.items() if key != name}
            scale = model.scale(values, remaining)
            if self.scale is not None and (scale is None or float(scale) != self.scale):
                names.append(name)
        return tuple(names)

    @property
    def unit(self) -> str:
        """Unit of length of `engine` and `trajectory`: "m" if the scale is known and the engine can be scaled."""
        powers = self.fit.model.length_powers
        return "m" if powers is None or (self.scale is not None and powers) else "px"

    @property
    def engine(self) -> Engine:
        """Engine with the identified properties, ready for simulation and control."""
        engine = copy.deepcopy(self.fit.model.engine)
        setup = self.fit.model.setup(self.fit.values)
        leaves, powers = {}, self.fit.model.length_powers or {}
        for name, value in setup.properties.items():
            power = powers.get(name, 0) if self.unit == "m" else 0
            leaves[name] = value[0].detach() / (self.scale or 1.0) ** power
        if engine.mechanics is not None:
            engine.mechanics.set_properties(replace(engine.properties, **leaves))
        return engine

    @property
    def trajectory(self) -> Trajectory:
        """Fitted trajectory over the samples for which the model holds, with one state per engine step."""
        setup, steps = self.fit.model.setup(self.fit.values), self.fit.problem.steps
        factor = 1 / (self.scale or 1.0) ** self.fit.model.state_length_power if self.unit == "m" else 1.0
        start = State(factor * setup.state.q.detach(), factor * setup.state.v.detach())
        controls = None if setup.controls is None else factor * setup.controls.detach()[:, :steps]
        return self.engine.rollout(start, steps, controls)

    def positions(self, times: Float[np.ndarray, " times"]) -> Float[np.ndarray, "times numbers"]:
        """Return the fitted positions at times of the clip, (times, 2 · objects), pixels; NaN before the motion."""
        return self.fit.positions(torch.from_numpy(np.asarray(times, float))).numpy()

    @property
    def span(self) -> tuple[float, float]:
        """Times of the first and the last sample that were fitted, s."""
        return self.fit.span

    @property
    def fitted_positions(self) -> Float[np.ndarray, "samples numbers"]:
        """Fitted positions at the times of the tracks; NaN outside the span, where the law may not hold."""
        times = self.evidence.times.numpy()
        positions = self.positions(times)
        positions[~self.in_span(times)] = np.nan
        return positions

    def in_span(self, times: Float[np.ndarray, " times"]) -> Bool[np.ndarray, " times"]:
        """Return which times lie within the span."""
        start, end = self.span
        return (times >= start) & (times <= end)

    def may_follow(self, times: Float[np.ndarray, " times"]) -> Bool[np.ndarray, " times"]:
        """Return at which times the law may hold: those before the end of the span, or all if it ends with the tracks.

        A few samples without a position may follow the span in tracks that are fitted to their end.
        """
        end, evidence = self.span[1], self.evidence
        is_whole = float(evidence.times[-1]) - end < (_MAX_MISSING_SAMPLES + 0.5) * evidence.dt
        return (times <= end) | is_whole

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of parameters.json."""
        parameters, camera = (
            {name: asdict(parameter) for name, parameter in group.items()} for group in (self.parameters, self.camera)
        )
        for entry in (*parameters.values(), *camera.values()):
            for name in ("reason", "meaning", "budget"):
                if not entry[name]:
                    del entry[name]
        unit = self.evidence.unit
        contents: dict[str, Any] = {
            "motion": self.motion,
            "indistinguishable": dict(self.indistinguishable),
            "odds": dict(self.odds),
            "scores": dict(self.scores),
            "rejected": dict(self.rejected),
            "parameters": parameters,
            "camera": camera,
            "known_values": {name: asdict(value) for name, value in self.known_values.items()},
            "warnings": list(self.warnings),
            "fitted_span_s": list(self.span),
            "frame_rate": asdict(self.frame_rate),
            f"noise_{unit}": self.fit.noise,
            "scale_px_per_m": self.scale,
            "scale_interval_95": self.scale_interval,
            "scale_sources": list(self.scale_sources),
        }
        if self.holdout is not None:
            contents["holdout"] = {
                f"error_{unit}": self.holdout.error, "relative_error": self.holdout.relative_error
            }  # fmt: skip
        return contents

    def write(self, path: Path) -> None:
        """Write the result as parameters.json."""
        path.write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
