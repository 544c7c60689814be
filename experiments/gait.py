"""Teach a quadruped to run: section "quadruped" of "A Differentiable Physics Engine …" (2019).

A robot of 28.7 kg with eight servos of 4 N m (30 1/s, 10 rad/s) stands. A network of 17,952 parameters is told the
sine and cosine of a clock of 1.5 Hz and answers with the servos' targets a hundred times a second; it is to run as far
as it can in 10 s. It learns by gradients through all 1,000 steps and their contacts, five seeds side by side, without
and with energy in its loss. Beside it the same network is tuned by CMA-ES with as many evaluations. The targets are
replayed in MuJoCo from ten starts that differ by a millimetre. A trot of few values is tuned by `trot.py`.

    python experiments/gait.py [--seeds 5] [--updates 500] [--energy 1.0] [--out out]
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import torch
from evolution import evolve
from jsonargparse import auto_cli
from panel import panel, save
from quadruped import BAR, HEADER, LEFT, PAPER, WEIGHT, Again, Gait, again, measured, powers, row
from side_by_side import Habits, Many, Teaching, taught
from torch import Tensor

from physvision.control.policies import Dense, Played, play_open_loop
from physvision.report import film

PIECE = 20  # periods


def network(seed: int) -> Dense:
    torch.manual_seed(seed)
    return Dense(2, (128, 128), 8, direct=True).double()


def targets_of(gait: Gait, vectors: Tensor) -> Tensor:
    """The targets of networks with these parameters, (robots, periods, 8)."""
    policy = Many([network(0)])
    policy.set(vectors)
    _, aim = gait.begin(len(vectors), torch.Generator())
    with torch.no_grad():
        return policy(gait.foresee(aim), aim)[0]


def by_evolution(gait: Gait, evaluations: int, seed: int) -> tuple[Tensor, float]:
    """What CMA-ES makes of the network: targets (periods, 8), seconds."""
    start = Many([network(seed)])
    start.still()

    def judge(candidates: Tensor) -> tuple[Tensor, Tensor]:
        at, _ = gait.begin(len(candidates), torch.Generator())
        end = gait.engine.rollout(at, gait.periods, targets_of(gait, candidates)).final
        return -end.q[:, 0], torch.zeros(len(candidates), dtype=torch.bool)

    best = evolve(judge, start.vectors()[0].double(), 0.02, seed, evaluations)
    return targets_of(gait, best.values[None])[0], best.seconds


def draw(courses: dict[str, list[list[float]]], file: Path) -> None:
    figure, axis = panel()
    for number, (name, speeds) in enumerate(courses.items()):
        for order, each in enumerate(speeds):
            label = None if order else name
            axis.plot(range(1, len(each) + 1), each, color=f"C{number}", linewidth=1, alpha=0.7, label=label)
    axis.axhline(BAR, color="0.7", linestyle=":")
    axis.set(xlabel="evaluations", ylabel="speed over the episode, m/s")
    save(figure, axis, file)


def tell(name: str, gait: Gait, targets: Tensor, starts: int) -> Again:
    """Print how a gait does here and in MuJoCo."""
    start, aim = gait.begin(1, torch.Generator())
    motion = gait.engine.rollout(start, gait.periods, targets[None])
    played = Played(motion, targets[None], gait.losses(motion[1:].flatten(), aim)[None])
    found = again(gait, targets, starts)
    print(row(name, measured(played)[0], found), flush=True)
    return found


def main(
    seeds: int = 5, updates: int = 500, energy: float = 1.0, starts: int = 10, seconds: float = 10.0,
    out: Path = Path("out"),
) -> bool:  # fmt: skip
    """Teach the robot.

    Args:
        seeds: of the network; 0, 1, 2 …
        updates: of each policy, and evaluations of CMA-ES.
        energy: m/s that a cost of transport of 1 at 1 m/s counts for in the second loss; 0 to leave it out.
        starts: of the replays.
        seconds: of an episode.
        out: folder of the figure and the films.

    Returns:
        Whether most seeds reach the paper's speed, and keep 80 % of it in MuJoCo.
    """
    torch.set_num_threads(1)
    gait = Gait(seconds)
    print(f"{PAPER}; network of {sum(each.numel() for each in network(0).parameters()):,} parameters")
    trainings: dict[str, Teaching] = {}
    weights = {"speed": 0.0} | ({"speed and energy": energy} if energy else {})
    for name, weight in weights.items():

        def losses(played: Played, weight: float = weight) -> Tensor:
            return played.losses + (weight * powers(played) / WEIGHT if weight else 0.0)

        trainings[name] = taught(
            [network(seed) for seed in range(seeds)], gait, updates, measured, [Habits()] * seeds, told=name,
            losses=losses, player=follow_in_pieces,
        )  # fmt: skip
    print(HEADER)
    kept = {}
    for name, training in trainings.items():
        kept[name] = [
            tell(f"{name}, seed {seed}", gait, targets, starts)
            for seed, targets in enumerate(targets_of(gait, training.best))
        ]
    targets, spent = by_evolution(gait, updates, 0)
    tell(f"CMA-ES, {spent:.0f} s", gait, targets, starts)
    fast = [-float(each) for each in trainings["speed"].least]
    left = [mean(each.there) / speed for each, speed in zip(kept["speed"], fast, strict=True)]
    reached = sum(speed >= BAR for speed in fast)
    met = 2 * reached > seeds and sum(share >= LEFT for share, speed in zip(left, fast, strict=True)) * 2 > seeds
    print(f"{reached} of {seeds} seeds reach {BAR} m/s; {'met' if met else 'MISSED'} with 80 % in MuJoCo")
    courses = {name: [[-row[0] for row in course] for course in each.courses] for name, each in trainings.items()}
    draw(courses, out / "gait.png")
    for name, each in kept.items():
        file = out / f"gait {name}.mp4".replace(" ", "_")
        print(f"figure: {out / 'gait.png'}, film of the replay: {film(gait.engine, each[0].motion, file)}")
    return met


def follow_in_pieces(*given, **options) -> Played:
    """`play_open_loop`, 0.2 s in a launch."""
    return play_open_loop(*given, piece=PIECE, **options)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
