"""Tune a quadruped's trot of thirteen values by gradients, and by CMA-ES with as many episodes.

The robot is that of section "quadruped" of "A Differentiable Physics Engine …" (2019), 28.7 kg on eight servos of
4 N m; it is to run as far as it can in 10 s. Each search is repeated with several seeds, without and with energy in its
loss. The gaits that were found are tried again from ten starts that differ by a millimetre, here and in MuJoCo.

    python experiments/trot.py [--seeds 5] [--evaluations 500] [--energies '[0, 1]'] [--starts 10] [--out out]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import torch
from evolution import Evolved, evolve
from jsonargparse import auto_cli
from panel import panel, save
from quadruped import BAR, DT, HEADER, LEFT, PAPER, TROT, WEIGHT, Again, Gait, again, measured, powers, row, steps
from quadruped_body import DESIGN, built, described, remodeled, standing
from torch import Tensor

from physvision.control.policies import PolicyRollout
from physvision.core import State, Trajectory
from physvision.report import render_video

PIECE = 60  # periods that gradients go back
SUNK = 0.75  # share of its height below which a torso has fallen


@dataclass(frozen=True)
class Runner:
    """A quadruped whose gait, and whose body where that is designed, follow from numbers."""

    gait: Gait
    designed: bool = False

    @property
    def unknowns(self) -> int:
        """Number of unknowns of the search."""
        return len(TROT) + (len(DESIGN) if self.designed else 0)

    def body(self, unknowns: Tensor) -> dict[str, Tensor] | None:
        """The engine's properties, a row a robot; None for the scene's own."""
        return built(unknowns[:, len(TROT) :]) if self.designed else None

    def start(self, unknowns: Tensor) -> State:
        """At rest on four straight legs."""
        properties = self.body(unknowns)
        return self.gait.reset(len(unknowns), torch.Generator())[0] if properties is None else standing(properties)

    def run(self, unknowns: Tensor) -> PolicyRollout:
        """Episodes of robots (robots, unknowns), of which one that falls lies still from then on.

        Gradients go back to the start of their piece of the episode.
        """
        properties, state = self.body(unknowns), self.start(unknowns)
        targets = steps(unknowns[:, : len(TROT)], self.gait.episode_steps, PIECE)
        fallen = SUNK * state.q[:, 2].detach()
        q, v = [state.q[:, None]], [state.v[:, None]]
        for first in range(0, self.gait.episode_steps, PIECE):
            controls = targets[:, first : first + PIECE]
            up = torch.nonzero(state.q[:, 2] > fallen)[:, 0]
            lie_q = state.q[:, None].expand(-1, controls.shape[1], -1)
            lie_v = torch.zeros_like(state.v)[:, None].expand(-1, controls.shape[1], -1)
            if len(up):
                own = None if properties is None else {name: entry[up] for name, entry in properties.items()}
                motion = self.gait.engine.rollout(State(state.q[up], state.v[up]), controls.shape[1], controls[up], own)
                lie_q = lie_q.index_copy(0, up, motion.q[:, 1:])
                lie_v = lie_v.index_copy(0, up, motion.v[:, 1:])
            q.append(lie_q)
            v.append(lie_v)
            state = State(lie_q[:, -1].detach(), lie_v[:, -1].detach())
        motion = Trajectory(torch.cat(q, 1), torch.cat(v, 1), dt=DT)
        return PolicyRollout(motion, targets, -motion.v[:, 1:, 0])


def scores(rollout: PolicyRollout, energy: float) -> Tensor:
    """Speeds, less what energy counts for, m/s; falls and NaN from failures count as standing."""
    result = -rollout.losses.mean(1) - (energy * powers(rollout).mean(1) / WEIGHT if energy else 0.0)
    return torch.where(result.isfinite(), result, 0.0)


@dataclass(frozen=True)
class Search:
    """Settings of a search: its length, start and objective.

    Attributes:
        evaluations: episodes.
        seed: Seed of the search.
        energy: m/s that a cost of transport of 1 at 1 m/s counts for.
        start: Initial unknowns; the trot that is set by hand, and the scene's body, by default.
        spread: standard deviation at first.
    """

    evaluations: int
    seed: int
    energy: float = 0.0
    start: Tensor | None = None
    spread: float = 0.3


def by_evolution(runner: Runner, search: Search, downhill: Callable[[Tensor], Tensor] | None = None) -> Evolved:
    """Search the gait by CMA-ES."""

    def judge(candidates: Tensor) -> tuple[Tensor, Tensor]:
        return -scores(runner.run(candidates), search.energy), torch.zeros(len(candidates), dtype=torch.bool)

    start = torch.zeros(runner.unknowns, dtype=torch.float64)
    if search.start is not None:
        start[: len(search.start)] = search.start
    return evolve(judge, start, search.spread, search.seed, search.evaluations, downhill)


def by_gradient(runner: Runner, search: Search) -> Evolved:
    """CMA-ES, of each generation of which one member is the last one's best moved along its gradient.

    Gradients alone soon come to where a faster gait falls, and lead over that edge again and again, for a motion that
    goes well does not tell how near it is: the others of a generation do.
    """

    def downhill(values: Tensor) -> Tensor:
        unknowns = values[None].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(scores(runner.run(unknowns), search.energy).sum(), unknowns)
        return gradient[0].nan_to_num(0.0, 0.0, 0.0)

    return by_evolution(runner, search, downhill)


SEARCHES: dict[str, Callable[..., Evolved]] = {"gradients": by_gradient, "CMA-ES": by_evolution}


@dataclass(frozen=True)
class GaitEvaluation:
    """Result of a search, its evaluation by `measured`, and its replays."""

    search_result: Evolved
    numbers: Tensor
    again: Again

    @property
    def speed(self) -> float:
        """Over the episode, m/s."""
        return -float(self.numbers[0])


def evaluate(name: str, runner: Runner, search_result: Evolved, starts: int) -> GaitEvaluation:
    """Evaluate a gait here and in MuJoCo, and print the result."""
    unknowns = search_result.values[None]
    rollout, properties = runner.run(unknowns), runner.body(unknowns)
    numbers = measured(rollout)[0]
    change = (lambda model: None) if properties is None else remodeled(properties)
    replayed = again(runner.gait, rollout.controls[0], starts, runner.start(unknowns), properties, change)
    design = f"; {described(search_result.values[len(TROT) :])}" if runner.designed else ""
    print(row(name, numbers, replayed))
    print(f"  after {search_result.evaluations} episodes, {search_result.seconds:.0f} s{design}", flush=True)
    return GaitEvaluation(search_result, numbers, replayed)


def spread(numbers: Sequence[float]) -> str:
    """Median and range of values."""
    return f"{median(numbers):.2f} ({min(numbers):.2f} to {max(numbers):.2f})"


def summary(name: str, rows: Sequence[GaitEvaluation]) -> str:
    """One line for all seeds: medians and ranges."""
    here, there = [mean(row.again.here) for row in rows], [mean(row.again.there) for row in rows]
    left = [replayed / entry.speed for replayed, entry in zip(there, rows, strict=True)]
    cost, turned = [float(row.numbers[1]) for row in rows], max(float(row.numbers[2]) for row in rows)
    return (
        f"{name}: {spread([row.speed for row in rows])} m/s; cost {spread(cost)}; at most {turned:.1f} turns; "
        f"other starts {spread(here)}, in MuJoCo {spread(there)} m/s, {spread(left)} of it left"
    )


def draw(kinds: dict[str, list[GaitEvaluation]], evaluations: int, file: Path) -> None:
    figure, axis = panel()
    for number, (name, rows) in enumerate(kinds.items()):
        for order, entry in enumerate(search.search_result for search in rows):
            counts = torch.linspace(entry.evaluations / len(entry.course), entry.evaluations, len(entry.course))
            label = None if order else name
            axis.plot(counts, [-loss for loss in entry.course], color=f"C{number}", linewidth=1, label=label)
    axis.axhline(BAR, color="0.7", linestyle=":")
    axis.set(xlabel="episodes", ylabel="speed over the episode, m/s", xlim=(0, evaluations))
    save(figure, axis, file)


def main(
    seeds: int = 5, evaluations: int = 500, energies: tuple[float, ...] = (0.0, 1.0), starts: int = 10,
    seconds: float = 10.0, searches: tuple[str, ...] = tuple(SEARCHES), out: Path = Path("out"),
) -> bool:  # fmt: skip
    """Tune the trot by searches.

    Args:
        seeds: Number of seeds of each search; 0, 1, 2 …
        evaluations: episodes of each.
        energies: m/s that a cost of transport of 1 at 1 m/s counts for in each loss.
        starts: Number of initial states of the replays.
        seconds: Duration of an episode, s.
        searches: which.
        out: folder of the figure and the film.

    Returns:
        Whether most searches by gradients reach the paper's speed, and keep 80 % of it in MuJoCo.
    """
    torch.set_num_threads(1)
    runner = Runner(Gait(seconds))
    print(f"{PAPER}\n{HEADER}")
    by_hand = Evolved(torch.zeros(runner.unknowns, dtype=torch.float64), 0, 0.0, False, [])
    evaluate("by hand", runner, by_hand, starts)
    kinds: dict[str, list[GaitEvaluation]] = {}
    for energy in energies:
        for name in searches:
            kind = f"{name}, energy {energy:g}" if energy else name
            rows = kinds[kind] = []
            for seed in range(seeds):
                result = SEARCHES[name](runner, Search(evaluations, seed, energy))
                rows.append(evaluate(f"{kind}, seed {seed}", runner, result, starts))
            print(summary(kind, rows), flush=True)
    rows = next(iter(kinds.values()))
    good = [row.speed >= BAR and mean(row.again.there) >= LEFT * row.speed for row in rows]
    met = 2 * sum(good) > seeds
    print(f"{sum(good)} of {seeds} reach {BAR} m/s and keep 80 % in MuJoCo: {'met' if met else 'MISSED'}")
    draw(kinds, evaluations, out / "trot.png")
    fastest = max(rows, key=lambda entry: entry.speed)
    print(
        f"figure: {out / 'trot.png'}, film: {render_video(runner.gait.engine, fastest.again.motion, out / 'trot.mp4')}"
    )
    return met


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
