"""PPO of stable-baselines3 on the pixels that `physvision fit-policy` learns from, for comparison.

The same scene, camera, starts that widen and looks; three frames at once; the loss of each period, with its sign
changed, is the reward. The network has the layout of the policy that learns by gradients. Settings are PPO's own but
for the rollouts, which are whole episodes of eight worlds. It ends after so many seconds of processor time.

    pip install stable-baselines3
    python experiments/pixels_ppo.py [--seconds 3600] [--sees frames] [--seed 0]
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
import torch
from jsonargparse import auto_cli
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor, nn

from physvision.control.pixels import PixelCartPoleTask, StartDistribution, StateCartPoleTask, is_upright, upright_angle
from physvision.core import State
from physvision.trainers.pixels import course_at

WORLDS, HEIGHT, WIDTH, CONTEXT_FRAMES = 8, 32, 96, 3
NEEDED, WIDENING = 0.5, 200


class Worlds(VecEnv):
    """Poles side by side, whose episodes begin and end together."""

    def __init__(self, sees: str, seed: int, evaluation: bool = False) -> None:
        self.task = PixelCartPoleTask(HEIGHT, WIDTH) if sees == "frames" else StateCartPoleTask()
        self.sees, self.evaluation, self.seed_now = sees, evaluation, seed
        size = (CONTEXT_FRAMES * 3, HEIGHT, WIDTH) if sees == "frames" else (StateCartPoleTask.obs_size,)
        box = gymnasium.spaces.Box(-np.inf, np.inf, size, np.float32)
        self.progress, self.standing, self.episodes = 0.0, 0.0, 0
        super().__init__(20 if evaluation else WORLDS, box, gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32))

    @torch.no_grad()
    def reset(self) -> np.ndarray:
        """New starts, as wide as they are."""
        if self.evaluation:
            self.task.starts, self.task.variation_fraction, self.task.episode_steps = StartDistribution(), 0.0, 750
        else:
            course_at(self.task, self.progress)
        self.seed_now += 1
        self.state, self.goal = self.task.reset(self.num_envs, torch.Generator().manual_seed(self.seed_now))
        self.time, self.observed = 0, None
        return self._observed()

    def step_async(self, actions: np.ndarray) -> None:
        """Keep what is to be done."""
        self.actions = torch.as_tensor(actions, dtype=torch.float32).clamp(-1, 1)

    @torch.no_grad()
    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Advance all worlds by one period."""
        held = self.actions.unsqueeze(1).expand(-1, self.task.frame_skip, -1)
        self.state = self.task.engine.rollout(self.state, self.task.frame_skip, held).final
        self.time += 1
        rewards = -self.task.losses(self.state, self.goal).numpy()
        ends = self.time >= self.task.episode_steps
        observed, record = self._observed(), [{} for _ in range(self.num_envs)]
        if ends:
            # The episode has no end of its own: what would follow counts.
            record = [{"terminal_observation": entry, "TimeLimit.truncated": True} for entry in observed]
            stands = float((upright_angle(self.state).abs() < 0.3).float().mean())
            self.standing += 0.1 * (stands - self.standing)
            self.episodes += self.num_envs
            if self.standing >= NEEDED or self.progress > 0:
                self.progress = min(1.0, self.progress + 1 / WIDENING)
            observed = self.reset()
        return observed, rewards, np.full(self.num_envs, ends), record

    def _observed(self) -> np.ndarray:
        sensed = self.task.observe(self.state, self.goal)
        if self.sees == "state":
            return sensed.numpy()
        new = sensed.unflatten(1, (3, HEIGHT, WIDTH))
        old = new.repeat(1, CONTEXT_FRAMES, 1, 1) if self.observed is None else self.observed
        self.observed = torch.cat([new, old[:, :-3]], 1)
        return self.observed.numpy().copy()

    def close(self) -> None:
        """Close the environments, which hold no resources."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Attribute of every selected world."""
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all worlds."""
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **options: Any) -> list[Any]:
        """Raise an error: there are no such methods."""
        raise NotImplementedError(method_name)

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for every world."""
        return [False] * self.num_envs


class Eye(BaseFeaturesExtractor):
    """The convolutions of `FramePolicy`, of each frame and of its changes."""

    def __init__(self, observation_space: gymnasium.spaces.Box) -> None:
        from physvision.control.pixels import FramePolicy

        eye = FramePolicy(HEIGHT, WIDTH)
        super().__init__(observation_space, 32)
        self.eye, self.first = eye, nn.Linear(CONTEXT_FRAMES * eye.features, 32)

    def forward(self, observations: Tensor) -> Tensor:
        """32 features of three frames."""
        new, before, older = (self.eye.encode(word) for word in observations.split(3, 1))
        return self.first(torch.cat([new, 5 * (new - before), 5 * (before - older)], 1)).relu()


class Watch(BaseCallback):
    """Prints how far it is every so many seconds of processor time, and ends training when they are spent."""

    def __init__(self, worlds: Worlds, sees: str, seconds: float, every: float) -> None:
        super().__init__()
        self.worlds, self.sees, self.seconds, self.every = worlds, sees, seconds, every
        self.start_time, self.last_report = time.process_time(), 0.0

    def _on_step(self) -> bool:
        spent = time.process_time() - self.start_time
        if spent - self.last_report >= self.every:
            self.last_report = spent
            self.tell(spent)
        return spent < self.seconds

    def tell(self, spent: float) -> int:
        """Print how it fares; of 20 unseen starts how many stay upright over the last 12 of 15 s."""
        candidate = Worlds(self.sees, 1_000_000_006, evaluation=True)
        observed, angles = candidate.reset(), []
        for _ in range(candidate.task.episode_steps - 1):
            candidate.step_async(self.model.predict(observed, deterministic=True)[0])
            observed, *_ = candidate.step_wait()
            angles.append(upright_angle(State(candidate.state.q, candidate.state.v)))
        stays = int(is_upright(torch.stack(angles, 1), 600).sum())
        worlds = self.worlds
        print(
            f"{spent:>7.0f} s{worlds.episodes:>8} episodes{worlds.progress:>7.2f} wide{worlds.standing:>7.2f} stand at "
            f"the end of an episode; {stays} of 20 upright over the last 12 of 15 s",
            flush=True,
        )
        return stays


def main(seconds: float = 3600.0, sees: str = "frames", seed: int = 0, every: float = 300.0) -> None:
    """Train PPO on the pendulum from pixels.

    Args:
        seconds: Processor time of the training, s.
        sees: "frames" or "state".
        seed: Seed of all random numbers.
        every: seconds between trials.
    """
    torch.set_num_threads(1)
    worlds = Worlds(sees, seed)
    options: dict[str, Any] = {"net_arch": [64]}
    if sees == "frames":
        options |= {"features_extractor_class": Eye, "normalize_images": False, "ortho_init": False}
    learner = PPO("MlpPolicy", worlds, n_steps=150, batch_size=120, policy_kwargs=options, seed=seed, device="cpu")
    learner.learn(10**9, callback=Watch(worlds, sees, seconds, every))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
