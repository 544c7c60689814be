"""Gradients of compliant contact against central differences of MuJoCo's `mj_step`, on files of gymnasium."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

FILES = ("ant", "half_cheetah", "hopper", "humanoid", "inverted_double_pendulum", "swimmer", "walker2d")


@pytest.fixture
def gradients(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
    return import_module("compliant_gradients")


@pytest.mark.extended
@pytest.mark.parametrize("name", FILES)
def test_gradients_are_mujocos_differences(gradients, name):
    """Along random directions of positions, velocities and controls, over 20 steps with contacts and limits."""
    specification = find_spec("gymnasium")
    assert specification is not None
    assert specification.origin is not None
    path = Path(specification.origin).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"
    result = gradients.compare(path)
    assert result is not None, "the motion is not MuJoCo's"
    kind, derivatives = result
    assert kind != "without contact"
    assert len(derivatives) == 6
    assert [entry for entry in derivatives if not entry.is_right] == []


def test_a_wrong_gradient_is_found(gradients):
    """The tolerance is absolute for small derivatives, relative for large ones, and twice the spread at least."""
    assert gradients.Derivative("q", 100.00009, 100.0, 0.0).is_right
    assert not gradients.Derivative("q", 100.001, 100.0, 0.0).is_right
    assert gradients.Derivative("q", 100.001, 100.0, 0.001).is_right
    assert not gradients.Derivative("v", 2e-6, 0.0, 0.0).is_right
