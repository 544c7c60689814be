"""Design a quadruped's body together with its trot: lengths and masses are sought beside the gait's thirteen values.

The robot is that of `trot.py`. Its legs and its torso may be up to a quarter longer or shorter, thighs up to a quarter
longer or shorter than half of a leg, the legs' mass a meter a quarter more or less; hind legs may differ a little from
those in front, and the torso's center of mass need not be in its middle. The whole mass and the servos stay. A trot is
tuned on the scene's body first. From there the search goes on with that body, and with lengths and masses among the
unknowns.

    python experiments/quadruped_design.py [--seeds 5] [--evaluations 300] [--more 200] [--starts 3] [--out out]
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median

import torch
from jsonargparse import auto_cli
from quadruped import HEADER, Gait
from trot import GaitEvaluation, Runner, Search, by_gradient, draw, evaluate, summary

from physvision.report import render_video

SPREAD = 0.15  # of the search that goes on


def main(
    seeds: int = 5, evaluations: int = 300, more: int = 200, starts: int = 3, seconds: float = 10.0,
    out: Path = Path("out"),
) -> bool:  # fmt: skip
    """Optimize design and gait of the robot.

    Args:
        seeds: Number of seeds of the searches; 0, 1, 2 …
        evaluations: episodes in which the trot is tuned first.
        more: episodes of each search that goes on.
        starts: Number of initial states of the replays.
        seconds: Duration of an episode, s.
        out: folder of the figure and the film.

    Returns:
        Whether designed robots are faster in the median, here and in MuJoCo.
    """
    torch.set_num_threads(1)
    gait = Gait(seconds)
    own, designed = Runner(gait), Runner(gait, designed=True)
    kinds: dict[str, list[GaitEvaluation]] = {"same body": [], "designed": []}
    print(HEADER)
    for seed in range(seeds):
        first = by_gradient(own, Search(evaluations, seed))
        print(f"trot, seed {seed}: {-first.course[-1]:.2f} m/s after {first.evaluations} episodes", flush=True)
        further = Search(more, seed, start=first.values, spread=SPREAD)
        for name, runner in (("same body", own), ("designed", designed)):
            kinds[name].append(evaluate(f"{name}, seed {seed}", runner, by_gradient(runner, further), starts))
    for name, rows in kinds.items():
        print(summary(name, rows), flush=True)
    here, there = (
        [median(mean(speeds(kind)) for kind in kinds[name]) for name in kinds]
        for speeds in (lambda entry: [entry.speed], lambda entry: entry.again.there)
    )
    text = f"{here[1] / here[0] - 1:+.0%} here, {there[1] / there[0] - 1:+.0%} in MuJoCo"
    print(f"designed against the same body after {evaluations} and {more} episodes: {text}")
    draw(kinds, more, out / "design.png")
    fastest = max(kinds["designed"], key=lambda entry: entry.speed)
    body = designed.body(fastest.search_result.values[None])
    assert body is not None
    shared = {name: value[0] for name, value in body.items()}
    filmed = render_video(gait.engine, fastest.again.motion, out / "design.mp4", properties=shared)
    print(f"figure: {out / 'design.png'}, film: {filmed}")
    return here[1] > here[0] and there[1] > there[0]


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
