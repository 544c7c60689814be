"""The task to swing a pole on a cart up and keep it upright, observed as a state or as camera frames."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.pixels.renderer import CartPoleRenderer, SceneVariation
from physvision.control.policies import FeedbackTask
from physvision.core import State
from physvision.physics.articulated import scenes

DT, FRAME_SKIP = 0.01, 2
CONTROL_PERIOD_S = DT * FRAME_SKIP
RAIL_HALF_LENGTH_M, POLE_LENGTH_M = 0.4, 0.4
UPRIGHT_TOLERANCE_RAD = 0.2
TIP_SPEED_WEIGHT = 0.01  # weight of the tip's squared speed in the loss, s²/m
COLOR_GAIN_RANGE, NOISE_RANGE = 0.1, 0.1  # largest variations of light and of textures
OBSERVATION_GAIN = 2.0  # factor of differences from the empty scene in an observation


@dataclass
class StartDistribution:
    """Distribution of initial states: some poles hang at rest, the others are anywhere around upright, and moving.

    Attributes:
        hanging_fraction: Fraction of poles that hang, within ±0.1 rad, with the cart within ±0.05 m.
        max_angle: Largest angle of the others from upright, in rad.
        max_rate: Largest angular velocity of the others, in rad/s.
    """

    hanging_fraction: float = 1.0
    max_angle: float = math.pi
    max_rate: float = 6.0

    def sample(self, batch: int, generator: torch.Generator) -> State:
        """Draw the initial states of episodes."""
        uniform = 2 * torch.rand(batch, 4, generator=generator) - 1
        hangs = torch.rand(batch, generator=generator) < self.hanging_fraction
        x = uniform[:, 0] * torch.where(hangs, 0.05, 0.2)
        angle = torch.where(hangs, math.pi + 0.1 * uniform[:, 1], self.max_angle * uniform[:, 1])
        velocities = uniform[:, 2:] * torch.tensor([0.5, self.max_rate]) * ~hangs[:, None]
        return State(torch.stack([x, angle], 1), velocities)


class CartPoleTask(FeedbackTask):
    """Hold the tip of the pole straight above the middle of the rail.

    A goal holds the appearance of a world: gains of the three color channels less 1, and strengths of the noise on
    wall, cart and pole. One control step is 0.02 s.

    | Action | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 | target velocity of the cart's servo, tanh of the policy's output | m/s | −1 … 1 |

    Observation: that of `StateCartPoleTask` or `PixelCartPoleTask`. Loss: distance of the tip from its target, in m,
    + 0.01 · its squared speed. Start: `starts`. Termination: none. Truncation: after `episode_steps`.

    Attributes:
        starts: Distribution of initial states.
        variation_fraction: Fraction of the worlds whose light and textures vary by 10 %.
    """

    frame_skip = FRAME_SKIP

    def __init__(self, episode_steps: int = 150, variation_fraction: float = 0.5) -> None:
        """Set up the scene.

        Args:
            episode_steps: Control steps of an episode, of 0.02 s.
            variation_fraction: Fraction of the worlds whose light and textures vary by 10 %.
        """
        self.engine, self.episode_steps = scenes.load("cart", DT), episode_steps
        self.starts, self.variation_fraction = StartDistribution(), variation_fraction

    def reset(self, batch: int, generator: torch.Generator) -> tuple[State, Tensor]:
        """Draw initial states and appearances."""
        state = self.starts.sample(batch, generator)
        uniform = 2 * torch.rand(batch, 6, generator=generator) - 1
        varies = torch.rand(batch, 1, generator=generator) < self.variation_fraction
        return state, uniform * torch.tensor([COLOR_GAIN_RANGE] * 3 + [NOISE_RANGE] * 3) * varies

    def act(self, state: State, output: Tensor) -> Tensor:
        """Return the target velocity of the cart's servo."""
        return output.tanh()

    def losses(self, state: State, goal: Tensor) -> Tensor:
        """Return the tip's distance from its target, in m, plus a hundredth of its squared speed."""
        x, angle = state.q.unbind(1)
        velocity, rate = state.v.unbind(1)
        dx, dz = x + POLE_LENGTH_M * angle.sin(), POLE_LENGTH_M * angle.cos() - POLE_LENGTH_M
        # Smooth at the target, within a millimeter.
        distance = (dx.square() + dz.square() + 1e-6).sqrt()
        tip_vx, tip_vz = velocity + POLE_LENGTH_M * rate * angle.cos(), POLE_LENGTH_M * rate * angle.sin()
        return distance + TIP_SPEED_WEIGHT * (tip_vx.square() + tip_vz.square())


