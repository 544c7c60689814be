"""Every block of code in README.md and docs/ runs as it stands, alone, in an empty folder."""

import json
import re
from pathlib import Path

import pytest
from snippets import Block, read_blocks

PYTHON = read_blocks("python")
# Blocks of more than five seconds.
LONG = {"data-1", "data-2", "identify-1", "own_robot-1", "own_robot-3", "own_video-1", "perception-1"}


def _check_learning(names):
    about = json.loads(Path("out/one-link/config.json").read_text())
    assert about["seed"] == 1
    assert len(Path("out/one-link/progress.jsonl").read_text().splitlines()) == 2


def _check_own_video(names):
    assert Path("out/mine/report.html").exists()
    assert names["prediction"].states.q.shape == (38, 3)
    assert names["prediction"].future.q.shape == (1, 11, 3)
    assert names["prediction"].future_frames.shape == (11, 1, 100, 100)
    assert names["latest"].equal(names["prediction"].states.q[-1])


def _check_camera(names):
    assert names["frames"].shape == (1, 3, 64, 96)
    # The ball is visible in the center, and covers as much as it is near.
    assert names["masks"].max() == 1.0
    assert float(names["visible"].depth[0, 32, 48]) == pytest.approx(26**0.5 - 0.5, abs=0.01)


def _check_plan(names):
    assert float(names["result"].cost) < 0.5 * float(names["result"].cost_history[0])
    assert float(names["policy"].trajectory.final.q[0, 1].cos()) > 0.95


def _check_own_parameters(names):
    assert names["lengths"].tolist() == pytest.approx([0.7, 1.2], rel=0.01)


def _check_identify(names):
    """The comments of the block are what it finds."""
    length = names["result"].parameters["length"]
    assert f"{length.value:.4f}" == "0.2589"
    assert [f"{bound:.4f}" for bound in length.interval_95] == ["0.2587", "0.2590"]
    assert names["drawn"].truth["length"] == pytest.approx(0.2588, abs=5e-5)


# What a block leaves, where a comment beside it or the text around it says so.
CHECKS = {
    "README-1": lambda names: names["swing"].q.shape == (1, 201, 3) and names["lengths"].grad.abs().min() > 0,
    "camera-1": _check_camera,
    "contact-1": lambda names: float(names["gradient"][0, 2]) != 0.0,
    "contact-2": lambda names: bool(names["engine"].initial_state().q.isfinite().all()),
    "control-1": _check_plan,
    "control-2": lambda names: float(names["plan"].error) < 1e-3,
    "control-3": lambda names: names["obs"].shape == (8, 5),
    "data-1": lambda names: names["sample"].frames.shape[1] == 13,
    "data-2": lambda names: names["small"].frames.shape[1:] == (64, 64, 3) and len(names["shots"].frames) == 12,
    "fluid-1": lambda names: float(names["gradient"]) < 0.0,
    "hybrids-1": lambda names: any(value.grad.abs().max() > 0 for value in names["force"].parameters()),
    "identify-1": _check_identify,
    "identify-2": lambda names: names["rod"].follow == list(names["arm"].body_names),
    "learning-1": _check_learning,
    "own_parameters-1": _check_own_parameters,
    "own_parameters-2": lambda names: names["layer"].learned_values["lengths"].tolist() == pytest.approx([1.0, 1.0]),
    "own_scene-1": lambda names: names["picture"].max() > names["picture"].min(),
    # Half a second of bounces by a velocity from two frames: pixels, of a ball of radius 4.
    "own_scene-2": lambda names: names["frames"].shape == (60, 3, 48, 48) and float(names["error"]) < 1.5,
    "own_video-1": _check_own_video,
    "perception-1": lambda names: len(names["tracks"]) == 1,
    "rigid2d-1": lambda names: names["trajectory"].q.shape == (64, 101, 3),
    "robots-1": lambda names: names["engine"].dt == 1e-3 and "racecar" in names["scenes"].names(),
    "soft-1": lambda names: float(names["gradient"][0]) > 0.0,
    "tour-1": lambda names: names["swing"].q.shape == (1, 201, 3) and names["tip"].shape == (1, 3),
    "tour-3": lambda names: names["logarithms"].grad.abs().min() > 0,
    "tour-4": lambda names: names["A"].shape == (64, 4, 4),
    "tour-5": lambda names: names["frame"].shape == (1, 3, 64, 64) and names["speed"].grad[0, 0] > 0,
    "with_torch-1": lambda names: names["ends"].shape == (5, 1) and bool((names["ends"].diff(dim=0) > 0).all()),
}


def _parameters(blocks: list[Block], long: set[str]) -> list:
    names = {block.name for block in blocks}
    assert long <= names, long - names
    marks = pytest.mark.extended
    return [pytest.param(block, id=block.name, marks=marks if block.name in long else ()) for block in blocks]


@pytest.mark.parametrize("block", _parameters(PYTHON, LONG))
def test_python_runs_alone(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(block.text, f"{block.name}, line {block.line}", "exec"), names)
    check = CHECKS.get(block.name)
    assert check is None or check(names) is not False


def test_every_check_has_its_block():
    assert set(CHECKS) <= {block.name for block in PYTHON}


def test_no_code_hides_in_other_blocks():
    """Python stands between fences; other blocks are formulas, output, XML and YAML."""
    kinds = {block.kind for block in read_blocks("python", "shell", "text")}
    assert kinds == {"python", "shell", "text"}
    code = re.compile(r"^(import \w|from \w+(\.\w+)* import|\w+ = [\w.]+\(|physvision |pip )", re.MULTILINE)
    for block in read_blocks("text"):
        assert not code.search(block.text), f"{block.name}, line {block.line}: code among text"
