"""Speed of generating and reading data sets on one core, and their size.

    python benchmarks/datasets.py [--trials 64]

Times are those of the processor, of this process alone, so that a busy machine does not count; `benchmarks/storage.py`
compares the storage with others.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from physvision.datasets import (
    BilliardsRecipe,
    Dataset,
    PendulumRecipe,
    Recipe,
    SwingRecipe,
    TabletopRecipe,
    Windows,
    WindowShape,
    generate,
)
from physvision.datasets.billiards import Table, simulate

BATCH, BATCHES = 64, 40


def measure(recipe: Recipe, folder: Path) -> tuple[float, float, float]:
    begin = time.process_time()
    generate(recipe, folder, workers=1, progress=False)
    making = recipe.trials * recipe.frames / (time.process_time() - begin)
    size = sum(entry.stat().st_size for entry in folder.iterdir()) / recipe.trials
    windows = Windows(Dataset(folder), WindowShape(frames_in=3, horizon=10))
    batches = np.random.default_rng(0).integers(0, len(windows), (BATCHES, BATCH))
    begin = time.process_time()
    for batch in batches:
        windows.__getitems__(batch.tolist())
    return making, size, BATCH * BATCHES / (time.process_time() - begin)


def simulated_trials(count: int = 200, steps: int = 100) -> float:
    """Trials of three balls a second, without their pictures."""
    table = Table(np.full(3, 3.2), np.ones(3), (64.0, 64.0))
    start = np.array([[12.0, 12.0], [40.0, 20.0], [30.0, 50.0]])
    speeds = np.random.default_rng(0).uniform(-30, 30, (count, 3, 2))
    begin = time.process_time()
    for velocities in speeds:
        simulate(table, start, velocities, np.arange(steps) / 30)
    return count / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=64)
    trials = parser.parse_args().trials
    recipes = {
        "billiards, 3 balls": BilliardsRecipe(trials=trials),
        "billiards, 1 ball": BilliardsRecipe(trials=trials, balls=1),
        "billiards, 3 balls, textured, noisy": BilliardsRecipe(trials=trials, texture=0.4, noise=0.02, shake=0.5),
        "pendulum, 3 links": PendulumRecipe(trials=max(10, trials // 4)),
        "tabletop": TabletopRecipe(trials=max(10, trials // 4)),
        "swing": SwingRecipe(trials=max(10, trials // 4)),
    }
    heads = ("frames/s made", "MB/1000 trials", "windows/s read")
    print(f"{'one core':36} " + " ".join(f"{head:>15}" for head in heads))
    for name, recipe in recipes.items():
        with tempfile.TemporaryDirectory(prefix="datasets-") as folder:
            making, size, reading = measure(recipe, Path(folder) / "data")
        print(f"{name:36} {making:15,.0f} {size / 1000:15,.0f} {reading:15,.0f}")
    print(f"billiards of 100 steps, states alone: {simulated_trials():,.0f} trials/s")


if __name__ == "__main__":
    main()
