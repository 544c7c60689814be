"""Cartpole learned from random play, as in *End-to-End Differentiable Physics for Learning and Control* (NeurIPS 2018).

    python experiments/cartpole_learned.py [--seeds 10] [--models physics,network] [--episodes 1,5]

Gymnasium's CartPole with a continuous force is played at random for some episodes. A model is fitted to the steps seen,
and iLQR plans five steps ahead with it, for the least squared angle of the pole; the reward is the steps until the game
ends, at most 1,000. The physics model is our cartpole, whose two masses and length are sought from one each
(Gauss–Newton); the game's own explicit Euler steps it cannot take, which leaves an error. The network has two hidden
layers of 100, and predicts the change of the state (Adam 1e-3, early stopping on a tenth of the data). One line a
model, number of episodes and seed goes to out/cartpole_learned.jsonl; what is there is not run again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import classic_cartpole
import numpy as np
import torch
from claims import Claim, write_claims
from jsonargparse import auto_cli
from torch import Tensor, nn

from physvision import State
from physvision.control import AdaptiveModel, Goal, Mpc, TransitionLog
from physvision.estimation import Unknown, Unknowns
from physvision.physics import articulated
from physvision.physics.engine import Engine, Overrides
from physvision.physics.properties import Properties
from physvision.physics.stepped import SteppedEngine

HORIZON, EFFORT, MAX_PERIODS = 5, 1e-4, 1000
STARTS = 2  # games of a seed


def model_state(state: Tensor) -> State:
    return State(state[:, [0, 2]], state[:, [1, 3]])


def random_play(episodes: int, generator: torch.Generator) -> TransitionLog:
    """Steps of so many episodes under random forces."""
    record = TransitionLog()
    for _ in range(episodes):
        state = classic_cartpole.reset(1, generator)
        while not bool(classic_cartpole.is_terminal(state)):
            action = 2 * torch.rand(1, generator=generator, dtype=torch.float64) - 1
            end = classic_cartpole.step(state, action)
            record.add(model_state(state), action[:, None], model_state(end))
            state = end
    return record


def leaves(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    masses, lengths = values["pole"].unsqueeze(-1), values["length"].unsqueeze(-1)
    return articulated.cartpole_properties(values["cart"], lengths, masses)


class Network(SteppedEngine):
    """A network that predicts the change of place, angle and their rates."""

    def __init__(self, record: TransitionLog, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.nq, self.nv, self.nu, self.dt = 2, 2, 1, classic_cartpole.DT
        layers = [nn.Linear(5, 100), nn.Tanh(), nn.Linear(100, 100), nn.Tanh(), nn.Linear(100, 4)]
        self.layers = nn.Sequential(*layers).double()
        starts, controls, ends = record.batch()
        before, after = (torch.cat([entry.q, entry.v], 1) for entry in (starts, ends))
        spreads = (entry.std(0, correction=0).clamp(min=1e-9) for entry in (before, after - before))
        self.scale, self.change = spreads
        self._fit(before, controls, after, seed)

    def _fit(self, before: Tensor, controls: Tensor, after: Tensor, seed: int) -> None:
        order = torch.randperm(len(before), generator=torch.Generator().manual_seed(seed))
        held, used = order[: max(1, len(order) // 10)], order[max(1, len(order) // 10) :]
        optimizer = torch.optim.Adam(self.parameters(), 1e-3)
        best, retained, waited = float("inf"), self.state_dict(), 0
        for _ in range(3000):
            for rows in used[torch.randperm(len(used))].split(256):
                optimizer.zero_grad()
                self._loss(before[rows], controls[rows], after[rows]).backward()
                optimizer.step()
            with torch.no_grad():
                loss = float(self._loss(before[held], controls[held], after[held]))
            waited += 1
            if loss < best:
                best, waited = loss, 0
                retained = {name: value.clone() for name, value in self.state_dict().items()}
            elif waited > 100:
                break
        self.load_state_dict(retained)
        self.requires_grad_(False)

    def _loss(self, before: Tensor, controls: Tensor, after: Tensor) -> Tensor:
        return ((self._moved(before, controls) - after) / self.change).square().mean()

    def _moved(self, before: Tensor, controls: Tensor) -> Tensor:
        return before + self.layers(torch.cat([before / self.scale, controls], 1)) * self.change

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float64) -> State:
        """Initial state of all zeros."""
        return State(torch.zeros(batch, 2, dtype=dtype), torch.zeros(batch, 2, dtype=dtype))

    def _advance(self, state: State, control: Tensor | None, properties: Properties | None) -> tuple[State, None]:
        assert control is not None
        result = self._moved(torch.cat([state.q, state.v], 1), control)
        return State(result[:, :2], result[:, 2:]), None


def game(engine: Engine, properties: Overrides, force: float, starts: Tensor, rounds: int) -> Tensor:
    """Steps until each game ends, with plans by this model."""
    unit = torch.ones(1, dtype=torch.float64)
    cost = Goal(lambda state: state.q[:, 1:], 0 * unit, unit, EFFORT / force**2)
    controller = Mpc(engine, cost, HORIZON, (-force, force), iterations=rounds, properties=properties)
    state, going, reward = starts, torch.ones(len(starts), dtype=torch.bool), torch.zeros(len(starts))
    for _ in range(MAX_PERIODS):
        control = controller.act(model_state(state)).control[:, 0] / force
        state = torch.where(going[:, None], classic_cartpole.step(state, control), starts)
        going = going & ~classic_cartpole.is_terminal(state)
        reward += going
        if not bool(going.any()):
            break
    return reward


def error(engine: Engine, properties: Overrides, force: float, seed: int) -> float:
    """Mean squared error of one step of other episodes, each number divided by its deviation."""
    starts, controls, ends = random_play(20, torch.Generator().manual_seed(10_000 + seed)).batch()
    with torch.no_grad():
        result = engine.step(starts, controls * force, properties)
    missed = torch.cat([result.q - ends.q, result.v - ends.v], 1)
    return float((missed / torch.cat([ends.q, ends.v], 1).std(0, correction=0)).square().mean())


def physics(episodes: int, seeds: range) -> list[dict]:
    """Our cartpole fitted to each seed's episodes; the games of all seeds are worlds of one batch."""
    engine = articulated.cartpole(dt=classic_cartpole.DT)
    unknowns = Unknowns([Unknown(name, 1.0, low=0.0) for name in ("cart", "pole", "length")])
    model, rows, result = AdaptiveModel(engine, unknowns, leaves), [], []
    for seed in seeds:
        rollout = random_play(episodes, torch.Generator().manual_seed(seed))
        pushed = TransitionLog(
            rollout.starts, [classic_cartpole.MAX_FORCE_N * control for control in rollout.controls], rollout.ends
        )
        z = model.fit(pushed).z
        result.append(z.repeat(STARTS, 1))
        cart, pole, length = (float(value) for value in unknowns.values(z).values())
        row = {"model": "physics", "episodes": episodes, "seed": seed, "steps": len(rollout)}
        row |= {"mass": cart + pole, "moment": pole * length / 2, "inertia": pole * length**2 / 3}
        rows.append(
            row | {"error": error(engine, engine.checked(model.properties(z)), classic_cartpole.MAX_FORCE_N, seed)}
        )
    known = engine.checked(leaves(unknowns.values(torch.cat(result))))
    starts = torch.cat([beginnings(seed) for seed in seeds])
    rewards = game(engine, known, classic_cartpole.MAX_FORCE_N, starts, 4).unflatten(0, (-1, STARTS)).mean(1)
    return [row | {"reward": float(reward)} for row, reward in zip(rows, rewards, strict=True)]