class StateCartPoleTask(CartPoleTask):
    """`CartPoleTask` observed as a state, scaled to order one.

    | Observation | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 | position of the cart | 0.4 m | −1 … 1 |
    | 1 | sine of the pole's angle from upright | 1 | −1 … 1 |
    | 2 | cosine of the pole's angle from upright | 1 | −1 … 1 |
    | 3 | velocity of the cart | m/s | unbounded |
    | 4 | angular velocity of the pole | 5 rad/s | unbounded |
    """

    obs_size = 5

    def observe(self, state: State, goal: Tensor) -> Tensor:
        """Return the scaled state."""
        x, angle = state.q.unbind(1)
        velocity, rate = state.v.unbind(1)
        return torch.stack([x / RAIL_HALF_LENGTH_M, angle.sin(), angle.cos(), velocity, 0.2 * rate], 1)


class PixelCartPoleTask(CartPoleTask):
    """`CartPoleTask` observed as a camera frame in each control step, less the empty scene.

    | Observation | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 … 3 · height · width − 1 | twice the difference from the empty scene: channels, rows, columns | 1 | −2 … 2 |

    Attributes:
        renderer: Camera with the scene.
        through_camera: If true, gradients pass from a frame to the state that it shows.
        pixel_noise: Standard deviation of the noise on a frame, whose pixels are 0 to 1.
        noise_seed: Seed of the texture noise.
    """

    def __init__(
        self,
        height: int,
        width: int,
        episode_steps: int = 150,
        variation_fraction: float = 0.5,
        through_camera: bool = True,
    ) -> None:
        """Set up the scene and the camera.

        Args:
            height: Height of a frame, in pixels.
            width: Width of a frame, in pixels.
            episode_steps: Control steps of an episode, of 0.02 s.
            variation_fraction: Fraction of the worlds whose light and textures vary by 10 %.
            through_camera: If true, gradients pass from a frame to the state that it shows.
        """
        super().__init__(episode_steps, variation_fraction)
        self.renderer, self.through_camera = CartPoleRenderer(self.engine, height, width), through_camera
        self.pixel_noise = 0.0
        self.noise_seed = 11

    def frames(self, state: State, goal: Tensor) -> Float[Tensor, "batch 3 height width"]:
        """Render the camera's frames."""
        if not self.through_camera:
            state = state.detach()
        varies = bool(goal.any())
        return self.renderer(state, SceneVariation(1 + goal[:, :3], goal[:, 3:], self.noise_seed) if varies else None)

    def observe(self, state: State, goal: Tensor) -> Tensor:
        """Return the scaled difference of the frame from the empty scene."""
        frames = self.frames(state, goal)
        if self.pixel_noise:
            frames = frames + self.pixel_noise * torch.randn_like(frames)
        return (OBSERVATION_GAIN * (frames - self.renderer.background.to(frames))).flatten(1)


def upright_angle(state: State) -> Float[Tensor, " batch"]:
    """Return the pole's angle from upright, in rad, between −π and π."""
    return torch.remainder(state.q[:, 1] + math.pi, 2 * math.pi) - math.pi


def is_upright(angles: Float[Tensor, "batch times"], num_steps: int) -> Bool[Tensor, " batch"]:
    """Return true for poles that are upright at all of the last steps."""
    return (angles[:, -num_steps:].abs() < UPRIGHT_TOLERANCE_RAD).all(1)
