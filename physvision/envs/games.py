"""The games that come with the package: poles to swing up."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from physvision.core import State
from physvision.envs.game import Game
from physvision.physics import articulated
from physvision.physics.engine import Engine

_DT, _STEPS, _PERIODS = 0.01, 2, 500
_EFFORT = 1e-3


def _hanging(engine: Engine, down: Tensor) -> Callable[[int, torch.Generator], State]:
    """Starts near the positions `down`, at rest but for noise."""

    def begin(batch: int, generator: torch.Generator) -> State:
        noise = 0.05 * torch.randn(2, batch, engine.nv, generator=generator, dtype=torch.float64)
        return State(down + noise[0], noise[1])

    return begin


def _chain(lengths: int, high: tuple[float, ...]) -> Game:
    """Rods that hang from hinges at zero, rewarded for how high the last one's end is."""
    engine = articulated.chain([1.0] * lengths, [1.0] * lengths, dt=_DT)

    def see(state: State) -> Tensor:
        angles = state.q.cumsum(1)
        return torch.cat([angles.sin(), angles.cos(), state.v], 1)

    def reward(state: State, control: Tensor) -> Tensor:
        return (1 - state.q.cumsum(1).cos().mean(1)) / 2 - _EFFORT * control.square().sum(1)

    down = torch.zeros(lengths, dtype=torch.float64)
    return Game(engine, _hanging(engine, down), see, reward, high, _PERIODS, _STEPS)


def pendulum() -> Game:
    """One rod, whose motor is too weak to lift it at once."""
    return _chain(1, (2.0,))


def double_pendulum() -> Game:
    """Two rods with a motor in each joint."""
    return _chain(2, (8.0, 8.0))


def acrobot() -> Game:
    """Two rods with a motor between them alone."""
    return _chain(2, (0.0, 8.0))


def cartpole() -> Game:
    """A pole on a cart that is pushed; the cart must stay within 2.4 m."""
    engine = articulated.cartpole(dt=_DT)

    def see(state: State) -> Tensor:
        angle = state.q[:, 1:]
        return torch.cat([state.q[:, :1], angle.sin(), angle.cos(), state.v], 1)

    def reward(state: State, control: Tensor) -> Tensor:
        near = 1 - 0.1 * state.q[:, 0].square()
        return near * (1 + state.q[:, 1].cos()) / 2 - _EFFORT * control.square().sum(1)

    down = torch.tensor([0.0, math.pi], dtype=torch.float64)
    begin = _hanging(engine, down)
    return Game(engine, begin, see, reward, (10.0,), _PERIODS, _STEPS, lambda state: state.q[:, 0].abs() > 2.4)


GAMES: dict[str, Callable[[], Game]] = {
    "Pendulum": pendulum,
    "CartPole": cartpole,
    "DoublePendulum": double_pendulum,
    "Acrobot": acrobot,
}
