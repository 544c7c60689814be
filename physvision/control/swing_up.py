"""Swing-up tasks for controllers: pendulums that hang and are to stand, with bounds, costs and unknown masses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.control.adaptive import AdaptiveModel
from physvision.control.cost import Goal
from physvision.control.mpc import Mpc
from physvision.control.point_to_point import Target
from physvision.core import State
from physvision.estimation import Unknown, Unknowns
from physvision.physics import articulated
from physvision.physics.articulated import Articulation

DT, SUBSTEPS = 0.02, 2
# Weights of squared sines, cosines, velocities, cart position and full controls, tuned on these four tasks.
SINE_WEIGHT, COSINE_WEIGHT, VELOCITY_WEIGHT, POSITION_WEIGHT, CONTROL_WEIGHT = 1.0, 3.0, 0.05, 0.3, 1e-2


def chain_features(state: State) -> Float[Tensor, "n features"]:
    """Return sines and cosines of the rods' absolute angles from hanging, and joint velocities."""
    angles = state.q.cumsum(1)
    return torch.cat([angles.sin(), angles.cos(), state.v], 1)


def cart_features(state: State) -> Float[Tensor, "n features"]:
    """Return the cart's position, sines and cosines of the rods' absolute angles from upright, and velocities."""
    angles = state.q[:, 1:].cumsum(1)
    return torch.cat([state.q[:, :1], angles.sin(), angles.cos(), state.v], 1)


@dataclass(frozen=True)
class SwingUpTask:
    """A mechanism that hangs at first and is to stand upright.

    Attributes:
        engine: Engine of the mechanism.
        features: Features of states, by which the goal is stated.
        target: Features when it stands upright.
        weights: Weights of the squared differences from the target.
        control_limit: Largest control of each actuator; the smallest is its negative.
        initial_position: Positions when it hangs.
        horizon: Steps that a controller should look ahead.
    """

    engine: Articulation
    features: Callable[[State], Tensor]
    target: tuple[float, ...]
    weights: tuple[float, ...]
    control_limit: tuple[float, ...]
    initial_position: tuple[float, ...]
    horizon: int

    @property
    def has_cart(self) -> bool:
        """If true, the rods stand on a cart."""
        return self.features is cart_features

    def reset(self, worlds: int = 1) -> State:
        """Return states that hang at rest."""
        q = torch.tensor([self.initial_position], dtype=torch.float64).expand(worlds, -1)
        return State(q, torch.zeros(worlds, self.engine.nv, dtype=torch.float64))

    def bounds(self) -> tuple[Tensor, Tensor]:
        """Return the smallest and the largest controls."""
        limit = torch.tensor(self.control_limit, dtype=torch.float64)
        return -limit, limit

    def random_controls(self, worlds: int, steps: int, seed: int) -> Float[Tensor, "worlds steps nu"]:
        """Draw initial controls of a search, uniform within the bounds."""
        generator = torch.Generator().manual_seed(seed)
        uniform = 2 * torch.rand(worlds, steps, len(self.control_limit), generator=generator).double() - 1
        return self.bounds()[1] * uniform

    def final_target(self) -> Target:
        """Return the target to stand still, upright."""
        return Target(self.features, torch.tensor(self.target, dtype=torch.float64))

    def goal(self) -> Goal:
        """Return the cost of not standing upright, summed over time."""
        control_weight = CONTROL_WEIGHT / max(self.control_limit) ** 2
        weights = torch.tensor(self.weights, dtype=torch.float64)
        return Goal(self.features, torch.tensor(self.target, dtype=torch.float64), weights, control_weight)

    def controller(self, seed: int) -> Mpc:
        """Return a controller whose model is the engine itself."""
        initial_controls = self.random_controls(1, self.horizon, seed)
        return Mpc(self.engine, self.goal(), self.horizon, self.bounds(), initial_controls=initial_controls)

    def adaptive_model(self, initial_value: float) -> AdaptiveModel:
        """Return a model with unknown masses and lengths, in kg and m, all of them `initial_value` at first."""
        rods = self.engine.nv - int(self.has_cart)
        unknowns = [Unknown(name, [initial_value] * rods, low=0.0) for name in ("mass", "length")]
        if self.has_cart:
            unknowns.append(Unknown("cart", initial_value, low=0.0))
        return AdaptiveModel(self.engine, Unknowns(unknowns), _properties, self.features)

    def upright_cosine(self, state: State) -> Float[Tensor, " batch"]:
        """Return the smallest cosine of a rod's angle from upright."""
        # The target of a cosine is 1 or −1, that of all other features 0.
        target = torch.tensor(self.target, dtype=torch.float64)
        return (self.features(state) * target)[:, target != 0].amin(1)


def _properties(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the leaves of an engine's properties for masses and lengths of rods and, if there is one, of a cart."""
    if "cart" in values:
        return articulated.cartpole_properties(values["cart"], values["length"], values["mass"])
    return articulated.chain_properties(values["length"], values["mass"])


def lowered_floor(cartpole: Articulation) -> dict[str, Tensor]:
    """Return properties of a cartpole for a film of hanging rods: the floor, its first shape, is below them."""
    pose = dict(cartpole.properties.items())["shape_pose"].clone()
    pose[0, 2, 3] = -1.1 * (cartpole.nv - 1)
    return {"shape_pose": pose}


def _rod_chain(rods: int, control_limit: tuple[float, ...], horizon: int) -> SwingUpTask:
    """Build a chain of uniform rods of 1 kg and 1 m that hangs from a fixed hinge."""
    engine = articulated.chain([1.0] * rods, [1.0] * rods, dt=DT, substeps=SUBSTEPS)
    target = (0.0,) * rods + (-1.0,) * rods + (0.0,) * rods
    weights = (SINE_WEIGHT,) * rods + (COSINE_WEIGHT,) * rods + (VELOCITY_WEIGHT,) * rods
    return SwingUpTask(engine, chain_features, target, weights, control_limit, (0.0,) * rods, horizon)


def pendulum() -> SwingUpTask:
    """Swing up one rod of 1 kg and 1 m by a motor of 2 N m that is too weak to lift it at once."""
    return _rod_chain(1, (2.0,), 150)


def double_pendulum() -> SwingUpTask:
    """Swing up two rods of 1 kg and 1 m by a motor of 8 N m in each joint."""
    return _rod_chain(2, (8.0, 8.0), 75)


def acrobot() -> SwingUpTask:
    """Swing up two rods of 1 kg and 1 m by a motor of 8 N m between them alone."""
    return _rod_chain(2, (0.0, 8.0), 125)


def cartpole() -> SwingUpTask:
    """Swing up a rod of 0.1 kg and 1 m on a cart of 1 kg that is pushed by at most 10 N."""
    engine = articulated.cartpole(dt=DT, substeps=SUBSTEPS)
    target = (0.0, 0.0, 1.0, 0.0, 0.0)
    weights = (POSITION_WEIGHT, SINE_WEIGHT, COSINE_WEIGHT, VELOCITY_WEIGHT, VELOCITY_WEIGHT)
    return SwingUpTask(engine, cart_features, target, weights, (10.0,), (0.0, math.pi), 75)


SWING_UP_TASKS: dict[str, Callable[[], SwingUpTask]] = {
    "pendulum": pendulum,
    "cartpole": cartpole,
    "double-pendulum": double_pendulum,
    "acrobot": acrobot,
}
