"""The server takes in films, says what becomes of them, and refuses everything else; its worker is pretended."""

import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from physvision.app.analyses import clean_name
from physvision.app.guard import COOKIE
from physvision.app.server import make_app
from physvision.app.settings import DEFAULT_SETTINGS
from physvision.app.worker_process import WorkerProcess

FILM = b"\x00\x00\x00\x18ftypmp42" + bytes(200)
HEADERS = {"X-Physvision": "1"}
SETTINGS = replace(
    DEFAULT_SETTINGS, max_clip_bytes=100_000, max_request_bytes=10_000, cancel_seconds=0.3, page_seconds=0.02
)
WORKER = (sys.executable, str(Path(__file__).with_name("fake_worker.py")))


@pytest.fixture
def client(tmp_path):
    folder = tmp_path / "analyses"
    folder.mkdir()
    app = make_app(folder, WorkerProcess(SETTINGS, WORKER), settings=SETTINGS)
    with TestClient(app, base_url="http://127.0.0.1:8000", headers=HEADERS) as client:
        yield client
    assert not folder.exists()
    assert not list(tmp_path.iterdir())


def server(client):
    return client.app.state.server


def wait_for(condition):
    end = time.monotonic() + 20
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return value


def upload(client, content=FILM, name="a.mp4"):
    response = client.post("/api/analyses", content=content, headers={"X-Name": quote(name)})
    assert response.status_code == 201, response.text
    return server(client).store.get(response.json()["id"])


def finished(analysis):
    return wait_for(lambda: analysis.state.get("job", "") is None and analysis.state)


def test_a_film_is_taken_in_and_looked_at(client):
    analysis = upload(client, name="my film.mp4")
    state = finished(analysis)
    assert state["name"] == "my film.mp4"
    assert state["tracks"]["objects"][0]["name"] == "object 1"
    wait_for(lambda: state.get("clip", {}).get("complete"))
    assert client.get(f"/api/analyses/{analysis.id}/frames/0").content == b"picture"
    assert client.get(f"/api/analyses/{analysis.id}/frames/1").status_code == 404
    assert client.post(f"/api/analyses/{analysis.id}/identify", content="{}").status_code == 202
    finished(analysis)
    assert client.post(f"/api/analyses/{analysis.id}/simulate", content="{}").json() == {"positions": [], "values": {}}
    wait_for(lambda: client.post(f"/api/analyses/{analysis.id}/export").status_code == 202 and finished(analysis))
    report = client.get(f"/api/analyses/{analysis.id}/files/report.html")
    assert "sandbox" in report.headers["content-security-policy"]
    assert client.get(f"/api/analyses/{analysis.id}/files/parameters.csv").status_code == 404


def test_the_worker_starts_with_the_page_and_looks_at_the_clip_of_the_command_line(tmp_path):
    (tmp_path / "a.mp4").write_bytes(FILM)
    (tmp_path / "analyses").mkdir()
    settings = replace(SETTINGS, page_seconds=1000.0)
    app = make_app(tmp_path / "analyses", WorkerProcess(settings, WORKER), clip=tmp_path / "a.mp4", settings=settings)
    with TestClient(app, base_url="http://127.0.0.1:8000", headers=HEADERS) as client:
        time.sleep(0.1)
        assert server(client).worker.choices is None
        analysis = server(client).store.get(client.get("/api/first").json()["id"])
        assert finished(analysis)["tracks"]


def test_an_analysis_has_one_job_at_a_time(client):
    analysis = upload(client)
    finished(analysis)
    assert client.post(f"/api/analyses/{analysis.id}/identify", content="wait").status_code == 202
    assert client.post(f"/api/analyses/{analysis.id}/identify", content="").status_code == 409
    assert client.post(f"/api/analyses/{analysis.id}/simulate", content="").status_code == 409
    client.post(f"/api/analyses/{analysis.id}/cancel")
    assert finished(analysis)["error"] == "canceled"
    assert client.post(f"/api/analyses/{analysis.id}/identify", content="fault").status_code == 202
    assert finished(analysis)["error"] == "this is wrong"


