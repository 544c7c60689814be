"""Our soft actor–critic and that of stable-baselines3 on gymnasium's Pendulum-v1, with the same numbers.

    python experiments/pendulum_sac.py --peer PYTHON [--steps 8000] [--seeds 3] [--out out]

A thread each, one after the other: reward of 20 episodes without noise from the same starts, after each thousand steps,
and seconds of processor time without those of the evaluations. Both: two layers of 256, rate 3e-4, batches of 256, one
update a step after 100 random ones, discount 0.99, target rate 5e-3. PYTHON is that of an environment with
stable-baselines3 and gymnasium. Runs that are done are kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import torch
from jsonargparse import auto_cli
from result_cache import cached_results

from physvision.learning import ReplayBuffer, Sac, SacSettings

NAME, FIRST, EPISODES, EVERY, HIGH, GOOD = "Pendulum-v1", 100, 20, 1000, 2.0, -200.0
PEER = """
import json, sys, time, gymnasium, numpy as np, torch
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback
torch.set_num_threads(1)
seed, steps, every, episodes, first = map(int, sys.argv[1:])
class Look(BaseCallback):
    spent, lines = 0.0, []
    def _on_step(self):
        if self.num_timesteps % every == 0:
            began, world, found = time.process_time(), gymnasium.make("Pendulum-v1"), []
            for episode in range(episodes):
                seen, total, over = world.reset(seed=1000 + episode)[0], 0.0, False
                while not over:
                    seen, reward, _, over, _ = world.step(self.model.predict(seen, deterministic=True)[0])
                    total += reward
                found.append(total)
            self.lines.append([self.num_timesteps, float(np.mean(found)), began - self.began - self.spent])
            self.spent += time.process_time() - began
        return True
look = Look()
learner = SAC("MlpPolicy", "Pendulum-v1", seed=seed, learning_starts=first, buffer_size=steps, device="cpu")
look.began = time.process_time()
learner.learn(steps, callback=look)
print(json.dumps(look.lines))
"""

Lines = list[list[float]]


def evaluated(policy: Callable[[np.ndarray], np.ndarray]) -> float:
    """The mean reward of episodes without noise."""
    world, result = gymnasium.make(NAME), []
    for episode in range(EPISODES):
        observed, total, over = world.reset(seed=1000 + episode)[0], 0.0, False
        while not over:
            observed, reward, _, over, _ = world.step(policy(observed))
            total += float(reward)
        result.append(total)
    return float(np.mean(result))


def ours(seed: int, steps: int) -> Lines:
    """Steps, reward and seconds of our own."""
    torch.manual_seed(seed)
    generator, random = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    agent = Sac(3, 1, SacSettings(), generator)
    record = ReplayBuffer(steps, {"obs": 3, "action": 1, "reward": 0, "next_obs": 3, "terminated": 0})

    def best(observed: np.ndarray) -> np.ndarray:
        return HIGH * agent.actor.deterministic_action(torch.as_tensor(observed)[None])[0].numpy()

    world = gymnasium.make(NAME)
    observed, lines, spent, began = world.reset(seed=seed)[0], [], 0.0, time.process_time()
    for step in range(1, steps + 1):
        if step <= FIRST:
            action = random.uniform(-1, 1, 1).astype(np.float32)
        else:
            with torch.no_grad():
                action = agent.actor.sample(torch.as_tensor(observed)[None], generator)[0][0].numpy()
        after, reward, _, over, _ = world.step(HIGH * action)
        row = {"obs": observed, "action": action, "reward": float(reward), "next_obs": after, "terminated": 0.0}
        record.add({name: torch.as_tensor(value, dtype=torch.float32)[None] for name, value in row.items()})
        observed = world.reset()[0] if over else after
        if step > FIRST:
            agent.update(record.sample(256, generator))
        if step % EVERY == 0:
            now = time.process_time()
            lines.append([step, evaluated(best), now - began - spent])
            spent += time.process_time() - now
    return lines


def theirs(seed: int, steps: int, peer: str) -> Lines:
    """Run the SAC of stable-baselines3 likewise."""
    numbers = [str(entry) for entry in (seed, steps, EVERY, EPISODES, FIRST)]
    process = subprocess.run(
        [peer, "-c", PEER, *numbers],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return json.loads(process.stdout.splitlines()[-1])


def main(peer: str, steps: int = 8000, seeds: int = 3, out: Path = Path("out")) -> None:
    """Run what is missing, and print the table.

    Args:
        peer: the Python that has stable-baselines3.
        steps: Environment steps of each run.
        seeds: from 0 on.
        out: folder of the results.
    """
    torch.set_num_threads(1)
    target = [(who, seed) for seed in range(seeds) for who in ("ours", "stable-baselines3")]

    def work(key: tuple[str, int]) -> dict:
        who, seed = key
        lines = ours(seed, steps) if who == "ours" else theirs(seed, steps, peer)
        return {"who": who, "seed": seed, "lines": lines}

    done = cached_results(out / "pendulum_sac.jsonl", target, work, lambda row: (row["who"], row["seed"]))
    print(f"{'':>18}{'seed':>5}{'reward':>8}{f'steps to {GOOD:.0f}':>15}{'seconds':>9}")
    for who, seed in target:
        lines = done[who, seed]["lines"]
        reached = next((int(step) for step, reward, _ in lines if reward >= GOOD), "-")
        print(f"{who:>18}{seed:>5}{lines[-1][1]:>8.0f}{reached:>15}{lines[-1][2]:>9.0f}")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
