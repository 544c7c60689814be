"""What a clip told: which motion, which parameters, how sure, and what comes next."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from physvision.core import State, Trajectory
from physvision.identification.fitting import Fit
from physvision.identification.model import Case, Known
from physvision.identification.parameters import Parameter
from physvision.physics import Engine


@dataclass(frozen=True)
class HeldOut:
    """A fit to the first two thirds compared with the last.

    Attributes:
        error: root mean square distance of what was predicted from what was seen, pixels.
        share: of the extent of the motion.
        places: predicted, (times, 2 · objects), pixels; NaN before the last third.
    """

    error: float
    share: float
    places: Float[np.ndarray, "times numbers"]


@dataclass(frozen=True)
class Identification:
    """What was found of a motion.

    Attributes:
        motion: the kind that explains the tracks best.
        alike: other kinds that explain them as well, and what would tell them apart.
        scores: of each kind that was tried, larger is better; what the tracks do not fit is left out.
        refused: why kinds were not tried or do not explain the tracks.
        parameters: by name, SI units.
        known: what was told.
        warnings: what a person should know.
        fit: the fit of the best kind.
        case: the tracks and the camera.
        held_out: the test on the last third; None where there is too little for it.
    """

    motion: str
    alike: Mapping[str, str]
    scores: Mapping[str, float]
    refused: Mapping[str, str]
    parameters: Mapping[str, Parameter]
    known: Mapping[str, Known]
    warnings: tuple[str, ...]
    fit: Fit = field(repr=False)
    case: Case = field(repr=False)
    held_out: HeldOut | None = field(repr=False, default=None)

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Where each parameter is with a probability of 95 %."""
        return {name: each.interval_95 for name, each in self.parameters.items() if each.interval_95 is not None}

    @property
    def scale(self) -> float | None:
        """Pixels a metre; None where nobody can tell."""
        told = {name: torch.tensor(known.value, dtype=torch.float64) for name, known in self.known.items()}
        values = self.fit.problem.unknowns.values(self.fit.z[None])
        found = self.fit.model.scale(values, told)
        return None if found is None else float(found)

    @property
    def unit(self) -> str:
        """Of lengths of `engine` and `trajectory`: metres where the scale is known and the engine can be scaled."""
        metric = self.fit.model.metric
        return "m" if metric is None or (self.scale is not None and metric) else "px"

    @property
    def engine(self) -> Engine:
        """The engine with what was found as its properties, ready to be simulated and controlled."""
        engine = copy.deepcopy(self.fit.model.engine)
        made = self.fit.model.setup(self.fit.problem.unknowns.values(self.fit.z[None]))
        leaves, metric = {}, self.fit.model.metric or {}
        for name, value in made.properties.items():
            power = metric.get(name, 0) if self.unit == "m" else 0
            leaves[name] = value[0].detach() / (self.scale or 1.0) ** power
        if engine.mechanics is not None:
            engine.mechanics.keep(replace(engine.properties, **leaves))
        return engine

    @property
    def trajectory(self) -> Trajectory:
        """The fitted motion over the time of the clip that the law holds for, one state a step of the engine."""
        made = self.fit.model.setup(self.fit.problem.unknowns.values(self.fit.z[None]))
        factor = 1 / (self.scale or 1.0) ** self.fit.model.state_metric if self.unit == "m" else 1.0
        start = State(factor * made.state.q.detach(), factor * made.state.v.detach())
        controls = None if made.controls is None else factor * made.controls.detach()[:, : self.fit.problem.steps]
        return self.engine.rollout(start, self.fit.problem.steps, controls)

    def places(self, times: Float[np.ndarray, " times"]) -> Float[np.ndarray, "times numbers"]:
        """Where things are seen at times of the clip, pixels; NaN before the law holds."""
        return self.fit.places(torch.from_numpy(np.asarray(times, float))).numpy()

    def described(self) -> dict[str, Any]:
        """What parameters.json holds."""
        parameters = {}
        for name, each in self.parameters.items():
            entry: dict[str, Any] = {
                "value": each.value,
                "unit": each.unit,
                "interval_68": each.interval_68,
                "interval_95": each.interval_95,
                "identifiable": each.identifiable,
            }
            parameters[name] = entry if each.identifiable else {**entry, "reason": each.reason}
        found: dict[str, Any] = {
            "motion": self.motion,
            "alike": dict(self.alike),
            "scores": dict(self.scores),
            "refused": dict(self.refused),
            "parameters": parameters,
            "known": {name: {"value": known.value, "deviation": known.deviation} for name, known in self.known.items()},
            "warnings": list(self.warnings),
            f"noise_{self.case.unit}": self.fit.noise,
            "scale_px_per_m": self.scale,
        }
        if self.held_out is not None:
            found["held_out"] = {f"error_{self.case.unit}": self.held_out.error, "share_of_extent": self.held_out.share}
        return found

    def write(self, path: Path) -> None:
        """Write parameters.json."""
        path.write_text(json.dumps(self.described(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
