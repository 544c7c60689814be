"""Value of augmented transitions of the ant for a learned model of it (sample enhancement, Qiao et al., 2021).

    python experiments/ant_samples.py [--counts [500,1000]] [--action [0.5,0.5]] [--velocity [0,0.3]] [--updates 2000]

Steps under random actions. First, how well the first order tells a neighbor whose actions differ by at most `action`
and whose velocities by at most so many deviations: the error of what it says over what the neighbor differs by, both
in the medians of all steps, and of those in which a contact or a stop opens or closes. Then the mean squared error of
MBPO's model, in units of deviations, over 2,000 held-out steps: fitted to real steps alone; to nine fresh
neighbors for each true row, of all steps or without those in which a contact changes; and to two and four times as
many real steps. All fits take as many updates. Where neighbors bring a model no nearer to that of twice as many steps,
MBPO can hardly do with half of them.
"""

from __future__ import annotations

import torch
from jsonargparse import auto_cli

from physvision.core import State
from physvision.envs import ENVIRONMENTS, Environment
from physvision.learning import (
    OffPolicyAgent,
    OffPolicySettings,
    SampleEnhancementSettings,
    WorldModel,
    WorldModelSettings,
)
from physvision.learning.replay_buffer import Batch, ReplayBuffer
from physvision.learning.sample_enhancement import SampleEnhancement, has_contact_change

WORLDS, UNSEEN, COUNT = 16, 2000, 9


def random_transitions(game: Environment, steps: int) -> ReplayBuffer:
    """A record of steps under random actions, in no order."""
    learner = OffPolicyAgent(
        game, OffPolicySettings(num_envs=WORLDS, learning_starts=2 * steps, buffer_size=steps), seed=0
    )
    while learner.replay_buffer.size < steps:
        learner.collect()
    order = torch.randperm(steps, generator=torch.Generator().manual_seed(0))
    learner.replay_buffer.overwrite(order, learner.replay_buffer.gather(torch.arange(steps)))
    return learner.replay_buffer


def prediction_error(near: SampleEnhancement, record: ReplayBuffer, places: torch.Tensor) -> float:
    """Error of the prediction of an augmented transition, relative to its change from the real step."""
    rows = record.gather(places)
    result = near.augment(rows, places, torch.Generator().manual_seed(1))
    moved = near.env.step(State(result["q"], result["v"]), result["action"].double())
    true = torch.cat([near.env.observe_state(moved.state), moved.reward[:, None]], 1).float()
    predicted, here = (torch.cat([entry["next_obs"], entry["reward"][:, None]], 1) for entry in (result, rows))
    differs = ((result["v"] != rows["v"]).any(1) | (result["action"] != rows["action"]).any(1)) & ~moved.failed
    scale = here.std(0)
    wrong, change = (((entry - true) / scale)[differs].norm(dim=1).median() for entry in (predicted, here))
    return float(wrong / change)


def named(size: SampleEnhancementSettings) -> str:
    """Describe the distance of the augmented transitions."""
    return f"actions within {size.action_range:g}, velocities {size.velocity_range:g}"


def error(rows: Batch, unseen: Batch, updates: int, near: SampleEnhancement | None = None) -> float:
    """Error of a model that is fitted to the first rows of the record, on other rows or on augmented transitions."""
    torch.manual_seed(0)
    generator, places = torch.Generator().manual_seed(0), torch.arange(len(rows["obs"]))
    settings = WorldModelSettings(max_updates=updates, patience=updates)
    model = WorldModel(rows["obs"].shape[1], rows["action"].shape[1], settings, generator)
    model.fit(rows, None if near is None else lambda: near.augment(rows, places, generator))
    target = torch.cat([unseen["next_obs"] - unseen["obs"], unseen["reward"][:, None]], 1)
    with torch.no_grad():
        predicted = model(torch.cat([unseen["obs"], unseen["action"]], 1))[0][model.elite_indices].mean(0)
    return float((predicted - (target - model.target_mean) / model.target_std).square().mean())


def main(
    counts: tuple[int, ...] = (500, 1000),
    action: tuple[float, ...] = (0.01, 0.5, 0.0, 0.5),
    velocity: tuple[float, ...] = (0.0, 0.0, 0.3, 0.3),
    updates: int = 2000,
) -> None:
    """Print the errors of all models.

    Args:
        counts: Numbers of real steps.
        action: Largest differences of actions of augmented transitions, one run each.
        velocity: Largest differences of their velocities, in standard deviations, one run each.
        updates: Gradient updates of a fit.
    """
    torch.set_num_threads(1)
    game, limit = ENVIRONMENTS["Ant"](), max(counts)
    record = random_transitions(game, 4 * limit + UNSEEN)
    unseen = record.gather(torch.arange(4 * limit, 4 * limit + UNSEEN))
    near, dropped = (
        SampleEnhancement(game, SampleEnhancementSettings(COUNT, drop_contact_changes=drop), limit)
        for drop in (False, True)
    )
    for entry in (near, dropped):
        entry.add(limit)
    unknown = near.compute_jacobians(record).failed
    print(f"{1 - unknown / limit:.0%} of steps have derivatives; ", end="")
    print(f"in {dropped.compute_jacobians(record).dropped / limit:.0%} a contact or a stop opens or closes")
    changed = torch.nonzero(has_contact_change(game, record.gather(torch.arange(limit))))[:, 0]
    sizes = [SampleEnhancementSettings(COUNT, *size) for size in zip(action, velocity, strict=True)]
    for size in sizes:
        near.settings = size
        wrong = [prediction_error(near, record, places) for places in (torch.arange(limit), changed)]
        print(f"{named(size)}: the first order is wrong by {wrong[0]:.1%} of the change, where one does {wrong[1]:.1%}")
    for count in counts:
        rows = [record.gather(torch.arange(times * count)) for times in (1, 2, 4)]
        print(f"{count} steps: {error(rows[0], unseen, updates):.3f}", end="", flush=True)
        for size in sizes:
            near.settings = size
            print(f", {named(size)} {error(rows[0], unseen, updates, near):.3f}", end="", flush=True)
        dropped.settings = sizes[-1]
        print(f", the last with those of changes dropped {error(rows[0], unseen, updates, dropped):.3f}", end="")
        print(f"; twice as many {error(rows[1], unseen, updates):.3f}", end="", flush=True)
        print(f", four times {error(rows[2], unseen, updates):.3f}", flush=True)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
