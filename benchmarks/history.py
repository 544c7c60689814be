"""Plot how the values that benchmarks and experiments measured changed from commit to commit.

    python benchmarks/history.py [--folder benchmarks/history] [--out out/history.png]

A run that `experiments/run.py` keeps is one JSON file in the folder `history` beside its script. A panel shows the
claims of one script over the dates of its runs, relative to the first run; the table lists first and last.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import matplotlib as mpl
from jsonargparse import auto_cli

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from results import read_runs


def main(folder: Path = Path(__file__).parent / "history", out: Path = Path("out/history.png")) -> None:
    """Print a table of all claims, and draw their history.

    Args:
        folder: Folder of the runs.
        out: Picture to write.
    """
    runs = {name: [run.record for run in entries] for name, entries in read_runs([folder]).items()}
    if not runs:
        raise SystemExit(f"{folder}: there are no runs; run a benchmark first")
    mpl.use("agg")
    from matplotlib import pyplot as plt

    columns = min(2, len(runs))
    rows = math.ceil(len(runs) / columns)
    figure, grid = plt.subplots(rows, columns, figsize=(7 * columns, 3.5 * rows), squeeze=False, layout="constrained")
    for axes, (script, entries) in zip(grid.flat, runs.items(), strict=False):
        names = list(dict.fromkeys(claim["name"] for run in entries for claim in run["claims"]))
        commits = [run["commit"] for run in entries]
        print(f"{script}: {len(entries)} runs, {commits[0]} to {commits[-1]}")
        for name in names:
            points = [
                (index, claim["value"], claim["unit"])
                for index, run in enumerate(entries)
                for claim in run["claims"]
                if claim["name"] == name
            ]
            first, last = points[0][1], points[-1][1]
            print(f"  {name:<48} {first:10.4g} {last:10.4g} {points[-1][2]}")
            axes.plot([index for index, _, _ in points], [value / first for _, value, _ in points], ".-", label=name)
        axes.set(title=script, ylabel="relative to the first run")
        axes.set_xticks(range(len(commits)), commits, rotation=90)
        axes.legend(fontsize="x-small")
    for axes in grid.flat[len(runs) :]:
        axes.set_axis_off()
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=120)
    print(out)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
