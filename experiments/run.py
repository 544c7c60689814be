"""Run experiments and benchmarks, keep what they measure, and make docs/results.md of it.

    python experiments/run.py --list                 # every run: processor time, day, commit, whether it is stale
    python experiments/run.py throw                  # run it again with the command that was kept
    python experiments/run.py throw -- --seeds 3     # with other options
    python experiments/run.py --stale                # the runs whose code has changed since; fails if one takes minutes
    python experiments/run.py --check throw          # compare a new run with the one that was kept
    python experiments/run.py --page                 # write docs/results.md

A value is reproduced if it lies within the spread that was kept, widened by a tenth of the value. Several names are run
one after another; a script without a run is named by its path.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from claims import FOLDER, ROOT
from code_hash import code_hash
from result_cache import NO_CACHE
from results import PAGE, Run, read_layout, read_runs, render_page

TOLERANCE = 0.1  # fraction of the value
SHORT_S = 600.0  # processor time up to which results are to be of today's code


def command_of(name: str, runs: dict[str, list[Run]], options: list[str]) -> list[str]:
    """Command of a script: its path, and the options that are given or were kept.

    Args:
        name: Name of a run, or path of a script.
        runs: Runs by name.
        options: Options of the script; those of its last run if there are none.
    """
    if name in runs:
        words = shlex.split(runs[name][-1].record["command"])
        if words[:2] == ["python", runs[name][-1].record["script"]]:
            return [sys.executable, *words[1:2], *(options or words[2:])]
        if words[0] == "python":
            words[0] = sys.executable
        return [*words, *options]
    if (ROOT / name).is_file():
        return [sys.executable, name, *options]
    raise SystemExit(f"{name}: neither a run (`--list` has them) nor the path of a script")


def run_script(command: list[str], folder: Path, resume: bool = True) -> list[Path]:
    """Run a command from the root of the repository; return the files of claims that it wrote.

    Args:
        command: Command and its arguments.
        folder: Folder that claims are written to.
        resume: If true, results that an interrupted run left behind are taken as they are.
    """
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, FOLDER: str(folder), "PYTHONPATH": paths}
    if not resume:
        environment[NO_CACHE] = "1"
    print("+", shlex.join(command), flush=True)
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return sorted(folder.glob("*/*.json"))


def keep(name: str, runs: dict[str, list[Run]], options: list[str]) -> None:
    """Run a script and keep its claims in the folder `history` beside it.

    Args:
        name: Name of a run, or path of a script.
        runs: Runs by name.
        options: Options of the script.
    """
    with tempfile.TemporaryDirectory() as temporary:
        files = run_script(command_of(name, runs, options), Path(temporary))
        if not files:
            raise SystemExit(f"{name} wrote no claims: it does not call write_claims")
        for run in (run for entries in read_runs([Path(temporary)]).values() for run in entries):
            script = ROOT / run.record["script"]
            record = {"code": code_hash(ROOT, script), **run.record}
            path = _unused(script.parent / "history" / script.stem / run.path.name, record["command"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(path.relative_to(ROOT))


def _unused(path: Path, command: str) -> Path:
    """Name of a run's file that holds no run of another command."""
    candidates = [path, *(path.with_stem(f"{path.stem}-{number}") for number in range(2, 100))]
    return next(p for p in candidates if not p.exists() or json.loads(p.read_text("utf-8"))["command"] == command)


def check(name: str, runs: dict[str, list[Run]]) -> bool:
    """Run a script again; return whether all its values are reproduced.

    Args:
        name: Name of a run.
        runs: Runs by name.
    """
    with tempfile.TemporaryDirectory() as temporary:
        run_script(command_of(name, runs, []), Path(temporary), resume=False)
        again = read_runs([Path(temporary)])
    if name not in runs or name not in again:
        raise SystemExit(f"{name} wrote no claims, or none were kept")
    claims, good = again[name][-1].claims, True
    for expected in runs[name][-1].record["claims"]:
        value = claims[expected["name"]]["value"] if expected["name"] in claims else float("nan")
        low, high = expected["spread"] or (expected["value"], expected["value"])
        margin = TOLERANCE * abs(expected["value"])
        within = low - margin <= value <= high + margin
        good &= within
        mark, unit = "" if within else "OFF  ", expected["unit"]
        print(f"{mark}{expected['name']}: {expected['value']:.4g} kept, {value:.4g} now {unit}")
    return good


def show(runs: dict[str, list[Run]], only_stale: bool) -> int:
    """Print the last run of every name; return how many short ones are stale.

    Args:
        runs: Runs by name.
        only_stale: If true, print stale runs only.
    """
    count = 0
    for name, entries in runs.items():
        run, record = entries[-1], entries[-1].record
        seconds = record.get("seconds")
        count += run.is_stale and seconds is not None and seconds <= SHORT_S
        if run.is_stale or not only_stale:
            text = "? s" if seconds is None else f"{seconds} s"
            mark = "stale" if run.is_stale else "fresh"
            print(f"{name:<28}{text:>8}  {record['date'][:10]}  {record['commit']:<14} {mark}  {record['command']}")
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names of runs, or paths of scripts")
    parser.add_argument("--list", action="store_true", help="list all runs")
    parser.add_argument("--stale", action="store_true", help="list the runs whose code has changed since")
    parser.add_argument("--check", action="store_true", help="compare new runs with those that were kept")
    parser.add_argument("--page", action="store_true", help="write docs/results.md")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    arguments, options = parser.parse_args(words[:split]), words[split + 1 :]
    runs = read_runs()
    if arguments.list or arguments.stale:
        return int(show(runs, arguments.stale) > 0 and arguments.stale)
    if arguments.check:
        results = [check(name, runs) for name in arguments.names]
        return int(not all(results))
    if not arguments.names and not arguments.page:
        parser.print_help()
        return 2
    for name in arguments.names:
        keep(name, runs, options)
    PAGE.write_text(render_page(read_runs(), read_layout()), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
