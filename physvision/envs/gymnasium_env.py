"""Gymnasium adapters of this package's environments: one world or a vector of worlds. Actions are in [−1, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from physvision.core import InputError, State
from physvision.envs.catalog import ENVIRONMENTS
from physvision.envs.environment import Environment, require_package
from physvision.envs.rendering import RENDER_MODES, EnvironmentRenderer, Window, check_render_mode
from physvision.envs.vector_env import Transitions, VectorEnv

require_package("gymnasium", "environments")

import gymnasium  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402
from gymnasium.vector.utils import batch_space  # noqa: E402


def _spaces(env: Environment) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Return the observation space of one world, unbounded, and its action space, [−1, 1]."""
    obs_size = VectorEnv(env, 1, torch.Generator().manual_seed(0)).observations().shape[1]
    return (
        gymnasium.spaces.Box(-np.inf, np.inf, (obs_size,), np.float32),
        gymnasium.spaces.Box(-1.0, 1.0, (len(env.action_limit),), np.float32),
    )


def _to_float32(obs: torch.Tensor) -> NDArray[np.float32]:
    """Convert observations to single precision, clipped to its range."""
    limit = float(np.finfo(np.float32).max)
    return obs.clamp(-limit, limit).numpy().astype(np.float32)


class GymnasiumVectorEnv(gymnasium.vector.VectorEnv):
    """Many worlds of an environment with Gymnasium's vector interface, simulated in one launch.

    Spaces are those of `GymnasiumEnv`, batched. A finished world is reset in the next step (`NEXT_STEP`). `render`
    returns a frame of 480 × 640 for each world.
    """

    metadata = {"render_modes": ["rgb_array"], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  as gymnasium

    def __init__(self, env: Environment | str, num_envs: int = 1, render_mode: str | None = None) -> None:
        self.env, self.num_envs = ENVIRONMENTS[env]() if isinstance(env, str) else env, num_envs
        self.render_mode = check_render_mode(render_mode)
        self._renderer: EnvironmentRenderer | None = None
        self.metadata = {**self.metadata, "render_fps": round(1 / (self.env.engine.dt * self.env.frame_skip))}
        self.single_observation_space, self.single_action_space = _spaces(self.env)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.worlds: VectorEnv | None = None
        self._finished = np.zeros(num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode in every world."""
        super().reset(seed=seed)
        return self.restart(self.np_random), {}

    def restart(self, random: np.random.Generator) -> NDArray[np.float32]:
        """Reset all worlds with a seed that is drawn from a random generator, and return their observations."""
        self.worlds = VectorEnv(self.env, self.num_envs, torch.Generator().manual_seed(int(random.integers(2**31))))
        self._finished[:] = False
        if self._renderer is not None:
            self._renderer.reset(np.ones(self.num_envs, bool))
        return _to_float32(self.worlds.observations())

    def simulate(self, actions: Any) -> tuple[VectorEnv, Transitions]:
        """Step all worlds without any reset, and return them with their transitions."""
        if self.worlds is None:
            raise InputError("step: call reset() before the first step")
        actions, limit = np.asarray(actions, float), np.asarray(self.env.action_limit)
        if actions.shape != (self.num_envs, len(limit)) or not np.isfinite(actions).all():
            raise InputError(f"action: expected finite numbers of shape {(self.num_envs, len(limit))}, got {actions}")
        return self.worlds, self.worlds.step(torch.as_tensor(actions * limit, dtype=self.worlds.state.q.dtype))

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Simulate one environment step in every world; worlds that finished in the previous step are reset instead."""
        reset_mask = self._finished
        worlds, transitions = self.simulate(actions)
        worlds.reset(torch.as_tensor(reset_mask))
        if self._renderer is not None:
            self._renderer.reset(reset_mask)
        obs = worlds.observations() if reset_mask.any() else transitions.next_obs
        reward = np.where(reset_mask, 0, transitions.reward.numpy())
        terminated, truncated, failed = (
            value.numpy() & ~reset_mask for value in (transitions.terminated, transitions.truncated, transitions.failed)
        )
        self._finished = terminated | truncated
        return _to_float32(obs), reward, terminated, truncated, {"failed": failed}

    def render(self) -> tuple[Any, ...] | None:
        """Render every world, if the render mode is "rgb_array"."""
        return None if self.render_mode is None else tuple(self.render_world(k) for k in range(self.num_envs))

    def render_world(self, world: int) -> NDArray[np.uint8]:
        """Render one world, whatever the render mode."""
        if self.worlds is None:
            raise InputError("render: call reset() before the first frame")
        if self._renderer is None:
            self._renderer = EnvironmentRenderer(self.env, self.num_envs)
        state = State(self.worlds.state.q[world : world + 1], self.worlds.state.v[world : world + 1])
        return self._renderer.render(world, state, int(self.worlds.elapsed_steps[world]))


class GymnasiumEnv(gymnasium.Env):
    """One world of an environment with Gymnasium's interface.

    Observations are those of the environment in single precision, without bounds. Actions are its controls divided by
    `Environment.action_limit`, in [−1, 1]. `info["failed"]` is true where the engine could not simulate a step. Render
    modes: "rgb_array", whose frames have 480 × 640 pixels, and "human", a window.
    """

    metadata = {"render_modes": list(RENDER_MODES)}  # noqa: RUF012  declared as in gymnasium

    def __init__(self, env: Environment | str, render_mode: str | None = None) -> None:
        self._vector_env = GymnasiumVectorEnv(env)
        self.render_mode = check_render_mode(render_mode)
        self.metadata = {**self.metadata, "render_fps": self._vector_env.metadata["render_fps"]}
        self._window: Window | None = None
        self.observation_space = self._vector_env.single_observation_space
        self.action_space = self._vector_env.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode."""
        super().reset(seed=seed)
        obs = self._vector_env.restart(self.np_random)[0]
        self._show()
        return obs, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Simulate one environment step."""
        _, transitions = self._vector_env.simulate(np.asarray(action, float)[None])
        terminated, truncated, failed = map(bool, (transitions.terminated, transitions.truncated, transitions.failed))
        obs, reward = _to_float32(transitions.next_obs)[0], float(transitions.reward)
        self._show()
        return obs, reward, terminated, truncated, {"failed": failed}

    def render(self) -> Any:
        """Render the world, if the render mode is "rgb_array"; a window is drawn by `step` and `reset`."""
        return self._vector_env.render_world(0) if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def _show(self) -> None:
        if self.render_mode != "human":
            return
        if self._window is None:
            self._window = Window("physvision")
        self._window.show(self._vector_env.render_world(0))


def register() -> None:
    """Register every environment with Gymnasium as physvision/NAME-v0."""
    for name in ENVIRONMENTS:
        if f"physvision/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"physvision/{name}-v0",
                entry_point="physvision.envs.gymnasium_env:GymnasiumEnv",
                vector_entry_point="physvision.envs.gymnasium_env:GymnasiumVectorEnv",
                kwargs={"env": name},
            )
