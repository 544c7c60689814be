"""Double DQN on Breakout, for as many decisions as there is time for: what learning without a model has by then.

    python experiments/breakout_dqn.py [--decisions 100000]       (needs physvision[atari,baselines])

The game is that of `breakout.py`, `ALE/Breakout-v5` without sticky keys, as DQN is used to it: four frames a decision,
pictures of 84 × 84, four of them at once, lives and rewards cut for learning. The network and its settings are those of
rl-baselines3-zoo but for the memory (50,000 decisions) and a start of learning after 5,000. Each 1,000 decisions a line
with the true scores of the games that ended goes to out/breakout_dqn.jsonl, and each 5,000 what has been learned is
kept beside it, so that a run that was interrupted goes on. At the end ten games are played, with 1 % of random keys.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import json
from pathlib import Path

import ale_py
import gymnasium
import numpy as np
import torch
from jsonargparse import auto_cli
from stable_baselines3 import DQN
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecTransposeImage
from torch.nn.functional import smooth_l1_loss

HELD, LINE, KEPT, RANDOM = 4, 1_000, 5_000, 0.01


class DoubleDQN(DQN):
    """DQN whose network chooses the next action, and whose target judges it (van Hasselt and others, 2016)."""

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Steps of gradient descent on remembered decisions."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        assert self.replay_buffer is not None
        for _ in range(gradient_steps):
            observed = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            with torch.no_grad():
                selected = self.q_net(observed.next_observations).argmax(1, keepdim=True)
                after = self.q_net_target(observed.next_observations).gather(1, selected)
                target = observed.rewards + (1 - observed.dones) * self.gamma * after
            loss = smooth_l1_loss(self.q_net(observed.observations).gather(1, observed.actions.long()), target)
            self.policy.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps


def worlds(seed: int, learning: bool) -> VecTransposeImage:
    """The game as DQN sees it; for learning a life is a game and a reward is its sign."""

    def make_environment() -> gymnasium.Env:
        game = Monitor(gymnasium.make("ALE/Breakout-v5", frameskip=1, repeat_action_probability=0.0))
        return AtariWrapper(game, frame_skip=HELD, terminal_on_life_loss=learning, clip_reward=learning)

    result = DummyVecEnv([make_environment])
    result.seed(seed)
    return VecTransposeImage(VecFrameStack(result, 4))


def scores(model: DQN, games: int, seed: int) -> list[float]:
    """True scores of whole games."""
    rollout, result = worlds(seed, learning=False), []
    random = np.random.default_rng(seed)
    observed = rollout.reset()
    while len(result) < games:
        action, _ = model.predict(observed, deterministic=True)  # pyright: ignore[reportArgumentType]
        if random.random() < RANDOM:
            action = random.integers(4, size=1)
        observed, _, _, record = rollout.step(action)
        if "episode" in record[0]:
            result.append(float(record[0]["episode"]["r"]))
    return result


class Keeper(BaseCallback):
    """Writes a line of the log now and then, and what has been learned."""

    def __init__(self, log: Path, checkpoint: Path, memory: Path) -> None:
        super().__init__()
        self.files = log, checkpoint, memory

    def _on_step(self) -> bool:
        log, retained, memory = self.files
        if self.num_timesteps % LINE == 0:
            end = [entry["r"] for entry in self.model.ep_info_buffer or []]
            row = {"decisions": self.num_timesteps, "score": float(np.mean(end)) if end else None}
            with log.open("a") as file:
                file.write(json.dumps(row) + "\n")
        if self.num_timesteps % KEPT == 0:
            assert isinstance(self.model, DoubleDQN)
            self.model.save(retained)
            self.model.save_replay_buffer(memory)
        return True


def main(decisions: int = 100_000, seed: int = 0, games: int = 10, out: Path = Path("out")) -> None:
    """Learn on from what is kept, and play at the end."""
    torch.set_num_threads(1)
    gymnasium.register_envs(ale_py)
    out.mkdir(parents=True, exist_ok=True)
    log, retained, memory = (out / f"breakout_dqn.{end}" for end in ("jsonl", "zip", "pkl"))
    if retained.exists() and memory.exists():
        model = DoubleDQN.load(retained, env=worlds(seed, learning=True))
        model.load_replay_buffer(memory)
    else:
        options = {"learning_rate": 1e-4, "buffer_size": 50_000, "learning_starts": 5_000, "batch_size": 32}
        options |= {"train_freq": 4, "gradient_steps": 1, "target_update_interval": 1_000, "seed": seed}
        options |= {"exploration_fraction": 0.1, "exploration_final_eps": RANDOM, "optimize_memory_usage": True}
        options["replay_buffer_kwargs"] = {"handle_timeout_termination": False}
        model = DoubleDQN("CnnPolicy", worlds(seed, learning=True), **options)
    left = decisions - model.num_timesteps
    if left > 0:
        model.learn(left, callback=Keeper(log, retained, memory), reset_num_timesteps=False)
    result = scores(model, games, 100 + seed)
    print(
        f"{model.num_timesteps} decisions, {HELD * model.num_timesteps} frames: mean {np.mean(result):.1f} ± "
        f"{np.std(result):.1f}, least {min(result):.0f}, most {max(result):.0f} of {games} games"
    )


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
