"""Jobs of analyses: which one runs, what the worker reports of it, and what the page is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from physvision.app.analyses import Analysis
from physvision.app.worker_process import Message, WorkerProcess

NO_ANSWER = 503


class JobRunner:
    """Runs the jobs of all analyses in one worker, at most one job for each analysis besides reading its frames."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker
        self._numbers: dict[str, int] = {}

    def look(self, analysis: Analysis) -> None:
        """Read the frames of a clip, and track what moves in it."""
        self.show_frames(analysis)
        self.start(analysis, "track", "{}")

    def show_frames(self, analysis: Analysis, attempts: int = 2) -> None:
        """Read the frames of a clip, while other jobs run; once more if the worker ends meanwhile."""

        def listen(event: Message) -> None:
            if event["event"] == "progress":
                analysis.update(clip=event["data"])
            elif event["event"] == "done":
                analysis.update(clip={**event["data"], "complete": True})
            elif event["event"] == "ended" and attempts > 1:
                self.show_frames(analysis, attempts - 1)
            else:
                analysis.update(clip={**analysis.state.get("clip", {}), "complete": True}, error=event["message"])

        self._worker.submit("frames", listen, clip=str(analysis.clip), folder=str(analysis.folder / "frames"))

    def draw_sample(self, analysis: Analysis) -> None:
        """Draw the sample clip, then look at it."""
        self._begin(analysis, "sample", lambda: self.look(analysis), clip=str(analysis.clip))

    def start(self, analysis: Analysis, kind: str, request: str) -> bool:
        """Start tracking, identification or export; false if the analysis has a job already."""
        if analysis.id in self._numbers:
            return False
        self._begin(analysis, kind, request=request)
        return True

    def restore(self, analysis: Analysis, saved: str) -> None:
        """Open a saved analysis."""
        self._begin(analysis, "restore", request=saved)

    def cancel(self, analysis: Analysis) -> None:
        """Cancel the job of an analysis, if it has one."""
        number = self._numbers.get(analysis.id)
        if number is not None:
            analysis.update(job={**analysis.state["job"], "stage": "canceling"})
            self._worker.cancel(number)

    async def simulate(self, analysis: Analysis, request: str) -> tuple[int, dict[str, Any]]:
        """Simulate a motion with another value of a parameter; return an HTTP status and the answer."""
        if analysis.id in self._numbers:
            return 409, {"error": "wait until the analysis is complete"}
        try:
            event = await self._worker.ask("simulate", request=request, **self._job(analysis))
        except TimeoutError:
            return NO_ANSWER, {"error": "the worker is busy with another analysis"}
        if event["event"] == "done":
            return 200, event["data"]
        return (400 if event["event"] == "failed" else NO_ANSWER), {"error": event["message"]}

    def _job(self, analysis: Analysis) -> dict[str, Any]:
        return {
            "analysis": analysis.id,
            "name": analysis.state["name"],
            "clip": None if analysis.clip is None else str(analysis.clip),
            "files": str(Path(analysis.folder) / "files"),
        }

    def _begin(self, analysis: Analysis, kind: str, then: Callable[[], None] = lambda: None, **extra: Any) -> None:
        def listen(event: Message) -> None:
            if event["event"] == "progress":
                analysis.update(job={**analysis.state["job"], **event["data"]})
                return
            self._numbers.pop(analysis.id, None)
            if event["event"] == "done":
                analysis.update(job=None, error=None, **event["data"])
                then()
            elif event["event"] == "failed":
                analysis.update(job=None, error=event["message"])
            else:
                advice = "Your clip and what was found are kept; try again."
                analysis.update(job=None, error=f"{event['message']} during this step ({kind}). {advice}")

        analysis.update(job={"kind": kind, "stage": "waiting", "fraction": 0.0}, error=None)
        self._numbers[analysis.id] = self._worker.submit(kind, listen, **{**self._job(analysis), **extra})
