"""The base class of learning algorithms, which advance in increments and can be saved between any two of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.envs import Environment, VectorEnv
from physvision.learning.actor import Actor


class Learner(ABC):
    """A learning algorithm with the environment that it is trained on.

    Attributes:
        env: Environment to train on.
        worlds: Worlds of the environment that collect experience.
        actor: Current policy.
        generator: Random generator of everything but the initial weights, drawn with torch's global generator.
        env_steps: Environment steps so far, summed over all worlds.
        dtype: Floating-point type of networks and observations.
    """

    actor: Actor
    dtype: torch.dtype = torch.float32

    def __init__(self, env: Environment, num_envs: int, seed: int) -> None:
        """Reset the worlds and seed the random generators.

        Args:
            env: Environment to train on.
            num_envs: Number of worlds.
            seed: Seed of all random numbers.
        """
        torch.manual_seed(seed)
        self.env, self.generator, self.env_steps = env, torch.Generator().manual_seed(seed), 0
        self.worlds = VectorEnv(env, num_envs, self.generator)

    @abstractmethod
    def advance(self) -> None:
        """Collect one increment of experience and learn from it."""

    @abstractmethod
    def metrics(self) -> dict[str, float]:
        """Return scalars to log, by name."""

    @abstractmethod
    def modules(self) -> dict[str, Any]:
        """Return everything that has a `state_dict`, by name."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything that is needed to resume with the same results."""
        modules = {name: module.state_dict() for name, module in ({"worlds": self.worlds} | self.modules()).items()}
        rng_states = {"generator": self.generator.get_state(), "torch": torch.get_rng_state()}
        return {"env_steps": self.env_steps, "modules": modules, "rng_states": rng_states}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        self.env_steps = state["env_steps"]
        for name, module in ({"worlds": self.worlds} | self.modules()).items():
            module.load_state_dict(state["modules"][name])
        self.generator.set_state(state["rng_states"]["generator"])
        torch.set_rng_state(state["rng_states"]["torch"])


@torch.no_grad()
def evaluate(env: Environment, actor: Actor, episodes: int, seed: int) -> Float[Tensor, " episodes"]:
    """Return the episode rewards of the deterministic policy; failed worlds are left out.

    Args:
        env: Environment to simulate.
        actor: Policy to evaluate.
        episodes: Number of episodes, simulated side by side.
        seed: Seed of the initial states.
    """
    worlds = VectorEnv(env, episodes, torch.Generator().manual_seed(seed))
    active, valid = torch.ones(episodes, dtype=torch.bool), torch.ones(episodes, dtype=torch.bool)
    episode_rewards, limit = torch.zeros(episodes, dtype=torch.float64), torch.tensor(env.action_limit)
    for _ in range(env.max_episode_steps):
        transitions = worlds.step(actor.deterministic_action(worlds.observations().float()) * limit)
        episode_rewards += torch.where(active, transitions.reward, 0.0)
        valid &= ~(active & transitions.failed)
        active &= ~transitions.terminated
        if not bool(active.any()):
            break
    return episode_rewards[valid]
