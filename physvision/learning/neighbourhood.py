"""Sample enhancement: what is known beside a recorded step, by the engine's gradients (Qiao et al., ICML 2021).

A true step from (q, v) under an action a to (q', v') stands for its neighbours too, to first order.
With ν a difference of the velocities at the start and δ one of the action, they end at

    (q' ⊕ (∂q'/∂v ν + ∂q'/∂a δ), v' + ∂v'/∂v ν + ∂v'/∂a δ),

⊕ as of `Engine.integrate`, and what is seen and paid follows from both ends and a + δ by the rules of the game. To
first order the cost of an action would be told too low everywhere, by its curvature, and over a hundred steps to come
that is more than what an action gains. Positions at the start stay: half of those beside one at which a joint is at its
stop, or a foot on the ground, are beyond, where no step starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.core import State
from physvision.envs import Game
from physvision.learning.replay import Batch, Replay

STEEPEST = 10.0  # norm of the derivatives of one number, in deviations of what was recorded
AT_ONCE = 50  # steps
UNTRIED, KNOWN, NONE = 0, 1, 2


@dataclass(frozen=True)
class NeighbourSettings:
    """Which neighbours true steps have.

    Attributes:
        count: of each; none, if zero.
        action: by how much their actions differ at most.
        velocity: by how many deviations of what was recorded the velocities at their starts do.
        drop: whether steps in which a contact or a stop opens or closes have none.
    """

    count: int = 0
    action: float = 0.5
    velocity: float = 0.3
    drop: bool = False


class Looked(NamedTuple):
    """What became of steps that were to be differentiated.

    Attributes:
        unknown: how many have no derivatives.
        dropped: how many were left out, for a contact changes in them.
        steps: of the game that the engine made for it.
    """

    unknown: int
    dropped: int
    steps: int


class Neighbourhood:
    """The derivatives of all steps of a record, and the neighbours that these have by them.

    Attributes:
        slopes: the end of each step and its derivatives, at the place that it has in the record; what is known of it.
        deviation: of each velocity in the record.
    """

    def __init__(self, game: Game, settings: NeighbourSettings, capacity: int) -> None:
        """Start with no step.

        Args:
            game: whose engine is differentiated.
            settings: which neighbours.
            capacity: of the record.
        """
        self.game, self.settings = game, settings
        nq, nv = game.engine.nq, game.engine.nv
        self.deviation, self._causes = torch.ones(nv, dtype=torch.float64), nv + len(game.high)
        self._widths = {"steep": 2 * nv * self._causes, "q": nq, "v": nv, "known": 0}
        exact = {"q": torch.float64, "v": torch.float64, "known": torch.int8}
        self.slopes = Replay(capacity, self._widths, exact)

    def add(self, count: int) -> None:
        """Take in as many steps as were recorded."""
        rows = {name: torch.zeros(count, width) for name, width in self._widths.items() if width}
        self.slopes.add(rows | {"known": torch.full((count,), UNTRIED)})

    def look_around(self, record: Replay) -> Looked:
        """Differentiate the steps that are new."""
        unknown, dropped, steps = 0, 0, 0
        self.deviation = record.all()["v"].std(0).clamp_min(1e-6)
        for places in torch.nonzero(self.slopes.all()["known"] == UNTRIED)[:, 0].split(AT_ONCE):
            rows = record.take(places)
            end, steep, good = jacobians(self.game, rows)
            unknown, steps = unknown + int((~good).sum()), steps + len(places) * steep.shape[1]
            if self.settings.drop:
                changed = good & changes_contact(self.game, rows)
                dropped, steps = dropped + int(changed.sum()), steps + len(places)
                good &= ~changed
            steep = torch.where(good[:, None, None], self._shortened(steep), 0.0).flatten(1)
            known = torch.where(good, KNOWN, NONE)
            self.slopes.put(places, {"steep": steep, "q": end.q, "v": end.v, "known": known})
        return Looked(unknown, dropped, steps)

    def _shortened(self, steep: Float[Tensor, "rows numbers causes"]) -> Float[Tensor, "rows numbers causes"]:
        """Those of one number at most `STEEPEST` long, positions in units of what a deviation of velocity moves."""
        period = self.game.steps * self.game.engine.dt
        units = torch.cat([period * self.deviation, self.deviation])
        causes = torch.cat([self.deviation, torch.ones(len(self.game.high))])
        norm = (steep * causes / units[:, None]).norm(dim=2, keepdim=True)
        return steep * (STEEPEST / norm.clamp_min(STEEPEST))

    def vary(self, rows: Batch, places: Tensor, generator: torch.Generator) -> Batch:
        """Neighbours of recorded steps in their place, as often as is told; where none are known they stay.

        Args:
            rows: the steps.
            places: where they are in the record.
            generator: of which stay, and of the differences.
        """
        slopes, count = self.slopes.take(places), len(places)
        stay = torch.rand(count, generator=generator) < 1 / (self.settings.count + 1)
        stay |= slopes["known"] != KNOWN
        apart = 2 * torch.rand(count, self._causes, generator=generator) - 1
        faster, other = apart.split([len(self.deviation), len(self.game.high)], 1)
        faster, other = self.settings.velocity * self.deviation * faster, self.settings.action * other
        steep = slopes["steep"].unflatten(1, (-1, self._causes))
        found = neighbours(self.game, rows, State(slopes["q"], slopes["v"]), steep, faster, other)
        return rows | {
            name: torch.where(stay[:, None] if value.ndim == 2 else stay, rows[name], value)
            for name, value in found.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """All that `load_state_dict` needs to go on."""
        return {"slopes": self.slopes.state_dict(), "deviation": self.deviation}

    def load_state_dict(self, kept: dict[str, Any]) -> None:
        """Go on from where `state_dict` was called."""
        self.slopes.load_state_dict(kept["slopes"])
        self.deviation = kept["deviation"]


def jacobians(game: Game, rows: Batch) -> tuple[State, Float[Tensor, "rows numbers causes"], Bool[Tensor, " rows"]]:
    """Where recorded steps end, ∂(q', v')/∂(v, a), q' by its displacements; and which steps have derivatives.

    Each step is done as often as there are numbers to differentiate, all in one launch forward and one back.
    """
    engine, count = game.engine, len(rows["v"])
    numbers = 2 * engine.nv
    start = State(rows["q"], rows["v"]).repeat(numbers)
    v, action = start.v.requires_grad_(), rows["action"].to(start.q).repeat_interleave(numbers, 0).requires_grad_()
    with torch.enable_grad():
        found = game.step(State(start.q, v), action * action.new_tensor(game.high))
        end = found.state
        told = torch.cat([engine.difference(end.q.detach(), end.q), end.v], 1).unflatten(0, (count, numbers))
        steep = torch.cat(torch.autograd.grad(told.diagonal(dim1=1, dim2=2).sum(), [v, action]), 1)
    steep = steep.unflatten(0, (count, numbers))
    good = ~found.failed.unflatten(0, (count, numbers)).any(1) & steep.isfinite().all((1, 2))
    return State(end.q.detach()[::numbers], end.v.detach()[::numbers]), steep, good


def changes_contact(game: Game, rows: Batch) -> Bool[Tensor, " rows"]:
    """Whether something touches at the end of a recorded step that did not at its start, or the other way round."""
    if game.touching is None:
        return torch.zeros(len(rows["seen"]), dtype=torch.bool)
    start = State(rows["q"], rows["v"])
    with torch.no_grad():
        end = game.step(start, rows["action"].to(start.q) * start.q.new_tensor(game.high)).state
    return (game.touching(start) != game.touching(end)).any(1)


def neighbours(
    game: Game,
    rows: Batch,
    end: State,
    steep: Float[Tensor, "rows numbers causes"],
    faster: Float[Tensor, "rows velocities"],
    other: Float[Tensor, "rows actions"],
) -> Batch:
    """What differs in a neighbour of each recorded step, to first order.

    Args:
        game: what is played.
        rows: the steps.
        end: where they end.
        steep: their derivatives, as of `jacobians`.
        faster: by how much velocities at the start differ.
        other: by how much actions do, which stay within [−1, 1].
    """
    action = (rows["action"] + other).clamp(-1, 1)
    start = State(rows["q"], rows["v"] + faster)
    causes = torch.cat([faster.to(steep), (action - rows["action"]).to(steep)], 1)
    moved, sped = (steep @ causes[..., None])[..., 0].to(end.q).chunk(2, 1)
    reached = State(game.engine.integrate(end.q, moved), end.v + sped)
    after = game.observe(reached, rows["played"] + 1).to(rows["after"])
    found = {"seen": game.observe(start, rows["played"]).to(rows["seen"]), "v": start.v, "action": action}
    reward = game.reward(start, reached, action.to(end.q) * end.q.new_tensor(game.high)).to(rows["reward"])
    return found | {"after": after, "reward": reward, "end": game.is_over(after).to(rows["end"])}
