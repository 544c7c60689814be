"""The experiments' claims hold, on smaller runs than theirs."""

from importlib import import_module
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def experiments(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "experiments")


def test_lengths_of_a_pendulum_are_learned(tmp_path):
    module = import_module("pendulum_lengths")
    assert module.main(truth=(3.0, 2.5, 3.5), seeds=1, out=tmp_path) < module.BAR
    assert (tmp_path / "pendulum_lengths.png").stat().st_size > 10_000


def test_an_arm_is_designed(tmp_path):
    module = import_module("arm_design")
    assert module.main(seeds=1, out=tmp_path) < module.BAR
    assert (tmp_path / "arm_design.png").stat().st_size > 10_000
