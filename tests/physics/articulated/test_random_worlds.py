"""Random worlds of benchmarks/contact_random.py: what fails is named, and what the status tells stays small."""

from importlib import import_module
from pathlib import Path

import pytest
import torch

from physvision import State


@pytest.fixture
def worlds(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
    return import_module("contact_random")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "count", [pytest.param(30, marks=pytest.mark.extended), pytest.param(1000, marks=pytest.mark.slow)]
)
def test_random_worlds(worlds, count, tmp_path):
    lines = [worlds.line(seed) for seed in range(count)]
    assert not any(line["unnamed"] for line in lines)
    good = [line for line in lines if line["bad"] < 0]
    assert len(good) >= 0.99 * count
    # Impulses that are not found to 1e-8 fail their step.
    assert max(entry["residual"] for entry in good) < 1e-8
    # What acceleration held over a step adds; impacts add nothing.
    assert max(entry["gained"] for entry in good) < 0.01


@pytest.mark.extended
def test_a_record_is_gone_on_with(worlds, tmp_path, capsys):
    record = tmp_path / "record.jsonl"
    worlds.main(3, record=record)
    first = record.read_text()
    worlds.main(4, record=record)
    assert record.read_text().startswith(first)
    assert len(record.read_text().splitlines()) == 4
    assert "4 scenes: 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize("dtype", [pytest.param(torch.float32, marks=pytest.mark.extended), torch.float64])
def test_feet_that_friction_jams(monkeypatch, dtype):
    """Torques that never change push the feet of a quadruped apart: contacts that hold each other by friction."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
    engine = import_module("quadruped_policy").quadruped()
    high = engine.initial_state(dtype=dtype)
    stand = State(high.q + torch.tensor([0, 0, 0.335] + [0.0] * 12, dtype=dtype), high.v).repeat(64)
    torques = torch.zeros(64, 35, engine.nu, dtype=dtype)
    torques[..., 6:] = 8 * torch.rand(64, 1, 8, generator=torch.Generator().manual_seed(2)) - 4
    assert engine.rollout(stand, 35, torques).status.first_failed_step.tolist() == [-1] * 64
