"""Two bodies that collide on a table, seen from above."""

from __future__ import annotations

import math

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import Seen, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identify import starts
from physvision.identify.model import Case, Knowns, Model, Parameters, UnsuitableError
from physvision.physics import rigid2d

_AROUND = 1.0  # s before and after
_FRAMES = 40  # samples before and after: over more, what a table does to a motion is no longer the same everywhere


def propose(case: Case) -> list[Model]:
    """The model to try; the first body is the one that is faster before they meet."""
    if len(case.tracks) != 2:
        raise UnsuitableError("a collision needs two things that move")
    both = np.concatenate([case.seen(k).numpy() for k in range(2)], 1)
    there = np.flatnonzero(np.isfinite(both).all(1))
    if len(there) < 12:
        raise UnsuitableError("both were seen together fewer than twelve times")
    times, places = case.times.numpy()[there], both[there]
    noise = max(float(np.median([np.median(track.sigma[there]) for track in case.tracks])), 0.15)
    met = starts.meeting(times, places)
    if met is None:
        raise UnsuitableError("nothing changes as if they had met")
    moment, before, after, meeting = met
    change = after - before
    if min(np.linalg.norm(change[:2]), np.linalg.norm(change[2:])) * 0.2 < 3 * noise:
        raise UnsuitableError("one of the two does not change its motion")
    around = min(_AROUND, _FRAMES * case.dt)
    window = (times > moment - around) & (times < moment + around)
    first, last = int(np.flatnonzero(window)[0]), int(np.flatnonzero(window)[-1]) + 1
    ratio = float(np.linalg.norm(change[:2]) / np.linalg.norm(change[2:]))
    gap = meeting[2:] - meeting[:2]
    normal = gap / np.linalg.norm(gap)
    closing = float((before[:2] - before[2:]) @ normal)
    parting = float((after[2:] - after[:2]) @ normal)
    distance = float(np.linalg.norm(gap))
    speed = float(max(np.linalg.norm(before[:2]), np.linalg.norm(before[2:])))
    begin = meeting + before * (times[first] - moment)
    swap = bool(np.linalg.norm(before[:2]) < np.linalg.norm(before[2:]))
    unknowns = [
        Unknown("ratio", ratio, low=0.0),
        Unknown("restitution", min(max(parting / max(closing, 1e-9), 0.05), 0.97), low=0.0, high=1.0),
        Unknown("distance", distance, low=0.0, unit="px"),
        Unknown("places", begin.tolist(), scale=3.0, unit="px"),
        Unknown("velocities", before.tolist(), scale=0.05 * speed, unit="px/s"),
        Unknown("slowing", 0.02 * speed, scale=0.1 * speed, deviation=speed, unit="px/s²"),
        Unknown("friction", 0.05, low=0.0, deviation=0.05),
    ]
    engine = _table(distance, case.dt / 2)
    moves = _directions(engine, before, after, moment - times[first], times[last - 1] - times[first])
    starts_of = {"restitution": torch.tensor([unknowns[1].start, 0.5, 0.9], dtype=torch.float64)}

    def setup(values: Values) -> Setup:
        none = torch.zeros_like(values["ratio"])[:, None]
        one, other = values["places"].split(2, 1)
        u, w = values["velocities"].split(2, 1)
        leaves = {name: values[name][:, None].expand(-1, 2) for name in ("restitution", "friction")}
        leaves["mass"] = torch.cat([torch.ones_like(none), values["ratio"][:, None]], 1)
        leaves["radius"] = values["distance"][:, None].expand(-1, 2) / 2
        leaves["gyration"] = leaves["radius"] / 2**0.5
        # The table rubs: a force against the motion, whose direction is well known from the track.
        rubs = -values["slowing"][:, None, None] * moves * leaves["mass"].repeat_interleave(3, 1)[:, None]
        return Setup(State(torch.cat([one, none, other, none], 1), torch.cat([u, none, w, none], 1)), leaves, rubs)

    def parameters(values: Values, known: Knowns) -> Parameters:
        ratio = values["ratio"]
        return {"mass_ratio": 1 / ratio if swap else ratio, "restitution": values["restitution"]}

    return [
        Model(
            "collision", engine, unknowns, setup, _middles, parameters, {"mass_ratio": "", "restitution": ""},
            int(there[first]), int(there[last - 1]) + 1, starts_of, state_metric=1,
        )
    ]  # fmt: skip


def _directions(
    engine: rigid2d.World, before: np.ndarray, after: np.ndarray, moment: float, lasts: float
) -> torch.Tensor:
    """Unit vectors along the motion of both in each step, (steps, 6): before they meet and after; zero at rest."""
    steps = math.ceil(lasts / engine.dt)
    rows = np.zeros((steps, 6))
    fastest = max(np.linalg.norm(v) for v in (before[:2], before[2:], after[:2], after[2:]))
    for step in range(steps):
        velocity = before if step * engine.dt < moment else after
        for body in range(2):
            speed = np.linalg.norm(velocity[2 * body : 2 * body + 2])
            if speed > 0.03 * fastest:
                rows[step, 3 * body : 3 * body + 2] = velocity[2 * body : 2 * body + 2] / speed
    return torch.from_numpy(rows)


def _table(distance: float, dt: float) -> rigid2d.World:
    discs = [
        rigid2d.Circle(distance / 2, (2 * distance * side, 0), restitution=0.5, friction=0.0, name=name)
        for side, name in ((-1, "first"), (1, "second"))
    ]
    return rigid2d.World(discs, gravity=(0, 0), dt=dt)


def _middles(seen: Seen) -> torch.Tensor:
    return seen.state.q[:, [0, 1, 3, 4]]
