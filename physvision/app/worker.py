"""Worker process: reads jobs as lines of JSON, runs one after another, and writes what becomes of them.

The frames of a clip are read in a thread of their own, so that the page shows a film while another one is analyzed.
"""

from __future__ import annotations

import _thread
import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

Job = dict[str, Any]


class CanceledError(Exception):
    """Cancellation of a job by the person who started it."""


class Connection:
    """Messages to the server, from any thread."""

    def __init__(self, output: BinaryIO) -> None:
        self._output, self._lock = output, threading.Lock()

    def send(self, **message: Any) -> None:
        """Send a message to the server."""
        line = json.dumps(message, allow_nan=False).encode() + b"\n"
        with self._lock:
            self._output.write(line)
            self._output.flush()


class JobQueue:
    """Jobs in the order of their arrival, of which the one that runs in the main thread can be interrupted."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._canceled: set[int] = set()
        self._running: int | None = None

    def put(self, job: Job | None) -> None:
        """Append a job; None ends the worker."""
        self._jobs.put(job)

    def cancel(self, number: int) -> None:
        """Cancel a job: one that waits is skipped, the running one is interrupted."""
        with self._lock:
            self._canceled.add(number)
            if self._running == number:
                _thread.interrupt_main()

    def is_canceled(self, number: int) -> bool:
        """Return true if a job was canceled."""
        return number in self._canceled

    def run(self, execute: Callable[[Job], None], report: Callable[[Job, str], None]) -> None:
        """Run jobs until the end.

        Args:
            execute: Function that runs a job.
            report: Function that is called with a job that was canceled, or that failed, and the message.
        """
        while (job := self._next()) is not None:
            try:
                with self._lock:
                    self._running = job["id"]
                    if job["id"] in self._canceled:
                        raise CanceledError
                execute(job)
                with self._lock:
                    self._running = None
            except (KeyboardInterrupt, CanceledError):
                self._running = None
                report(job, "canceled")
            except MemoryError:
                report(job, "out of memory; trim or crop the clip, and try again")
            except Exception as error:
                report(job, _describe(error))
            finally:
                self._running = None

    def _next(self) -> Job | None:
        while True:
            try:
                return self._jobs.get()
            except KeyboardInterrupt:  # of a job that was already complete
                continue


def _describe(error: Exception) -> str:
    from physvision.core import PhysvisionError

    if isinstance(error, PhysvisionError):
        return str(error)
    import traceback

    traceback.print_exception(error, file=sys.stderr)
    return f"internal error ({type(error).__name__}: {error}); please report it with the clip"


def main() -> int:
    """Run the worker on standard input and output."""
    # What libraries print goes to the error output.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    connection, jobs, frames = Connection(output), JobQueue(), JobQueue()
    threading.Thread(target=_read_jobs, args=(sys.stdin.buffer, jobs, frames), daemon=True).start()
    from physvision.app.tasks import Tasks

    tasks = Tasks()

    def report(job: Job, message: str) -> None:
        connection.send(id=job["id"], event="failed", message=message)

    def execute(job: Job) -> None:
        def progress(**data: Any) -> None:
            if jobs.is_canceled(job["id"]) or frames.is_canceled(job["id"]):
                raise CanceledError
            connection.send(id=job["id"], event="progress", data=data)

        connection.send(id=job["id"], event="begun")
        data = tasks.run(job, progress)
        connection.send(id=job["id"], event="done", data=data)

    connection.send(event="ready", choices=tasks.choices())
    threading.Thread(target=frames.run, args=(execute, report), daemon=True).start()
    jobs.run(execute, report)
    return 0


def _read_jobs(source: BinaryIO, jobs: JobQueue, frames: JobQueue) -> None:
    """Sort incoming messages into the queues until the server closes the input, which ends the process."""
    for line in source:
        message = json.loads(line)
        if "cancel" in message:
            jobs.cancel(message["cancel"])
            frames.cancel(message["cancel"])
        else:
            (frames if message["kind"] == "frames" else jobs).put(message)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
