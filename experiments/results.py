"""Runs that are kept in the folders `history`, and the page docs/results.md that is made from them.

`results.yaml` lists the tables of the page and their rows; every value comes from a run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from claims import ROOT
from code_hash import code_hash

LAYOUT = ROOT / "experiments" / "results.yaml"
PAGE = ROOT / "docs" / "results.md"
HISTORY = ROOT / "experiments" / "history", ROOT / "benchmarks" / "history"

INTRODUCTION = """\
# Results

<!-- Made by `python experiments/run.py --page` from the runs in experiments/history and benchmarks/history. -->

Every number on this page comes from a run. The last column names the run. [The list at the end](#how-it-was-measured)
has its command, commit and date. "Beside" is the number of a paper or of another package. The better one is bold.
"""
RUNS = """\
## How it was measured

`python experiments/run.py NAME` runs a command again and keeps what it measures. `--check NAME` compares a new run with
the one that was kept. `--stale` lists the runs whose code has changed since.
"""


@dataclass(frozen=True)
class Run:
    """One run of a script, with what it measured.

    Attributes:
        name: Name of the script, or of the measurement.
        path: File of the run.
        record: Content of the file.
    """

    name: str
    path: Path
    record: dict[str, Any]

    @property
    def claims(self) -> dict[str, dict[str, Any]]:
        """Claims of the run by name."""
        return {claim["name"]: claim for claim in self.record["claims"]}

    @property
    def is_stale(self) -> bool:
        """True if code that the script imports has changed since the run."""
        return code_hash(ROOT, ROOT / self.record["script"]) != self.record["code"]


def read_runs(folders: Iterable[Path] = HISTORY) -> dict[str, list[Run]]:
    """Read all runs by name, in the order of their dates.

    Args:
        folders: Folders that hold NAME/DATE-COMMIT.json.
    """
    runs: dict[str, list[Run]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*/*.json")):
            record = json.loads(path.read_text(encoding="utf-8"))
            runs.setdefault(path.parent.name, []).append(Run(path.parent.name, path, record))
    return {name: sorted(runs[name], key=lambda run: run.record["date"]) for name in sorted(runs)}


def read_layout() -> list[dict[str, Any]]:
    """Read the tables of the page: topic, text and rows."""
    return yaml.safe_load(LAYOUT.read_text(encoding="utf-8"))


def latest(runs: dict[str, list[Run]], name: str, claim: str) -> Run:
    """Find the last run that has a claim.

    Args:
        runs: Runs by name.
        name: Name of the script.
        claim: Name of the claim.
    """
    candidates = [run for run in runs.get(name, []) if claim in run.claims]
    if not candidates:
        raise SystemExit(f"{LAYOUT.name}: no run of {name} has the claim {claim!r}; run experiments/run.py {name}")
    return candidates[-1]


def render_page(runs: dict[str, list[Run]], layout: list[dict[str, Any]]) -> str:
    """Make the page of results.

    Args:
        runs: Runs by name.
        layout: Tables of the page.
    """
    parts, used = [INTRODUCTION], {}
    for table in layout:
        parts.append(f"## {table['topic']}\n\n" + (f"{table['text'].strip()}\n\n" if table.get("text") else ""))
        if "rows" not in table:
            continue
        parts[-1] += "| quantity | unit | ours | beside | whose | run |\n|---|---|--:|--:|---|---|\n"
        for row in table["rows"]:
            run = latest(runs, row["run"], row["claim"])
            used[run.path] = run
            parts[-1] += _row(row, run)
    parts.append(f"{RUNS}\n| run | command | commit | day | processor time, s |\n|---|---|---|---|--:|\n")
    for run in sorted(used.values(), key=lambda run: (run.name, run.record["date"])):
        record = run.record
        seconds = record.get("seconds")
        cells = f"{run.name} | `{record['command']}` | {record['commit']} | {record['date'][:10]} | "
        parts[-1] += f"| {cells}{'' if seconds is None else seconds} |\n"
    return "\n".join(parts)


def _row(row: dict[str, Any], run: Run) -> str:
    claim = run.claims[row["claim"]]
    value, reference = claim["value"], claim["reference"]
    ours, beside = format_value(value), "" if reference is None else format_value(reference)
    if row.get("better") and reference is not None:
        if (value < reference) == (row["better"] == "lower"):
            ours = f"**{ours}**"
        else:
            beside = f"**{beside}**"
    source = claim["source"] if reference is not None else ""
    return f"| {row.get('label', row['claim'])} | {claim['unit']} | {ours} | {beside} | {source} | {run.name} |\n"


def format_value(value: float) -> str:
    """Write a number to three digits; whole numbers are written in full."""
    if math.isclose(value, round(value), rel_tol=1e-12) and abs(value) < 1e9:
        return f"{round(value):,}"
    if 1e-3 <= abs(value) < 1e3:
        return f"{value:.3g}"
    if abs(value) >= 1e3:
        return f"{value:,.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"
