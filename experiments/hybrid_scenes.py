"""Motions that their engines do not fully explain, for `hybrids.py`: the truth, and what an engine knows of it.

A double pendulum with air drag and dry friction; a cartpole whose motor has slack and whose pole has a wrong mass; a
light ball that air drags and, as it spins, turns aside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from physvision.core import Coordinates, State
from physvision.physics import Engine, Hybrid, PhysicsLayer, articulated, rigid2d

FINE = 10  # steps of the truth to one of the models
DT = 0.02  # s
DOUBLE = torch.float64


class Force(nn.Module):
    """A known law of force."""

    def __init__(self, law: Callable[[State, Tensor | None], Tensor]) -> None:
        super().__init__()
        self.law = law

    def forward(self, state: State, control: Tensor | None = None) -> Tensor:
        """The force in each state."""
        return self.law(state, control)


@dataclass(frozen=True)
class Scene:
    """A motion, what its engine knows of it, and where it is looked at.

    Attributes:
        truth: simulates it with a `FINE`th of the step.
        engine: the engine with its first guess of the parameters.
        values: the true parameters.
        coordinates: Coordinates of the positions.
        bodies: Bodies of the graph.
        middle: Center of the states, positions and then velocities.
        reach: Largest distance of training states from the center.
        controls: the largest, N; none where it is zero.
        force: Size of a large force, N m or N, for all velocities or for each.
        ignored_positions: positions that do not matter, which no network sees.
    """

    truth: Engine
    engine: Callable[[], PhysicsLayer]
    values: Mapping[str, float]
    coordinates: Coordinates
    bodies: int
    middle: tuple[float, ...]
    reach: tuple[float, ...]
    controls: float = 0.0
    force: tuple[float, ...] = (1.0,)
    ignored_positions: tuple[int, ...] = ()

    def states(self, count: int, generator: torch.Generator, beyond: bool = False) -> State:
        """Random states where training states lie, or beyond: the largest velocity is one to two times their reach."""
        selected = 2 * torch.rand(count, len(self.reach), generator=generator, dtype=DOUBLE) - 1
        if beyond:
            fast = selected[:, self.coordinates.size :]
            fraction = 1 + torch.rand(count, 1, generator=generator, dtype=DOUBLE)
            selected[:, self.coordinates.size :] = fraction * fast / fast.abs().amax(1, keepdim=True)
        placed = torch.tensor(self.middle, dtype=DOUBLE) + selected * torch.tensor(self.reach, dtype=DOUBLE)
        q, v = placed.split([self.coordinates.size, len(self.reach) - self.coordinates.size], 1)
        return State(q, v)

    def pushes(self, count: int, steps: int, generator: torch.Generator) -> Tensor | None:
        """Random controls, or none."""
        if not self.controls:
            return None
        return self.controls * (2 * torch.rand(count, steps, 1, generator=generator, dtype=DOUBLE) - 1)

    def moved(self, start: State, steps: int, controls: Tensor | None) -> Tensor:
        """True motion that follows: positions and velocities of all steps, (batch, steps + 1, 2 nv)."""
        fine = None if controls is None else controls.repeat_interleave(FINE, 1)
        with torch.no_grad():
            run = self.truth.rollout(start, FINE * steps, fine)
        return torch.cat([run.q, run.v], -1)[:, ::FINE]


def pendulum() -> Scene:
    """Two rods with air drag and dry friction at their hinges; the engine knows of linear drag."""
    lengths, drag, dry = [0.5, 0.7], 0.1, 0.2

    def rubbed(state: State, control: Tensor | None) -> Tensor:
        return -drag * state.v * state.v.abs() - dry * torch.tanh(state.v / 0.2)

    def leaves(lengths: Tensor, damping: Tensor) -> dict[str, Tensor]:
        return {**articulated.chain_properties(lengths), "joint_damping": damping.expand(2)}

    def engine() -> PhysicsLayer:
        chain = articulated.chain([0.6, 0.6], dt=DT, integrator="runge_kutta_4")
        return PhysicsLayer(chain, {"lengths": [0.6, 0.6], "damping": 0.01}, leaves)

    true = articulated.chain(lengths, dt=DT / FINE, integrator="runge_kutta_4")
    values = {"lengths 0": 0.5, "lengths 1": 0.7}
    reach = (1.0, 1.0, 2.0, 2.0)
    return Scene(
        Hybrid(true, Force(rubbed)), engine, values, Coordinates(2, (0, 1)), 2, (0.0,) * 4, reach, force=(0.3,)
    )


def cartpole() -> Scene:
    """A pole on a cart of known mass whose motor has slack; the pole's mass is first guessed half as large again.

    (Of a cart whose mass is unknown too, a slack motor only tells how heavy it and the pole are beside each other.)
    """
    slack = 1.0

    def lost(state: State, control: Tensor | None) -> Tensor:
        assert control is not None
        return torch.cat([-control.clamp(-slack, slack), torch.zeros_like(control)], 1)

    def leaves(pole_mass: Tensor) -> dict[str, Tensor]:
        return articulated.cartpole_properties(pole_mass.new_ones(()), pole_mass.new_ones(1), pole_mass.unsqueeze(0))

    def engine() -> PhysicsLayer:
        cart = articulated.cartpole(dt=DT, integrator="runge_kutta_4")
        return PhysicsLayer(cart, {"pole_mass": 0.3}, leaves)

    true = articulated.cartpole(masses=[0.2], dt=DT / FINE, integrator="runge_kutta_4")
    values = {"pole_mass": 0.2}
    middle, reach = (0.0, torch.pi, 0.0, 0.0), (3.0, 1.0, 2.0, 2.0)
    return Scene(
        *(Hybrid(true, Force(lost)), engine, values, Coordinates(2, (1,)), 2, middle, reach),
        controls=8.0,
        ignored_positions=(0,),
    )


def ball() -> Scene:
    """A light ball that spins, which air drags and turns aside; the engine knows of no air."""
    drag, sideways = 0.1, 0.02  # N s²/m², and N s² / (rad m)

    def turned(state: State, control: Tensor | None) -> Tensor:
        x, y, spin = state.v.unbind(1)
        slowed = -drag * state.v[:, :2].norm(dim=1, keepdim=True) * state.v[:, :2]
        return pad(slowed + sideways * torch.stack([-spin * y, spin * x], 1), (0, 1))

    def world(dt: float) -> rigid2d.World:
        return rigid2d.World([rigid2d.Circle(0.1, (0.0, 0.0), mass=0.2, name="ball")], gravity=(0, -9.81), dt=dt)

    def leaves(weight: Tensor) -> dict[str, Tensor]:
        return {"gravity": torch.stack([torch.zeros_like(weight), -weight])}

    def engine() -> PhysicsLayer:
        return PhysicsLayer(world(DT), {"weight": 8.0}, leaves)

    middle, reach = (0.0,) * 6, (1.0, 1.0, 3.0, 4.5, 4.5, 10.0)
    return Scene(
        *(Hybrid(world(DT / FINE), Force(turned)), engine, {"weight": 9.81}, Coordinates(3, (2,)), 1, middle, reach),
        force=(2.0, 2.0, 1e-3),
        ignored_positions=(0, 1, 2),
    )


SCENES = {"pendulum": pendulum, "cartpole": cartpole, "ball": ball}
scene_of = cache(lambda name: SCENES[name]())