def test_a_worker_that_does_not_cancel_is_replaced(client):
    analysis, second = upload(client), upload(client)
    finished(analysis)
    finished(second)
    client.post(f"/api/analyses/{analysis.id}/identify", content="hang")
    client.post(f"/api/analyses/{analysis.id}/cancel")
    assert "SIGKILL" in finished(analysis)["error"]
    client.post(f"/api/analyses/{second.id}/identify", content="")
    assert finished(second)["error"] is None


def test_a_killed_worker_is_told_and_the_next_film_works(client):
    randomness = random.Random(0)
    for number in range(20):
        analysis = upload(client)
        if number % 2:
            finished(analysis)
            client.post(f"/api/analyses/{analysis.id}/identify", content="wait" if number % 4 == 1 else "die")
        time.sleep(0.05 * randomness.random())
        server(client).worker.kill()
        wait_for(lambda: analysis.state["job"] is None)  # noqa: B023
        if number % 2:
            assert "Your clip and what was found are kept" in analysis.state["error"]
            assert analysis.state["tracks"]
        state = finished(upload(client))
        assert state["error"] is None, number
        assert state["tracks"]


def test_the_oldest_analyses_are_removed_with_their_files(client):
    analyses = [upload(client) for _ in range(SETTINGS.max_analyses + 3)]
    assert [analysis.folder.exists() for analysis in analyses[:4]] == [False, False, False, True]
    assert client.get(f"/api/analyses/{analyses[0].id}/frames/0").status_code == 404


def hostile_uploads():
    """Names and contents that no film has, each with the status of the answer."""
    randomness = random.Random(1)
    contents = [
        b"",
        b"<html><script>alert(1)</script>" * 9,
        b"#!/bin/sh\nrm -rf /\n" * 9,
        b"%PDF-1.7" + bytes(99),
        b"PK\x03\x04" + bytes(99),
    ]
    contents += [
        bytes(randomness.getrandbits(8) | 0x80 for _ in range(randomness.randrange(1, 3000))) for _ in range(70)
    ]
    names = [
        "../../../etc/passwd",
        "..\\..\\boot.ini",
        "<img src=x onerror=alert(1)>.mp4",
        "a\r\nSet-Cookie: x=1",
        "\x00",
        "x" * 9999,
        "/etc/shadow",
        "🙂\u202egpj.mp4",
    ]
    return [(names[index % len(names)], content) for index, content in enumerate(contents)]


def test_hostile_uploads_leave_nothing_behind(client, tmp_path):
    folder = tmp_path / "analyses"
    for name, content in hostile_uploads():
        response = client.post("/api/analyses", content=content, headers={"X-Name": quote(name)})
        assert response.status_code in (400, 415), content[:20]
        assert not list(folder.iterdir())
    large = client.post("/api/analyses", content=FILM + bytes(SETTINGS.max_clip_bytes))
    assert large.status_code == 413
    stream = client.post("/api/analyses", content=(FILM for _ in range(1000)))  # without a stated length
    assert stream.status_code == 413
    assert not list(folder.iterdir())
    for name, _ in hostile_uploads()[:8]:
        analysis = upload(client, name=name)
        assert {path.name for path in analysis.folder.iterdir()} <= {"clip.mp4", "frames", "files"}
        assert len(analysis.state["name"]) <= 120
        assert analysis.state["name"].isprintable()
    assert {path.name for path in tmp_path.iterdir()} == {"analyses"}


