"""Poles that hang and are to stand: what moves, how hard it may be pushed, and what a controller makes small."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.control.adaptive import Model
from physvision.control.arrival import Target
from physvision.control.cost import Goal
from physvision.control.mpc import Mpc
from physvision.core import State
from physvision.estimation import Unknown, Unknowns
from physvision.physics import articulated
from physvision.physics.articulated import Articulation

DT, _SUBSTEPS = 0.02, 2
# Of the squares of sines and cosines, of rates, and of full controls.
_SINE, _COSINE, _RATE, _EFFORT = 1.0, 3.0, 0.05, 1e-2
_PLACE = 0.3


def chain_features(state: State) -> Float[Tensor, "n features"]:
    """Sines and cosines of rods' angles from where they hang, and rates."""
    angles = state.q.cumsum(1)
    return torch.cat([angles.sin(), angles.cos(), state.v], 1)


def cart_features(state: State) -> Float[Tensor, "n features"]:
    """The cart's place, sines and cosines of rods' angles from upright, and rates."""
    angles = state.q[:, 1:].cumsum(1)
    return torch.cat([state.q[:, :1], angles.sin(), angles.cos(), state.v], 1)


@dataclass(frozen=True)
class Poles:
    """A task.

    Attributes:
        engine: what moves.
        features: of its states.
        wanted: what they are when it stands.
        weights: of their squares.
        high: the largest controls, with their signs the least.
        start: positions to begin with, hanging.
        horizon: steps that a controller should look ahead.
        cart: whether the rods stand on one.
    """

    engine: Articulation
    features: Callable[[State], Tensor]
    wanted: tuple[float, ...]
    weights: tuple[float, ...]
    high: tuple[float, ...]
    start: tuple[float, ...]
    horizon: int
    cart: bool = False

    def begin(self, worlds: int = 1) -> State:
        """Hanging at rest."""
        q = torch.tensor([self.start], dtype=torch.float64).expand(worlds, -1)
        return State(q, torch.zeros(worlds, self.engine.nv, dtype=torch.float64))

    def bounds(self) -> tuple[Tensor, Tensor]:
        """The least and the largest controls."""
        high = torch.tensor(self.high, dtype=torch.float64)
        return -high, high

    def random(self, worlds: int, steps: int, seed: int) -> Float[Tensor, "worlds steps nu"]:
        """Controls to begin a search with, uniform within the bounds."""
        generator = torch.Generator().manual_seed(seed)
        return self.bounds()[1] * (2 * torch.rand(worlds, steps, len(self.high), generator=generator).double() - 1)

    def target(self) -> Target:
        """To stand still."""
        return Target(self.features, torch.tensor(self.wanted, dtype=torch.float64))

    def goal(self) -> Goal:
        """To stand up soon and stay."""
        effort = _EFFORT / max(self.high) ** 2
        weights = torch.tensor(self.weights, dtype=torch.float64)
        return Goal(self.features, torch.tensor(self.wanted, dtype=torch.float64), weights, effort)

    def controller(self, seed: int) -> Mpc:
        """One that knows the engine."""
        first = self.random(1, self.horizon, seed)
        return Mpc(self.engine, self.goal(), self.horizon, self.bounds(), first=first)

    def model(self, start: float) -> Model:
        """The same poles with masses and lengths that are not known, all `start` at first."""
        rods = self.engine.nv - int(self.cart)
        unknowns = [Unknown(name, [start] * rods, low=0.0) for name in ("mass", "length")]
        if not self.cart:
            return Model(
                self.engine,
                Unknowns(unknowns),
                lambda values: articulated.chain_properties(values["length"], values["mass"]),
                self.features,
            )
        return Model(
            self.engine,
            Unknowns([*unknowns, Unknown("cart", start, low=0.0)]),
            lambda values: articulated.cartpole_properties(values["cart"], values["length"], values["mass"]),
            self.features,
        )

    def standing(self, state: State) -> Float[Tensor, " batch"]:
        """The least cosine of a rod's angle from upright."""
        # What is wanted of the cosines is 1 or −1, of all else 0.
        wanted = torch.tensor(self.wanted, dtype=torch.float64)
        return (self.features(state) * wanted)[:, wanted != 0].amin(1)


def with_deep_floor(cart: Articulation) -> dict[str, Tensor]:
    """Properties of a cartpole for a film of rods that hang: the floor, its first shape, is below them."""
    pose = dict(cart.properties.items())["shape_pose"].clone()
    pose[0, 2, 3] = -1.1 * (cart.nv - 1)
    return {"shape_pose": pose}


def _chain(rods: int, high: tuple[float, ...], horizon: int) -> Poles:
    engine = articulated.chain([1.0] * rods, [1.0] * rods, dt=DT, substeps=_SUBSTEPS)
    wanted = (0.0,) * rods + (-1.0,) * rods + (0.0,) * rods
    weights = (_SINE,) * rods + (_COSINE,) * rods + (_RATE,) * rods
    return Poles(engine, chain_features, wanted, weights, high, (0.0,) * rods, horizon)


def pendulum() -> Poles:
    """A rod of 1 kg and 1 m, whose motor of 2 N m is too weak to lift it at once."""
    return _chain(1, (2.0,), 150)


def double_pendulum() -> Poles:
    """Two such rods with motors of 8 N m."""
    return _chain(2, (8.0, 8.0), 75)


def acrobot() -> Poles:
    """Two such rods, with a motor of 8 N m between them alone."""
    return _chain(2, (0.0, 8.0), 125)


def cartpole() -> Poles:
    """A rod of 0.1 kg and 1 m on a cart of 1 kg, pushed by at most 10 N."""
    engine = articulated.cartpole(dt=DT, substeps=_SUBSTEPS)
    weights = (_PLACE, _SINE, _COSINE, _RATE, _RATE)
    return Poles(engine, cart_features, (0.0, 0.0, 1.0, 0.0, 0.0), weights, (10.0,), (0.0, math.pi), 75, True)


POLES: dict[str, Callable[[], Poles]] = {
    "pendulum": pendulum,
    "cartpole": cartpole,
    "double-pendulum": double_pendulum,
    "acrobot": acrobot,
}
