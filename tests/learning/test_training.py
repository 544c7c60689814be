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
from physvision.learning.mbpo import Mbpo, MbpoSettings
from physvision.learning.off_policy import OffPolicyAgent, OffPolicySettings
from physvision.learning.sac import SacSettings
from physvision.learning.sample_enhancement import SampleEnhancementSettings
from physvision.learning.shac import Shac, ShacSettings
from physvision.learning.training import CHECKPOINT, TrainingSchedule
from physvision.learning.world_model import WorldModelSettings

PLAY = OffPolicySettings(SacSettings((16, 16), batch_size=16), num_envs=2, learning_starts=20, updates_per_step=1)
MODEL = WorldModelSettings(ensemble_size=2, num_elites=1, hidden_sizes=(16,), batch_size=32, max_updates=20)
MBPO = MbpoSettings(
    PLAY,
    MODEL,
    model_update_every=20,
    num_model_rollouts=50,
    rollout_length=(1, 3),
    rollout_schedule=(0, 2),
    policy_enhancement=True,
    sample_enhancement=SampleEnhancementSettings(2),
)
FAR = replace(MBPO, horizon=10, actor_batch_size=3, actor_update_every=3, max_action_grad=1.0, engine_ratio=0.5)
SHAC = ShacSettings(
    num_envs=2, horizon=10, hidden_sizes=(8,), critic_hidden_sizes=(8,), critic_epochs=2, max_acceleration=5.0
)
ALGORITHMS = {"sac": (OffPolicyAgent, PLAY), "mbpo": (Mbpo, MBPO), "far": (Mbpo, FAR), "shac": (Shac, SHAC)}


class Interrupted(Exception):  # noqa: N818  no error of the package
    pass


def same(first_case, second_case):
    if isinstance(first_case, torch.Tensor):
        return torch.equal(first_case, second_case)
    if isinstance(first_case, dict):
        return first_case.keys() == second_case.keys() and all(
            same(first_case[key], second_case[key]) for key in first_case if key != "cpu_seconds"
        )
    if isinstance(first_case, list):
        return len(first_case) == len(second_case) and all(map(same, first_case, second_case))
    return first_case == second_case


@pytest.mark.parametrize("algorithm", ["sac", "mbpo", "shac", pytest.param("far", marks=pytest.mark.extended)])
def test_an_interrupted_run_ends_with_the_same_numbers(tmp_path, monkeypatch, algorithm):
    maker, settings = ALGORITHMS[algorithm]
    schedule = TrainingSchedule(80, eval_every=40, checkpoint_every=20)
    learn(settings, "Links2", schedule, seed=3, out=tmp_path / "whole")
    advance = maker.advance

    def stopped(self):
        if self.env_steps >= 50:
            raise Interrupted
        advance(self)

    monkeypatch.setattr(maker, "advance", stopped)
    with pytest.raises(Interrupted):
        learn(settings, "Links2", schedule, seed=3, out=tmp_path / "parts")
    monkeypatch.undo()
    torch.manual_seed(99)  # the chances of this process are not those of the first
    assert 40 <= torch.load(tmp_path / "parts" / CHECKPOINT, weights_only=True)["learner"]["env_steps"] < 60
    learn(settings, "Links2", schedule, seed=3, out=tmp_path / "parts")
    ends = [torch.load(tmp_path / name / CHECKPOINT, weights_only=True) for name in ("whole", "parts")]
    assert ends[0]["learner"]["env_steps"] >= 80
    assert same(*ends)
    assert json.loads((tmp_path / "parts" / "config.json").read_text())["seed"] == 3
    with pytest.raises(CheckpointError, match="got one of another run"):
        learn(settings, "Links2", schedule, seed=4, out=tmp_path / "parts")


def test_a_run_ends_once_the_aim_is_held(tmp_path, monkeypatch):
    """Three evaluations in a row; two in a row and one alone are not enough."""
    rewards = iter([1.0, 1.0, 0.0, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0])
    monkeypatch.setattr(
        sys.modules["physvision.learning.training"], "evaluate", lambda *_, **__: torch.tensor([next(rewards)])
    )
    schedule = TrainingSchedule(1000, eval_every=10, target_reward=0.9, target_patience=3)
    learn(replace(PLAY, learning_starts=2000), "Links1", schedule, out=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert len(lines) == 8
    assert [line["finished"] for line in lines] == [False] * 7 + [True]


def test_a_longer_run_goes_on_where_a_shorter_one_ended(tmp_path):
    for name, steps in (("whole", 80), ("parts", 40), ("parts", 80)):
        schedule = TrainingSchedule(steps, eval_every=40, checkpoint_every=40)
        learn(PLAY, "Links2", schedule, seed=3, out=tmp_path / name)
    ends = [torch.load(tmp_path / name / CHECKPOINT, weights_only=True)["learner"] for name in ("whole", "parts")]
    assert ends[0]["env_steps"] >= 80
    assert same(*ends)


@pytest.mark.extended
def test_a_killed_command_goes_on_with_the_same_numbers(tmp_path):
    """`physvision learn`, killed between two checkpoints."""
    options = "--schedule.total_steps 400 --schedule.eval_every 20 --schedule.checkpoint_every 60 --learning_starts 20"
    options += " --sac.hidden_sizes [16,16] --seed 7"
    command = [sys.executable, "-m", "physvision.cli", "learn", "sac", "--env", "Links1", *options.split()]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "--out", tmp_path / "whole"], check=True, env=environment, stdout=subprocess.DEVNULL)
    parts: Path = tmp_path / "parts"
    obs = subprocess.Popen([*command, "--out", parts], env=environment, stdout=subprocess.DEVNULL)
    while not (parts / CHECKPOINT).exists():
        time.sleep(0.01)
        assert obs.poll() is None
    obs.send_signal(signal.SIGKILL)
    obs.wait()
    at = torch.load(parts / CHECKPOINT, weights_only=True)["learner"]["env_steps"]
    assert at < 400
    subprocess.run([*command, "--out", parts], check=True, env=environment, stdout=subprocess.DEVNULL)
    assert same(*(torch.load(entry / CHECKPOINT, weights_only=True) for entry in (tmp_path / "whole", parts)))
