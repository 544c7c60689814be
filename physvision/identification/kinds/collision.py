"""Two bodies that collide on a table, seen from above."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification import impacts
from physvision.identification.model import Case, Knowns, Model, Parameters, UnsuitableError
from physvision.physics import rigid2d

_AROUND = 1.0  # s before and after
_NEWTON = 4  # steps to the moment at which they meet
_EARLIER = 0.2  # s by which they may meet earlier, or later, than the tracks tell
_SLOWEST = 0.01  # of their speed: what comes nearer more slowly does not meet
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
    met = impacts.meeting(times, places)
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
        Unknown("slowing", 0.02 * speed, scale=0.1 * speed, std=speed, unit="px/s²"),
        Unknown("friction", 0.05, low=0.0, std=0.05),
    ]
    engine = _table(distance, case.dt / 2)
    rubs = _Rubbing(engine.dt, math.ceil((times[last - 1] - times[first]) / engine.dt), float(moment - times[first]))
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
        force = rubs.forces(values)
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
        moment: about when they meet, s after the first sample.
    """

    dt: float
    steps: int
    moment: float

    def forces(self, values: Values) -> Float[torch.Tensor, "worlds steps 6"]:
        """Forces and torques in each step."""
        slowing, before = values["slowing"], values["velocities"].unflatten(1, (2, 2))
        moment, after = self._met(values)
        begins = self.dt * torch.arange(self.steps, dtype=before.dtype)
        # During the step in which they meet all is as before, and the next one makes up for that: so they meet with the
        # velocities that they have then, and part with those that are right from the step after on.
        late = (begins - moment[:, None]) / self.dt
        early = torch.where(late <= 0, 1.0, torch.where(late < 1, -late, 0.0))[..., None, None]
        one = self._shares(before, slowing, begins.expand(len(moment), -1))
        other = self._shares(after, slowing, begins - moment[:, None])
        mass = torch.stack([torch.ones_like(slowing), values["ratio"]], 1)
        force = -(slowing[:, None] * mass)[:, None, :, None] * (early * one + (1 - early) * other)
        return torch.cat([force, torch.zeros_like(force[..., :1])], 3).flatten(2)

    def _met(self, values: Values) -> tuple[Float[torch.Tensor, " worlds"], Float[torch.Tensor, "worlds bodies 2"]]:
        """When they meet, and their velocities from then on.

        The distance between the middles, and its rate, lead to the moment by Newton's steps. Along the normal the
        bodies part with the restitution's share of what they closed with. Across it the impulse is at most μ times the
        normal one, by Coulomb's law, and no more than makes the rims of two discs, whose inertia is m r²/2, grip each
        other: a third of what would stop them if they could not turn.
        """
        ratio = values["ratio"]
        moment = torch.full_like(ratio, self.moment)
        for _ in range(_NEWTON):
            gap, velocities = _meeting(values, moment)
            closing = _closing(gap, velocities)[1]
            step = (gap.norm(dim=1) - values["distance"]) / closing
            moment = (moment + step).clamp(self.moment - _EARLIER, self.moment + _EARLIER)
        gap, velocities = _meeting(values, moment)
        normal, closing, aside = _closing(gap, velocities)
        pushed = (1 + values["restitution"]) * closing / (1 + 1 / ratio)
        across = (aside.square().sum(1) + 1e-9).sqrt()
        rubbed = torch.minimum(values["friction"] * pushed, across / (3 * (1 + 1 / ratio)))
        impulse = pushed[:, None] * normal + (rubbed / across)[:, None] * aside
        return moment, velocities + torch.stack([-impulse, impulse / ratio[:, None]], 1)

    def _shares(self, velocity: torch.Tensor, slowing: torch.Tensor, since: torch.Tensor) -> torch.Tensor:
        """Unit vectors along the motion in each step, shorter in the one during which it ends, zero afterwards."""
        speed = (velocity.square().sum(2) + 1e-9).sqrt()
        lasts = speed / slowing.clamp(min=1e-6)[:, None]
        share = ((lasts[:, None] - since[..., None]) / self.dt).clamp(0, 1)
        return share[..., None] * (velocity / speed[..., None])[:, None]


def _meeting(values: Values, moment: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """From the first body's middle to the second's, and both velocities, if nothing but the table stopped them."""
    places, velocities = (values[name].unflatten(1, (2, 2)) for name in ("places", "velocities"))
    speed = (velocities.square().sum(2) + 1e-9).sqrt()
    lasts = torch.minimum(moment[:, None], speed / values["slowing"].clamp(min=1e-6)[:, None])[..., None]
    slowing = values["slowing"][:, None, None] * velocities / speed[..., None]
    return (places + velocities * lasts - slowing * lasts**2 / 2).diff(dim=1)[:, 0], velocities - slowing * lasts


def _closing(gap: torch.Tensor, velocities: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The normal, the speed along it with which the first body comes nearer, and its velocity across it."""
    normal = gap / gap.norm(dim=1, keepdim=True)
    relative = -velocities.diff(dim=1)[:, 0]
    along = (relative * normal).sum(1)
    least = _SLOWEST * relative.detach().norm(dim=1)
    return normal, torch.maximum(along, least), relative - along[:, None] * normal


def _table(distance: float, dt: float) -> rigid2d.World:
    discs = [
        rigid2d.Circle(distance / 2, (2 * distance * side, 0), restitution=0.5, friction=0.0, name=name)
        for side, name in ((-1, "first"), (1, "second"))
    ]
    return rigid2d.World(discs, gravity=(0, 0), dt=dt)


def _middles(seen: SampledState) -> torch.Tensor:
    return seen.state.q[:, [0, 1, 3, 4]]
