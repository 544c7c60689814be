"""Something that goes round at a constant speed."""

from __future__ import annotations

import math

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification import starts
from physvision.identification.model import Case, Knowns, Model, Parameters, UnsuitableError
from physvision.physics.particle import Particle


def propose(case: Case) -> list[Model]:
    """The model to try."""
    seen = case.seen().numpy()
    there = np.flatnonzero(np.isfinite(seen).all(1))
    if len(there) < 8:
        raise UnsuitableError("fewer than eight places were seen")
    times, places = case.times.numpy()[there], seen[there]
    center, radius = starts.circle(places)
    off = np.abs(np.linalg.norm(places - center, axis=1) - radius)
    extent = float(np.linalg.norm(np.ptp(places, axis=0)))
    if radius > 3 * extent or float(np.median(off)) > 0.06 * radius:
        raise UnsuitableError("it does not go round a circle")
    angle = np.unwrap(np.arctan2(*(places - center)[:, ::-1].T))
    rate, begin = np.polyfit(times - times[0], angle, 1)
    if abs(angle[-1] - angle[0]) < 1.5:
        raise UnsuitableError("less than a quarter of a turn was seen")
    dt = case.dt
    unknowns = [
        Unknown("center", center.tolist(), scale=radius, unit="px"),
        Unknown("arc", radius, low=0.0, unit="px"),
        Unknown("angle", float(begin), unit="rad"),
        Unknown("spin", float(rate), scale=abs(float(rate)), unit="rad/s"),
        # A circle whose plane is not the picture's is an ellipse, to second order of the angle.
        Unknown("flatness", [0.0, 0.0], scale=0.01, std=0.002),
    ]

    def setup(values: Values) -> Setup:
        return Setup(State(values["angle"][:, None], values["spin"][:, None]))

    model = Model(
        "circular", Particle("circle", dt=dt), unknowns, setup, _places, parameters,
        {"period": "s", "radius": "m", "speed": "m/s"}, int(there[0]), int(there[-1]) + 1,
        horizon=max(1.5 * abs(2 * math.pi / float(rate)), 6 * dt),
    )  # fmt: skip
    return [model]


def _places(seen: SampledState) -> torch.Tensor:
    turned, values = seen.state.q[:, 0], seen.values
    x, y = turned.cos(), turned.sin()
    wide, skew = values["flatness"].unbind(1)
    round_ = torch.stack([x + wide * x + skew * y, y - wide * y + skew * x], 1)
    return values["center"] + values["arc"][:, None] * round_


def parameters(values: Values, known: Knowns) -> Parameters:
    """The period; radius and speed by the scale."""
    spin = values["spin"].abs()
    found: Parameters = {"period": 2 * math.pi / spin}
    if "scale" in known:
        radius: torch.Tensor | None = values["arc"] / known["scale"]
    else:
        radius = known["radius"].expand_as(spin) if "radius" in known else None
    lacking = "lengths are seen in pixels: needs scale or radius"
    found["radius"] = lacking if radius is None else radius
    found["speed"] = lacking if radius is None else radius * spin
    return found
