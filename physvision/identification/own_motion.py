"""A motion of somebody's own scene: an engine, what is unknown of it, and what the camera follows."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from physvision.core import InputError, State
from physvision.estimation import SampledState, Setup, Unknown, Unknowns
from physvision.estimation.unknowns import Values
from physvision.identification.followed import Followed, moving_names
from physvision.identification.leaves import Place, place_of, unknown_of, with_number
from physvision.identification.model import Case, Known, Knowns, Model, Parameters, UnsuitableError
from physvision.identification.own_starts import Search
from physvision.identification.starts import informative
from physvision.identification.view import TILT
from physvision.physics import articulated
from physvision.physics.engine import MechanicalEngine

_RATE = 200.0  # steps a second of a scene that comes as a file, at most
_EXACT = 0.01  # px by which fewer steps may shift what is seen: a tenth of what a tracker misses by
_MOST = 24  # ways to say which thing is which body
_TRIED = 2  # of them that are fitted

Sought = Mapping[str, "Unknown | tuple[float | None, float | None] | None"]


@dataclass(frozen=True)
class OwnMotion:
    """What `identify` is asked about a scene of one's own, whose plane motion is seen from where it starts.

    Attributes:
        scene: an engine that knows bodies, or the path of an MJCF or URDF file.
        unknown: by name, the bounds between which each lies (None on either side for the property's own): names of
            leaves as `leaves.place_of` has them, or, where `leaves` is given, arguments of it, as `Unknown`s.
        follow: bodies, shapes or sites that are seen; bodies are tried out if not given. Which thing in the clip is
            which is tried out too, unless tracks have their names.
        plane: axes of the scene to the right and up in the picture, as "xz"; see `Followed.plane`.
        leaves: called with the unknowns by name, returns leaves of the engine's properties, such as
            `articulated.chain_properties`; None where the names are leaves.
        ignore: what a file may hold that is not simulated; see `articulated.load`.
    """

    scene: MechanicalEngine | str | os.PathLike[str]
    unknown: Sought
    follow: Sequence[str] | None = None
    plane: str | None = None
    leaves: Callable[..., Mapping[str, Tensor]] | None = None
    ignore: Sequence[str] = field(default=())

    @property
    def name(self) -> str:
        """For people."""
        return Path(self.scene).stem if isinstance(self.scene, str | os.PathLike) else "own scene"

    def engine(self, dt: float, substeps: int | None = None) -> MechanicalEngine:
        """What moves; a file's is made for frames that are `dt` apart."""
        if not isinstance(self.scene, str | os.PathLike):
            return self.scene
        fine = substeps or max(1, math.ceil(dt * _RATE))
        try:
            return articulated.load(self.scene, dt=dt, ignore=self.ignore, integrator="runge_kutta_4", substeps=fine)
        except InputError:  # what may touch moves by a scheme of its own
            return articulated.load(self.scene, dt=dt / fine, ignore=self.ignore)

    def counts(self, most: int) -> int:
        """How many of so many things that move are meant."""
        if self.follow is not None:
            return len(self.follow)
        return min(most, len(moving_names(self.engine(0.01))))

    def propose(self, case: Case) -> list[Model]:
        """A model for each way to say which of the things is which body."""
        engine = self.engine(case.dt)
        # What is drawn at random to begin a search needs no fine steps, where steps may be of any number.
        coarse = self.engine(case.dt, 1) if self._fine(engine) > 1 and engine.dt == case.dt else engine
        candidates = list(self.follow or moving_names(engine))
        called = tuple(track.name for track in case.tracks)
        named = set(called) <= set(candidates)
        assignments = [called] if named else list(permutations(candidates, len(called)))
        if not assignments or len(assignments) > _MOST:
            raise InputError(
                f"{self.name}: {len(called)} things move in the clip and {len(candidates)} in the scene; say which are "
                f"seen with follow, from {', '.join(candidates)}"
            )
        found = sorted((self._model(case, engine, coarse, each) for each in assignments), key=lambda pair: pair[1])
        return [model for model, miss in found[:_TRIED]]

    def _fine(self, engine: MechanicalEngine) -> int:
        """By how many steps a step of the engine may have been made finer."""
        return max(1, math.ceil(engine.dt * _RATE)) if isinstance(self.scene, str | os.PathLike) else 1

    def _model(
        self, case: Case, engine: MechanicalEngine, coarse: MechanicalEngine, names: Sequence[str]
    ) -> tuple[Model, float]:
        """The model where these are seen, and by how many pixels its best start misses."""
        together = np.isfinite(torch.cat([case.seen(k) for k in range(len(case.tracks))], 1).numpy()).all(1)
        there = np.flatnonzero(together)
        if len(there) < 8:
            raise UnsuitableError("all of it was seen together fewer than eight times")
        first, last = int(there[0]), int(there[-1]) + 1
        followed = Followed(coarse, names)
        plane = followed.plane(self.plane)
        above = float((plane @ followed.gravity).norm()) < 1e-9  # then nothing says how the camera is turned
        made = _Leaves.of(self, engine, case.known)
        reference = engine.initial_state(1, torch.float64)
        search = Search(case, followed, plane, made.unknowns, made.leaves, above)
        everything = torch.cat([case.seen(k) for k in range(len(case.tracks))], 1)[first:last].numpy()
        horizon = informative(case.times[first:last].numpy(), everything)
        free, moving = search.free(horizon)
        starts, miss = search.starts(first, last, horizon, free)
        starts |= {"start": starts["start"][:, free], "rates": starts["rates"][:, moving]}
        placing, driving = (torch.eye(engine.nv, dtype=torch.float64)[each] for each in (free, moving))
        unknowns = [
            *made.unknowns,
            _scale(case.known.get("scale"), float(starts["scale"][0])),
            Unknown("tilt", 0.0, scale=TILT, std=None if above else TILT, unit="rad"),
            Unknown("corner", [0.0, 0.0], scale=20.0, unit="px"),
            # Where nothing says where it is, it is not far from where the scene has it.
            Unknown("start", [0.0] * len(placing), scale=0.3, std=10.0, unit="m or rad"),
            Unknown("rates", [0.0] * len(driving), scale=1.0, std=100.0, unit="m/s or rad/s"),
        ]

        def setup(values: Values) -> Setup:
            q = engine.integrate(reference.q.expand(len(values["start"]), -1), values["start"] @ placing)
            return Setup(State(q, values["rates"] @ driving), made.leaves(values))

        def places(seen: SampledState) -> Tensor:
            flat = followed.places(seen.state, seen.properties) @ plane.T
            return picture(flat, seen.values).flatten(1)

        def parameters(values: Values, known: Knowns) -> Parameters:
            found: Parameters = {each.name: values[each.name] for each in made.reported}
            return found if "scale" in known else {**found, "scale": values["scale"]}

        known = Unknowns(unknowns)
        begun = known.values(known.unconstrain({each.name: starts.get(each.name, each.start) for each in unknowns}))
        steps = math.ceil(float(case.times[last - 1] - case.times[first]) / engine.dt)
        quick = self._quick(engine, coarse, followed, setup(begun), steps, float(begun["scale"].max()))
        spans = {each.name: (each.low, each.high) for each in made.reported}
        model = Model(
            self.name, quick, unknowns, setup, places, parameters,
            {**{each.name: each.unit for each in made.reported}, "scale": "px/m"}, first, last, starts,
            horizon=horizon, metric=None, scale=lambda values, known: values["scale"],
            spans={**spans, "scale": (0.0, math.inf)},
        )  # fmt: skip
        return model, miss

    def _quick(
        self,
        engine: MechanicalEngine,
        coarse: MechanicalEngine,
        followed: Followed,
        made: Setup,
        steps: int,
        scale: float,
    ) -> MechanicalEngine:
        """The engine with as few substeps as keep everything where it is seen, for all starts and the whole motion."""

        def shown(engine: MechanicalEngine) -> Tensor:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")  # starts may fly apart
                motion = engine.rollout(made.state, steps, properties=made.properties or None)
                states = State(motion.q.flatten(0, 1), motion.v.flatten(0, 1))
                leaves = {name: leaf.repeat_interleave(steps + 1, 0) for name, leaf in made.properties.items()}
                return scale * followed.places(states, leaves)

        if self._fine(engine) == 1:
            return engine
        exact = shown(engine)
        for substeps in range(1, self._fine(engine) // 2 + 1):
            other = coarse if substeps == 1 and coarse is not engine else self.engine(engine.dt, substeps)
            if bool(((shown(other) - exact).abs() < _EXACT).all()):
                return other
        return engine


def picture(flat: Tensor, values: Values) -> Tensor:
    """Pixels of places in the plane, (worlds, points, 2), m: scaled, tilted, shifted, y down."""
    x, y = flat[..., 0], -flat[..., 1]
    cos, sin = values["tilt"].cos()[:, None], values["tilt"].sin()[:, None]
    turned = torch.stack([x * cos - y * sin, x * sin + y * cos], -1)
    return values["corner"][:, None] + values["scale"][:, None, None] * turned


def _scale(told: Known | None, start: float) -> Unknown:
    """Pixels a metre; what was told is never that of the plane of motion to more than a thousandth."""
    if told is None:
        return Unknown("scale", start, low=0.0, unit="px/m")
    return Unknown("scale", told.value, 0.0, std=max(told.deviation, 1e-3 * told.value), unit="px/m")


@dataclass(frozen=True)
class _Leaves:
    """How unknowns become leaves.

    Attributes:
        unknowns: all that are sought.
        reported: those that somebody asked for, not those that were told.
        leaves: leaves from values.
    """

    unknowns: list[Unknown]
    reported: list[Unknown]
    leaves: Callable[[Values], dict[str, Tensor]]

    @classmethod
    def of(cls, own: OwnMotion, engine: MechanicalEngine, known: Mapping[str, Known]) -> _Leaves:
        """Of what is asked and told."""
        told = {name: value for name, value in known.items() if name != "scale"}
        places = {name: place_of(engine, name) for name in told}
        fixed = {name: each.value for name, each in told.items() if not each.deviation}
        unsure = [
            unknown_of(places[name], name, known=(each.value, each.deviation))
            for name, each in told.items() if each.deviation
        ]  # fmt: skip
        if own.leaves is None:
            places |= {name: place_of(engine, name) for name in own.unknown}
            reported = [_asked(name, bounds, places[name]) for name, bounds in own.unknown.items()]
        else:
            reported = [_named(name, bounds) for name, bounds in own.unknown.items()]
        if not reported:
            raise InputError("unknown: name at least one number of the scene that is sought, as mass:cart=1..5")

        owned = dict(engine.properties.items())

        def leaves(values: Values) -> dict[str, Tensor]:
            found: dict[str, Tensor] = {}
            if own.leaves is not None:
                found = dict(own.leaves(**{each.name: values[each.name] for each in reported}))
            batch = len(next(iter(values.values())))
            # A body keeps its shape: whatever grows in mass grows in inertia, unless its inertia is named itself.
            for name, place in sorted(places.items(), key=lambda item: item[1].leaf == "inertia"):
                base = found.get(place.leaf, owned[place.leaf])
                number = values[name] if name in values else torch.full((batch,), fixed[name], dtype=torch.float64)
                found[place.leaf] = with_number(base, place.mask, number)
                if place.leaf == "mass" and own.leaves is None and "inertia" in owned:
                    share = (number / place.own)[:, None, None, None]
                    inertia = found.get("inertia", owned["inertia"])
                    found["inertia"] = torch.where(place.mask[:, None, None], share * inertia, inertia)
            return found

        return cls([*reported, *unsure], reported, leaves)


def _asked(name: str, bounds: object, place: Place) -> Unknown:
    if isinstance(bounds, Unknown):
        return bounds
    low, high = bounds if isinstance(bounds, tuple) else (None, None)
    return unknown_of(place, name, low, high)


def _named(name: str, bounds: object) -> Unknown:
    if not isinstance(bounds, Unknown):
        raise InputError(f"unknown: {name}: with leaves of one's own an Unknown is expected, got {bounds!r}")
    return bounds
