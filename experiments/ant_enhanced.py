"""The ant by MBPO with and without sample enhancement (Qiao et al., ICML 2021): reward against true samples.

    python experiments/ant_enhanced.py [--variants plain,enhanced,dropped] [--seeds 0,1] [--steps 20000] [--out out]

Three variants with the same settings but for the neighbors: none; nine of ten true rows of a batch, and of what the
model is fitted to, are neighbors to first order, drawn anew each time; the same, where steps in which a contact or a
stop opens or closes have none. The mean reward of four episodes without noise every 500 true samples, and after how
many samples a variant with neighbors passes the best and the end of MBPO without them: with at most half of the
samples is what sample enhancement is to be worth. What is earned before anything is learned does not count. Runs go on
where they were interrupted, and with more steps where they ended.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch
from jsonargparse import auto_cli
from result_cache import cached_results

from physvision.learning import (
    MbpoSettings,
    OffPolicySettings,
    SacSettings,
    SampleEnhancementSettings,
    TrainingSchedule,
    WorldModelSettings,
    learn,
)

FIRST, EVERY, EPISODES, UPDATES = 1000, 500, 4, 10
# At ten updates a sample slow critics follow as far in a sample as at twenty with half of the rate.
SAC = SacSettings(target_entropy=-4, init_entropy_coef=0.1, target_tau=0.01, batch_size=128, discount=0.97)
PLAIN = MbpoSettings(
    OffPolicySettings(SAC, learning_starts=FIRST, updates_per_step=UPDATES, buffer_size=20_000),
    WorldModelSettings(max_updates=200),
    rollout_length=(1, 1),
    real_ratio=0.5,
)
VARIANTS = {
    "plain": PLAIN,
    "enhanced": replace(PLAIN, sample_enhancement=SampleEnhancementSettings(9)),
    "dropped": replace(PLAIN, sample_enhancement=SampleEnhancementSettings(9, drop_contact_changes=True)),
}


def trained(variant: str, seed: int, steps: int, out: Path) -> dict:
    """The reward against true samples, once something is learned, of a run or of what is left of it."""
    folder = out / "ant-enhanced" / f"{variant}-{seed}"
    schedule = TrainingSchedule(steps, eval_every=EVERY, eval_episodes=EPISODES, checkpoint_every=FIRST)
    learn(VARIANTS[variant], "Ant", schedule, seed, folder)
    lines = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["steps"] > VARIANTS[variant].off_policy.learning_starts]
    rewards = {str(line["steps"]): line["reward"] for line in lines}
    return {
        "rewards": rewards,
        "seconds": lines[-1]["cpu_seconds"],
        "dropped": lines[-1].get("discarded_contact_changes", 0.0),
    }


def steps_to_exceed(rewards: dict[str, float], aim: float) -> int | None:
    """After how many samples a reward is first reached."""
    return next((int(at) for at, reward in rewards.items() if reward >= aim), None)


def compared(plain: dict[str, float], enhanced: dict[str, float]) -> str:
    """After how many samples what has neighbors is where MBPO without them came to."""
    messages = []
    for name, at in (("best", max(plain, key=lambda at: plain[at])), ("end", list(plain)[-1])):
        reached = steps_to_exceed(enhanced, plain[at])
        where = f"not reached in {list(enhanced)[-1]}" if reached is None else f"passed after {reached}"
        messages.append(f"MBPO's {name}, {plain[at]:.0f} after {at}: {where}")
    return "; ".join(messages)


def main(
    variants: str = "plain,enhanced,dropped",
    seeds: str = "0,1",
    steps: int = 20_000,
    out: Path = Path("out"),
) -> None:
    """Run what is missing, and print the tables.

    Args:
        variants: which.
        seeds: which.
        steps: true samples of a run.
        out: folder of runs and results.
    """
    torch.set_num_threads(1)
    target = [(variant, int(seed), steps) for seed in seeds.split(",") for variant in variants.split(",")]

    def work(key: tuple[str, int, int]) -> dict:
        variant, seed, count = key
        return {"variant": variant, "seed": seed, "steps": count} | trained(variant, seed, count, out)

    done = cached_results(
        out / "ant_enhanced.jsonl", target, work, lambda row: (row["variant"], row["seed"], row["steps"])
    )
    # Of several lengths of a run the longest.
    runs = {key[:2]: done[key]["rewards"] for key in sorted(done)}
    columns = [(variant, seed) for variant, seed, _ in target]
    counts = sorted({int(at) for column in columns for at in runs[column]})
    print(f"{'samples':>8}" + "".join(f"{variant:>11} {seed}" for variant, seed in columns))
    for count in counts:
        print(f"{count:>8}" + "".join(f"{runs[column].get(str(count), float('nan')):>13.0f}" for column in columns))
    for variant, seed in columns:
        if variant != "plain" and ("plain", seed) in runs:
            print(f"{variant} {seed}: {compared(runs['plain', seed], runs[variant, seed])}")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
