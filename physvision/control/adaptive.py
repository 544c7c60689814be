"""Adaptive model-predictive control: plan, act, record the transition, refit the model, and plan again.

The fit compares single steps: from each recorded state and control to the next state, by Gauss–Newton
(`physvision.estimation`). States are compared by features, each divided by its standard deviation in the record, so
that units do not matter.
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

NUM_RESTARTS, RESTART_STD = 5, 0.5  # initial values of a fit beside the current ones, and their spread
Leaves = Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]


@dataclass
class TransitionLog:
    """Recorded transitions of the controlled mechanism.

    Attributes:
        starts: States before each control.
        controls: Controls, (batch, nu).
        ends: States after each control.
    """

    starts: list[State] = field(default_factory=list)
    controls: list[Tensor] = field(default_factory=list)
    ends: list[State] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(state.batch for state in self.starts)

    def add(self, start: State, control: Float[Tensor, "batch nu"], end: State) -> None:
        """Record transitions; those with numbers that are not finite are left out."""
        finite = torch.cat([start.q, start.v, control, end.q, end.v], 1).isfinite().all(1)
        self.starts.append(State(start.q[finite], start.v[finite]))
        self.controls.append(control[finite])
        self.ends.append(State(end.q[finite], end.v[finite]))

    def batch(self) -> tuple[State, Tensor, State]:
        """Return all transitions as one batch."""
        return _concatenated(self.starts), torch.cat(self.controls), _concatenated(self.ends)


def _concatenated(states: list[State]) -> State:
    return State(torch.cat([state.q for state in states]), torch.cat([state.v for state in states]))


@dataclass(frozen=True)
class AdaptiveModel:
    """An engine with unknown properties that are fitted to transitions.

    Attributes:
        engine: Engine of the model.
        unknowns: Unknown parameters.
        leaves: Function from parameter values, worlds first, to leaves of the engine's properties.
        features: Features of states, by which predictions are compared; positions and velocities by default.
    """

    engine: Engine
    unknowns: Unknowns
    leaves: Leaves
    features: Callable[[State], Tensor] = lambda state: torch.cat([state.q, state.v], 1)

    def residual(self, log: TransitionLog) -> PointResidual:
        """Return the residual of all recorded transitions."""
        if not len(log):
            raise InputError("log: expected recorded transitions, got none; call observe() first")
        starts, controls, ends = log.batch()
        observed = self.features(ends)
        std = observed.std(0, correction=0)

        def predict(values: Mapping[str, Tensor], indices: Tensor) -> Tensor:
            start = State(starts.q[indices], starts.v[indices])
            return self.features(self.engine.step(start, controls[indices], self.leaves(values)))

        weight = 1 / torch.where(std > 0, std, 1.0)
        return PointResidual(self.unknowns, predict, observed, weight / len(observed) ** 0.5)

    def fit(self, log: TransitionLog, z: Tensor | None = None, iterations: int = 30) -> Optimum:
        """Fit the unknown parameters to recorded transitions, from the internal coordinates z on."""
        return gauss_newton(self.residual(log), z, max_iterations=iterations)

    def properties(self, z: Float[Tensor, "one unknowns"]) -> dict[str, Tensor]:
        """Return the leaves of the properties at the internal coordinates z, shared by all worlds."""
        return {name: leaf[0] for name, leaf in self.leaves(self.unknowns.values(z)).items()}


class AdaptiveMpc:
    """Model-predictive control with a model that is refitted to observed transitions.

    Attributes:
        controller: Controller that plans with the current model.
        model: Model that is fitted.
        log: All transitions so far.
        z: Internal coordinates of the current parameters, (1, unknowns).
    """

    def __init__(self, controller: Mpc, model: AdaptiveModel) -> None:
        self.controller, self.model, self.log = controller, model, TransitionLog()
        self.z = model.unknowns.start()
        self._converged, self._generator = False, torch.Generator().manual_seed(0)
        self._update_controller()

    def act(self, state: State) -> Decision:
        """Return the control of a step from the observed state."""
        return self.controller.act(state)

    def observe(self, start: State, control: Float[Tensor, "batch nu"], end: State) -> None:
        """Record a transition for the next fit."""
        self.log.add(start, control, end)

    def refit(self, iterations: int = 30) -> Optimum:
        """Fit the model to all transitions and plan with it from now on; a fit that fails changes nothing.

        Until a fit has converged, the search also starts from the first guess and near it, and takes the best.
        """
        optimum = self.model.fit(self.log, self.z if self._converged else self._initial_values(), iterations)
        best = slice(optimum.best_start, optimum.best_start + 1)
        self._converged = bool(optimum.converged[best])
        if bool(optimum.cost[best].isfinite()) and bool(optimum.z[best].isfinite().all()):
            self.z = optimum.z[best]
            self._update_controller()
        return optimum

    def _initial_values(self) -> Tensor:
        """Return initial values of a fit: the current ones, the first guess, and some drawn near that."""
        guess = self.model.unknowns.start(NUM_RESTARTS)
        noise = torch.randn(guess.shape, generator=self._generator, dtype=guess.dtype)
        noise[0] = 0.0
        return torch.cat([self.z, guess + RESTART_STD * noise])

    def _update_controller(self) -> None:
        self.controller.properties = self.model.engine.checked(self.model.properties(self.z))
