"""The real worker is killed in every stage of its work: it is said, nothing is lost, and the next one goes on."""

import os
import signal
import sys
import time

import pytest
from starlette.testclient import TestClient

from physvision.app.server import make_app
from physvision.app.worker_process import WorkerProcess
from physvision.datasets.clips import Filming, draw

pytestmark = [
    pytest.mark.extended,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL"),
]
STAGES = ("upload", "frames", "tracking", "identify", "export")


@pytest.fixture
def client(tmp_path):
    folder = tmp_path / "analyses"
    folder.mkdir()
    app = make_app(folder, WorkerProcess())
    with TestClient(app, base_url="http://127.0.0.1:8000", headers={"X-Physvision": "1"}) as client:
        yield client
    assert not list(tmp_path.glob("analyses"))


def wait_for(condition, seconds=300.0):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return value


def start(client, analysis, job, request="{}"):
    assert client.post(f"/api/analyses/{analysis.id}/{job}", content=request).status_code == 202


def reach(client, analysis, stage):
    """Bring an analysis to a stage of the worker's work."""
    if stage in ("identify", "export"):
        wait_for(lambda: analysis.state["job"] is None)
        start(client, analysis, "identify", '{"motion": "pendulum"}')
        stages = {"identify": lambda: analysis.state["job"]["stage"].startswith("fitting")}
        wait_for(stages.get(stage, lambda: analysis.state["job"] is None))
    if stage == "export":
        start(client, analysis, "export")
        wait_for(lambda: analysis.state["job"]["stage"] == "writing the files")
    if stage == "frames":
        wait_for(lambda: "clip" in analysis.state)
    if stage == "tracking":
        wait_for(lambda: analysis.state["job"] is None or analysis.state["job"].get("preview"))


@pytest.mark.parametrize("moment", range(4))
def test_a_worker_that_is_killed_loses_nothing(client, tmp_path, moment):
    """Five kills, each a little later in its stage than in the moment before: twenty in all."""
    film = draw("pendulum", 3, Filming(size=(160, 120), fps=25)).write(tmp_path / "film.mp4").read_bytes()
    server = client.app.state.server
    for stage in STAGES:
        response = client.post("/api/analyses", content=film, headers={"X-Name": "a.mp4"})
        analysis = server.store.get(response.json()["id"])
        reach(client, analysis, stage)
        time.sleep(0.07 * moment)
        keys, worker = set(analysis.state), server.worker._process
        if worker is not None and worker.returncode is None:
            os.kill(worker.pid, signal.SIGKILL)
            wait_for(lambda: worker.returncode is not None)  # noqa: B023
        wait_for(lambda: analysis.state["job"] is None)  # noqa: B023
        if analysis.state["error"]:
            assert "SIGKILL" in analysis.state["error"]
            assert "Your clip and what was found are kept" in analysis.state["error"]
        assert keys <= set(analysis.state)
        if not analysis.state.get("tracks"):
            start(client, analysis, "track")
            wait_for(lambda: analysis.state["job"] is None)  # noqa: B023
        assert len(analysis.state["tracks"]["objects"]) == 1, stage
        wait_for(lambda: analysis.state["clip"].get("complete"))  # noqa: B023
        assert (
            client.get(f"/api/analyses/{analysis.id}/frames/{analysis.state['clip']['count'] - 1}").status_code == 200
        )
