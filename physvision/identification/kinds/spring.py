"""A mass on a spring, hanging or on the flat."""

from __future__ import annotations

import math

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification import starts
from physvision.identification.kinds.line import along, straight
from physvision.identification.model import Case, Knowns, Model, Parameters, UnsuitableError
from physvision.physics.particle import Particle

_SWAYS = 0.12  # how far from its line a mass may be, of its spread: one that hangs also swings a little


def propose(case: Case) -> list[Model]:
    """The model to try."""
    line = straight(case, least=12, share=_SWAYS)
    lasts = starts.period(line.times, line.away)
    if lasts is None or line.times[-1] - line.times[0] < lasts:
        raise UnsuitableError("less than one oscillation was seen")
    dt = case.dt
    engine = Particle("line", dt=dt, substeps=max(1, math.ceil(dt * 240 * max(1.0, 0.3 / lasts))))
    size, rate = float(np.ptp(line.away)) / 2, 2 * math.pi / lasts
    few = line.times - line.times[0] < max(lasts / 6, 3 * dt)
    first = starts.polynomial(line.times[few] - line.times[0], line.away[few, None], 1)[:, 0]
    unknowns = [
        Unknown("restoring", rate**2, low=0.0, unit="1/s²"),
        Unknown("rest", (line.middle).tolist(), scale=size, unit="px"),
        Unknown("heading", line.heading, scale=0.1, unit="rad"),
        Unknown("stretch", float(first[0]), scale=size, unit="px"),
        Unknown("speed", float(first[1]), scale=size * rate, unit="px/s"),
        Unknown("damping", 0.05, scale=0.05 * rate, unit="1/s"),
    ]

    def setup(values: Values) -> Setup:
        leaves = {"restoring": values["restoring"], "velocity_decay": values["damping"]}
        return Setup(State(values["stretch"][:, None], values["speed"][:, None]), leaves)

    def places(seen: SampledState) -> torch.Tensor:
        return along(seen, "rest")

    return [
        Model(
            "spring", engine, unknowns, setup, places, parameters,
            {"stiffness": "N/m", "period": "s", "damping": "1/s", "mass": "kg"},
            line.first, line.last, horizon=max(1.5 * lasts, 10 * dt),
            starts={"restoring": rate**2 * torch.tensor([1.0, 0.98, 1.02], dtype=torch.float64)},
            metric={"rest": 1, "radius": 1}, state_metric=1,
        )
    ]  # fmt: skip


def parameters(values: Values, known: Knowns) -> Parameters:
    """The period as it is seen, damping included; stiffness by the mass."""
    restoring, damping = values["restoring"], values["damping"]
    found: Parameters = {
        "period": 2 * math.pi / (restoring - damping.square() / 4).clamp(min=1e-12).sqrt(),
        "damping": damping,
    }
    if "mass" in known:
        found["stiffness"] = restoring * known["mass"]
    elif "stiffness" in known:
        found["mass"] = known["stiffness"] / restoring
    else:
        found["stiffness"] = "only stiffness over mass is seen: needs mass"
        found["mass"] = "only stiffness over mass is seen: needs stiffness"
    return found
