"""Runs that are killed go on with the same numbers; a checkpoint of another run is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from physvision.core import CheckpointError
from physvision.learning.command import learn
from physvision.learning.dynamics import DynamicsSettings
from physvision.learning.mbpo import Mbpo, MbpoSettings
from physvision.learning.neighbourhood import NeighbourSettings
from physvision.learning.recorded import Recorded, RecordedSettings
from physvision.learning.run import CHECKPOINT, Length
from physvision.learning.sac import SacSettings
from physvision.learning.shac import Shac, ShacSettings

PLAY = RecordedSettings(SacSettings((16, 16), batch=16), worlds=2, first=20, updates=1)
MODEL = DynamicsSettings(members=2, elites=1, hidden=(16,), batch=32, most=20)
MBPO = MbpoSettings(
    PLAY, MODEL, refit=20, rollouts=50, lengths=(1, 3), epochs=(0, 2), by_engine=True, near=NeighbourSettings(2)
)
FAR = replace(MBPO, horizon=10, starts=3, every=3, steepest=1.0, stepped=0.5)
SHAC = ShacSettings(worlds=2, horizon=10, hidden=(8,), critic_hidden=(8,), passes=2, limit=5.0)
WAYS = {
    "sac": (Recorded, {"sac": PLAY}),
    "mbpo": (Mbpo, {"mbpo": MBPO}),
    "far": (Mbpo, {"mbpo": FAR}),
    "shac": (Shac, {"shac": SHAC}),
}


class Interrupted(Exception):  # noqa: N818  no error of the package
    pass


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one if key != "seconds")
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupted_run_ends_with_the_same_numbers(tmp_path, monkeypatch, way):
    maker, settings = WAYS[way]
    (method,) = settings
    length = Length(160, every=40, keep=40)
    learn("Links2", method, length, **settings, seed=3, out=tmp_path / "whole")
    advance = maker.advance

    def stopped(self):
        if self.steps >= 100:
            raise Interrupted
        advance(self)

    monkeypatch.setattr(maker, "advance", stopped)
    with pytest.raises(Interrupted):
        learn("Links2", method, length, **settings, seed=3, out=tmp_path / "parts")
    monkeypatch.undo()
    torch.manual_seed(99)  # the chances of this process are not those of the first
    assert 80 <= torch.load(tmp_path / "parts" / CHECKPOINT, weights_only=True)["learner"]["steps"] < 120
    learn("Links2", method, length, **settings, seed=3, out=tmp_path / "parts")
    ends = [torch.load(tmp_path / each / CHECKPOINT, weights_only=True) for each in ("whole", "parts")]
    assert ends[0]["learner"]["steps"] >= 160
    assert same(*ends)
    assert json.loads((tmp_path / "parts" / "about.json").read_text())["seed"] == 3
    with pytest.raises(CheckpointError, match="is of another run"):
        learn("Links2", method, length, **settings, seed=4, out=tmp_path / "parts")


def test_a_run_ends_once_the_aim_is_held(tmp_path, monkeypatch):
    """Three evaluations in a row; two in a row and one alone are not enough."""
    rewards = iter([1.0, 1.0, 0.0, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0])
    monkeypatch.setattr(
        sys.modules["physvision.learning.run"], "evaluate", lambda *_, **__: torch.tensor([next(rewards)])
    )
    length = Length(1000, every=10, aim=0.9, held=3)
    learn("Links1", "sac", length, sac=replace(PLAY, first=2000), out=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert len(lines) == 8
    assert [line["ended"] for line in lines] == [False] * 7 + [True]


def test_a_longer_run_goes_on_where_a_shorter_one_ended(tmp_path):
    settings = {"sac": PLAY, "seed": 3}
    learn("Links2", "sac", Length(160, every=40, keep=40), **settings, out=tmp_path / "whole")
    for steps in (80, 160):
        learn("Links2", "sac", Length(steps, every=40, keep=40), **settings, out=tmp_path / "parts")
    ends = [torch.load(tmp_path / each / CHECKPOINT, weights_only=True)["learner"] for each in ("whole", "parts")]
    assert ends[0]["steps"] >= 160
    assert same(*ends)


@pytest.mark.extended
def test_a_killed_command_goes_on_with_the_same_numbers(tmp_path):
    """`physvision learn`, killed between two checkpoints."""
    given = "--length.steps 400 --length.every 20 --length.keep 60 --sac.first 20 --sac.sac.hidden [16,16] --seed 7"
    command = [sys.executable, "-m", "physvision.cli", "learn", "--game", "Links1", "--method", "sac", *given.split()]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "--out", tmp_path / "whole"], check=True, env=environment, stdout=subprocess.DEVNULL)
    parts: Path = tmp_path / "parts"
    first = subprocess.Popen([*command, "--out", parts], env=environment, stdout=subprocess.DEVNULL)
    while not (parts / CHECKPOINT).exists():
        time.sleep(0.01)
        assert first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.wait()
    at = torch.load(parts / CHECKPOINT, weights_only=True)["learner"]["steps"]
    assert at < 400
    subprocess.run([*command, "--out", parts], check=True, env=environment, stdout=subprocess.DEVNULL)
    assert same(*(torch.load(each / CHECKPOINT, weights_only=True) for each in (tmp_path / "whole", parts)))
