"""To swing the pendulum up and keep it there, as told by the state or by frames."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.pixels.view import Looks, View
from physvision.control.policies import Task
from physvision.core import State
from physvision.physics.articulated import scenes

DT, STEPS = 0.01, 2
RAIL, POLE = 0.4, 0.4  # m, to either side and long
UPRIGHT = 0.2  # rad
_SPEED = 0.01  # weight of the square of the tip's speed, s²/m
_GAINS, _STAINS = 0.1, 0.1
_ENLARGED = 2.0  # by which differences from the empty scene are multiplied


@dataclass
class Starts:
    """Where episodes start: some hang at rest, the others are anywhere around upright, and moving.

    Attributes:
        hanging: the share that hangs, within ±0.1 rad, the cart within ±0.05 m.
        angle: up to which the others lean, rad.
        rate: up to which they turn, rad/s.
    """

    hanging: float = 1.0
    angle: float = math.pi
    rate: float = 6.0

    def draw(self, batch: int, generator: torch.Generator) -> State:
        """States of so many worlds."""
        about = 2 * torch.rand(batch, 4, generator=generator) - 1
        hangs = torch.rand(batch, generator=generator) < self.hanging
        x = about[:, 0] * torch.where(hangs, 0.05, 0.2)
        angle = torch.where(hangs, math.pi + 0.1 * about[:, 1], self.angle * about[:, 1])
        speeds = about[:, 2:] * torch.tensor([0.5, self.rate]) * ~hangs[:, None]
        return State(torch.stack([x, angle], 1), speeds)


class Upright(Task):
    """The pole's end is to be straight above the middle of the rail.

    An aim holds how a world looks: gains of the three colours, and strengths of the three stains, less those of the
    scene as it is.
    """

    steps = STEPS

    def __init__(self, periods: int = 150, varied: float = 0.5) -> None:
        """Set up the scene.

        Args:
            periods: decisions in an episode, of 0.02 s.
            varied: share of the worlds whose light and textures are varied by 10 %.
        """
        self.engine, self.periods = scenes.load("cart", DT), periods
        self.starts, self.varied = Starts(), varied

    def begin(self, batch: int, generator: torch.Generator) -> tuple[State, Tensor]:
        """States as `starts` has them, and looks."""
        state = self.starts.draw(batch, generator)
        about = 2 * torch.rand(batch, 6, generator=generator) - 1
        varied = torch.rand(batch, 1, generator=generator) < self.varied
        return state, about * torch.tensor([_GAINS] * 3 + [_STAINS] * 3) * varied

    def act(self, state: State, output: Tensor) -> Tensor:
        """The velocity that the servo is to follow, as a force: the control of MJCF's is multiplied by its gain."""
        return output.tanh()

    def losses(self, state: State, aim: Tensor) -> Tensor:
        """How far the pole's end is from where it is to be, m, and a hundredth of the square of its speed."""
        x, angle = state.q.unbind(1)
        speed, rate = state.v.unbind(1)
        across, up = x + POLE * angle.sin(), POLE * angle.cos() - POLE
        # Smooth at the aim, within a millimetre.
        distance = (across.square() + up.square() + 1e-6).sqrt()
        along = speed + POLE * rate * angle.cos()
        return distance + _SPEED * (along.square() + (POLE * rate * angle.sin()).square())


class FromState(Upright):
    """The policy is told the state: place, sine, cosine, velocity and rate, each of order one."""

    sensors = 5

    def sense(self, state: State, aim: Tensor) -> Tensor:
        """The state."""
        x, angle = state.q.unbind(1)
        speed, rate = state.v.unbind(1)
        return torch.stack([x / RAIL, angle.sin(), angle.cos(), speed, 0.2 * rate], 1)


class FromFrames(Upright):
    """The policy is shown a frame in each decision, less the empty scene."""

    def __init__(
        self, height: int, width: int, periods: int = 150, varied: float = 0.5, through_camera: bool = True
    ) -> None:
        """Set up the scene and the camera.

        Args:
            height: of a frame, pixels.
            width: of a frame, pixels.
            periods: as in `Upright`.
            varied: as in `Upright`.
            through_camera: whether what the frame would show of another state counts in the gradient.
        """
        super().__init__(periods, varied)
        self.view, self.through_camera = View(self.engine, height, width), through_camera
        self.noise = 0.0
        self.stain_seed = 11

    def frames(self, state: State, aim: Tensor) -> Float[Tensor, "batch 3 height width"]:
        """What the camera sees."""
        if not self.through_camera:
            state = state.detach()
        looks = None if not bool(aim.any()) else Looks(1 + aim[:, :3], aim[:, 3:], self.stain_seed)
        return self.view(state, looks)

    def sense(self, state: State, aim: Tensor) -> Tensor:
        """The frame's pixels."""
        frames = self.frames(state, aim)
        if self.noise:
            frames = frames + self.noise * torch.randn_like(frames)
        return (_ENLARGED * (frames - self.view.backdrop.to(frames))).flatten(1)


def leaning(state: State) -> Float[Tensor, " batch"]:
    """Angles from upright, between −π and π."""
    return torch.remainder(state.q[:, 1] + math.pi, 2 * math.pi) - math.pi


def stays_up(angles: Float[Tensor, "batch times"], last: int) -> Bool[Tensor, " batch"]:
    """Whether a pole is upright at all of the last times."""
    return (angles[:, -last:].abs() < UPRIGHT).all(1)
