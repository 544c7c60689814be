"""Every block of code in README.md and docs/ runs as it stands, alone, in an empty folder."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import own_clip
import pytest
import torch
import yaml
from snippet_files import FILES
from snippets import ROOT, Block, read_blocks
from torch.distributed.run import get_args_parser

from physvision import cli, options
from physvision.core import registry
from physvision.envs import ENVIRONMENTS
from physvision.trainers import commands as training

PYTHON, SHELL = read_blocks("python"), read_blocks("shell")
RUN, NOT_RUN = [block for block in SHELL if not block.reason], [block for block in SHELL if block.reason]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Commands that serve a page until they are interrupted.
SERVING = {"open", "view"}
# Blocks of commands of less than five seconds.
QUICK = {"open-1"}
# Blocks of more than five seconds.
LONG = {
    "control-3",
    "data-1",
    "data-3",
    "identify-1",
    "own_robot-1",
    "own_robot-2",
    "own_robot-4",
    "own_video-1",
    "perception-1",
}


def _check_learning(names):
    about = json.loads(Path("out/one-link/config.json").read_text())
    assert about["seed"] == 1
    assert len(Path("out/one-link/progress.jsonl").read_text().splitlines()) == 2
    # Links always start alike.
    best = max(json.loads(line)["reward"] for line in Path("out/one-link/progress.jsonl").read_text().splitlines())
    assert names["rewards"].tolist() == pytest.approx([best] * 4, abs=1e-6)


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


def _check_servos(names):
    """The robot stands on its feet all the time, and its hips follow their targets; its feet carry its weight."""
    robot, path, contacts = names["robot"], names["path"], names["contacts"]
    assert float(robot.contacts(names["start"], max_separation=1.0).separation.min()) == pytest.approx(0.0, abs=1e-9)
    assert float(contacts.impulse.sum((0, 1))[2] / robot.dt) == pytest.approx(6 * 9.81, rel=0.05)
    assert robot.control_names == tuple(f"{name} hip" for name in names["corners"])
    assert float((path.q[0, :, 2] - 0.3).abs().max()) < 0.015
    assert float((path.q[0, 1:, 7:] - names["targets"][0]).abs().max()) < 0.1
    assert path.status.converged.all()
    assert Path("servos.mp4").exists()


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
    "control-3": lambda names: float(names["state"].q.cos()) < -0.99,
    "control-4": lambda names: names["obs"].shape == (8, 5),
    "control-5": lambda names: (
        ENVIRONMENTS["Arm"]().step(names["engine"].initial_state(), torch.zeros(1, 2)).reward == 0
    ),
    "data-1": lambda names: names["sample"].frames.shape[1] == 13,
    "data-2": lambda names: names["dataset"].trajectory(0).q.shape == (1, 40, 1),
    "data-3": lambda names: names["small"].frames.shape[1:] == (64, 64, 3) and len(names["shots"].frames) == 12,
    "fluid-1": lambda names: float(names["gradient"]) < 0.0,
    "hybrids-1": lambda names: any(value.grad.abs().max() > 0 for value in names["force"].parameters()),
    "identify-1": _check_identify,
    "identify-2": lambda names: names["rod"].follow == list(names["arm"].body_names),
    "learning-1": _check_learning,
    "own_parameters-1": _check_own_parameters,
    "own_parameters-2": lambda names: names["layer"].learned_values["lengths"].tolist() == pytest.approx([1.0, 1.0]),
    "own_robot-2": _check_servos,
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
    "with_torch-1": lambda names: names["model"].policy[0].weight.grad.abs().max() > 0,
    "with_torch-2": lambda names: names["ends"].shape == (5, 1) and bool((names["ends"].diff(dim=0) > 0).all()),
}


@pytest.fixture(autouse=True)
def _environments():
    """Forget environments that a block registers."""
    environments = dict(ENVIRONMENTS)
    yield
    ENVIRONMENTS.clear()
    ENVIRONMENTS.update(environments)


def _forget_names(monkeypatch) -> None:
    """Let what a block registers be registered again by another."""
    monkeypatch.setattr(registry, "_PARTS", dict(registry._PARTS))
    monkeypatch.setattr(registry, "_NAMES", dict(registry._NAMES))


def _parameters(blocks: list[Block], long: set[str]) -> list:
    names = {block.name for block in blocks}
    assert long <= names, long - names
    marks = pytest.mark.extended
    return [pytest.param(block, id=block.name, marks=marks if block.name in long else ()) for block in blocks]


@pytest.mark.parametrize("block", _parameters(PYTHON, LONG))
def test_python_runs_alone(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _forget_names(monkeypatch)
    names: dict = {}
    exec(compile(block.text, f"{block.name}, line {block.line}", "exec"), names)
    check = CHECKS.get(block.name)
    assert check is None or check(names) is not False


def test_the_files_of_own_scene_are_those_of_the_experiment():
    """The page shows the mechanism, the module and the configuration that experiments/own_clip.py trains, whole."""
    blocks = [block.text for block in read_blocks("python", "text") if block.name.startswith("own_scene-")]
    assert own_clip.SCENE in blocks
    assert own_clip.MODULE.strip() in blocks
    (text,) = [text for text in blocks if text.startswith("seed_everything:")]
    assert yaml.safe_load(text) == own_clip.configuration(updates=1500, devices=1)


def test_every_check_has_its_block():
    assert set(CHECKS) <= {block.name for block in PYTHON}


@pytest.mark.parametrize("block", _parameters(RUN, {block.name for block in RUN} - QUICK))
def test_commands_run_alone(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for write in FILES.get(block.name, []):
        write()
    for command in block.commands():
        assert command[0] == "physvision"
        if command[1] in SERVING:
            _serve(command[1:])
        else:
            assert cli.main(command[1:]) == 0, f"{block.name}: {shlex.join(command)}"


def _serve(arguments: list[str]) -> None:
    """Start a command that serves a page, read the page, and interrupt the command as Ctrl+C does."""
    environment = {**os.environ, "BROWSER": "true"}  # a program that opens nothing
    # Where tests run in the background of a shell, the interrupt is ignored, and so it would be here.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from physvision.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        try:
            line = next(line for line in process.stdout if re.search(r"http\S+ \(Ctrl|open at http", line))
            address = re.search(r"http://[^\s(]+", line)
            assert address is not None
            # Such an address of this machine in its network is another name of the machine itself.
            page = re.sub(r"//[\d.]+:", "//127.0.0.1:", address[0])
            browser = build_opener(HTTPCookieProcessor())  # the token in the address is exchanged for a cookie
            assert b"<html" in browser.open(page, timeout=60).read()[:1000].lower()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0


class ParsedError(Exception):
    """Raised in the place of what a command would do with its options."""


def _parse_alone(function):
    def parse(*given, **options):
        function(*given, **options)
        raise ParsedError

    return parse


@pytest.mark.extended
@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.name)
def test_commands_that_are_not_run_are_parsed(block, tmp_path, monkeypatch):
    """Every option is read by the command's own parser, and every configuration is built."""
    monkeypatch.chdir(tmp_path)
    _forget_names(monkeypatch)
    for write in FILES.get(block.name, []):
        write()
    monkeypatch.setattr(options, "_parse", _parse_alone(options._parse))
    monkeypatch.setattr(training, "build_from", _parse_alone(training.build_from))
    monkeypatch.setattr(training, "read_checkpoint", lambda path: {})
    for program, *arguments in block.commands():
        if program == "torchrun":
            get_args_parser().parse_args(arguments)
            program, arguments = "physvision", arguments[arguments.index("physvision.cli") + 1 :]
        if program == "python":
            _find_options(arguments)
        elif program == "pip":
            (extras,) = re.findall(r"\[(.*)\]", arguments[-1])
            assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
        elif program == "make":
            assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        else:
            with pytest.raises(ParsedError):
                cli.main(arguments)


def _find_options(arguments: list[str]) -> None:
    """Check that a script exists, and that it has the options."""
    script, *words = arguments
    assert (ROOT / script).is_file()
    names = [word for word in words if word.startswith("--")]
    if names:
        done = subprocess.run([sys.executable, ROOT / script, "--help"], capture_output=True, text=True, timeout=120)
        assert all(name in done.stdout for name in names), done.stderr


def test_few_blocks_are_left_out():
    assert len(NOT_RUN) <= 10
    assert not [block.name for block in PYTHON if block.reason]
    assert all(len(block.reason.split()) >= 4 for block in NOT_RUN)


def test_no_code_hides_in_other_blocks():
    """Python stands between fences; other blocks are formulas, output, XML and YAML."""
    kinds = {block.kind for block in read_blocks("python", "shell", "text")}
    assert kinds == {"python", "shell", "text"}
    code = re.compile(r"^(import \w|from \w+(\.\w+)* import|\w+ = [\w.]+\(|physvision |pip )", re.MULTILINE)
    for block in read_blocks("text"):
        assert not code.search(block.text), f"{block.name}, line {block.line}: code among text"
