"""Make a data set from its recipe: on all cores, resumable, the same bytes on any number of workers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Literal

from physvision.core import DataError, InputError, UnsupportedError
from physvision.core.checks import check_count
from physvision.datasets.folder import FORMAT, DataFolder, Shard, divide
from physvision.datasets.progress import frames_bar
from physvision.datasets.recipe import Recipe
from physvision.datasets.shards import encode_shard

Executor = Literal["local", "ray"]


def describe(recipe: Recipe) -> dict:
    """What a data set of this recipe says of itself; follows from the recipe and the versions alone."""
    frame_format = recipe.frame_format
    shards = divide(recipe.splits(), recipe.frames, frame_format.height * frame_format.width * frame_format.channels)
    return {
        "format": FORMAT,
        "name": recipe.name,
        "recipe": recipe.values(),
        "versions": recipe.versions(),
        "frame_format": asdict(frame_format),
        "fields": {name: {**asdict(field), "shape": list(field.shape)} for name, field in recipe.fields.items()},
        "shards": [asdict(shard) for shard in shards],
    }


def make_shard(recipe: Recipe, shard: Shard) -> bytes:
    """The bytes of a shard."""
    about = {"format": FORMAT, "name": recipe.name, "recipe": recipe.values(), "shard": asdict(shard)}
    trials = (recipe.make(shard.split, number) for number in range(shard.first, shard.first + shard.trials))
    return encode_shard(recipe.frame_format, recipe.fields, about, trials)


def generate(
    recipe: Recipe,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    executor: Executor = "local",
    progress: bool = True,
) -> Path:
    """Make the data set of `recipe` in the folder `out`, and return the folder.

    Run again after an interruption it goes on; shards that are missing or damaged are made (again), the others are
    left as they are. The result does not depend on the number of workers or interruptions.

    Args:
        recipe: what to make.
        out: a folder that is empty, or holds a part of this very data set.
        workers: processes; all cores if None.
        executor: "local", or "ray" for an existing Ray cluster (pip install 'physvision[ray]').
        progress: draw a progress bar.

    Raises:
        DataError: the folder holds something else; nothing was written.
        FileError: the disk is full or not writable; what is complete stays.
    """
    if workers is not None:
        check_count("workers", workers)
    if executor not in ("local", "ray"):
        raise InputError(f'executor: expected "local" or "ray", got {executor!r}')
    folder = DataFolder(out)
    with folder.prepared(describe(recipe)), frames_bar(progress) as bar:
        task = bar.add_task(f"{recipe.name}: checking", total=None)
        wanted = [shard for shard in folder.shards() if folder.fault(shard) is not None]
        frames = sum(shard.trials * shard.frames for shard in wanted)
        bar.reset(task, total=frames, description=recipe.name)
        run = _run_on_ray if executor == "ray" else _run_here
        for shard, data in run(recipe, wanted, workers):
            folder.commit(shard, data)
            bar.update(task, advance=shard.trials * shard.frames)
    return folder.path


def _run_here(recipe: Recipe, shards: list[Shard], workers: int | None) -> Iterator[tuple[Shard, bytes]]:
    workers = min(workers or len(os.sched_getaffinity(0)), len(shards))
    if workers <= 1:
        for shard in shards:
            yield shard, make_shard(recipe, shard)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_follow_parent) as pool:
        waiting, running = iter(shards), {}
        try:
            while True:
                # Only as many are handed out as keep the workers busy: finished shards do not pile up in memory.
                while len(running) < 2 * workers and (shard := next(waiting, None)) is not None:
                    running[pool.submit(make_shard, recipe, shard)] = shard
                if not running:
                    return
                yield from _finished(running)
        except BrokenProcessPool as error:
            raise DataError(
                "a worker process ended by itself, perhaps for lack of memory; use fewer workers. "
                "What is complete is kept: run the same command again to go on"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _finished(running: dict[Future, Shard]) -> Iterator[tuple[Shard, bytes]]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        yield running.pop(future), future.result()


def _follow_parent() -> None:
    """End this worker when its parent is killed, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_on_ray(recipe: Recipe, shards: list[Shard], workers: int | None) -> Iterator[tuple[Shard, bytes]]:
    """Shards from the Ray cluster at RAY_ADDRESS; their bytes come back, so no file system has to be shared."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UnsupportedError("executor: Ray is not installed; pip install 'physvision[ray]'") from None
    if not ray.is_initialized():
        try:
            ray.init(address="auto", log_to_driver=False)
        except ConnectionError as error:
            raise DataError("executor: no running Ray cluster was found; start one with: ray start --head") from error
    remote = ray.remote(make_shard).options(max_retries=3)
    most = workers or int(ray.cluster_resources().get("CPU", 1))
    waiting, running = iter(shards), {}
    while True:
        while len(running) < 2 * most and (shard := next(waiting, None)) is not None:
            running[remote.remote(recipe, shard)] = shard
        if not running:
            return
        done, _ = ray.wait(list(running))
        for reference in done:
            yield running.pop(reference), ray.get(reference)
