"""How often `identify`'s intervals hold, and how far its values are off: drawn clips, filmed as people film.

The last column is how far a prediction is off in the next half second, as a share of how far a constant velocity is,
for falls a constant acceleration: the median of the clips.

Each clip is drawn with parameters, camera, light, noise and compression at random, written as H.264, and identified
from the file. Results are kept line by line, so an interrupted run goes on where it stopped, and several processes can
share the work: each takes every so many-th clip, and any of them, or a last call, shows what all have found.

    python experiments/identify_coverage.py [--clips 200] [--first 0] [--kinds false] [--out out/identify_coverage] \
        [--share 1/2] [--only projectile,fall]

A clip that is refused counts as a miss of its leading parameters.

What it found is in docs/identify.md, with the commit.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

import numpy as np
import torch
from jsonargparse import auto_cli

from physvision.core import PhysvisionError
from physvision.core.result_cache import cached_results
from physvision.datasets.clips import KINDS, LEADING, draw
from physvision.identification import Identification, identify


def judge(kind: str, seed: int, name_kind: bool) -> dict:
    """One clip: what was found of each parameter, or why it was refused."""
    clip, began = draw(kind, seed), time.process_time()
    told = {**clip.known, **{name: value for name, value in clip.options.items() if name == "scale"}}
    result: dict = {"kind": kind, "seed": seed, "parameters": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = clip.write(Path(folder) / "clip.mp4")
        try:
            found = identify(path, kind if name_kind else None, told, fps=clip.options.get("fps"))
        except PhysvisionError as error:
            return {**result, "refused": str(error)[:200]}
    result |= {"named": found.motion, "alike": list(found.indistinguishable), "seconds": time.process_time() - began}
    result["ahead"] = ahead(found)
    for name, each in found.parameters.items():
        truth = clip.truth.get(name)
        if truth is None or each.value is None or each.interval_68 is None or each.interval_95 is None:
            continue
        result["parameters"][name] = {
            "value": float(each.value),
            "truth": float(truth),
            "in_68": bool(each.interval_68[0] <= truth <= each.interval_68[1]),
            "in_95": bool(each.interval_95[0] <= truth <= each.interval_95[1]),
        }
    return result


def ahead(found: Identification) -> dict[str, float] | None:
    """How far predictions are off in the half second after the first two thirds, px: ours, and simpler ones.

    A constant velocity is that of the last five places; a constant acceleration that of all since the motion began.
    """
    if found.holdout is None:
        return None
    ours, times = found.holdout.positions, found.evidence.times.numpy()
    seen = found.evidence.observed.numpy()
    there = np.asarray(np.isfinite(seen).all(1))
    cut = int(np.flatnonzero(np.isfinite(ours).all(1))[0])
    late = there & np.isfinite(ours).all(1) & (times < times[cut] + 0.5)
    before = np.flatnonzero(there[:cut] & (np.arange(cut) >= found.fit.model.first))
    if not late.any() or len(before) < 5:
        return None

    def missed(guess: np.ndarray) -> float:
        return float(np.sqrt(np.square(guess - seen)[late].mean() * 2))

    def polynomial(frames: np.ndarray, degree: int) -> np.ndarray:
        powers = np.vander(times - times[cut], degree + 1)
        return powers @ np.linalg.lstsq(powers[frames], seen[frames], rcond=None)[0]

    return {
        "ours": missed(ours),
        "velocity": missed(polynomial(before[-5:], 1)),
        "acceleration": missed(polynomial(before, 2)),
    }


def show(results: list[dict], name_kind: bool) -> None:
    """Coverage and errors of each kind and of all."""
    rows: dict[str, list[dict]] = defaultdict(list)
    errors: dict[str, list[float]] = defaultdict(list)
    for result in results:
        for _ in LEADING[result["kind"]] if "refused" in result else ():
            for kind in (result["kind"], "all"):
                rows[kind].append({"in_68": False, "in_95": False})
                errors[kind].append(np.inf)
        for name, each in result["parameters"].items():
            rows[result["kind"]].append(each)
            rows["all"].append(each)
            if name in LEADING[result["kind"]]:
                error = abs(each["value"] / each["truth"] - 1)
                errors[result["kind"]].append(error)
                errors["all"].append(error)
    baselines = {kind: "acceleration" if kind == "fall" else "velocity" for kind in KINDS}
    print(f"{'kind':<17}{'clips':>6}{'refused':>9}{'named':>7}{'in 68 %':>9}{'in 95 %':>9}", end="")
    print(f"{'median, %':>11}{'95th, %':>9}{'ahead':>8}")
    for kind in [*KINDS, "all"]:
        clips = [result for result in results if kind in ("all", result["kind"])]
        if not clips or not rows[kind]:
            continue
        refused = sum("refused" in result for result in clips)
        right = sum(result["kind"] in (result.get("named"), *result.get("alike", ())) for result in clips)
        shares = [100 * sum(each[key] for each in rows[kind]) / len(rows[kind]) for key in ("in_68", "in_95")]
        wide = 100 * np.quantile(errors[kind], 0.95, method="higher")
        print(f"{kind:<17}{len(clips):>6}{refused:>9}{right if not name_kind else '':>7}", end="")
        print(f"{shares[0]:>9.0f}{shares[1]:>9.0f}{100 * median(errors[kind]):>11.2f}{wide:>9.2f}", end="")
        ratios = [r["ahead"]["ours"] / r["ahead"][baselines[r["kind"]]] for r in clips if r.get("ahead")]
        print(f"{median(ratios) if ratios else np.nan:>8.2f}")


def main(
    clips: int = 200,
    kinds: bool = False,
    out: Path = Path("out/identify_coverage"),
    first: int = 0,
    share: str = "1/1",
    only: str | None = None,
) -> None:
    """Identify drawn clips.

    Args:
        clips: how many, over all kinds in turn.
        kinds: the kind of motion is not told.
        out: folder of the results, which are taken up again.
        first: seed of the first clip of each kind.
        share: which part of the clips this process does, of how many; "0/1" only shows what is there.
        only: kinds of motion by commas; all if not given.
    """
    torch.set_num_threads(1)
    names = list(KINDS) if only is None else only.split(",")
    wanted = [(names[number % len(names)], first + number // len(names)) for number in range(clips)]
    part, parts = (int(number) for number in share.split("/"))
    mine = wanted[part - 1 :: parts] if part else []

    def work(clip: tuple[str, int]) -> dict:
        print(f"\r{mine.index(clip) + 1} of {len(mine)} clips", end="", flush=True)
        return judge(*clip, not kinds)

    path = out / ("kinds.jsonl" if kinds else "told.jsonl")
    results = cached_results(path, mine, work, lambda result: (result["kind"], result["seed"]))
    print()
    show([results[clip] for clip in wanted if clip in results], not kinds)


if __name__ == "__main__":
    auto_cli(main)
