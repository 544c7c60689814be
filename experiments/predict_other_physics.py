"""Clips of other physics than a checkpoint's: what `predict` adapts to, names, or rejects.

    python experiments/predict_other_physics.py [--correct 200] [--changed 15]

The clips are those of a simulator and a drawer that share no code with the package (tests/prediction/other_physics.py).
For each it prints what the prediction says, whether the true values lie in the 95 % intervals, the error of the future
after the last frame (ten frames for balls, 1 s for rods) and of the states. The last lines are the bars: changed clips
that are adapted to, correct clips with a warning or rejected, and the coverage of intervals and futures. A changed clip
has the first seed from its own on whose motion differs from that of the checkpoint's physics: where the ball of another
mass meets no other, nobody can tell.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from physvision.core import InputError
from physvision.prediction import Predictor
from physvision.prediction.settings import SETTINGS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from prediction.other_physics import RADIUS, Discs, Rods, discs, draw_discs, draw_rods, rods

DISC_FRAMES, ROD_FRAMES, SEED = 300, 200, 4100
HORIZONS = {"billiards-3": 1 / 3, "pendulum": 1.0}  # s
WALLS = ("left wall", "upper wall", "right wall", "lower wall")
# Physics of each changed clip, and the true values of what differs, by the words that name it. Words without a value
# name what no parameter explains.
CHANGED: tuple[tuple[str, Discs | Rods, dict[str, float | None]], ...] = (
    ("2 to 4.5 px a frame", Discs(speed=(2.0, 4.5)), {"px a frame": None}),
    ("2 to 4.5 px a frame, again", Discs(speed=(2.0, 4.5)), {"px a frame": None}),
    ("6 to 9 px a frame", Discs(speed=(6.0, 9.0)), {"px a frame": None}),
    ("walls 6 px inside", Discs(margin=(6.0,) * 4), dict(zip(WALLS, (6.0, 6.0, 58.0, 58.0), strict=True))),
    ("left wall 6 px inside", Discs(margin=(6.0, 0.0, 0.0, 0.0)), {"left wall": 6.0}),
    ("masses 4:1:1", Discs(masses=(4.0, 1.0, 1.0)), {"mass of green / red": 0.25, "mass of blue / red": 0.25}),
    ("masses 1:4:1", Discs(masses=(1.0, 4.0, 1.0)), {"mass of green / red": 4.0}),
    ("restitution 0.7", Discs(restitution=0.7), {"restitution": 0.7}),
    ("restitution 0.85", Discs(restitution=0.85), {"restitution": 0.85}),
    ("friction 8 px/s²", Discs(deceleration=8.0), {"sliding deceleration": 8.0}),
    ("friction 4 px/s²", Discs(deceleration=4.0), {"sliding deceleration": 4.0}),
    ("gravity 1.62", Rods(gravity=1.62), {"gravity": 1.62}),
    ("gravity 20", Rods(gravity=20.0), {"gravity": 20.0}),
    ("masses 1, 1, 5", Rods(masses=(1.0, 1.0, 5.0)), {"mass of link 3 / link 1": 5.0}),
    ("two links", Rods(welded=True), {"only 2 links move": None}),
)


@dataclass
class Outcome:
    """Prediction of a clip, compared with the simulator.

    Attributes:
        message: Warnings, or the reason of a rejection.
        is_rejected: If true, the clip was rejected.
        future_error: Errors of the objects at the horizon after the last frame.
        future_std: Their predicted standard deviations, for each coordinate.
        future_residual: Errors of each coordinate at the horizon.
        state_error: Errors of the states of all frames.
        state_ratio: These in predicted standard deviations, for each coordinate.
        intervals: 68 % and 95 % interval of each parameter that is estimated.
        widths: Width of the latter.
        announced: Confidence of predictions within the clip, and whether they were right.
    """

    message: str
    is_rejected: bool = False
    future_error: np.ndarray | None = None
    future_std: np.ndarray | None = None
    future_residual: np.ndarray | None = None
    state_error: np.ndarray | None = None
    state_ratio: np.ndarray | None = None
    intervals: dict | None = None
    widths: dict | None = None
    announced: tuple[np.ndarray, np.ndarray] | None = None


def run(predictor: Predictor, physics: Discs | Rods, seed: int) -> Outcome:
    """Predict one clip and compare it with the truth."""
    is_table = isinstance(physics, Discs)
    frames = DISC_FRAMES if is_table else ROD_FRAMES
    if isinstance(physics, Discs):
        x = discs(physics, frames + predictor.steps, seed)[0]
        clip = draw_discs(x[:frames])
    else:
        x = rods(physics, frames + predictor.steps, seed)[0][..., None]
        clip = draw_rods(physics, x[:frames, :, 0])
    try:
        prediction = predictor(clip)
    except InputError as error:
        return Outcome(str(error), is_rejected=True)

    def residual(q, true):
        off = q.numpy().reshape(*true.shape[:-1], -1)[..., : true.shape[-1]] - true
        return off if is_table else off - 2 * np.pi * np.round(off / (2 * np.pi))

    off = residual(prediction.future.q[0, -1], x[-1])
    std = prediction.future_std.q[0, -1].numpy().reshape(*off.shape[:-1], -1)[..., : off.shape[-1]]
    now = residual(prediction.states.q, x[prediction.frames.numpy()])
    now_std = prediction.state_std.q.numpy().reshape(*now.shape[:-1], -1)[..., : now.shape[-1]]
    estimates = {item.parameter.name: item for item in prediction.parameters if item.is_estimated}
    ahead = residual(prediction.predicted.q, x[prediction.frames.numpy()])
    settings = SETTINGS
    reach = settings.confident_radii * RADIUS if is_table else settings.confident_angle
    announced = prediction.predicted_confidence.numpy().ravel()
    right, known = (np.linalg.norm(ahead, axis=-1) < reach).ravel(), np.isfinite(announced)
    return Outcome(
        " ".join(prediction.warnings),
        future_error=np.linalg.norm(off, axis=-1),
        future_std=std,
        future_residual=off,
        state_error=np.linalg.norm(now, axis=-1),
        intervals={name: (item.interval(0.68), item.interval(0.95)) for name, item in estimates.items()},
        widths={name: np.ptp(item.interval(0.95)) for name, item in estimates.items()},
        state_ratio=np.abs(now / np.maximum(now_std, 1e-12)),
        announced=(announced[known], right[known]),
    )


def main(correct: int, changed: int) -> None:
    """Predict all clips and print the tables."""
    predictors = {name: Predictor.from_checkpoint(name, horizon=ahead) for name, ahead in HORIZONS.items()}

    def predictor(physics: Discs | Rods) -> Predictor:
        return predictors["billiards-3" if isinstance(physics, Discs) else "pendulum"]

    own = [(Discs() if index % 3 else Rods(), SEED + index) for index in range(correct)]
    typical, warned, rejected = {}, 0, 0
    futures: dict[type, list[Outcome]] = {Discs: [], Rods: []}
    for physics, seed in own:
        outcome = run(predictor(physics), physics, seed)
        warned, rejected = warned + bool(outcome.message), rejected + outcome.is_rejected
        if outcome.message:
            print(f"correct clip {seed}: {outcome.message}", flush=True)
        if not outcome.is_rejected:
            futures[type(physics)].append(outcome)
    for kind, outcomes in futures.items():
        if outcomes:
            errors = np.concatenate([item.future_error for item in outcomes if item.future_error is not None])
            typical[kind] = float(np.quantile(errors, 0.95))
            states = np.concatenate([np.ravel(item.state_error) for item in outcomes if item.state_error is not None])
            marks = " ".join(f"{value:.4f}" for value in np.quantile(states, [0.05, 0.25, 0.5, 0.75, 0.95]))
            print(f"{kind.__name__}: future median {np.median(errors):.4f}, 95 % {typical[kind]:.4f}; states {marks}")
            _coverage(outcomes)
    if all(futures.values()):
        print("Both")
        _coverage([item for outcomes in futures.values() for item in outcomes])
    adapted = 0
    for index, (name, physics, truth) in enumerate(CHANGED[:changed]):
        seed = next(seed for seed in range(SEED + 1000 + index, 10**6, 100) if shows(physics, seed))
        outcome = run(predictor(physics), physics, seed)
        is_good, text = _judge(outcome, truth, typical.get(type(physics), np.nan))
        adapted += is_good
        print(f"{name:28} {'+' if is_good else '-'} {text}", flush=True)
    print(f"changed clips adapted to, or rejected with their reason: {adapted} of {min(changed, len(CHANGED))}")
    print(f"correct clips: {warned} with a warning, {rejected} rejected, of {correct}")


def shows(physics: Discs | Rods, seed: int) -> bool:
    """Return whether a motion differs from that of the checkpoint's physics by a pixel or a tenth of a radian."""
    if isinstance(physics, Discs):
        away = discs(physics, DISC_FRAMES, seed)[0] - discs(Discs(), DISC_FRAMES, seed)[0]
        return bool(np.abs(away).max() > 1.0)
    return bool(np.abs(rods(physics, ROD_FRAMES, seed)[0] - rods(Rods(), ROD_FRAMES, seed)[0]).max() > 0.1)


