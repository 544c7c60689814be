"""Where searches for a motion of one's own scene begin: positions, cameras and properties drawn at random and tried.

Of each draw the velocities follow from those in the picture, the camera's place from the first stretch of the motion;
those whose simulated motion is closest to what was seen are worth a search.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from physvision.core import State
from physvision.estimation import Unknown
from physvision.estimation.unknowns import Values
from physvision.identification import starts
from physvision.identification.followed import Followed
from physvision.identification.model import Case

_DRAWS, _KEPT = 1024, 8
_NUDGE = 1e-4  # m or rad, for differences
_UNSEEN = 1e-6  # m by which what is seen moves when an unknown moves by one: less is nothing
_COMPARED = 8  # samples of which each draw is judged


@dataclass(frozen=True)
class Search:
    """What is drawn and tried.

    Attributes:
        case: what was seen.
        followed: the points that were.
        plane: to the right and up, (2, 3).
        unknowns: of the properties.
        leaves: from their values.
        above: whether nothing says how the camera is turned.
    """

    case: Case
    followed: Followed
    plane: Tensor
    unknowns: Sequence[Unknown]
    leaves: Callable[[Values], dict[str, Tensor]]
    above: bool

    def free(self, horizon: float) -> tuple[Tensor, Tensor]:
        """Which coordinates of the initial position, and which velocities, change what is seen beyond shifting it.

        Each is nudged, at some draws; where the camera stands makes up for a shift of everything seen.
        """
        engine = self.followed.engine
        count, draws = engine.nv, 8
        moves = torch.stack([_uniform(torch.Generator().manual_seed(k), -1, 1)[:draws] for k in range(2 * count)], 1)
        nudged = torch.cat([moves, *(moves + _NUDGE * way for way in torch.eye(2 * count, dtype=moves.dtype))])
        q = engine.integrate(engine.initial_state(len(nudged), torch.float64).q, nudged[:, :count])
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            motion = engine.rollout(State(q, nudged[:, count:]), max(2, math.ceil(horizon / engine.dt)))
            at = [0, motion.steps // 2, motion.steps]
            states = State(motion.q[:, at].flatten(0, 1), motion.v[:, at].flatten(0, 1))
            flat = (self.followed.places(states) @ self.plane.T).unflatten(0, (-1, draws, len(at)))
        change = (flat[1:] - flat[:1]) / _NUDGE
        shift = change.mean((2, 3), keepdim=True)
        beyond, whole = ((each.abs().amax((1, 2, 3, 4)) > _UNSEEN) for each in (change - shift, change))
        return beyond[:count], whole[count:]

    def starts(self, first: int, last: int, horizon: float, free: Tensor) -> tuple[dict[str, Tensor], float]:
        """The best draws, a row each, of every unknown; and by how many pixels the best of all misses."""
        engine = self.followed.engine
        times = (self.case.times[first:last] - self.case.times[first]).numpy()
        within = np.flatnonzero(times <= horizon * (1 + 1e-9))
        part = within[np.unique(np.linspace(0, len(within) - 1, _COMPARED).round().astype(int))]
        seen = torch.stack([self.case.seen(k)[first:last] for k in range(len(self.case.tracks))], 1)
        random = torch.Generator().manual_seed(0)
        drawn = {each.name: _drawn(each, random) for each in self.unknowns}
        scale, moves, tilt = self._scenes(seen, random)
        moves = torch.where(free, moves, 0.0)
        reference = engine.initial_state(_DRAWS, torch.float64)
        q = engine.integrate(reference.q, moves)
        leaves = self.leaves(drawn)
        rates = self._rates(q, leaves, scale, tilt, times, seen, random)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # draws may fly apart
            steps = max(1, math.ceil(times[part][-1] / engine.dt))
            motion = engine.rollout(State(q, rates), steps, properties=leaves)
            at = torch.from_numpy(np.minimum(np.rint(times[part] / engine.dt), steps)).long()
            states = State(motion.q[:, at].flatten(0, 1), motion.v[:, at].flatten(0, 1))
            every = {name: value.repeat_interleave(len(at), 0) for name, value in leaves.items()}
            flat = (self.followed.places(states, every) @ self.plane.T).unflatten(0, (_DRAWS, len(at)))
        shown = scale[:, None, None, None] * _turned(flat * flat.new_tensor([1.0, -1.0]), tilt[:, None, None])
        off = seen[part] - shown
        corner = off.nanmean((1, 2))
        cost = (off - corner[:, None, None]).square().nanmean((1, 2, 3)).nan_to_num(nan=math.inf, posinf=math.inf)
        best = _apart(cost, torch.cat([moves, 2 * scale.log()[:, None]], 1))
        found = {**drawn, "scale": scale, "tilt": tilt, "corner": corner, "start": moves, "rates": rates}
        return {name: value[best] for name, value in found.items()}, math.sqrt(float(cost[best[0]]))

    def _scenes(self, seen: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Pixels a metre, displacements of the initial position, and tilts of the camera."""
        engine = self.followed.engine
        there = seen[torch.isfinite(seen).flatten(1).all(1)]
        extent = float((there.amax(0) - there.amin(0)).norm(dim=-1).max())
        bent, reach = self._bent()
        low, high = (0.3 * extent / reach, 10 * extent / reach) if bent.any() else (extent / 10, extent * 20)
        scale = torch.exp(_uniform(random, math.log(low), math.log(high)))
        told = self.case.known.get("scale")
        if told is not None:
            scale = told.value * (1 + _uniform(random, -1, 1) * min(0.5, told.deviation / told.value))
        lengths = (extent / scale)[:, None]
        moves = torch.stack([_uniform(random, -1, 1) for _ in range(engine.nv)], 1)
        moves = torch.where(bent, math.pi * moves, lengths * moves)
        tilt = _uniform(random, -math.pi, math.pi) if self.above else torch.zeros(_DRAWS, dtype=torch.float64)
        return scale, moves, tilt

    def _bent(self) -> tuple[Tensor, float]:
        """Which coordinates turn what is followed, and how far that leads, m."""
        engine = self.followed.engine
        basis = torch.eye(engine.nv, dtype=torch.float64)
        start = engine.initial_state(engine.nv, torch.float64)
        with torch.no_grad():
            there, here, back = (
                self.followed.places(State(engine.integrate(start.q, share * basis), start.v)) for share in (1, 0, -1)
            )
        curl = (there + back - 2 * here).norm(dim=2).amax(1)
        # On a circle of radius r, a turn by one radian and back bends by r (2 − 2 cos 1).
        return curl > 1e-9, max(float(curl.max()) / (2 - 2 * math.cos(1.0)), 1e-9)

    def _rates(
        self,
        q: Tensor,
        leaves: dict[str, Tensor],
        scale: Tensor,
        tilt: Tensor,
        times: np.ndarray,
        seen: Tensor,
        random: torch.Generator,
    ) -> Tensor:
        """Velocities of the joints that give those in the picture, and something along what is not seen."""
        engine, count = self.followed.engine, self.followed.engine.nv
        few = min(6, len(times))
        places = seen[:few].flatten(1).numpy()
        kept = np.isfinite(places).all(1)
        speed = starts.polynomial(times[:few][kept], places[kept], 1 if kept.sum() < 5 else 2)[1].reshape(-1, 2)
        wanted = _turned(torch.from_numpy(speed).expand(len(q), -1, -1), -tilt[:, None]) / scale[:, None, None]
        wanted = wanted * wanted.new_tensor([1.0, -1.0])
        columns = []
        with torch.no_grad():
            for axis in range(count):
                nudge = torch.zeros(len(q), count, dtype=q.dtype)
                nudge[:, axis] = _NUDGE
                ahead, back = (
                    self.followed.places(State(engine.integrate(q, way), torch.zeros_like(nudge)), leaves)
                    for way in (nudge, -nudge)
                )
                columns.append(((ahead - back) @ self.plane.T / (2 * _NUDGE)).flatten(1))
        slopes = torch.stack(columns, 2)
        inverse = torch.linalg.pinv(slopes, rtol=0.05)
        rates = (inverse @ wanted.flatten(1).unsqueeze(-1)).squeeze(-1)
        hidden = torch.eye(count, dtype=q.dtype) - inverse @ slopes
        other = torch.stack([_uniform(random, -3, 3) for _ in range(count)], 1)
        return rates + (hidden @ other.unsqueeze(-1)).squeeze(-1)