def hostile_paths(name):
    up = ["..", "%2e%2e", "..%2f..", "%252e%252e", "....//", "..%5c", "%00", "~"]
    targets = ["etc/passwd", "server.py", "clip.mp4", "upload"]
    for step in up:
        for target in targets:
            yield f"/page/{step}/{target}"
            yield f"/api/analyses/{name}/files/{step}/{target}"
            yield f"/api/analyses/{name}/frames/{step}{target}"
            yield f"/api/analyses/{step}/{name}/files/{target}"
    yield from (
        f"/api/analyses/{name}/files/{entry}" for entry in ("clip.mp4", "../clip.mp4", ".", "frames", "a" * 5000)
    )
    yield from (f"/api/analyses/{name}/frames/{entry}" for entry in ("-1", "1e9", "0.5", "９", "9" * 400))


def test_hostile_paths_serve_nothing(client):
    analysis = upload(client)
    finished(analysis)
    paths = list(hostile_paths(analysis.id))
    assert len(paths) > 130
    for path in paths:
        assert client.get(path).status_code in (404, 405), path
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, f"/api/analyses/{analysis.id}/files/report.html").status_code == 405


def test_jobs_that_do_not_exist_and_texts_that_are_too_large(client):
    analysis = upload(client)
    finished(analysis)
    assert client.post(f"/api/analyses/{analysis.id}/restore", content="{}").status_code == 404
    assert client.post(f"/api/analyses/{analysis.id}/identify", content=bytes(20_000)).status_code == 413
    assert client.post(f"/api/analyses/{analysis.id}/identify", content=b"\xff\xfe").status_code == 400
    assert client.post("/api/saved", content=b"\xff").status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "https://127.0.0.1:8000"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example:8000"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "[::"},
        {"Host": ""},
    ],
)
def test_requests_of_other_sites_are_refused(client, headers):
    for method, path in (("GET", "/api/first"), ("POST", "/api/sample"), ("POST", "/api/analyses")):
        assert client.request(method, path, headers=headers, content=FILM).status_code in (403, 421)
    assert not list(server(client).store)


def test_a_form_of_another_site_lacks_the_header(client):
    assert client.post("/api/sample", headers={"X-Physvision": "0"}).status_code == 403
    assert client.post("/api/sample", headers={"Origin": "http://127.0.0.1:8000"}).status_code == 201


def test_a_link_of_another_site_may_open_the_page(client):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    page = client.get("/", headers=headers)
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert client.get("/api/first", headers=headers).status_code == 403


def test_the_network_needs_the_token(tmp_path):
    app = make_app(tmp_path / "a", WorkerProcess(SETTINGS, WORKER), token="secret")
    (tmp_path / "a").mkdir()
    with TestClient(app, base_url="http://192.168.1.5:8000", headers=HEADERS, follow_redirects=False) as client:
        for address in ("/", "/api/first", "/page/app.js", "/?token=", "/?token=wrong", "/api/first?token=secret"):
            assert client.get(address).status_code == 403
        for cookie in (f"{COOKIE}=wrong", f"{COOKIE}=", "x" * 5000, f'{COOKIE}="'):
            assert client.get("/api/first", headers={"Cookie": cookie}).status_code == 403
        answer = client.get("/?token=secret")
        assert answer.status_code == 303
        assert "HttpOnly" in answer.headers["set-cookie"]
        assert "SameSite=strict" in answer.headers["set-cookie"]
        assert client.get("/").status_code == 200


def test_names_are_cleaned():
    assert clean_name("../../a/b.mp4") == "b.mp4"
    assert clean_name("C:\\films\\b.mp4") == "b.mp4"
    assert clean_name("a\x00\u202eb\n c.mp4") == "a b c.mp4"
    assert clean_name("///") == "clip"


def test_the_process_of_the_server_imports_no_torch():
    code = "import sys, physvision.cli, physvision.app.command, physvision.app.server; print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ).stdout == "False\n"
    )


def test_a_clip_that_is_not_there(capsys):
    from physvision.cli import main

    assert main(["open", "nothing.mp4"]) == 1
    assert "nothing.mp4: no such file" in capsys.readouterr().err