def _judge(outcome: Outcome, truth: dict[str, float | None], typical: float) -> tuple[bool, str]:
    """Judge a changed clip: named, with true values within intervals and a small error, or rejected by its name."""
    is_named = all(name.lower() in outcome.message.lower() for name in truth)
    if outcome.is_rejected:
        return is_named, f"rejected: {outcome.message[:240]}"
    assert outcome.intervals is not None
    assert outcome.future_error is not None
    values = {name: value for name, value in truth.items() if value is not None}
    is_inside = all(
        name in outcome.intervals and outcome.intervals[name][1][0] <= value <= outcome.intervals[name][1][1]
        for name, value in values.items()
    )
    error = float(np.median(outcome.future_error))
    estimated = [name for name in values if name in outcome.intervals]
    intervals = {name: tuple(round(end, 4) for end in outcome.intervals[name][1]) for name in estimated}
    text = f"future {np.round(outcome.future_error, 3)} (limit {2 * typical:.3f}) {intervals} named: {is_named}"
    return is_inside and is_named and error <= 2 * typical, text


def _coverage(outcomes: list[Outcome]) -> None:
    """Print how many true values are within intervals of correct clips, and errors within the futures' spread."""
    inside = {0.68: [], 0.95: []}
    for outcome in outcomes:
        for name, intervals in (outcome.intervals or {}).items():
            value = START.get(name, 1.0)
            for level, (low, high) in zip(inside, intervals, strict=True):
                inside[level].append(low - 1e-9 <= value <= high + 1e-9)
    print(f"  parameters: 68 % intervals hold {np.mean(inside[0.68]):.0%}, 95 % {np.mean(inside[0.95]):.0%}", end="")
    futures = np.concatenate([np.abs(item.future_residual / item.future_std).ravel() for item in outcomes])
    states = np.concatenate([item.state_ratio.ravel() for item in outcomes if item.state_ratio is not None])
    for name, ratios in (("futures", futures), ("states", states)):
        print(f"; {name} {np.mean(ratios < 1):.0%}, {np.mean(ratios < 1.96):.0%}", end="")
    widths: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, width in (outcome.widths or {}).items():
            widths.setdefault(name, []).append(float(width))
    text = ", ".join(f"{name} {np.median(width):.2g}" for name, width in widths.items())
    print(f"\n  median width of 95 % intervals: {text}")
    announced, right = (np.concatenate(parts) for parts in zip(*(item.announced for item in outcomes), strict=True))
    for low, high in ((0.0, 0.5), (0.5, 0.8), (0.8, 0.97), (0.97, 1.01)):
        part = (announced >= low) & (announced < high)
        if part.any():
            mean, fraction = announced[part].mean(), right[part].mean()
            print(f"  {part.sum()} predictions said with {mean:.0%} in the mean: {fraction:.0%} are right")


# The shipped checkpoints' values of parameters that are not one.
START = {
    "sliding deceleration": 0.0,
    "left wall": 0.0,
    "upper wall": 0.0,
    "right wall": 64.0,
    "lower wall": 64.0,
    "radius": 3.2,
    "gravity": 9.81,
    "joint damping": 0.0,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--correct", type=int, default=200)
    parser.add_argument("--changed", type=int, default=len(CHANGED))
    given = parser.parse_args()
    main(given.correct, given.changed)