def _drawn(unknown: Unknown, random: torch.Generator) -> Tensor:
    """Values of an unknown: half of them where its search begins, half spread out."""
    start = torch.as_tensor(unknown.start, dtype=torch.float64).expand(_DRAWS, *unknown.shape)
    spread = torch.randn(_DRAWS, *unknown.shape, generator=random, dtype=torch.float64)
    half = torch.arange(_DRAWS).reshape(-1, *[1] * len(unknown.shape)) % 2 == 0
    if unknown.std is not None or (math.isinf(unknown.high) and math.isinf(unknown.low)):
        other = start + 0.3 * spread * (unknown.scale if unknown.std is None else unknown.std)
    else:
        other = unknown.constrain(unknown.unconstrain(start) + spread)
    return torch.where(half, start, other)


def _uniform(random: torch.Generator, low: float, high: float) -> Tensor:
    return low + (high - low) * torch.rand(_DRAWS, generator=random, dtype=torch.float64)


def _turned(pairs: Tensor, angle: Tensor) -> Tensor:
    """Pairs (…, 2) turned from x towards y."""
    x, y = pairs.unbind(-1)
    return torch.stack([x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()], -1)


def _apart(cost: Tensor, where: Tensor) -> Tensor:
    """The draws that are best, no two of them next to each other."""
    kept: list[int] = []
    for row in cost.argsort().tolist():
        if not kept or float((where[kept] - where[row]).norm(dim=1).min()) > 0.3:
            kept.append(row)
        if len(kept) == _KEPT:
            break
    return torch.tensor(kept)
