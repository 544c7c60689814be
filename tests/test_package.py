"""A wheel, built from the clone and installed into an empty environment, works from any directory."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USE = """
import physvision
import lightning
from physvision.core import resources
from physvision.physics import articulated
assert "site-packages" in physvision.__file__, physvision.__file__
for kind in resources.FOLDERS:
    assert any(resources.folder(kind).iterdir()), kind
engine = articulated.chain([1.0], dt=0.01)
print(float(engine.rollout(engine.initial_state(), 10).final.q))
"""


def run(*command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment(tmp_path):
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT, folder=tmp_path)
    (wheel,) = tmp_path.glob("physvision-*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "environment", folder=tmp_path)
    python, command = (tmp_path / "environment" / "bin" / name for name in ("python", "physvision"))
    run(python, "-m", "pip", "install", "--quiet", wheel, folder=tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert float(run(python, "-c", USE, folder=empty)) == 0.0
    assert "usage: physvision" in run(command, "--help", folder=empty)
    run(command, "demo", folder=empty)
    (clip,) = (empty / "out" / "demo").glob("pendulum.mp4")
    run(command, "predict", clip, "--checkpoint", "pendulum", "--out", "found", folder=empty)
    assert {path.name for path in (empty / "found").iterdir()} == {
        "prediction.mp4",
        "report.html",
        "states.csv",
        "states.npz",
    }
    assert set(empty.iterdir()) == {empty / "out", empty / "found"}
