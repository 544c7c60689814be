"""The root of the package: the verbs and types that it shows, imported lazily, with types that checkers see."""

# pyright: reportAttributeAccessIssue=false

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import physvision as pv

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tests" / "user_program.py"


def run(*command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250, check=False)


def test_every_name_of_the_root_can_be_used():
    assert {"identify", "load", "predict", "simulate", "State", "physics", "learning", "__version__"} <= set(dir(pv))
    for name in dir(pv):
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


@pytest.fixture(scope="module")
def wheel_folder(tmp_path_factory):
    """The package as its wheel holds it, unpacked beside a program of a user."""
    folder = tmp_path_factory.mktemp("user")
    done = run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT), folder=folder)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("physvision-*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    shutil.copy(PROGRAM, folder / "user.py")
    return folder


@pytest.mark.extended
@pytest.mark.parametrize("checker", [["pyright", "--pythonpath", sys.executable], ["mypy"]], ids=["pyright", "mypy"])
def test_checkers_find_types_in_a_program_of_a_user(wheel_folder, checker):
    """Every line `reveal_type(value)  # Type` of the program reveals this type, in the package of the built wheel."""
    lines = PROGRAM.read_text().splitlines()
    expected = {number: line.partition("# ")[2] for number, line in enumerate(lines, 1) if "reveal_type(" in line}
    output = run(sys.executable, "-m", *checker, "user.py", folder=wheel_folder).stdout
    pattern = r'user\.py:(\d+):.*?(?:Type of ".*" is|Revealed type is) "(.*)"'
    revealed = {int(number): name for number, name in re.findall(pattern, output)}
    assert revealed.keys() == expected.keys(), output
    for number, name in expected.items():
        assert name in revealed[number], output
        assert not re.search(r"\b(Any|Unknown)\b", revealed[number].replace("dict[str, Any]", "")), output
    assert not re.search(r"user\.py:\d+:.*\berror\b", output), output


def test_a_mistyped_command_is_met_by_a_suggestion(capsys):
    from physvision.cli import main

    assert main(["predct", "clip.mp4"]) == 2
    assert "did you mean predict?" in capsys.readouterr().err
    assert main(["xyz"]) == 2
    assert "expected one of demo, predict, identify" in capsys.readouterr().err
