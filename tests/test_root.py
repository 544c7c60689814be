"""The root of the package: the verbs and types that it shows, imported lazily, with types that checkers see."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import physvision as pv

ROOT = Path(__file__).parents[1]
USER = """
import physvision as pv

trajectory = pv.simulate("quadruped", seconds=0.1)
reveal_type(trajectory)
reveal_type(trajectory.q)
reveal_type(pv.identify("clip.mp4", "pendulum"))
reveal_type(pv.predict("clip.mp4", "pendulum"))
reveal_type(pv.load("pendulum"))
reveal_type(pv.physics.articulated.load("scene.xml"))
reveal_type(pv.State)
"""
REVEALED = ["Trajectory", "Tensor", "Identification", "Prediction", "PredictiveAutoencoder", "Articulation", "State"]


def run(*command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250, check=False)


def test_every_name_of_the_root_can_be_used():
    assert set(pv.__all__) <= set(dir(pv))
    for name in pv.__all__:
        assert getattr(pv, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'predictt'"):
        _ = pv.predictt  # pyright: ignore


def test_the_root_is_imported_without_torch(tmp_path):
    code = "import sys, physvision; physvision.__version__; print('torch' in sys.modules)"
    assert run(sys.executable, "-c", code, folder=ROOT).stdout == "False\n"


def test_simulate_returns_the_trajectory_of_a_scene():
    path = pv.simulate("quadruped", seconds=0.05, dt=0.01)
    engine = pv.physics.articulated.scenes.load("quadruped", 0.01)
    assert torch.equal(path.q, engine.rollout(engine.initial_state(dtype=torch.float64), 5).q)
    push = torch.ones(2, 3, engine.nu, dtype=torch.float64)
    again = pv.simulate(engine, push, start=path.final.repeat(2))
    assert torch.equal(again.q, engine.rollout(path.final.repeat(2), 3, push).q)


def test_predict_is_the_predictor_of_a_checkpoint():
    frames = np.zeros((4, 50, 50), np.uint8)
    with pytest.raises(pv.PhysvisionError) as error:
        pv.predict(frames, "no-such-model")
    assert "no-such-model" in str(error.value)


@pytest.mark.extended
@pytest.mark.parametrize("checker", [["pyright", "--pythonpath", sys.executable], ["mypy"]], ids=["pyright", "mypy"])
def test_checkers_find_types_in_a_program_of_a_user(tmp_path, checker):
    (tmp_path / "user.py").write_text(USER)
    output = run(sys.executable, "-m", *checker, "user.py", folder=tmp_path).stdout
    lines = [line for line in output.splitlines() if "Type of" in line or "Revealed type" in line]
    assert len(lines) == len(REVEALED), output
    for line, expected in zip(lines, REVEALED, strict=True):
        assert expected in line, line
        assert "Any" not in line.replace("Any]", ""), line
        assert "Unknown" not in line, line


def test_a_mistyped_command_is_met_by_a_suggestion(capsys):
    from physvision.cli import main

    assert main(["predct", "clip.mp4"]) == 2
    assert "did you mean predict?" in capsys.readouterr().err
    assert main(["xyz"]) == 2
    assert "expected one of demo, predict, identify" in capsys.readouterr().err
