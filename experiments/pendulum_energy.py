"""Energy of a pendulum as a graph network and as the physics layer predict it, each having seen 800 frames.

Both learn to predict the next state from the true states of the first 800 frames of the data set (the pictures play no
part here), with the same loss, optimizer and number of updates. Then both go on by themselves from states of trials
that they have not seen. Nothing rubs, so the true energy stays what it is.

    python experiments/pendulum_energy.py [--updates 800] [--seeds 3] [--out out]
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl
import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import Coordinates, State
from physvision.datasets import Dataset, PendulumRecipe, generate
from physvision.models import NetworkEngine, StateGraph, StatePerceptron
from physvision.physics import PhysicsLayer, articulated
from physvision.physics.engine import Engine

mpl.use("Agg")
from matplotlib import pyplot as plt

DT, FRAMES, TRIALS = 0.05, 200, 4
AHEAD, AT = 60, (20, 60)
COORDINATES = Coordinates(3, (0, 1, 2))
COLORS = {"graph network": "#d65f4d", "MLP": "#e0a02f", "physics layer": "#3a7cbf"}


def chain(lengths: tuple[float, ...]) -> articulated.Articulation:
    return articulated.chain(lengths, dt=DT, integrator="runge_kutta_4", substeps=2)


def learners() -> dict[str, tuple[Engine, float]]:
    """Learned models, and their learning rates."""
    guess = (1.0, 5.0, 0.5)
    physics = PhysicsLayer(chain(guess), {"lengths": guess}, articulated.chain_properties)
    graph = NetworkEngine(StateGraph(COORDINATES, bodies=3, velocity_scale=4.0), DT)
    return {
        "graph network": (graph, 1e-3),
        "MLP": (NetworkEngine(StatePerceptron(COORDINATES, velocity_scale=4.0), DT), 1e-3),
        "physics layer": (physics, 0.05),
    }


def states(data: Dataset, trials: range) -> tuple[Tensor, Tensor]:
    """Positions and velocities, (trials, frames, links)."""
    results = [data.trajectory(trial) for trial in trials]
    return torch.cat([entry.q for entry in results]).float(), torch.cat([entry.v for entry in results]).float()


def learn(engine: Engine, rate: float, q: Tensor, v: Tensor, updates: int) -> None:
    """Predict the next state, in batches of 128."""
    optimizer = torch.optim.Adam(engine.parameters(), lr=rate)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    before = State(q[:, :-1].flatten(0, 1), v[:, :-1].flatten(0, 1))
    after = State(q[:, 1:].flatten(0, 1), v[:, 1:].flatten(0, 1))
    for _ in range(updates):
        selected = torch.randint(before.batch, (128,))
        result = engine.step(State(before.q[selected], before.v[selected]))
        position = (result.q - after.q[selected]) / DT
        loss = (position.square() + (result.v - after.v[selected]).square()).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(engine.parameters(), 1.0)
        optimizer.step()
        decay.step()


def energies(q: Tensor, v: Tensor) -> Tensor:
    """Kinetic and potential energy by the true lengths, J, (batch, times)."""
    kinetic, potential = chain((3.0, 3.0, 3.0)).energy(State(q.flatten(0, 1).double(), v.flatten(0, 1).double()))
    return (kinetic + potential).unflatten(0, q.shape[:2])


def draw(courses: dict[str, Tensor], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    times = DT * torch.arange(AHEAD + 1)
    for name, change in courses.items():
        low, middle, high = change.quantile(torch.tensor([0.1, 0.5, 0.9], dtype=change.dtype), 0)
        axes.plot(times, middle, color=COLORS[name], label=name)
        axes.fill_between(times, low, high, color=COLORS[name], alpha=0.2, linewidth=0)
    axes.axhline(0.0, color="0.5", linestyle=":", linewidth=1)
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set(xlabel="time ahead, s", ylabel="energy gained, J", title="Median, and the middle 80 % of starts")
    axes.legend(frameon=False, loc="upper left")
    axes.margins(x=0)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(data: str = "data/pendulum_energy", updates: int = 800, seeds: int = 3, out: Path = Path("out")) -> None:
    """Compare the energy drift of learned models.

    Args:
        data: folder of the data set, made if it is not there.
        updates: Updates of each learner.
        seeds: Number of trainings of each learner from scratch.
        out: folder of the figure.
    """
    torch.set_num_threads(1)
    generate(PendulumRecipe(trials=10, frames=FRAMES, samples=1), data, workers=1, progress=False)
    train = Dataset(data, "train")
    q, v = states(train, range(TRIALS))
    held_q, held_v = states(train, range(TRIALS, len(train)))
    starts = State(held_q[:, :-AHEAD:5].flatten(0, 1), held_v[:, :-AHEAD:5].flatten(0, 1))
    true = torch.stack([held_q[:, step : FRAMES - AHEAD + step : 5].flatten(0, 1) for step in range(AHEAD + 1)], 1)
    print(f"{q.shape[0] * q.shape[1]} frames to learn from, {starts.batch} starts that were not seen")
    columns = [f"{what} {step * DT:g} s" for what in ("mean gain", "median error") for step in AT]
    print(
        f"energy, J{'':<6} {'seed':>4} {'cpu s':>6}",
        *(f"{column:>16}" for column in columns),
        "  angle error, rad, 1 s",
    )
    courses = {}
    for seed in range(seeds):
        torch.manual_seed(seed)
        for name, (engine, rate) in learners().items():
            began = time.thread_time()
            learn(engine, rate, q, v, updates)
            took = time.thread_time() - began
            with torch.no_grad():
                ahead = engine.rollout(starts, AHEAD)
            total = energies(ahead.q, ahead.v)
            change = total - total[:, :1]
            courses.setdefault(name, change)
            error = COORDINATES.difference(ahead.q[:, 20], true[:, 20]).abs().mean()
            measures = [*change[:, AT].mean(0), *change[:, AT].abs().median(0).values]
            print(
                f"{name:<15} {seed:>4} {took:>6.0f}", *(f"{x:>16.3g}" for x in measures), f"{error:>23.3f}", flush=True
            )
    draw(courses, out / "pendulum_energy.png")
    print(f"figure: {out / 'pendulum_energy.png'}")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
