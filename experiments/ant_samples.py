"""What neighbours of true steps of the ant are worth to a learned model of it (sample enhancement, Qiao et al., 2021).

    python experiments/ant_samples.py [--counts 500,1000] [--within 0.01,0.3] [--updates 400]

Steps under random actions. First, how well the first order tells a neighbour whose actions differ by at most `within`:
the error of what it says over what the neighbour differs by, both in the medians of all steps, and of those in which a
contact or a stop opens or closes, which are dropped by default. Then the mean squared error of MBPO's model, in units
of deviations, over 2,000 steps that it has not seen: fitted to true steps alone; to as many with nine neighbours each,
all or without those that are dropped; and to twice as many true steps. Where neighbours bring a model no nearer to that
of twice as many steps, MBPO can hardly do with half of them.
"""

from __future__ import annotations

import torch
from jsonargparse import auto_cli

from physvision.core import State
from physvision.envs import GAMES, Game
from physvision.learning import Dynamics, DynamicsSettings, Recorded, RecordedSettings
from physvision.learning.enhancement import changes_contact, jacobians, neighbours
from physvision.learning.replay import Batch

WORLDS, UNSEEN, COUNT = 16, 2000, 9


def part(rows: Batch, which: slice | torch.Tensor) -> Batch:
    """Some of the rows."""
    return {name: value[which] for name, value in rows.items()}


def played(game: Game, steps: int) -> Batch:
    """Steps under random actions, in no order."""
    learner = Recorded(game, RecordedSettings(worlds=WORLDS, first=2 * steps, capacity=2 * steps), seed=0)
    while learner.record.size < steps:
        learner.play()
    return part(learner.record.all(), torch.randperm(learner.record.size, generator=torch.Generator().manual_seed(0)))


def told(game: Game, rows: Batch, steep: torch.Tensor, within: float) -> torch.Tensor:
    """Of one neighbour of each step what is said wrongly, over what it differs by."""
    near = neighbours(rows, steep, 1, within, torch.Generator().manual_seed(1))
    found = game.step(State(near["q"], near["v"]), near["action"].double())
    true = torch.cat([game.see(found.state).float(), found.reward.float()[:, None]], 1)
    said, here = (torch.cat([each["after"], each["reward"][:, None]], 1) for each in (near, rows))
    scale = here.std(0)
    return ((said - true) / scale).norm(dim=1).median() / ((true - here) / scale).norm(dim=1).median()


def error(rows: Batch, origin: torch.Tensor, unseen: Batch, updates: int) -> float:
    """Of a model of these rows over others."""
    torch.manual_seed(0)
    seen, actions = rows["seen"].shape[1], rows["action"].shape[1]
    model = Dynamics(seen, actions, DynamicsSettings(most=updates), torch.Generator().manual_seed(0))
    model.fit(rows, origin)
    target = torch.cat([unseen["after"] - unseen["seen"], unseen["reward"][:, None]], 1)
    with torch.no_grad():
        said = model(torch.cat([unseen["seen"], unseen["action"]], 1))[0][model.elites].mean(0)
    return float((said - (target - model.change) / model.spread).square().mean())


def main(counts: tuple[int, ...] = (500, 1000), within: tuple[float, ...] = (0.01, 0.3), updates: int = 400) -> None:
    """Print the figures.

    Args:
        counts: of true steps.
        within: by how much actions of neighbours differ at most.
        updates: of a fit, some at most.
    """
    torch.set_num_threads(1)
    game, most = GAMES["Ant"](), max(counts)
    rows = played(game, 2 * most + UNSEEN)
    unseen, rows, double = (
        part(rows, slice(2 * most, 2 * most + UNSEEN)),
        part(rows, slice(most)),
        part(rows, slice(2 * most)),
    )
    steep, good = jacobians(game, torch.tensor(game.high), rows)
    changed = changes_contact(game, rows)
    print(
        f"{float(good.double().mean()):.0%} of steps have derivatives; in {float(changed.double().mean()):.0%}", end=""
    )
    print(" a contact or a stop opens or closes")
    for size in within:
        wrong = [float(told(game, part(rows, which), steep[which], size)) for which in (good, good & changed)]
        print(f"within {size}: the first order is wrong by {wrong[0]:.1%} of the change, where one does {wrong[1]:.1%}")
    for count in counts:
        own = torch.arange(count)
        found = {"true": error(part(rows, slice(count)), own, unseen, updates)}
        for size in within:
            for name, which in (("all", good), ("dropped", good & ~changed)):
                chosen = torch.nonzero(which[:count])[:, 0]
                wanted = part(rows, chosen) | {"origin": chosen}
                near = neighbours(wanted, steep[chosen], COUNT, size, torch.Generator().manual_seed(2))
                both = {key: torch.cat([rows[key][:count], near[key]]) for key in ("seen", "action", "reward", "after")}
                found[f"{name} within {size}"] = error(both, torch.cat([own, near["origin"]]), unseen, updates)
        found["twice"] = error(part(double, slice(2 * count)), torch.arange(2 * count), unseen, updates)
        print(f"{count} steps: " + ", ".join(f"{key} {value:.3f}" for key, value in found.items()), flush=True)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
