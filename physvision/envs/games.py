"""The games that come with the package: poles to swing up, links to raise, an ant that walks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from physvision.core import State
from physvision.envs.extras import needed
from physvision.envs.game import Game
from physvision.physics import articulated
from physvision.physics.engine import Engine

_DT, _STEPS, _PERIODS = 0.01, 2, 500
_EFFORT = 1e-3
_LINK, _POINT = 0.5, 1e-9  # m; kg m², of what should be a point
_ANT_PERIOD, _ANT_STEP = 0.05, 0.01  # s


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

    def reward(start: State, end: State, control: Tensor) -> Tensor:
        return (1 - end.q.cumsum(1).cos().mean(1)) / 2 - _EFFORT * control.square().sum(1)

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

    def reward(start: State, end: State, control: Tensor) -> Tensor:
        near = 1 - 0.1 * end.q[:, 0].square()
        return near * (1 + end.q[:, 1].cos()) / 2 - _EFFORT * control.square().sum(1)

    down = torch.tensor([0.0, math.pi], dtype=torch.float64)
    begin = _hanging(engine, down)
    return Game(engine, begin, see, reward, (10.0,), _PERIODS, _STEPS, lambda seen: seen[..., 0].abs() > 2.4)


def links(count: int) -> Game:
    """Links in a row, horizontal and at rest, whose motors are to bring the tip as high as it reaches.

    The task of *Efficient Differentiable Simulation of Articulated Bodies* (ICML 2021): links of 0.5 m with a mass at
    the far end of each, motors of at most 10 N m in all joints, 100 steps of 1/60 s. The reward of a step is by how
    much the square of the tip's distance from the highest point falls, so that the largest of an episode is that square
    at the start, 0.5 count² m².
    """
    masses = [1.0] + [2.16] * (count - 1)
    masses[-1] += 0.01
    bodies = [
        articulated.Body(
            f"link {k}",
            f"link {k - 1}" if k else None,
            [articulated.Joint("revolute", (1, 0, 0))],
            mass=mass,
            center_of_mass=(0, _LINK, 0),
            inertia=(_POINT,) * 3,
            position=(0, _LINK if k else 0, 0),
        )
        for k, mass in enumerate(masses)
    ]
    engine = articulated.tree(bodies, dt=1 / 60, gravity=(0, 0, -9.8))

    def begin(batch: int, generator: torch.Generator) -> State:
        return State(*torch.zeros(2, batch, count, dtype=torch.float64))

    def ends(state: State) -> tuple[Tensor, Tensor]:
        angles = state.q.cumsum(1)
        return _LINK * angles.cos().cumsum(1), _LINK * angles.sin().cumsum(1)

    def see(state: State) -> Tensor:
        return torch.cat([state.v, *ends(state)], 1)

    def distance(state: State) -> Tensor:
        ahead, up = ends(state)
        return ahead[:, -1].square() + (up[:, -1] - count * _LINK).square()

    def reward(start: State, end: State, control: Tensor) -> Tensor:
        return distance(start) - distance(end)

    # What turns by more than half a turn in a step has no motion that the step tells, and soon none at all.
    return Game(engine, begin, see, reward, (10.0,) * count, 100, timed=True, fastest=math.pi / engine.dt)


def ant(compliant: bool = False, integrator: str = "runge_kutta_4") -> Game:
    """Gymnasium's ant, with our contact: a torso on four legs of two joints, rewarded for its way along x.

    Motors of at most 150 N m, held for 0.05 s, five steps of the engine; an episode has 1,000 such steps. The reward is
    the speed along x, less half the square of the controls, plus one; it is over where the torso leaves 0.2 … 1 m. What
    is seen is the position without x and y, and a twentieth of the velocity.

    Args:
        compliant: whether ground and stops yield as MuJoCo's.
        integrator: of its steps then; by Runge–Kutta's, which gymnasium has, the game is what MuJoCo makes of it.
    """
    gymnasium = needed("gymnasium", "environments")
    file = Path(str(gymnasium.__file__)).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    if compliant:
        engine = articulated.load(file, dt=_ANT_STEP, contact="compliant", integrator=integrator)
    else:
        engine = articulated.load(file, dt=_ANT_STEP)
    steps = round(_ANT_PERIOD / _ANT_STEP)
    # The file's own start has its knees beyond their stops.
    stand = torch.tensor([0.0, 0.0, 0.75, 1.0, 0.0, 0.0, 0.0, *(0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0)]).double()

    def begin(batch: int, generator: torch.Generator) -> State:
        turned = 0.2 * torch.rand(batch, engine.nv, generator=generator, dtype=torch.float64) - 0.1
        v = 0.1 * torch.randn(batch, engine.nv, generator=generator, dtype=torch.float64)
        start = State(engine.integrate(stand.expand(batch, -1), turned), v)
        return start if compliant else engine.separated(start)

    def see(state: State) -> Tensor:
        return torch.cat([state.q[:, 2:], 0.05 * state.v], 1)

    def reward(start: State, end: State, control: Tensor) -> Tensor:
        speed = (end.q[:, 0] - start.q[:, 0]) / _ANT_PERIOD
        return speed - 0.5 * control.square().sum(1) + 1.0

    def lost(seen: Tensor) -> Tensor:
        return (seen[..., 0] < 0.2) | (seen[..., 0] > 1.0)

    def vary(batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Other friction, stops that are up to 0.1 rad further out, and, where contact is hard, shapes that bounce."""
        known = dict(engine.properties.items())
        drawn = torch.rand(batch, 2 + 2 * engine.nu, generator=generator, dtype=torch.float64)
        outward = torch.tensor([-0.1, 0.1], dtype=torch.float64) * drawn[:, 2:].unflatten(1, (engine.nu, 2))
        limits = known["joint_limits"].repeat(batch, 1, 1)
        limits[:, -engine.nu :] += outward
        varied = {"joint_limits": limits, "friction": (0.7 + 0.6 * drawn[:, 1:2]) * known["friction"]}
        if not compliant:
            varied["restitution"] = (0.3 * drawn[:, :1]).expand(-1, len(known["restitution"]))
        return varied

    touching = partial(_touching, engine)
    return Game(engine, begin, see, reward, (1.0,) * engine.nu, 1000, steps, lost, touching=touching, vary=vary)


def _touching(engine: articulated.Articulation, state: State) -> Tensor:
    """Which shapes touch something, and which joints are at a stop."""
    listed = engine.contacts(state)
    shapes = torch.zeros(state.batch, len(engine.geometry) + 1, dtype=torch.bool)
    for each in (listed.first, listed.second):
        shapes.scatter_(1, torch.where(listed.present, each, len(engine.geometry)).long(), True)
    low, high = dict(engine.properties.items())["joint_limits"][-engine.nu :].unbind(1)
    joints = state.q[:, -engine.nu :]
    return torch.cat([shapes[:, :-1], (joints < low + 1e-6) | (joints > high - 1e-6)], 1)


GAMES: dict[str, Callable[[], Game]] = {
    "Pendulum": pendulum,
    "CartPole": cartpole,
    "DoublePendulum": double_pendulum,
    "Acrobot": acrobot,
    **{f"Links{count}": partial(links, count) for count in range(1, 8)},
    "Ant": ant,
    "CompliantAnt": partial(ant, compliant=True),
}