def network(episodes: int, seed: int) -> dict:
    """A network trained on a seed's episodes."""
    rollout = random_play(episodes, torch.Generator().manual_seed(seed))
    engine = Network(rollout, seed)
    reward = float(game(engine, None, 1.0, beginnings(seed), 3).mean())
    row = {"model": "network", "episodes": episodes, "seed": seed, "steps": len(rollout)}
    return row | {"error": error(engine, None, 1.0, seed), "reward": reward}


def beginnings(seed: int) -> Tensor:
    return classic_cartpole.reset(STARTS, torch.Generator().manual_seed(20_000 + seed))


def main(
    seeds: int = 10, models: str = "physics,network", episodes: str = "1,2,5,10,20,50", out: Path = Path("out")
) -> None:
    """Run what is missing, and print the table."""
    out.mkdir(exist_ok=True)
    path = out / "cartpole_learned.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    claims = []
    for kind in models.split(","):
        for count in map(int, episodes.split(",")):
            done = {row["seed"] for row in rows if (row["model"], row["episodes"]) == (kind, count)}
            if kind == "physics" and not done >= set(range(seeds)):
                fresh = (physic for physic in physics(count, range(seeds)) if physic["seed"] not in done)
            else:
                fresh = (network(count, seed) for seed in range(seeds) if seed not in done)
            for row in fresh:
                rows.append(row)
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            min_reward = table(kind, count, rows)
            text = "one random episode" if count == 1 else f"{count} random episodes"
            how = "" if kind == "physics" else ", by a network"
            name = f"least reward of a cartpole that learns from {text}{how}"
            claims.append(Claim(name, min_reward, "of 1,000", seeds=tuple(range(seeds))))
    print(write_claims(__file__, claims))


def table(kind: str, episodes: int, rows: list[dict]) -> float:
    """Print a line of the table; returns the least reward."""
    results = [row for row in rows if (row["model"], row["episodes"]) == (kind, episodes)]
    rewards, errors, steps = (np.array([row[name] for row in results]) for name in ("reward", "error", "steps"))
    line = f"{kind:8s} {episodes:3d} episodes ({steps.mean():6.0f} steps): reward {rewards.mean():6.1f} "
    line += f"(least {rewards.min():6.1f}), one-step error {np.median(errors):.1e}, {len(results)} seeds"
    if kind == "physics":
        lumps = [np.mean([row[name] for row in results]) for name in ("mass", "moment", "inertia")]
        line += "; mass {:.4f} (1.1), moment {:.4f} (0.05), inertia {:.5f} (0.03333)".format(*lumps)
    print(line, flush=True)
    return float(rewards.min())


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
