"""No command opens a connection, and Lightning's messages recommend no service."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Ends the process at the first use of a network; the page of `open` and `view` would listen on this machine alone.
GUARD = """
import os, sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind"):
        address = arguments[1] if event in ("socket.connect", "socket.sendto", "socket.bind") else arguments[0]
        if not isinstance(address, str | bytes) or event.startswith("socket.get"):
            os.write(2, f"NETWORK {event} {address}\\n".encode())
            os._exit(99)

sys.addaudithook(refuse)
"""
PROGRAM = """
import sys
from physvision import cli

for line in sys.argv[1:]:
    print("COMMAND", line, flush=True)
    status = cli.main(line.split())
    assert status == 0, (line, status)
"""
TRACK = "t,x,y\n" + "".join(f"{k / 30},{300 * k / 30},{490.5 * (k / 30) ** 2 - 400 * k / 30}\n" for k in range(20))
COMMANDS = (
    "generate pendulum --out data/pendulum --trials 10 --frames 20 --workers 1",
    "verify data/pendulum",
    "repair data/pendulum",
    "show data/pendulum --out shown.png",
    "fit --config pendulum.yaml --trainer.fast_dev_run 1",
    "export pendulum --format torch --out exported",
    "simulate arm --seconds 0.1 --out arm.mp4",
    "identify track.csv --motion projectile --out report",
)


def run(folder, *lines):
    """Output of commands in a process that may not use a network."""
    (folder / "sitecustomize.py").write_text(GUARD)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *lines],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert "NETWORK" not in result.stderr, result.stderr[-2000:]
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout + result.stderr


def test_the_guard_ends_a_process_that_connects(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(GUARD)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    code = "import urllib.request; urllib.request.urlopen('http://localhost:9')"
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert result.returncode == 99
    assert "NETWORK socket." in result.stderr


@pytest.mark.extended
@pytest.mark.timeout(600)
def test_no_command_uses_a_network(tmp_path):
    (tmp_path / "track.csv").write_text(TRACK)
    output = run(tmp_path, *COMMANDS)
    assert output.count("COMMAND") == len(COMMANDS)
    assert "litlogger" not in output
    assert "litmodels" not in output
