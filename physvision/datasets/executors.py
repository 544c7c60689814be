"""Executors that make shards in processes of this machine or on a Ray cluster, and yield them as they are done."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from typing import Any, Literal

from physvision.core import DataError, InputError, UnsupportedError
from physvision.datasets.folder import Shard

Executor = Literal["local", "ray"]
MakeShard = Callable[[Shard], bytes]
FinishedShards = Iterator[tuple[Shard, bytes]]


def executor_of(name: Executor) -> Callable[[MakeShard, list[Shard], int | None], FinishedShards]:
    """Return the function that makes shards; its arguments are `make`, the shards and the number of workers."""
    if name == "local":
        return _run_locally
    if name == "ray":
        _connect_to_ray()
        return _run_on_ray
    raise InputError(f'executor: expected "local" or "ray", got {name!r}')


def _dispatch(
    shards: list[Shard], max_tasks: int, submit: Callable[[Shard], Any], wait_for_some: Callable[[list[Any]], Any]
) -> Iterator[tuple[Shard, Any]]:
    """Yield each shard with its finished task; few tasks run at a time, so that results do not pile up in memory.

    Args:
        shards: Shards to make.
        max_tasks: Number of tasks that are submitted at a time.
        submit: Function that starts the task of a shard.
        wait_for_some: Function that waits until at least one of the tasks is finished, and returns the finished ones.
    """
    pending, running = iter(shards), {}
    while True:
        while len(running) < max_tasks and (shard := next(pending, None)) is not None:
            running[submit(shard)] = shard
        if not running:
            return
        for task in wait_for_some(list(running)):
            yield running.pop(task), task


def _run_locally(make: MakeShard, shards: list[Shard], workers: int | None) -> FinishedShards:
    workers = min(workers or len(os.sched_getaffinity(0)), len(shards))
    if workers <= 1:
        yield from ((shard, make(shard)) for shard in shards)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_follow_parent) as pool:
        try:
            first_completed = partial(wait, return_when=FIRST_COMPLETED)
            for shard, future in _dispatch(
                shards, 2 * workers, partial(pool.submit, make), lambda futures: first_completed(futures).done
            ):
                yield shard, future.result()
        except BrokenProcessPool as error:
            raise DataError(
                "a worker process ended unexpectedly: for lack of memory (use fewer workers), or because the script "
                "that calls this does so outside of `if __name__ == '__main__':`, which every worker reads. "
                "What is complete is kept: run the same again to go on"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


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


def _run_on_ray(make: MakeShard, shards: list[Shard], workers: int | None) -> FinishedShards:
    """Make shards on the Ray cluster at RAY_ADDRESS; their bytes come back, so no file system has to be shared."""
    import ray  # pyright: ignore[reportMissingImports]

    def make_one(shard: Shard) -> bytes:
        return make(shard)

    remote: Any = ray.remote(max_retries=3)(make_one)
    max_workers = workers or int(ray.cluster_resources().get("CPU", 1))
    for shard, reference in _dispatch(shards, 2 * max_workers, remote.remote, lambda tasks: ray.wait(tasks)[0]):
        yield shard, ray.get(reference)
