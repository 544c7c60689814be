"""Server of the page: uploads, the state of each analysis, jobs for the worker, and files of an analysis."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from physvision.app.analyses import FILES, Analysis, Store
from physvision.app.guard import Guard
from physvision.app.jobs import JobRunner
from physvision.app.settings import DEFAULT_SETTINGS, AppSettings
from physvision.app.uploads import UploadError, receive_clip, receive_text
from physvision.app.worker_process import WorkerProcess

PAGE = Path(__file__).with_name("page")
_PAGE_FILES = {
    path.name: {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}[
        path.suffix
    ]
    for path in sorted(PAGE.iterdir())
    if path.suffix in (".html", ".js", ".css", ".svg")
}
# A report is shown apart from the application's own origin.
_REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; media-src data:"
)
_KEEP_ALIVE_SECONDS = 10.0


class Server:
    """Handlers of the requests, on a store of analyses and a worker.

    Attributes:
        store: Analyses.
        worker: Worker process.
        first: Analysis of the clip that was given on the command line.
        page_is_open: Event that is set as soon as a page has been loaded.
    """

    def __init__(self, folder: Path, worker: WorkerProcess, settings: AppSettings = DEFAULT_SETTINGS) -> None:
        self.store, self.worker, self._settings = Store(folder, settings), worker, settings
        self.runner = JobRunner(worker)
        self.first: Analysis | None = None
        self.page_is_open = asyncio.Event()
        worker.on_ready = self._show_choices

    def _show_choices(self) -> None:
        for analysis in self.store:
            analysis.update(choices=self.worker.choices)

    def routes(self) -> list[Route]:
        """Return all routes; names in paths are looked up, and never part of a file's path."""
        base = "/api/analyses/{id}"
        return [
            Route("/", self.page),
            Route("/page/{name}", self.page_file),
            Route("/api/first", self.first_analysis),
            Route("/api/analyses", self.upload, methods=["POST"]),
            Route("/api/sample", self.sample, methods=["POST"]),
            Route("/api/saved", self.open_saved, methods=["POST"]),
            Route(f"{base}/events", self.events),
            Route(f"{base}/clip", self.attach, methods=["POST"]),
            Route(f"{base}/frames/{{number:int}}", self.frame),
            Route(f"{base}/files/{{name}}", self.file),
            Route(f"{base}/cancel", self.cancel, methods=["POST"]),
            Route(f"{base}/{{job}}", self.job, methods=["POST"]),
        ]

    async def page(self, request: Request) -> Response:
        """Answer with the page."""
        return FileResponse(PAGE / "index.html", media_type="text/html")

    async def page_file(self, request: Request) -> Response:
        """Answer with a script or the style sheet of the page."""
        name = request.path_params["name"]
        if name not in _PAGE_FILES:
            raise HTTPException(404, "no such file")
        return FileResponse(PAGE / name, media_type=_PAGE_FILES[name])

    async def first_analysis(self, request: Request) -> Response:
        """Answer with the analysis of the clip of the command line, if there is one."""
        self.page_is_open.set()  # this request is the page's first one
        return JSONResponse({"id": self.first.id if self.first else None})

    async def start_worker(self) -> None:
        """Start the worker when the page is there, whose first paint its imports would delay."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.page_is_open.wait(), self._settings.page_seconds)
        await self.worker.start()

    def open_clip(self, path: Path) -> Analysis:
        """Begin the analysis of a clip of this machine, in its place."""
        analysis = self._begin(path.name, path)
        self.runner.look(analysis)
        return analysis

    def _begin(self, name: str, clip: Path | None = None) -> Analysis:
        analysis = self.store.add(name, clip)
        if self.worker.choices is not None:
            analysis.update(choices=self.worker.choices)
        return analysis

    async def upload(self, request: Request) -> Response:
        """Take in a clip, and begin its analysis."""
        analysis = self._begin(unquote(request.headers.get("x-name", "clip")))
        await self._receive(request, analysis)
        self.runner.look(analysis)
        return JSONResponse({"id": analysis.id}, 201)

    async def _receive(self, request: Request, analysis: Analysis) -> None:
        try:
            _check_length(request, self._settings.max_clip_bytes)
            analysis.clip = await receive_clip(request.stream(), analysis.folder, self._settings.max_clip_bytes)
        except BaseException:
            self.store.remove(analysis)
            raise

    async def sample(self, request: Request) -> Response:
        """Begin the analysis of a sample clip, which the worker draws."""
        analysis = self._begin("sample pendulum.mp4")
        analysis.clip = analysis.folder / "clip.mp4"
        self.runner.draw_sample(analysis)
        return JSONResponse({"id": analysis.id}, 201)

    async def open_saved(self, request: Request) -> Response:
        """Open a saved analysis, which the worker reads."""
        text = await receive_text(request.stream(), self._settings.max_request_bytes)
        analysis = self._begin("saved analysis")
        self.runner.restore(analysis, text)
        return JSONResponse({"id": analysis.id}, 201)

    async def attach(self, request: Request) -> Response:
        """Take in the clip of a saved analysis."""
        analysis = self._analysis(request)
        if analysis.clip is not None:
            raise HTTPException(409, "this analysis has its clip")
        _check_length(request, self._settings.max_clip_bytes)
        analysis.clip = await receive_clip(request.stream(), analysis.folder, self._settings.max_clip_bytes)
        self.runner.show_frames(analysis)
        return JSONResponse({})

    async def events(self, request: Request) -> Response:
        """Stream the state of an analysis, first all of it, then what changes."""
        analysis = self._analysis(request)

        async def stream() -> AsyncIterator[str]:
            version = 0
            while not analysis.state.get("removed") and not await request.is_disconnected():
                version, changes = await analysis.changes(version, _KEEP_ALIVE_SECONDS)
                yield f"data: {json.dumps(changes)}\n\n" if changes else ": alive\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def frame(self, request: Request) -> Response:
        """Answer with the picture of a frame."""
        analysis, number = self._analysis(request), request.path_params["number"]
        if number >= self._settings.max_frames or not (path := analysis.frame(number)).is_file():
            raise HTTPException(404, "no such frame")
        return FileResponse(path, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=3600"})

    async def file(self, request: Request) -> Response:
        """Answer with one of the files that an analysis may serve."""
        analysis, name = self._analysis(request), request.path_params["name"]
        if name not in FILES or not (path := analysis.folder / "files" / name).is_file():
            raise HTTPException(404, "no such file")
        disposition = "inline" if name.endswith((".html", ".mp4")) else "attachment"
        headers = {"Content-Disposition": f'{disposition}; filename="{name}"'}
        if name.endswith(".html"):
            headers["Content-Security-Policy"] = _REPORT_POLICY
        return FileResponse(path, media_type=FILES[name], headers=headers)

    async def job(self, request: Request) -> Response:
        """Run a job of the worker on an analysis; a request's text is read by the worker alone."""
        analysis, kind = self._analysis(request), request.path_params["job"]
        text = await receive_text(request.stream(), self._settings.max_request_bytes)
        if kind in ("track", "identify", "export", "predict", "scene"):
            if not self.runner.start(analysis, kind, text):
                raise HTTPException(409, "this analysis is busy; cancel first")
            return JSONResponse({}, 202)
        if kind == "simulate":
            status, answer = await self.runner.simulate(analysis, text)
            return JSONResponse(answer, status)
        raise HTTPException(404, "no such job")

    async def cancel(self, request: Request) -> Response:
        """Cancel the job of an analysis."""
        self.runner.cancel(self._analysis(request))
        return JSONResponse({})

    def _analysis(self, request: Request) -> Analysis:
        analysis = self.store.get(request.path_params["id"])
        if analysis is None:
            raise HTTPException(404, "no such analysis; the application may have been restarted")
        return analysis


