"""Two bodies that collide on a table, seen from above."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

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
    rubs = _Rubbing(
        engine.dt, math.ceil((times[last - 1] - times[first]) / engine.dt), float(moment - times[first]),
        torch.from_numpy(after).unflatten(0, (2, 2)),
    )  # fmt: skip
    # Rubbing or gripping where they touch: the one has no slope that leads to the other.
    starts_of = {
        "restitution": torch.tensor([unknowns[1].start, unknowns[1].start, 0.5, 0.9], dtype=torch.float64),
        "friction": torch.tensor([0.003, 0.2, 0.003, 0.003], dtype=torch.float64),
    }

    def setup(values: Values) -> Setup:
        none = torch.zeros_like(values["ratio"])[:, None]
        one, other = values["places"].split(2, 1)
        u, w = values["velocities"].split(2, 1)
        leaves = {name: values[name][:, None].expand(-1, 2) for name in ("restitution", "friction")}
        leaves["mass"] = torch.cat([torch.ones_like(none), values["ratio"][:, None]], 1)
        leaves["radius"] = values["distance"][:, None].expand(-1, 2) / 2
        leaves["gyration"] = leaves["radius"] / 2**0.5
        force = rubs.forces(torch.stack([u, w], 1), values["slowing"], leaves["mass"])
        return Setup(State(torch.cat([one, none, other, none], 1), torch.cat([u, none, w, none], 1)), leaves, force)

    def parameters(values: Values, known: Knowns) -> Parameters:
        ratio = values["ratio"]
        return {"mass_ratio": 1 / ratio if swap else ratio, "restitution": values["restitution"]}

    return [
        Model(
            "collision", engine, unknowns, setup, _middles, parameters, {"mass_ratio": "", "restitution": ""},
            int(there[first]), int(there[last - 1]) + 1, starts_of, state_metric=1,
        )
    ]  # fmt: skip


@dataclass(frozen=True)
class _Rubbing:
    """The table's friction: a force against each body's motion until it stands still, before they meet and after.

    Attributes:
        dt: step of the engine, s.
        steps: of the engine.
        moment: when they meet, s after the first sample.
        after: velocities from then on, as the tracks tell them, (bodies, 2), px/s.
    """

    dt: float
    steps: int
    moment: float
    after: Float[torch.Tensor, "bodies 2"]

    def forces(
        self,
        before: Float[torch.Tensor, "worlds bodies 2"],
        slowing: Float[torch.Tensor, " worlds"],
        mass: Float[torch.Tensor, "worlds bodies"],
    ) -> Float[torch.Tensor, "worlds steps 6"]:
        """Forces and torques in each step."""
        elapsed = self.dt * (torch.arange(self.steps, dtype=before.dtype) + 0.5)
        late = (elapsed >= self.moment)[:, None, None]
        one = self._shares(before, slowing, elapsed)
        other = self._shares(self.after.to(before).expand_as(before), slowing, elapsed - self.moment)
        force = -slowing[:, None, None, None] * mass[:, None, :, None] * torch.where(late, other, one)
        return torch.cat([force, torch.zeros_like(force[..., :1])], 3).flatten(2)

    def _shares(self, velocity: torch.Tensor, slowing: torch.Tensor, since: torch.Tensor) -> torch.Tensor:
        """Unit vectors along the motion in each step, shorter in the one during which it ends, zero afterwards."""
        speed = (velocity.square().sum(2) + 1e-9).sqrt()
        lasts = speed / slowing.clamp(min=1e-6)[:, None]
        share = ((lasts[:, None] - since[:, None]) / self.dt + 0.5).clamp(0, 1)
        return share[..., None] * (velocity / speed[..., None])[:, None]


def _table(distance: float, dt: float) -> rigid2d.World:
    discs = [
        rigid2d.Circle(distance / 2, (2 * distance * side, 0), restitution=0.5, friction=0.0, name=name)
        for side, name in ((-1, "first"), (1, "second"))
    ]
    return rigid2d.World(discs, gravity=(0, 0), dt=dt)


def _middles(seen: Seen) -> torch.Tensor:
    return seen.state.q[:, [0, 1, 3, 4]]
