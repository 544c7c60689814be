"""The Control Suite's `cartpole-swingup` as it is, by adaptive model-predictive control: its reward in a few episodes.

    python experiments/suite_swingup.py [--seeds 5] [--episodes 3]

Needs physvision[environments]. An episode has 1,000 steps of 0.01 s at
±10 N on a rail of ±1.8 m; a control is held for two. The model is that of `adaptive_cartpoles.py`, all wrong at first,
refitted to all that was seen every 100 steps until 200 were seen, then after each episode. The plan makes squares of
place, height, rates and force small, not the task's reward, which is only counted. TD-MPC2, from states too, has 839
after 100,000 steps, and 876 after a million (means of the runs in its repository).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adaptive_cartpoles
import numpy as np
import poles as suite
import torch
from claims import Claim, write_claims
from control_suite import ControlSuiteEnv
from jsonargparse import auto_cli
from result_cache import cached_results

from physvision.control import AdaptiveModel, AdaptiveMpc, Goal, Mpc
from physvision.physics import articulated

FORCE, HOLD, HORIZON, ROUNDS = 10.0, 2, 75, 6
# Of the squares of place, sine, cosine, the cart's rate, the pole's rate, and the share of the force.
WEIGHTS, EFFORT = (0.3, 1.0, 3.0, 0.05, 0.05), 0.1


def controller(world: ControlSuiteEnv, seed: int) -> AdaptiveMpc:
    """A planner whose model knows nothing but its form."""
    wrong = adaptive_cartpoles.model(1)
    engine = articulated.cartpole(dt=world.control_period, substeps=HOLD, integrator="runge_kutta_4")
    learner = AdaptiveModel(engine, wrong.unknowns, wrong.leaves, wrong.features)
    target = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0]).double()
    goal = Goal(suite.features, target, torch.tensor(WEIGHTS).double(), EFFORT / FORCE**2)
    generator = torch.Generator().manual_seed(seed)
    first = FORCE * (2 * torch.rand(1, HORIZON, 1, generator=generator).double() - 1)
    return AdaptiveMpc(Mpc(engine, goal, HORIZON, (-FORCE, FORCE), initial_controls=first, iterations=ROUNDS), learner)


def play(seed: int, episodes: int) -> dict[str, Any]:
    """The rewards of so many episodes."""
    world = ControlSuiteEnv("cartpole", "swingup", seed, HOLD)
    adaptive, rewards = controller(world, seed), []
    for episode in range(episodes):
        adaptive.controller.reset()
        result, reward, rollout = world.reset(), 0.0, 0
        while not result.last:
            force = adaptive.act(result.state).control
            after = world.step(force[0] / FORCE)
            adaptive.observe(result.state, force, after.state)
            result, reward, rollout = after, reward + after.reward, rollout + 1
            if episode == 0 and rollout in (50, 100):
                adaptive.refit()
        adaptive.refit()
        rewards.append(reward)
    return {"seed": seed, "episodes": episodes, "rewards": rewards}


def main(seeds: int = 5, episodes: int = 3, out: Path = Path("out")) -> None:
    """Run what is missing, and print the table."""
    result = cached_results(
        out / "suite_swingup.jsonl",
        [(seed, episodes) for seed in range(seeds)],
        lambda key: play(*key),
        lambda row: (row["seed"], row["episodes"]),
    )
    rewards = np.array([result[seed, episodes]["rewards"] for seed in range(seeds)])
    claims, peer = [], "TD-MPC2 after 100,000 steps"
    for episode, entry in enumerate(rewards.T, 1):
        name = (
            f"reward of cartpole-swingup from a wrong model, steps {1000 * (episode - 1) + 1:,} to {1000 * episode:,}"
        )
        claims.append(
            Claim(name, float(entry.mean()), "of 1,000", seeds=tuple(range(seeds)), reference=839, source=peer)
        )
        text = " ".join(f"{reward:.0f}" for reward in entry)
        print(f"{1000 * (episode - 1):5d} to {1000 * episode} steps: mean {entry.mean():.0f}, of {seeds} seeds {text}")
    print(write_claims(__file__, claims))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
