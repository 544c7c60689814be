"""What slides or rolls along straight ground: down a slope ever faster, or on the flat until friction stops it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification import starts
from physvision.identification.kinds.line import StraightTrack, along, moving_part, straight
from physvision.identification.model import Case, Knowns, Model, Parameters, UnsuitableError
from physvision.identification.view import TILT
from physvision.physics import rigid2d
from physvision.physics.particle import Particle

_UNITS = {"acceleration": "m/s²", "friction": "", "angle": "rad", "speed": "m/s", "gravity": "m/s²"}
_PLUMB = math.radians(80)  # what is steeper falls


def slide(case: Case) -> list[Model]:
    """Sliding with friction, faster or slower."""
    line = straight(case)
    returns = line.away[-1] < line.away.max() - 0.05 * np.ptp(line.away)
    if _slows(line) and not returns:
        try:
            return [_stopping(case, line)]
        except ValueError as error:
            raise UnsuitableError(str(error)) from error
    line = moving_part(line)
    steady = starts.polynomial(line.times - line.times[0], line.away[:, None], 2)[:, 0]
    if _slows(line) and np.argmax(line.away) < len(line.away) - 2:
        raise UnsuitableError("it becomes slower, and then comes back")
    return [_accelerating(case, line, "slide", float(2 * steady[2]))]


def roll(case: Case) -> list[Model]:
    """Rolling down a slope."""
    line = moving_part(straight(case))
    if _slows(line):
        raise UnsuitableError("it becomes slower: what rolls down a slope becomes faster")
    steady = starts.polynomial(line.times - line.times[0], line.away[:, None], 2)[:, 0]
    return [_accelerating(case, line, "roll", float(2 * steady[2]))]


def _slows(line: StraightTrack) -> bool:
    """Whether the second half is passed more slowly than the first."""
    half = len(line.times) // 2
    one, other = (np.polyfit(line.times[part], line.away[part], 1)[0] for part in (slice(half), slice(half, None)))
    return bool(other < one)


def _inclined(line: StraightTrack) -> float:
    """How steep the line is, rad."""
    return abs(math.atan2(abs(math.sin(line.heading)), abs(math.cos(line.heading))))


def _accelerating(case: Case, line: StraightTrack, kind: str, rate: float) -> Model:
    if _inclined(line) > _PLUMB:
        raise UnsuitableError("it moves straight down: it falls")
    dt = case.dt
    engine = Particle("line", dt=dt)
    first = starts.polynomial(line.times - line.times[0], line.away[:, None], 2)[:, 0]
    size, lasts = float(np.ptp(line.away)), float(np.ptp(line.times))
    unknowns = [
        Unknown("push", rate, scale=max(abs(rate), 0.05 * size / lasts**2), unit="px/s²"),
        Unknown("origin", line.middle.tolist(), scale=size, unit="px"),
        Unknown("heading", line.heading, scale=0.05, unit="rad"),
        # The origin lies anywhere along the line: the place on it is held by the first sample.
        Unknown("speed", float(first[1]), scale=0.1 * size, unit="px/s"),
        Unknown("tilt", 0.0, scale=TILT, std=TILT, unit="rad"),
    ]
    begin = line.middle + first[0] * np.array([math.cos(line.heading), math.sin(line.heading)])

    def setup(values: Values) -> Setup:
        speed = values["speed"][:, None]
        return Setup(State(torch.zeros_like(speed), speed), {"push": values["push"][:, None]})

    return Model(
        kind, engine, unknowns, setup, lambda seen: along(seen, "origin"), _down(kind), _UNITS, line.first, line.last,
        starts={"origin": torch.from_numpy(begin)}, metric={"push": 1, "radius": 1}, state_metric=1,
        also=_ALSO[kind],
    )  # fmt: skip


_ALSO = {
    "slide": {"roll": "whether it turns: marks on it would show that"},
    "roll": {"slide": "whether it turns: marks on it would show that"},
}


def _down(kind: str) -> Callable[[Values, Knowns], Parameters]:
    def parameters(values: Values, known: Knowns) -> Parameters:
        lacking = "lengths are seen in pixels: needs scale"
        heading = values["heading"] - values["tilt"]
        steep = torch.atan2(heading.sin().abs(), heading.cos().abs())
        found: Parameters = {"angle": steep}
        if "scale" not in known:
            found |= {"acceleration": lacking, "speed": lacking}
        else:
            found |= {"acceleration": values["push"] / known["scale"], "speed": values["speed"] / known["scale"]}
        if kind == "slide":
            acceleration = found["acceleration"]
            if isinstance(acceleration, str) or "gravity" not in known:
                found["friction"] = (
                    "only gravity's share along the slope less friction is seen: needs gravity and scale"
                )
            else:
                angle = known.get("angle", steep)
                found["friction"] = torch.tan(angle) - acceleration / (known["gravity"] * torch.cos(angle))
        return found

    return parameters


def _stopping(case: Case, line: StraightTrack) -> Model:
    """On the flat: a block of the plane's engine on ground that rubs, which finds the moment of standstill."""
    dt, size = case.dt, float(np.ptp(line.away))
    moving = line.away < line.away.max() - 0.02 * size
    last = max(6, int(np.flatnonzero(moving)[-1]) + 1)
    first = starts.polynomial(line.times[:last] - line.times[0], line.away[:last, None], 2)[:, 0]
    slowing = max(-2 * float(first[2]), 1e-2 * size)
    weight = 4 * slowing  # of a coefficient of 1/4; the ratio alone matters
    block = rigid2d.Rectangle((0.08 * size, 0.02 * size), (0, 0), velocity=(1.0, 0), restitution=0.0, name="block")
    ground = rigid2d.Rectangle((40 * size, size), (0, 0.51 * size), static=True, restitution=0.0, name="ground")
    engine = rigid2d.World([block, ground], gravity=(0, weight), dt=dt)
    unknowns = [
        Unknown("slowing", slowing, low=0.0, unit="px/s²"),
        Unknown("origin", line.middle.tolist(), scale=size, unit="px"),
        Unknown("heading", line.heading, scale=0.05, unit="rad"),
        Unknown("speed", max(float(first[1]), 0.1 * size), low=0.0, unit="px/s"),
    ]
    begin = line.middle + first[0] * np.array([math.cos(line.heading), math.sin(line.heading)])

    def setup(values: Values) -> Setup:
        speed = values["speed"]
        none = torch.zeros_like(speed)
        rubs = (values["slowing"] / weight)[:, None].expand(-1, 2)
        state = State(torch.stack([none, none, none], 1), torch.stack([speed, none, none], 1))
        return Setup(state, {"friction": rubs})

    def places(seen: SampledState) -> torch.Tensor:
        return along(seen, "origin")

    return Model(
        "slide", engine, unknowns, setup, places, _flat, _UNITS, line.first, line.last,
        starts={"origin": torch.from_numpy(begin)}, state_metric=1,
    )  # fmt: skip


def _flat(values: Values, known: Mapping[str, torch.Tensor]) -> Parameters:
    lacking = "lengths are seen in pixels: needs scale"
    if "scale" not in known:
        return {"acceleration": lacking, "speed": lacking, "friction": lacking}
    acceleration = values["slowing"] / known["scale"]
    found: Parameters = {"acceleration": acceleration, "speed": values["speed"] / known["scale"]}
    found["friction"] = acceleration / known["gravity"] if "gravity" in known else "needs gravity"
    return found
