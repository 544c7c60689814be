"""Kinds of motion and known values of real clips: each is identified from the file alone, and with its kind given.

The clips are filmed by others and are not part of the project: `folder` holds those that are available, and
`real_clips.json` what is known of each: the right kinds (none if no kind explains it, so that a refusal is right), and
for the run with the kind given the options of the command and the true values with their own standard deviations.

A kind is right if it is named first, or at odds of 1 : 5 or better. A truth is inside if it lies in the 95 % interval,
widened by twice its own standard deviation. Settings are calibrated on the clips whose name has an even number of
characters before the dot only; the others are for reporting. Results are written line by line, so that an interrupted
run resumes.

    python experiments/identify_real_kinds.py --folder path/to/clips [--half even] [--only spring,fall]
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Literal

import torch
from jsonargparse import auto_cli
from result_cache import cached_results

from physvision.core import PhysvisionError
from physvision.identification import identify

MIN_ODDS = 0.2  # of the right kind against the one that is named
MAX_HALF_WIDTH = 0.05  # of an interval, relative to the value of a length or speed
LENGTHS_AND_SPEEDS = ("length", "length_1", "length_2", "radius", "speed", "terminal_speed")
Half = Literal["even", "odd", "all"]


def half_of(file: str) -> Half:
    """Return the half to which a file belongs, by the number of characters before the dot."""
    return "odd" if len(Path(file).stem) % 2 else "even"


def identify_file(path: Path, clip: dict[str, Any], kind_given: bool) -> dict[str, Any]:
    """Identify one clip; the named kind with its rivals and values, or the reason of its refusal."""
    record: dict[str, Any] = {"file": path.name, "kind_given": kind_given}
    began = time.process_time()
    options: dict[str, Any] = {}
    if kind_given:
        known = {name: tuple(value) if isinstance(value, list) else value for name, value in clip["known"].items()}
        options = {
            "motion": clip["kinds"][0],
            "known_values": known,
            "fps": clip["fps"],
            "time_range": (clip["start"], None),
        }
    try:
        result = identify(path, **options)
    except PhysvisionError as error:
        return {**record, "refused": str(error), "seconds": time.process_time() - began}
    record["seconds"] = time.process_time() - began
    contents = result.to_dict()
    for key in ("motion", "odds", "parameters", "warnings"):
        record[key] = contents[key]
    return record | {"ties": list(result.indistinguishable), "residual": result.fit.noise}


def kind_verdict(record: dict[str, Any], clip: dict[str, Any]) -> str:
    """Return "right", "wrong", "beside" (right at odds of 1 : 5 or better), or "refused" with or without a reason."""
    kinds = clip["kinds"]
    if "refused" in record:
        return "refused, right" if not kinds else "refused"
    if record["motion"] in kinds:
        return "right"
    named = {kind: odds for kind, odds in record["odds"].items() if kind in kinds}
    return "beside" if max(named.values(), default=0.0) >= MIN_ODDS or set(record["ties"]) & set(kinds) else "wrong"


def show_kinds(records: list[dict[str, Any]], clips: dict[str, Any]) -> None:
    """Print a line for each clip identified from the file alone."""
    print(f"\n{'from the file alone':<30}{'half':<6}{'verdict':<16}{'named, with odds of rivals':<60}{'seconds':>8}")
    verdicts: dict[str, list[str]] = {"even": [], "odd": []}
    for record in records:
        verdict = kind_verdict(record, clips[record["file"]])
        verdicts[half_of(record["file"])].append(verdict)
        text = record.get("refused", "")
        if not text:
            rivals = [f"{kind} {odds:.1g}" for kind, odds in record["odds"].items() if odds > 1e-6]
            text = ", ".join([record["motion"], *(rival for rival in rivals if rival.split()[0] != record["motion"])])
        print(f"{record['file']:<30}{half_of(record['file']):<6}{verdict:<16}{text[:58]:<60}{record['seconds']:>8.0f}")
    for half, names in verdicts.items():
        counts = {name: names.count(name) for name in dict.fromkeys(names)}
        print(f"{half}: {len(names)} clips; " + ", ".join(f"{count} {name}" for name, count in counts.items()))


def show_values(records: list[dict[str, Any]], clips: dict[str, Any]) -> None:
    """Print a line for each true value of the clips whose kind was given."""
    print(f"\n{'kind given':<30}{'half':<6}{'value':<18}{'truth':>16}{'95 % interval':>26}  inside  half-width, %")
    counts = {"even": [0, 0], "odd": [0, 0]}
    for record in records:
        half = half_of(record["file"])
        if "refused" in record:
            print(f"{record['file']:<30}{half:<6}refused: {record['refused'][:110]}")
        for name, (truth, std) in clips[record["file"]]["truths"].items():
            entry = record.get("parameters", {}).get(name, {})
            low, high = entry.get("interval_95") or (None, None)
            inside = is_inside(record, name, clips[record["file"]])
            counts[half][0] += inside
            counts[half][1] += 1
            interval, width = entry.get("reason", "–")[:24] or "–", ""
            if low is not None and high is not None:
                interval, fraction = f"{low:.5g} to {high:.5g}", (high - low) / 2 / abs(entry["value"])
                width = f"{100 * fraction:.2g}" + (" wide" * (name in LENGTHS_AND_SPEEDS and fraction > MAX_HALF_WIDTH))
            known = f"{truth:g} ± {std:g}"
            print(f"{record['file']:<30}{half:<6}{name:<18}{known:>16}{interval:>26}", end="")
            print(f"  {'yes' if inside else 'NO':<8}{width}")
    for half, (inside, count) in counts.items():
        print(f"{half}: {inside} of {count} truths inside")


def table_row(alone: dict[str, Any] | None, given: dict[str, Any] | None, file: str, clip: dict[str, Any]) -> list[str]:
    """Return the cells of one clip: what was named from the file alone, and the values with the kind given."""
    row = [file, half_of(file), " or ".join(clip["kinds"]) or "none"]
    if alone is None:
        row += ["", ""]
    elif "refused" in alone:
        row += [kind_verdict(alone, clip), "–"]
    else:
        rivals = {kind: odds for kind, odds in alone["odds"].items() if odds >= 1e-3 and kind != alone["motion"]}
        named = ", ".join([alone["motion"], *(f"{kind} {odds:.1g}" for kind, odds in rivals.items())])
        row += [kind_verdict(alone, clip), named]
    values = []
    for name, (truth, _) in clip["truths"].items() if given else ():
        entry, inside = (given or {}).get("parameters", {}).get(name, {}), is_inside(given, name, clip)
        interval = entry.get("interval_95")
        half_width = f"± {50 * (interval[1] - interval[0]) / abs(entry['value']):.1g} %" if interval else "no value"
        values.append(f"{name.replace('_', ' ')} {truth:g}: {half_width}, {'inside' if inside else 'NOT inside'}")
    return [*row, "; ".join(values) if given is None or "refused" not in given else "refused"]


def is_inside(record: dict[str, Any] | None, name: str, clip: dict[str, Any]) -> bool:
    """Return whether the truth lies in the 95 % interval, widened by twice its own standard deviation."""
    interval = (record or {}).get("parameters", {}).get(name, {}).get("interval_95")
    truth, std = clip["truths"][name]
    return bool(interval) and interval[0] - 2 * std <= truth <= interval[1] + 2 * std


def show_table(alone: dict[str, Any], given: dict[str, Any], clips: dict[str, Any]) -> None:
    """Print one Markdown table of all clips that were identified, and the counts of both halves."""
    heads = ("clip", "half", "right kind", "from the file alone", "named, odds of rivals", "kind given: truth")
    print("\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for file, clip in clips.items():
        if file in alone or file in given:
            print("| " + " | ".join(table_row(alone.get(file), given.get(file), file, clip)) + " |")


def main(
    folder: Path, half: Half = "all", only: str | None = None, out: Path = Path("out/identify_real_kinds")
) -> None:
    """Identify the available clips, and print the tables.

    Args:
        folder: Folder of the clips; missing ones are skipped.
        half: Half of the clips to identify.
        only: Words, separated by commas, of which a clip's name must contain one; all clips if not given.
        out: Folder of the results, which are resumed.
    """
    torch.set_num_threads(1)
    defaults = {"known": {}, "truths": {}, "fps": None, "start": None}
    known = json.loads(Path(__file__).with_name("real_clips.json").read_text())
    clips = {
        file: defaults | clip
        for file, clip in known.items()
        if (folder / file).exists()
        and half in ("all", half_of(file))
        and (only is None or any(word in file for word in only.split(",")))
    }
    tables: dict[bool, dict[str, Any]] = {}
    for kind_given, show in ((False, show_kinds), (True, show_values)):
        files = [file for file, clip in clips.items() if clip["kinds"] or not kind_given]

        def work(file: str, kind_given: bool = kind_given) -> dict[str, Any]:
            return identify_file(folder / file, clips[file], kind_given)

        path = out / ("kind_given.jsonl" if kind_given else "alone.jsonl")
        results = cached_results(path, files, work, lambda record: record["file"])
        show([results[file] for file in files], clips)
        tables[kind_given] = results
    show_table(tables[False], tables[True], clips)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
