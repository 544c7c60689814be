"""Executors that make shards in processes of this machine or on a Ray cluster, and yield them as they are done."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from typing import Any, Literal

from physvision.core import DataError, InputError, UnsupportedError
from physvision.datasets.folder import Shard

Executor = Literal["local", "ray"]
Make = Callable[[Shard], bytes]
Made = Iterator[tuple[Shard, bytes]]


def executor_of(name: Executor) -> Callable[[Make, list[Shard], int | None], Made]:
    """Function that makes shards; its arguments are `make`, the shards and the number of workers (None for all)."""
    if name == "local":
        return _run_here
    if name == "ray":
        _connect_to_ray()
        return _run_on_ray
    raise InputError(f'executor: expected "local" or "ray", got {name!r}')


def _run_here(make: Make, shards: list[Shard], workers: int | None) -> Made:
    workers = min(workers or len(os.sched_getaffinity(0)), len(shards))
    if workers <= 1:
        for shard in shards:
            yield shard, make(shard)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_follow_parent) as pool:
        waiting, running = iter(shards), {}
        try:
            while True:
                # Only as many are handed out as keep the workers busy: finished shards do not pile up in memory.
                while len(running) < 2 * workers and (shard := next(waiting, None)) is not None:
                    running[pool.submit(make, shard)] = shard
                if not running:
                    return
                yield from _finished(running)
        except BrokenProcessPool as error:
            raise DataError(
                "a worker process ended by itself: for lack of memory (use fewer workers), or because the script that "
                "calls this does so outside of `if __name__ == '__main__':`, which every worker reads. "
                "What is complete is kept: run the same again to go on"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _finished(running: dict[Future, Shard]) -> Made:
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


def _connect_to_ray() -> None:
    """Connect before anything is written."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UnsupportedError("executor: Ray is not installed; pip install 'physvision[ray]'") from None
    if not ray.is_initialized():
        try:
            ray.init(address="auto", log_to_driver=False)
        except ConnectionError as error:
            raise DataError("executor: no running Ray cluster was found; start one with: ray start --head") from error


def _run_on_ray(make: Make, shards: list[Shard], workers: int | None) -> Made:
    """Make shards on the Ray cluster at RAY_ADDRESS; their bytes come back, so no file system has to be shared."""
    import ray  # pyright: ignore[reportMissingImports]

    def make_one(shard: Shard) -> bytes:
        return make(shard)

    task: Any = ray.remote(max_retries=3)(make_one)
    max_workers = workers or int(ray.cluster_resources().get("CPU", 1))
    waiting, running = iter(shards), {}
    while True:
        while len(running) < 2 * max_workers and (shard := next(waiting, None)) is not None:
            running[task.remote(shard)] = shard
        if not running:
            return
        done, _ = ray.wait(list(running))
        for reference in done:
            yield running.pop(reference), ray.get(reference)
