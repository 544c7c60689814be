"""Generation of data sets from recipes: on all cores, resumable, the same bytes for any number of workers."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

from physvision.core import StrPath
from physvision.core.checks import check_count
from physvision.datasets.executors import Executor, executor_of
from physvision.datasets.folder import FORMAT, DataFolder, Shard, divide
from physvision.datasets.progress import frames_bar
from physvision.datasets.recipe import Recipe, describe_folder
from physvision.datasets.shards import encode_shard


def describe(recipe: Recipe) -> dict:
    """Describe the data set of a recipe; the description follows from the recipe and the versions alone."""
    frame_format = recipe.frame_format
    shards = divide(recipe.splits(), recipe.frames, frame_format.height * frame_format.width * frame_format.channels)
    return describe_folder(recipe.name, recipe.values(), recipe.versions(), frame_format, recipe.fields, shards)


def make_shard(recipe: Recipe, shard: Shard) -> bytes:
    """Make the bytes of a shard."""
    metadata = {"format": FORMAT, "name": recipe.name, "recipe": recipe.values(), "shard": asdict(shard)}
    trials = (recipe.make(shard.split, number) for number in range(shard.first, shard.first + shard.trials))
    return encode_shard(recipe.frame_format, recipe.fields, metadata, trials)


def generate(
    recipe: Recipe,
    out: StrPath | None = None,
    *,
    workers: int | None = None,
    executor: Executor = "local",
    progress: bool = True,
) -> Path:
    """Make the data set of a recipe, and return its folder.

    Call it again after an interruption to go on: missing and damaged shards are made, the others stay as they are. The
    result does not depend on the number of workers or interruptions.

    Args:
        recipe: Recipe of the data set.
        out: Folder that is empty or holds a part of this very data set; data/NAME of the recipe if None.
        workers: Number of processes; all cores if None.
        executor: "local", or "ray" for an existing Ray cluster (pip install 'physvision[ray]').
        progress: If true, draw a progress bar.

    Raises:
        DataError: the folder holds something else; nothing was written.
        FileError: the disk is full or not writable; what is complete stays.
    """
    if workers is not None:
        check_count("workers", workers)
    run = executor_of(executor)
    folder = DataFolder(out or f"data/{recipe.name}")
    with folder.prepared(describe(recipe)), frames_bar(progress) as bar:
        task = bar.add_task(f"{recipe.name}: checking", total=None)
        pending = [shard for shard in folder.shards() if folder.fault(shard) is not None]
        frames = sum(shard.trials * shard.frames for shard in pending)
        bar.reset(task, total=frames, description=recipe.name)
        for shard, data in run(partial(make_shard, recipe), pending, workers):
            folder.commit(shard, data)
            bar.update(task, advance=shard.trials * shard.frames)
    return folder.path
