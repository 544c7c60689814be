"""Learn a model while controlling with it: plan, act, record what followed, refit the model, again.

The fit is that of one step at a time: from each recorded state and control to the state that followed, by Gauss–Newton
(`physvision.estimation`). A state may be compared by features of it, each divided by its spread over what was recorded,
so that no unit counts more than another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.control.mpc import Decision, Mpc
from physvision.core import InputError, State
from physvision.estimation import Optimum, PointResidual, Unknowns, gauss_newton
from physvision.physics import Engine

_GUESSES = 5  # starts of a fit beside where the model is
Leaves = Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]


@dataclass
class Record:
    """Steps of what is controlled: where it was, what was done, and where it came to, a step a row."""

    starts: list[State] = field(default_factory=list)
    controls: list[Tensor] = field(default_factory=list)
    ends: list[State] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(state.batch for state in self.starts)

    def add(self, start: State, control: Float[Tensor, "batch nu"], end: State) -> None:
        """Remember steps; those with numbers that are not finite are left out."""
        rows = torch.cat([start.q, start.v, control, end.q, end.v], 1).isfinite().all(1)
        self.starts.append(State(start.q[rows], start.v[rows]))
        self.controls.append(control[rows])
        self.ends.append(State(end.q[rows], end.v[rows]))

    def all(self) -> tuple[State, Tensor, State]:
        """All steps as one batch."""
        return _joined(self.starts), torch.cat(self.controls), _joined(self.ends)


def _joined(states: list[State]) -> State:
    return State(torch.cat([each.q for each in states]), torch.cat([each.v for each in states]))


@dataclass(frozen=True)
class Model:
    """An engine and what is not known of it.

    Attributes:
        engine: the model.
        unknowns: what is sought.
        leaves: from values, each with the worlds in front, leaves of the engine's properties.
        features: of states, by which what followed is compared; positions and velocities if not given.
    """

    engine: Engine
    unknowns: Unknowns
    leaves: Leaves
    features: Callable[[State], Tensor] = lambda state: torch.cat([state.q, state.v], 1)

    def problem(self, record: Record) -> PointResidual:
        """The residuals of all recorded steps."""
        if not len(record):
            raise InputError("record: expected steps to fit to, got none")
        starts, controls, ends = record.all()
        seen = self.features(ends)
        spread = seen.std(0, correction=0)

        def predict(values: Mapping[str, Tensor], which: Tensor) -> Tensor:
            start = State(starts.q[which], starts.v[which])
            return self.features(self.engine.step(start, controls[which], self.leaves(values)))

        weight = 1 / torch.where(spread > 0, spread, 1.0)
        return PointResidual(self.unknowns, predict, seen, weight / len(seen) ** 0.5)

    def fitted(self, record: Record, z: Tensor | None = None, iterations: int = 30) -> Optimum:
        """The unknowns that explain the record best, from z on."""
        return gauss_newton(self.problem(record), z, max_iterations=iterations)

    def known(self, z: Float[Tensor, "one unknowns"]) -> dict[str, Tensor]:
        """The leaves that z stands for, shared by all worlds."""
        return {name: leaf[0] for name, leaf in self.leaves(self.unknowns.values(z)).items()}


class AdaptiveMpc:
    """Model-predictive control with a model that is refitted to what was seen.

    Attributes:
        controller: plans with the model as it is now.
        model: what is fitted.
        record: all steps so far.
        z: the unknowns as they are now, (1, unknowns).
    """

    def __init__(self, controller: Mpc, model: Model) -> None:
        self.controller, self.model, self.record = controller, model, Record()
        self.z = model.unknowns.start()
        self._settled, self._generator = False, torch.Generator().manual_seed(0)
        self._use()

    def act(self, state: State) -> Decision:
        """The control for a step from what is seen now."""
        return self.controller.act(state)

    def saw(self, start: State, control: Float[Tensor, "batch nu"], end: State) -> None:
        """Remember what followed."""
        self.record.add(start, control, end)

    def refit(self, iterations: int = 30) -> Optimum:
        """Fit the model to all that was seen, and plan with it from now on; a fit that fails changes nothing.

        Until a fit has converged, searches begin from the first guess and near it too, and the best counts.
        """
        found = self.model.fitted(self.record, self.z if self._settled else self._starts(), iterations)
        best = slice(found.best_start, found.best_start + 1)
        self._settled = bool(found.converged[best])
        if bool(found.cost[best].isfinite()) and bool(found.z[best].isfinite().all()):
            self.z = found.z[best]
            self._use()
        return found

    def _starts(self) -> Tensor:
        """Where searches begin: where the model is now, its first guess, and others a sensible step from that."""
        guess = self.model.unknowns.start(_GUESSES)
        others = torch.randn(guess.shape, generator=self._generator, dtype=guess.dtype)
        others[0] = 0.0
        return torch.cat([self.z, guess + 0.5 * others])

    def _use(self) -> None:
        self.controller.properties = self.model.engine.checked(self.model.known(self.z))
