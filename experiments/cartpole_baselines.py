"""SAC and DDPG on the cartpoles of `adaptive_cartpoles.py`: the steps that they need for its reward.

    python experiments/cartpole_baselines.py [--poles 1] [--seeds 3] [--max_steps 100000] [--aim -125]

Needs physvision[environments,baselines]. Same world, same features of
the state, same reward; stable-baselines3 with its settings as they are, one step of learning a period. A run ends when
the mean reward of its last five episodes passes the aim, or at the most steps. Each 1,000 steps a line goes to
out/cartpole_baselines.jsonl; runs that ended there are not run again.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import poles as suite
import torch
from jsonargparse import auto_cli
from numpy.typing import NDArray
from stable_baselines3 import DDPG, SAC
from stable_baselines3.common.callbacks import BaseCallback

METHODS = {"SAC": SAC, "DDPG": DDPG}
LINE, MEAN = 1_000, 5


class World(gymnasium.Env):
    """The poles as gymnasium has it: features seen, shares of the force done."""

    def __init__(self, poles: int, force: float, seed: int) -> None:
        self._poles = suite.Poles(poles, force, seed)
        observed = len(suite.goal(poles, 1.0).target)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (observed,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def _observe(self) -> NDArray[np.float32]:
        return suite.features(self._state)[0].numpy().astype(np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode of the cartpole."""
        super().reset(seed=seed)
        self._state, self._elapsed_steps = self._poles.begin(), 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance by one control period."""
        self._state, reward = self._poles.act(self._state, torch.as_tensor(action).double())
        self._elapsed_steps += 1
        return self._observe(), reward, False, self._elapsed_steps == suite.PERIODS, {}


class Keeper(BaseCallback):
    """Writes a line now and then, and ends the run where the aim is reached."""

    def __init__(self, path: Path, row: dict, aim: float, max_steps: int) -> None:
        super().__init__()
        self.path, self.row, self.aim, self.max_steps = path, row, aim, max_steps
        self.rewards: list[float] = []

    def _on_step(self) -> bool:
        end = [local["episode"]["r"] for local in self.locals["infos"] if "episode" in local]
        self.rewards += end
        mean = float(np.mean(self.rewards[-MEAN:])) if len(self.rewards) >= MEAN else None
        reached = bool(end) and mean is not None and mean >= self.aim
        if reached or self.num_timesteps % LINE == 0 or self.num_timesteps >= self.max_steps:
            row = self.row | {"steps": self.num_timesteps, "reward": mean, "reached": reached}
            row["ended"] = reached or self.num_timesteps >= self.max_steps
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")
        return not reached


def main(
    poles: int = 1,
    force: float = 200.0,
    methods: str = "SAC,DDPG",
    seeds: int = 3,
    max_steps: int = 100_000,
    aim: float = -125.0,
    out: Path = Path("out"),
) -> None:
    """Run what is missing, and print the table."""
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "cartpole_baselines.jsonl"

    def lines(method: str, seed: int) -> list[dict]:
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        target = (poles, force, method, seed)
        return [row for row in rows if (row["poles"], row["force"], row["method"], row["seed"]) == target]

    for seed in range(seeds):
        for method in methods.split(","):
            if not any(row["ended"] for row in lines(method, seed)):
                row = {"poles": poles, "force": force, "method": method, "seed": seed}
                learner = METHODS[method](
                    "MlpPolicy", World(poles, force, seed), seed=seed, learning_starts=suite.PERIODS
                )
                learner.learn(max_steps, callback=Keeper(path, row, aim, max_steps))
            last = lines(method, seed)[-1]
            rewards = [row["reward"] for row in lines(method, seed) if row["reward"] is not None]
            best = max(rewards, default=float("nan"))
            how = f"reached {aim:g}" if last["reached"] else f"did not reach {aim:g}, best {best:.0f}"
            print(f"{poles} pole(s), {method}, seed {seed}: {last['steps']} steps, {how}", flush=True)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
