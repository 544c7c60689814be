"""What flies: a throw, and a fall straight down; with quadratic drag."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification import arcs, releases, starts
from physvision.identification.model import Case, Knowns, Model, Parameters, UnsuitableError
from physvision.identification.view import TILT
from physvision.physics.particle import Particle

_DRAG, _DRAGS = 0.015, 0.015  # 1/m: of balls that people throw, 0.001 for a shot, 0.03 for hollow ones
_LATE = 2.0  # frames by which a thing is first seen after it was let go, if no hand is seen
_PUSHED = 0.01  # sideways, by a hand that lets go, of the speed that a fall gains
_STRAIGHT = 0.05  # how far from straight down a fall's track may lie, of its length
_HAND = (0.5, 15.0)  # pull of a hand, of gravity: it holds the thing's weight at least
_GLIMPSED = 0.6  # of its radius: a place that is so uncertain says about where it is, not how it moves
_LOST = 4  # frames from the first in which a thing is seen clearly: a hand that covers it hides it again in some
_LEAST = 3  # samples that show what is before the clear part of a flight
_BESIDE = 3.0  # times the noise: what is seen so far beside a path is not on it
_TOUCHED = 0.04  # of its radius: how far from its middle a thing is seen with a hand beside it that is hardly seen
_ASIDE = 0.35  # of its radius: how far from its middle a thing may be seen that is lit or covered in part


def projectile(case: Case) -> list[Model]:
    """The models of a throw: by a hand that is seen, and from where it already flies."""
    return _models(case, "projectile")


def fall(case: Case) -> list[Model]:
    """The models of a fall, likewise."""
    return _models(case, "fall")


def _models(case: Case, kind: str) -> list[Model]:
    models, reason = [], UnsuitableError("no stretch of the track is a parabola")
    for stretch in _stretches(case):
        try:
            models.append(_model(case, kind, stretch))
        except UnsuitableError as error:
            reason = error
    if not models:
        raise reason
    return models


def _model(case: Case, kind: str, stretch: _Stretch) -> Model:
    times, places, (first, last), held = stretch.times, stretch.places, stretch.window, stretch.before
    # What a hand still touches, or what is seen beside its path, says nothing of the flight.
    free = slice(held, None)
    later = times[free] - times[0]
    found = starts.polynomial(later, places[free], 2)
    thrown = starts.polynomial(later - later[0], places[free], 2)
    weight = 2 * float(np.linalg.norm(found[2]))
    if weight * (times[-1] - times[0]) ** 2 / 8 < 4 * stretch.noise:
        raise UnsuitableError("the track is straight and even: nothing accelerates")
    if kind == "fall" and not _straight_down(thrown, float(later[-1] - later[0]), stretch.noise):
        raise UnsuitableError("it does not move straight down")
    if kind == "fall" and stretch.flies and found[1][1] < 0:
        raise UnsuitableError("what falls does not fly up before: it was held")
    dt = case.dt
    engine = Particle("plane", dt=dt, substeps=max(1, math.ceil(dt * 60)))
    speed = max(float(np.linalg.norm(found[1])), weight * dt)
    across, by_hand = kind == "projectile", held > 0 and not stretch.flies
    unknowns = [
        Unknown("weight", weight, low=0.0, unit="px/s²"),
        Unknown("tilt", 0.0, scale=TILT, std=TILT, unit="rad"),
        Unknown("place", found[0].tolist(), scale=10.0, unit="px"),
        # Drag is known beforehand: from a short flight it cannot be told.
        Unknown("drag", _DRAG, scale=_DRAG, std=_DRAGS, unit="1/m"),
        Unknown("velocity", found[1].tolist() if across else float(found[1][1]), scale=0.1 * speed, unit="px/s"),
    ]
    if not across:
        push = _PUSHED * weight * float(later[-1] - later[0])
        unknowns.append(Unknown("sideways", 0.0, scale=push, std=push, unit="px/s"))
    late = 3.0 * dt if by_hand else stretch.late
    unknowns.append(Unknown("release", stretch.release - times[0], scale=dt, std=late, unit="s"))
    begin: dict[str, object] = {}
    if stretch.flies:
        radius = case.tracks[0].radius or 1.0
        unknowns.append(Unknown("aside", [0.0, 0.0], scale=radius, std=_ASIDE * radius, unit="px"))
    elif by_hand:
        pull, spread = releases.expected_pull(thrown[1], 2 * thrown[2])
        unknowns.append(Unknown("pull", pull.tolist(), scale=weight, std=spread, unit="px/s²"))
        begin = {"pull": torch.from_numpy(stretch.pull)}
    told = case.known
    gravity = told["gravity"].value if "gravity" in told else 9.81

    def setup(values: Values) -> Setup:
        down = torch.stack([-values["tilt"].sin(), values["tilt"].cos()], 1)
        velocity = values["velocity"]
        if not across:
            right = torch.stack([down[:, 1], -down[:, 0]], 1)
            velocity = velocity[:, None] * down + values["sideways"][:, None] * right
        # Drag a metre is drag a pixel times pixels a metre; gravity says how many those are.
        a_pixel = _drag_a_pixel(values, gravity)
        return Setup(State(values["place"], velocity), {"push": values["weight"][:, None] * down, "drag": a_pixel})

    clear = float(later[0]) - dt / 2  # from then on it is seen where it is

    def places_of(seen: SampledState) -> torch.Tensor:
        if stretch.flies:
            return seen.state.q + seen.values["aside"] * (seen.time < clear)[:, None]
        if not by_hand:
            return seen.state.q
        # Before it is let go it leaves the parabola that it will fly along as a steady pull leads it.
        before = (seen.values["release"] - seen.time).clamp(min=0)
        return seen.state.q + 0.5 * seen.values["pull"] * before[:, None] ** 2

    return Model(
        kind, engine, unknowns, setup, places_of, _parameters(kind),
        {"speed": "m/s", "angle": "rad", "gravity": "m/s²", "acceleration": "m/s²", "drag": "1/m"},
        first, last, begin, scale=scale, metric={"push": 1, "rest": 1, "drag": -1, "radius": 1}, state_metric=1,
    )  # fmt: skip


@dataclass(frozen=True)
class _Stretch:
    """The part of a track that is flight, and what is just before it.

    Attributes:
        times: of its samples, s.
        places: pixels.
        window: the samples of the clip.
        before: how many of its samples do not lie on the parabola of the others.
        flies: whether it already flies then, only seen beside its path; otherwise a hand holds it.
        release: when a hand let go, or when it was first seen on its path, s.
        late: how far from there it may have been let go where no hand is seen, s.
        pull: of the hand, px/s².
        noise: standard deviation of a coordinate, pixels.
    """

    times: np.ndarray
    places: np.ndarray
    window: tuple[int, int]
    before: int
    flies: bool
    release: float
    late: float
    pull: np.ndarray
    noise: float


def _stretches(case: Case) -> list[_Stretch]:
    """The flight with what a hand does before it, and with what it flies before it is seen clearly."""
    seen = case.seen().numpy()
    # What is only glimpsed would be taken for a hand's doing.
    clear = case.tracks[0].sigma < _GLIMPSED * (case.tracks[0].radius or math.inf)
    clear &= _whole(case, seen)
    there = np.flatnonzero(np.isfinite(seen).all(1) & clear)
    if len(there) < 5:
        raise UnsuitableError("fewer than five places were seen")
    times, places = case.times.numpy()[there], seen[there]
    noise = max(float(np.median(case.tracks[0].sigma[there])), 0.15, 3e-4 * float(np.ptp(places, axis=0).max()))
    window = arcs.parabola_window(times, places, 1.3 * noise, min(6, len(there)), falls=True)
    if window is None:
        raise UnsuitableError("no stretch of the track is a parabola")
    first, last = window
    path = releases.Path(times[first:last], places[first:last])
    noise = max(noise, path.noise)

    def stretch(begun: int, before: int, release: float, late: float, flies: bool = False) -> _Stretch:
        whole = (int(there[begun]), int(there[last - 1]) + 1)
        return _Stretch(times[begun:last], places[begun:last], whole, before, flies, release, late, pull, noise)

    begun = first
    while begun > 0 and _next(case, times, begun):
        if path.distance(times[begun - 1], places[begun - 1]) > (case.tracks[0].radius or 0.0):
            break
        begun -= 1
    each = np.maximum(case.tracks[0].sigma[there[:last]], noise)
    each[:first] = np.hypot(each[:first], _TOUCHED * (case.tracks[0].radius or 0.0))
    release, pull = releases.release(times[:last], places[:last], first, each, times[begun] - releases.HOLD)
    held = slice(int(np.searchsorted(times, release - releases.HOLD)), int(np.searchsorted(times, release)))
    strength = float(np.linalg.norm(pull) / np.linalg.norm(path.acceleration))
    by_hand = held.stop - held.start >= _LEAST and _HAND[0] < strength < _HAND[1]
    late, since = _LATE * case.dt, times[begun] - case.dt / 2
    if by_hand:
        found = [stretch(held.start, held.stop - held.start, release, late)]
    else:
        hidden = 0.0 if begun and _next(case, times, begun) else _hidden(case, int(there[begun]), path)
        covered = not clear[there[begun] : there[begun] + _LOST].all()
        told = _let_go(case, path, times[begun], places[begun], noise, hidden, covered)
        found = [stretch(min(first, held.stop), 0, *told)]
    latest = int(np.searchsorted(times, times[first] + releases.HOLD)) - begun
    beside = releases.aside(times[begun:last], places[begun:last], latest)
    return [*found, stretch(begun, beside, since, late, flies=True)] if beside >= _LEAST else found


def _let_go(
    case: Case, path: releases.Path, first: float, place: np.ndarray, noise: float, hidden: float, covered: bool
) -> tuple[float, float]:
    """When something was let go that no hand is seen to hold, and how far from then it may have been, s.

    Where it is first seen beside the path that it flies along later, a hand still held it, and led it there by about
    the pull that a throw takes; or the hand covers a part of it, if it is lost again within a few frames. Otherwise it
    was let go before, and may have been hidden at first.
    """
    least, beside = _LATE * case.dt, path.distance(first, place)
    if beside > _BESIDE * noise:
        pull, _ = releases.expected_pull(path.velocity, path.acceleration)
        lasts = math.sqrt(2 * beside / float(np.linalg.norm(pull)))
        if not covered or beside > _ASIDE * (case.tracks[0].radius or 0.0):
            return first + lasts, max(least, lasts / 3)
        return first + (lasts - hidden) / 2, max(least, (lasts + hidden) / math.sqrt(12))
    return first - case.dt / 2 - hidden / 2, max(least, hidden / math.sqrt(12))


def _whole(case: Case, seen: np.ndarray) -> np.ndarray:
    """In which samples no part of a thing is beyond the border of the picture."""
    view, radius = case.view, case.tracks[0].radius if case.tracks[0].unit == "px" else None
    away = seen - np.array(view.corner)
    edge = radius or 0.0
    return np.all((away > edge) & (away < np.array([view.width, view.height]) - edge), axis=1)


def _next(case: Case, times: np.ndarray, sample: int) -> bool:
    """Whether a sample follows the one before it soon: what is glimpsed only is left out between them."""
    return bool(times[sample] - times[sample - 1] < max(1.5 * case.dt, releases.HOLD / 2))


def _hidden(case: Case, first: int, path: releases.Path) -> float:
    """How long something that is seen from a sample on may have been let go, s: its hand may have been in the way.

    What comes out of something still is hidden until all of it is out. Nothing is known of what flies from the first
    frame on, nor of what comes in from outside of the picture.
    """
    track, view = case.tracks[0], case.view
    corner, size = np.array(view.corner), np.array([view.width, view.height])
    step = np.abs(path.velocity) * case.dt + (track.radius or 0.0)
    inside = track.positions[first] - step > corner
    inside &= track.positions[first] + step < corner + size
    if first == 0 or track.radius is None or not inside.all():
        return 0.0
    speed = float(np.linalg.norm(path.velocity))
    return 2 * track.radius / speed if track.static_before_visible else releases.clearing(track.radius, speed)


def _straight_down(found: np.ndarray, lasts: float, noise: float) -> bool:
    """Whether a parabola, of these coefficients, is a fall."""
    (aside, down), start = found[1] * lasts + found[2] * lasts**2, found[1][1]
    return bool(found[2][1] > 0 and abs(aside) < _STRAIGHT * abs(down) + 5 * noise and start > -0.15 * down / lasts)


def scale(values: Values, known: Knowns) -> torch.Tensor | None:
    """Pixels a metre: by gravity, or told."""
    if "gravity" in known:
        return values["weight"] / known["gravity"]
    return known.get("scale")


def _drag_a_pixel(values: Values, gravity: torch.Tensor | float) -> torch.Tensor:
    return values["drag"] * gravity / values["weight"]


def _launch(values: Values, gravity: torch.Tensor | float) -> torch.Tensor:
    """The velocity with which it is let go, px/s: on the path that it has flown along since, by the midpoint rule."""
    push = values["weight"][:, None] * torch.stack([-values["tilt"].sin(), values["tilt"].cos()], 1)
    drag, lasts = _drag_a_pixel(values, gravity)[:, None], values["release"][:, None]

    def slope(velocity: torch.Tensor) -> torch.Tensor:
        return push - drag * velocity.norm(dim=1, keepdim=True) * velocity

    begun = values["velocity"]
    return begun + lasts * slope(begun + lasts / 2 * slope(begun))


def _parameters(kind: str) -> Callable[[Values, Knowns], Parameters]:
    def parameters(values: Values, known: Knowns) -> Parameters:
        pixels = scale(values, known)
        found: Parameters = {"drag": values["drag"]}
        lacking = "only its share of gravity is seen: needs gravity or scale"
        if "gravity" not in known or "scale" in known:
            weight = values["weight"] / known["scale"] if "scale" in known else lacking
            found["acceleration" if kind == "fall" else "gravity"] = weight
            if kind == "fall":
                found["gravity"] = weight
        if kind == "projectile":
            launch = _launch(values, known.get("gravity", 9.81))
            x, y = launch.unbind(1)
            tilt = values["tilt"]
            down, across = y * tilt.cos() - x * tilt.sin(), x * tilt.cos() + y * tilt.sin()
            found["angle"] = torch.atan2(-down, across.abs())
            speed = launch.norm(dim=1)
        else:
            speed = values["velocity"]
        found["speed"] = lacking if pixels is None else speed / pixels
        return found

    return parameters
