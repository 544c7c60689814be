"""Client of the worker process: starts it early, sends it jobs, and replaces it when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from physvision.app.settings import DEFAULT_SETTINGS, AppSettings

Message = dict[str, Any]
Listener = Callable[[Message], None]
_MAX_LINE = 2**28  # of one message, bytes
COMMAND = (sys.executable, "-m", "physvision.app.worker")


@dataclass
class _Job:
    """Job that was sent: its message, who listens to its events, whether it runs, and whether it was canceled."""

    message: Message
    listener: Listener
    running: bool = False
    canceled: bool = False


class WorkerProcess:
    """Process that runs jobs, with a listener for each job that is under way.

    Messages are lines of JSON: jobs with their number to its input, events with the job's number from its output. If
    the process ends, the job that ran is told so, and those that waited are sent to the next process.
    """

    def __init__(self, settings: AppSettings = DEFAULT_SETTINGS, command: Sequence[str] = COMMAND) -> None:
        """Prepare a worker, which `start` starts.

        Args:
            settings: Limits of the application.
            command: Command line of the worker.
        """
        self._settings, self._command = settings, command
        self._process: asyncio.subprocess.Process | None = None
        self._jobs: dict[int, _Job] = {}
        self._tasks: set[asyncio.Task] = set()
        self._number = 0
        self._closing = False
        self.choices: dict[str, Any] | None = None
        self.on_ready: Callable[[], None] = lambda: None

    async def start(self) -> None:
        """Start the process, send it the jobs that wait, and listen to it until it ends."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_MAX_LINE,
            # An interrupt in the terminal ends the server, which ends the worker.
            start_new_session=True,
        )
        for job in self._jobs.values():
            if not job.running:
                self._send(job.message)
                if job.canceled:
                    self._send({"cancel": job.message["id"]})
        self._spawn(self._listen(self._process))

    def submit(self, kind: str, listener: Listener, **job: Any) -> int:
        """Send a job, and return its number; the listener hears its events up to "done", "failed" or "ended"."""
        self._number += 1
        message = {"id": self._number, "kind": kind, **job}
        self._jobs[self._number] = _Job(message, listener)
        self._send(message)
        return self._number

    async def ask(self, kind: str, **job: Any) -> Message:
        """Send a job, and wait for its last event."""
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def listen(event: Message) -> None:
            if event["event"] in ("done", "failed", "ended") and not reply.done():
                reply.set_result(event)

        self.submit(kind, listen, **job)
        return await asyncio.wait_for(reply, self._settings.reply_seconds)

    def cancel(self, number: int) -> None:
        """Cancel a job; the process is killed if the job has not ended soon after."""
        if number in self._jobs:
            self._jobs[number].canceled = True
            self._send({"cancel": number})
            self._spawn(self._kill_unless_ended(number))

    def kill(self) -> None:
        """Kill the process; whoever waits for it is told, and another one is started."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def close(self) -> None:
        """End the process for good."""
        self._closing = True
        self.kill()
        if self._process is not None:
            await self._process.wait()
        for task in list(self._tasks):
            task.cancel()

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _send(self, message: Message) -> None:
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            return  # the next process gets it
        with contextlib.suppress(ConnectionError):
            process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                self._dispatch(line)
        except ValueError:  # no JSON, or a line over the limit: the process is out of order
            process.kill()
        code = await process.wait()
        self.choices = None
        if self._closing:
            return
        interrupted = [number for number, job in self._jobs.items() if job.running]
        await self.start()
        for number in interrupted:
            self._jobs.pop(number).listener({"event": "ended", "message": _describe_end(code)})

    def _dispatch(self, line: bytes) -> None:
        event = json.loads(line)
        if event["event"] == "ready":
            self.choices = event["choices"]
            self.on_ready()
            return
        job = self._jobs.get(event["id"])
        if job is None:
            return
        job.running = True
        if event["event"] in ("done", "failed"):
            del self._jobs[event["id"]]
        if event["event"] != "begun":
            job.listener(event)

    async def _kill_unless_ended(self, number: int) -> None:
        await asyncio.sleep(self._settings.cancel_seconds)
        if number in self._jobs:
            self.kill()


def _describe_end(code: int) -> str:
    """Return a sentence on how the process ended."""
    if code >= 0 or os.name == "nt":
        return f"the worker process ended unexpectedly, with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    memory = "; it may have run out of memory" if name == "SIGKILL" else ""
    return f"the worker process was ended by {name}{memory}"
