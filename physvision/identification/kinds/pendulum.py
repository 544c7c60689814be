"""A pendulum: a bob on a string or a light rod, or a rod that swings about its end; any amplitude."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification import starts
from physvision.identification.model import Case, Knowns, Model, Parameters, UnsuitableError, need
from physvision.identification.view import TILT
from physvision.physics.particle import Particle

LEADING = ("length", "period")


def propose(case: Case) -> list[Model]:
    """The models to try."""
    seen = case.seen().numpy()
    there = np.flatnonzero(np.isfinite(seen).all(1))
    if len(there) < 12:
        raise UnsuitableError("fewer than twelve places were seen")
    times, places = case.times.numpy()[there], seen[there]
    direction, _ = starts.main_direction(places)
    along = (places - places.mean(0)) @ direction
    lasts = starts.period(times, along)
    if lasts is None or times[-1] - times[0] < 0.6 * lasts:
        raise UnsuitableError("less than about one swing was seen")
    first, last = int(there[0]), int(there[-1]) + 1
    dt = case.dt
    engine = Particle("circle", dt=dt, substeps=max(1, math.ceil(dt * 120)))
    unknowns = [
        Unknown("restoring", (2 * math.pi / lasts) ** 2, low=0.0, unit="1/s²"),
        Unknown("arc", 100.0, low=0.0, unit="px"),
        Unknown("pivot", places.mean(0).tolist(), scale=50.0, unit="px"),
        Unknown("tilt", 0.0, scale=TILT, std=TILT, unit="rad"),
        Unknown("angle", 0.0, unit="rad"),
        Unknown("spin", 0.0, scale=2 * math.pi / lasts, unit="rad/s"),
        Unknown("damping", 0.05, scale=0.1, unit="1/s"),
        Unknown("drag", 0.05, scale=0.1, unit="1/rad"),
    ]
    begin = starts_of(times, places, lasts)
    model = Model(
        "pendulum", engine, unknowns, setup, bob, parameters,
        {"length": "m", "gravity": "m/s²", "damping": "1/s", "drag": "1/m", "period": "s", "mass": "kg"},
        first, last, begin, horizon=max(lasts, 8 * dt), scale=scale, metric={"length": 1, "radius": 1},
    )  # fmt: skip
    moving = Unknown("drift", [0.0, 0.0], scale=1.0, unit="px/s")
    note = "What it hangs on, or the camera, moves slowly and evenly; that is taken out."
    return [replace(model, wider=[replace(model, unknowns=[*unknowns, moving], places=drifting, notes=[note])])]


def setup(values: Values) -> Setup:
    """The particle on its circle."""
    leaves = {"restoring": values["restoring"], "velocity_decay": values["damping"], "drag": values["drag"]}
    leaves["length"] = values["arc"]
    return Setup(State(values["angle"][:, None], values["spin"][:, None]), leaves)


def bob(seen: SampledState) -> torch.Tensor:
    """Where the bob is seen: tilted, and y down."""
    turned = seen.state.q[:, 0] + seen.values["tilt"]
    arm = torch.stack([turned.sin(), turned.cos()], 1)
    return seen.values["pivot"] + seen.values["arc"][:, None] * arm


def drifting(seen: SampledState) -> torch.Tensor:
    """The same where what it hangs on gives way, or the camera turns, evenly and slowly."""
    return bob(seen) + seen.values["drift"] * seen.time[:, None]


def starts_of(times: np.ndarray, places: np.ndarray, lasts: float) -> dict[str, object]:
    """Circles through the track, a fitted one and flatter ones, each with the frequency that its amplitude asks for."""
    center, radius = starts.circle(places)
    middle = places.mean(0)
    lowest = places[np.argsort(places[:, 1])[-max(3, len(places) // 20) :]].mean(0)
    extent = float(np.linalg.norm(np.ptp(places, axis=0)))
    arcs = [0.6 * extent, extent, 2 * extent, 5 * extent]
    candidates = [(center, radius)] if 0.3 * extent < radius < 20 * extent else []
    candidates += [(np.array([middle[0] if arc > extent else lowest[0], lowest[1] - arc]), arc) for arc in arcs]
    rows: dict[str, list] = {name: [] for name in ("restoring", "arc", "pivot", "angle", "spin")}
    for pivot, arc in candidates:
        angle = np.unwrap(np.arctan2(*(places - pivot).T))
        half = min(float(np.ptp(angle)) / 2, 3.0)
        # The period of a pendulum grows with its amplitude; the series is 1 % off at 120°.
        longer = 1 + half**2 / 16 + 11 * half**4 / 3072
        few = min(len(times), 5)
        spin = np.polyfit(times[:few] - times[0], angle[:few], 1)
        rows["restoring"].append((2 * math.pi * longer / lasts) ** 2)
        rows["arc"].append(arc)
        rows["pivot"].append(pivot)
        rows["angle"].append(spin[1])
        rows["spin"].append(spin[0])
    return {name: torch.tensor(np.array(values), dtype=torch.float64) for name, values in rows.items()}


def scale(values: Values, known: Knowns) -> torch.Tensor | None:
    """Pixels a metre: told, or from the length that gravity gives, where the bob is all there is of it."""
    if "scale" in known:
        return known["scale"]
    return values["arc"] * values["restoring"] / known["gravity"] if "gravity" in known else None


def parameters(values: Values, known: Knowns) -> Parameters:
    """Length by gravity, or gravity by length; the small-amplitude period by neither."""
    restoring = values["restoring"]
    found: Parameters = {
        "period": 2 * math.pi / restoring.sqrt(),
        "damping": values["damping"],
        "mass": "the motion of a pendulum does not depend on its mass",
    }
    length: torch.Tensor | None = None
    if "length" in known:
        length = known["length"].expand_as(restoring)
    elif "gravity" in known:
        length = known["gravity"] / restoring
    elif "scale" in known:
        length = values["arc"] / known["scale"]
    lacking = "only length over gravity is seen: needs gravity, length or scale"
    found["length"] = lacking if length is None else length
    if "gravity" not in known:
        found["gravity"] = lacking if length is None else length * restoring
    found["drag"] = f"{need(known, 'gravity')}, or a scale" if length is None else values["drag"] / length
    return found
