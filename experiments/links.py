"""Links that raise their tip, as in *Efficient Differentiable Simulation of Articulated Bodies* (ICML 2021).

    python experiments/links.py [--links 1,2,3] [--methods optimum,rollout,shac,enhanced,mbpo] [--seeds 3]
                               [--seconds S] [--out out]

Reward over the largest possible, 0.5 n² m², of: the best torques known beforehand (Adam through the engine, eight
starts); gradients through the whole rollout of a policy; short-horizon actor–critic; MBPO with policy enhancement; and
MBPO. A run ends at 0.95, those of MBPO after three evaluations in a row, since what they learn goes up and down; or
after 100 n epochs of 100 steps in all worlds together, or after so many seconds of processor time. Those by gradients
through rollouts play four worlds. The best evaluation counts, and the steps until 0.9 was reached. Runs go on where
they were interrupted. The paper's figures are pictures: MBPO is good to three links and fails at six; with enhancement
it is near 1 for all.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from jsonargparse import auto_cli
from result_cache import cached_results

from physvision.envs import ENVIRONMENTS
from physvision.learning import MbpoSettings, OffPolicySettings, SacSettings, ShacSettings, TrainingSchedule, learn

AIM, GOOD, WORLDS = 0.95, 0.9, 4
# Without discount the end of the time has to be heard of 100 steps before: a step back each 1/rate updates.
SAC = SacSettings(discount=1.0, target_tau=0.02, learning_rate=1e-3, init_entropy_coef=1e-3)
PLAY = OffPolicySettings(SAC, learning_starts=500, updates_per_step=5)
METHODS = {
    "rollout": ShacSettings(num_envs=WORLDS, horizon=100, discount=1.0),
    "shac": ShacSettings(num_envs=WORLDS, horizon=25),
    "enhanced": MbpoSettings(
        PLAY,
        policy_enhancement=True,
        horizon=100,
        actor_batch_size=8,
        actor_update_every=25,
        max_action_grad=1.0,
        engine_ratio=0.95,
    ),
    "mbpo": MbpoSettings(PLAY),
}


def largest(links: int) -> float:
    """Largest possible reward of an episode, m²."""
    return 0.5 * links**2


def optimum(links: int, iterations: int = 300, starts: int = 8) -> float:
    """The share of the largest reward that torques known beforehand reach."""
    game = ENVIRONMENTS[f"Links{links}"]()
    generator = torch.Generator().manual_seed(0)
    start = game.reset(starts, generator)
    raw = 0.5 * torch.randn(starts, game.max_episode_steps, links, generator=generator, dtype=torch.float64)
    raw.requires_grad_()
    optimizer, best = torch.optim.Adam([raw], 0.1), 0.0
    for _ in range(iterations):
        end = game.engine.rollout(start, game.max_episode_steps, game.action_limit[0] * raw.tanh()).final
        # The sum of all rewards telescopes: a single step from start to end is paid the same.
        reward = game.reward(start, end, raw[:, 0])
        best = max(best, float(reward.detach().max()))
        optimizer.zero_grad()
        (-reward.sum()).backward()
        optimizer.step()
    return best / largest(links)


def trained(links: int, method: str, seed: int, seconds: float | None, out: Path) -> dict:
    """A run, or what is left of it."""
    eval_every, checkpoint_every, patience = (100, 500, 3) if method in ("enhanced", "mbpo") else (400, 4000, 1)
    schedule = TrainingSchedule(
        10_000 * links,
        eval_every=eval_every,
        checkpoint_every=checkpoint_every,
        target_reward=AIM * largest(links),
        target_patience=patience,
        max_cpu_seconds=seconds,
    )
    folder = out / "links" / f"{method}-{links}-{seed}"
    learn(METHODS[method], f"Links{links}", schedule, seed, folder)
    lines = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
    # A policy that has learned nothing yet may be lucky.
    learned = PLAY.learning_starts if method in ("enhanced", "mbpo") else 0
    fractions = [(line["reward"] / largest(links), line["steps"]) for line in lines if line["steps"] > learned]
    last = sum(entry for entry, _ in fractions[-5:]) / len(fractions[-5:])
    results = {
        "best": max(fractions)[0],
        "last five": last,
        "seconds": lines[-1]["cpu_seconds"],
        "steps": lines[-1]["steps"],
    }
    if "engine_steps" in lines[-1]:
        results["engine"] = lines[-1]["engine_steps"]
    for entry in (GOOD, AIM):
        results[f"to {entry}"] = next((at for reached, at in fractions if reached >= entry), None)
    return results


def main(
    links: str = "1,2,3",
    methods: str = "optimum,rollout,shac,enhanced,mbpo",
    seeds: int = 3,
    seconds: float | None = None,
    out: Path = Path("out"),
) -> None:
    """Run what is missing, and print the table.

    Args:
        links: numbers of links.
        methods: which.
        seeds: from 0 on.
        seconds: Maximum processor time of a run, s; no limit by default.
        out: folder of runs and results.
    """
    torch.set_num_threads(1)
    target = [
        (count, method, seed)
        for method in methods.split(",")
        for count in map(int, links.split(","))
        for seed in range(1 if method == "optimum" else seeds)
    ]

    def work(key: tuple[int, str, int]) -> dict:
        count, method, seed = key
        result = {"best": optimum(count)} if method == "optimum" else trained(count, method, seed, seconds, out)
        return {"links": count, "method": method, "seed": seed} | result

    done = cached_results(out / "links.jsonl", target, work, lambda row: (row["links"], row["method"], row["seed"]))
    print(f"{'method':>10}{'links':>6}{'seeds':>6}{'best, least':>13}{'steps to 0.9':>24}{'seconds':>9}")
    for method, count in dict.fromkeys((method, count) for count, method, _ in target):
        rows = [row for key, row in sorted(done.items()) if key[:2] == (count, method)]
        steps = ", ".join(str(row.get(f"to {GOOD}", "-")) for row in rows)
        seconds = max(row.get("seconds", math.nan) for row in rows)
        print(
            f"{method:>10}{count:>6}{len(rows):>6}{min(row['best'] for row in rows):>13.3f}{steps:>24}{seconds:>9.0f}"
        )


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
