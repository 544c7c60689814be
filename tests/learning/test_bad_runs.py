"""Runs of learning in folders that hold something else, and schedules that no run can have."""

import json
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import torch

from physvision import cli
from physvision.core import CheckpointError, InputError
from physvision.learning.learner import Learner
from physvision.learning.training import CHECKPOINT, TrainingSchedule, train


class OneLayer(Learner):
    """A learner of one layer, which takes the states of its own alone."""

    def __init__(self):
        self.env_steps = 0

    def advance(self):
        raise AssertionError("a foreign checkpoint was resumed")

    def modules(self):
        return {}

    def metrics(self):
        return {}

    def load_state_dict(self, state):
        self.env_steps = state["env_steps"]
        torch.nn.Linear(1, 1).load_state_dict(state["modules"]["actor"])


RUN = {"env": "Links2"}
GOOD = {"run_config": RUN, "evaluations": [], "learner": {"env_steps": 3, "modules": {}}, "cpu_seconds": 1.0}


@pytest.mark.parametrize(
    ("state", "match"),
    [
        ([1, 2], "is no checkpoint of"),
        ({"state_dict": {}}, "is no checkpoint of"),
        ({**GOOD, "evaluations": 3}, "is no checkpoint of"),
        ({**GOOD, "evaluations": [{"steps": 1}]}, "is no checkpoint of"),
        ({**GOOD, "run_config": {"env": "Ant"}}, "expected a checkpoint of this run"),
        (GOOD, "holds the state of another learner"),
        ({**GOOD, "learner": 3}, "holds the state of another learner"),
        ({**GOOD, "learner": {"env_steps": 1, "modules": {"actor": {"weight": torch.zeros(7)}}}}, "of another learner"),
    ],
)
def test_a_foreign_checkpoint_is_refused(tmp_path, state, match):
    torch.save(state, tmp_path / CHECKPOINT)
    with pytest.raises(CheckpointError, match=match):
        train(OneLayer(), TrainingSchedule(), tmp_path, RUN)


def test_a_compressed_checkpoint_is_refused_before_it_grows(tmp_path):
    torch.save(GOOD | {"learner": torch.zeros(2**20)}, tmp_path / "a.ckpt")
    with ZipFile(tmp_path / "a.ckpt") as source, ZipFile(tmp_path / CHECKPOINT, "w", ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    with pytest.raises(CheckpointError, match=r"would grow to 4,19.,... bytes"):
        train(OneLayer(), TrainingSchedule(), tmp_path, RUN)


@pytest.mark.parametrize(
    ("name", "value"),
    [("total_steps", -5), ("eval_every", 0), ("checkpoint_every", 0), ("max_cpu_seconds", float("nan"))],
)
def test_a_schedule_has_positive_lengths(name, value, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=name):
        TrainingSchedule(**{name: value})
    if isinstance(value, int):
        assert cli.main(["learn", "sac", f"--schedule.{name}", str(value)]) == 1
        assert name in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder_of_a_run(tmp_path, capsys):
    (tmp_path / "run").write_text(json.dumps(RUN))
    assert cli.main(["learn", "sac", "--out", str(tmp_path / "run")]) == 1
    assert "choose another output folder" in capsys.readouterr().err