def _check_length(request: Request, max_bytes: int) -> None:
    """Refuse a request that announces more than the limit before any of it is read."""
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > max_bytes:
        raise UploadError(413, f"the clip is larger than {max_bytes / 2**20:.0f} MB; trim it and try again")


def _refuse(request: Request, error: Exception) -> Response:
    status, reason = (
        (error.status, error.reason) if isinstance(error, UploadError) else (error.status_code, error.detail)  # pyright: ignore
    )
    return JSONResponse({"error": reason}, status)


def make_app(
    folder: Path,
    worker: WorkerProcess,
    token: str | None = None,
    clip: Path | None = None,
    settings: AppSettings = DEFAULT_SETTINGS,
) -> Starlette:
    """Return the ASGI application.

    Args:
        folder: Empty folder for the files of its analyses, removed at the end.
        worker: Worker process, started with the application.
        token: Token that requests must carry; None where only this machine can connect.
        clip: Clip to open first.
        settings: Limits of the application.
    """
    server = Server(folder, worker, settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if clip is not None:
            server.first = server.open_clip(clip)
        start = asyncio.create_task(server.start_worker())
        try:
            yield
        finally:
            start.cancel()
            for analysis in server.store:
                analysis.update(removed=True)
            await worker.close()
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    app = Starlette(
        routes=server.routes(), lifespan=lifespan, exception_handlers={UploadError: _refuse, HTTPException: _refuse}
    )
    app.add_middleware(Guard, token=token)
    app.state.server = server
    return app
