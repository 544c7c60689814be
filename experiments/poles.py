"""Cartpoles of DeepMind's Control Suite with another force and an endless rail, and what their states are worth."""

from __future__ import annotations

import torch
from control_suite import ControlSuiteEnv, TimeStep
from torch import Tensor

from physvision import State
from physvision.control import Goal

PERIODS, HOLD, UP = 140, 5, 0.95
TASKS = {1: "swingup", 2: "two_poles"}
# Of the squares of: place, its rate, each pole's sine and cosine, its rate, and the share of the force.
PLACE, RATE, POLE, TURNING, EFFORT = 1.0, 0.1, 3.0, 0.1, 0.01


def features(state: State) -> Tensor:
    """Place, sines and cosines of the joints, and all rates."""
    angles = state.q[:, 1:]
    return torch.cat([state.q[:, :1], angles.sin(), angles.cos(), state.v], 1)


def goal(poles: int, force: float) -> Goal:
    """Cost function of a controller, with forces in N."""
    zeros, ones = torch.zeros(poles).double(), torch.ones(poles).double()
    none, single = torch.zeros(1).double(), torch.ones(1).double()
    target = torch.cat([none, zeros, ones, none, zeros])
    weights = torch.cat([PLACE * single, POLE * ones, POLE * ones, RATE * single, TURNING * ones])
    return Goal(features, target, weights, EFFORT / force**2)


class Poles:
    """Episodes of 140 periods of 0.05 s; the reward of a period is what its start and its force do not cost."""

    def __init__(self, poles: int, force: float, seed: int) -> None:
        self.world = ControlSuiteEnv("cartpole", TASKS[poles], seed, HOLD)
        self.world.physics.model.jnt_limited[:] = 0
        self.world.physics.model.actuator_gear[0, 0] = force
        self._goal, self._force = goal(poles, 1.0), force

    def begin(self) -> State:
        """Start an episode, hanging."""
        return self.world.reset().state

    def act(self, state: State, fraction: Tensor) -> tuple[State, float]:
        """Apply a fraction of the force, and return the next state and the reward."""
        result: TimeStep = self.world.step(fraction)
        missed = (features(state)[0] - self._goal.target).square() @ self._goal.weights
        return result.state, -float(missed + EFFORT * fraction.square().sum())


def heights(state: State) -> Tensor:
    """Cosines of the poles' angles from upright, (n, poles)."""
    return state.q[:, 1:].cumsum(1).cos()


def stays_up(course: list[Tensor]) -> bool:
    """If true, all poles are up in the last 20 periods, from the heights after each."""
    return bool((torch.cat(course[-20:]) > UP).all())


def true_lumps(poles: Poles) -> dict[str, float]:
    """True lumped masses and lengths of the motion, from the suite's own model."""
    model = poles.world.physics.model
    mass, center = torch.tensor(model.body_mass[1:]), torch.tensor(model.body_ipos[1:])
    length = torch.tensor(model.body_pos[3:, 2])
    return lumps(mass, length, center, torch.tensor(model.body_inertia[2:, 1]))


def lumps(mass: Tensor, length: Tensor, center: Tensor, inertia: Tensor | None = None) -> dict[str, float]:
    """Total mass; first moments; inertias about the joints; for two poles what ties them.

    Args:
        mass: Masses of cart and poles.
        length: from the first pole's joint to the second's.
        center: Distances of the centers of mass from their joints.
        inertia: Moments of inertia about the centers of mass; zero by default.
    """
    about = mass[1:] * center[1:, [0, 2]].square().sum(1) + (0.0 if inertia is None else inertia)
    moment = mass[1:] * center[1:, 2]
    if len(mass) == 2:
        results = {"mass": mass.sum(), "moment": moment[0], "inertia": about[0]}
    else:
        results = {"mass": mass.sum(), "moment 1": moment[0] + mass[2] * length[0], "moment 2": moment[1]}
        results |= {"inertia 1": about[0] + mass[2] * length[0] ** 2, "inertia 2": about[1]}
        results |= {"tie": moment[1] * length[0]}
    return {name: float(value) for name, value in results.items()}
