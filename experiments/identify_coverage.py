"""Coverage of `identify`'s intervals and errors of its values, on drawn clips filmed as people film.

Each clip is drawn with random parameters, camera, light, noise and compression, written as H.264, and identified from
the file. Results are written line by line, so an interrupted run resumes where it stopped, and several processes can
share the work: each takes every n-th clip, and each prints the results of all. A rejected clip counts as a miss of its
leading parameters.

The last column is the error of a prediction in the next half second, relative to that of a constant velocity, or of a
constant acceleration for falls: the median over the clips. docs/identify_accuracy.md has the results, with the commit.

    python experiments/identify_coverage.py [--clips 200] [--first 0] [--kinds false] [--out out/identify_coverage] \
        [--part 1/2] [--only projectile,fall]

With `--disturbances true`, `--clips` is the number for each of seven disturbances (noise, blur, occlusion by a post,
lighting, compression, jitter of the camera, dropped frames), in three strengths in turn, and the table is pooled per
disturbance:

    python experiments/identify_coverage.py --disturbances true --clips 105
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
from result_cache import cached_results

from physvision.core import PhysvisionError
from physvision.datasets.clips import DETERMINED_PARAMETERS, KINDS, draw
from physvision.identification import Identification, identify

# Options of drawn clips in three strengths, from what is easily seen to what is hardly usable.
DISTURBANCES: dict[str, tuple[dict[str, float], ...]] = {
    "noise": ({"noise": 6.0}, {"noise": 12.0}, {"noise": 20.0}),
    "blur": ({"exposure": 0.6}, {"exposure": 0.8}, {"exposure": 0.95}),
    "occlusion": ({"post": 0.04}, {"post": 0.08}, {"post": 0.15}),
    "lighting": (
        {"brightness": 0.6, "flicker": 0.02}, {"brightness": 0.4, "flicker": 0.04},
        {"brightness": 0.25, "flicker": 0.08},
    ),
    "compression": ({"quality": 32}, {"quality": 36}, {"quality": 40}),
    "jitter": ({"shake": 1.5}, {"shake": 3.0}, {"shake": 6.0}),
    "dropped": ({"dropped": 0.05}, {"dropped": 0.15}, {"dropped": 0.3}),
}  # fmt: skip


def identify_clip(kind: str, seed: int, name_kind: bool, changes: dict[str, float] | None = None) -> dict:
    """Identify one clip: its parameters beside the truth, or the reason of its rejection."""
    clip, began = draw(kind, seed, **(changes or {})), time.process_time()
    known_values = {**clip.known, **{name: value for name, value in clip.options.items() if name == "scale"}}
    record: dict = {"kind": kind, "seed": seed, "parameters": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = clip.write(Path(folder) / "clip.mp4")
        try:
            result = identify(path, kind if name_kind else None, known_values, fps=clip.options.get("fps"))
        except PhysvisionError as error:
            return {**record, "rejected": str(error)[:200]}
    record |= {"named": result.motion, "indistinguishable": list(result.indistinguishable)}
    record["seconds"] = time.process_time() - began
    record["ahead"] = prediction_errors(result)
    for name, entry in result.parameters.items():
        truth = clip.truth.get(name)
        if truth is None or entry.value is None or entry.interval_68 is None or entry.interval_95 is None:
            continue
        record["parameters"][name] = {
            "value": float(entry.value),
            "truth": float(truth),
            "in_68": bool(entry.interval_68[0] <= truth <= entry.interval_68[1]),
            "in_95": bool(entry.interval_95[0] <= truth <= entry.interval_95[1]),
        }
    return record


def prediction_errors(result: Identification) -> dict[str, float] | None:
    """Return the errors of predictions of the half second after the first two thirds, px: ours, and two baselines.

    The baselines are the constant velocity of the last five positions, and the constant acceleration of all of them.
    """
    if result.holdout is None:
        return None
    ours, times = result.holdout.positions, result.evidence.times.numpy()
    observed = result.evidence.observed.numpy()
    valid = np.asarray(np.isfinite(observed).all(1))
    cut = int(np.flatnonzero(np.isfinite(ours).all(1))[0])
    late = valid & np.isfinite(ours).all(1) & (times < times[cut] + 0.5)
    before = np.flatnonzero(valid[:cut] & (np.arange(cut) >= result.fit.model.first))
    if not late.any() or len(before) < 5:
        return None

    def rms_error(guess: np.ndarray) -> float:
        return float(np.sqrt(np.square(guess - observed)[late].mean() * 2))

    def polynomial(frames: np.ndarray, degree: int) -> np.ndarray:
        powers = np.vander(times - times[cut], degree + 1)
        return powers @ np.linalg.lstsq(powers[frames], observed[frames], rcond=None)[0]

    return {
        "ours": rms_error(ours),
        "velocity": rms_error(polynomial(before[-5:], 1)),
        "acceleration": rms_error(polynomial(before, 2)),
    }


def show(results: list[dict], name_kind: bool) -> None:
    """Print the coverage and the errors of each kind and of all."""
    rows: dict[str, list[dict]] = defaultdict(list)
    errors: dict[str, list[float]] = defaultdict(list)
    for record in results:
        for _ in DETERMINED_PARAMETERS[record["kind"]] if "rejected" in record else ():
            for kind in (record["kind"], "all"):
                rows[kind].append({"in_68": False, "in_95": False})
                errors[kind].append(np.inf)
        for name, entry in record["parameters"].items():
            rows[record["kind"]].append(entry)
            rows["all"].append(entry)
            if name in DETERMINED_PARAMETERS[record["kind"]]:
                error = abs(entry["value"] / entry["truth"] - 1)
                errors[record["kind"]].append(error)
                errors["all"].append(error)
    baselines = {kind: "acceleration" if kind == "fall" else "velocity" for kind in KINDS}
    print(f"{'kind':<17}{'clips':>6}{'rejected':>9}{'named':>7}{'in 68 %':>9}{'in 95 %':>9}", end="")
    print(f"{'median, %':>11}{'95th, %':>9}{'ahead':>8}")
    for kind in [*KINDS, "all"]:
        clips = [record for record in results if kind in ("all", record["kind"])]
        if not clips or not rows[kind]:
            continue
        rejected = sum("rejected" in record for record in clips)
        correct = sum(record["kind"] in (record.get("named"), *record.get("indistinguishable", ())) for record in clips)
        coverage = [100 * sum(entry[key] for entry in rows[kind]) / len(rows[kind]) for key in ("in_68", "in_95")]
        wide = 100 * np.quantile(errors[kind], 0.95, method="higher")
        print(f"{kind:<17}{len(clips):>6}{rejected:>9}{correct if not name_kind else '':>7}", end="")
        print(f"{coverage[0]:>9.0f}{coverage[1]:>9.0f}{100 * median(errors[kind]):>11.2f}{wide:>9.2f}", end="")
        ratios = [r["ahead"]["ours"] / r["ahead"][baselines[r["kind"]]] for r in clips if r.get("ahead")]
        print(f"{median(ratios) if ratios else np.nan:>8.2f}")


def disturbed_clips(count: int, first: int, kinds: list[str]) -> list[tuple[str, int, str, int]]:
    """Return kind, seed, disturbance and strength of `count` clips of each disturbance, over kinds and strengths."""
    # Each kind has every strength in turn, and every disturbance the same kinds and seeds.
    clips = [(kinds[n % len(kinds)], first + n // len(kinds), n // len(kinds) + n % len(kinds)) for n in range(count)]
    return [(kind, seed, name, turn % 3) for kind, seed, turn in clips for name in DISTURBANCES]


def show_disturbances(results: list[dict]) -> None:
    """Print the coverage pooled over the clips of each disturbance; a rejected clip is counted apart."""
    print(f"{'disturbance':<14}{'clips':>6}{'rejected':>9}{'estimates':>11}{'in 68 %':>9}{'in 95 %':>9}")
    for name in [*DISTURBANCES, "all"]:
        records = [record for record in results if name in ("all", record["disturbance"])]
        entries = [entry for record in records for entry in record["parameters"].values()]
        if not entries:
            continue
        rejected = sum("rejected" in record for record in records)
        coverage = [100 * sum(entry[key] for entry in entries) / len(entries) for key in ("in_68", "in_95")]
        print(f"{name:<14}{len(records):>6}{rejected:>9}{len(entries):>11}{coverage[0]:>9.0f}{coverage[1]:>9.0f}")


def run_disturbances(selection: list[tuple[str, int, str, int]], part: tuple[int, int], out: Path) -> None:
    """Identify disturbed clips of a named kind, and print a table.

    Args:
        selection: Kind, seed, disturbance and strength of each clip.
        part: Index, from one, and count of the parts that the clips are divided into; index zero only prints.
        out: Folder of the results, which are resumed.
    """

    def work(clip: tuple[str, int, str, int]) -> dict:
        kind, seed, name, strength = clip
        record = identify_clip(kind, seed, True, DISTURBANCES[name][strength])
        return {**record, "disturbance": name, "strength": strength}

    keys = selection[part[0] - 1 :: part[1]] if part[0] else []
    fields = ("kind", "seed", "disturbance", "strength")
    results = cached_results(out / "disturbed.jsonl", keys, work, lambda record: tuple(record[key] for key in fields))
    show_disturbances([results[clip] for clip in selection if clip in results])


def main(
    clips: int = 200,
    kinds: bool = False,
    out: Path = Path("out/identify_coverage"),
    first: int = 0,
    part: str = "1/1",
    only: str | None = None,
    disturbances: bool = False,
) -> None:
    """Identify drawn clips, and print a table.

    Args:
        clips: Number of clips, over all kinds in turn.
        kinds: If true, the kind of motion is not given.
        out: Folder of the results, which are resumed.
        first: Seed of the first clip of each kind.
        part: Part of the clips that this process identifies, as index/count; "0/1" only prints what is there.
        only: Kinds of motion, separated by commas; all if not given.
        disturbances: If true, that many clips of each disturbance are identified instead.
    """
    torch.set_num_threads(1)
    names = list(KINDS) if only is None else only.split(",")
    index, count = (int(number) for number in part.split("/"))
    if disturbances:
        run_disturbances(disturbed_clips(clips, first, names), (index, count), out)
        return
    selection = [(names[number % len(names)], first + number // len(names)) for number in range(clips)]
    clips_of_process = selection[index - 1 :: count] if index else []

    def work(clip: tuple[str, int]) -> dict:
        print(f"\r{clips_of_process.index(clip) + 1} of {len(clips_of_process)} clips", end="", flush=True)
        return identify_clip(*clip, not kinds)

    path = out / ("kinds.jsonl" if kinds else "told.jsonl")
    results = cached_results(path, clips_of_process, work, lambda record: (record["kind"], record["seed"]))
    print()
    show([results[clip] for clip in selection if clip in results], not kinds)


if __name__ == "__main__":
    auto_cli(main)
