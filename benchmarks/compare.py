"""Compare the speed of two trees: run a benchmark in both in alternation, and print the median ratio of every number.

    python benchmarks/compare.py rigid2d,contact ../base [--pairs 7] [--options "--rounds 3"]

The base is a second checkout, such as `git worktree add ../base COMMIT`. Both trees use this Python, so the versions of
all packages are the same. The scripts print tables of the same layout in both trees: numbers are paired by position.
Ratios are of this tree over the base: below 1 is faster, where the number is a time.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from statistics import median

from jsonargparse import auto_cli

ROOT = Path(__file__).parents[1]
_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")


def measure(tree: Path, script: str, options: list[str]) -> list[tuple[str, list[float]]]:
    """Run a benchmark in a tree, and return every printed line that holds decimal numbers, with them."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    command = [sys.executable, f"benchmarks/{script}.py", *options]
    output = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = [(line, [float(number) for number in _NUMBER.findall(line)]) for line in output.splitlines()]
    return [(line, numbers) for line, numbers in lines if numbers]


def main(scripts: str, base: Path, pairs: int = 7, options: str = "") -> float:
    """Print the median ratios, line by line, and return the largest.

    Args:
        scripts: Names of benchmarks, without folder and ending, separated by commas.
        base: Root of the tree to compare with.
        pairs: Number of alternating pairs of runs.
        options: Options of the benchmarks.
    """
    largest = 0.0
    for script in scripts.split(","):
        runs = []
        for pair in range(pairs):
            trees = [ROOT, base.resolve()] if pair % 2 == 0 else [base.resolve(), ROOT]
            results = {tree: measure(tree, script, shlex.split(options)) for tree in trees}
            runs.append((results[ROOT], results[base.resolve()]))
        print(f"{script}: median ratios of {pairs} pairs, this tree over {base}")
        for row, (line, numbers) in enumerate(runs[0][0]):
            ratios = [
                median(own[row][1][column] / max(reference[row][1][column], 1e-12) for own, reference in runs)
                for column in range(len(numbers))
            ]
            largest = max(largest, *ratios)
            print(f"  {line.strip()[:70]:<70} {' '.join(f'{ratio:5.2f}' for ratio in ratios)}")
    print(f"largest median ratio {largest:.2f}")
    return largest


if __name__ == "__main__":
    auto_cli(main)
