"""Tasks of the Control Suite as states and controls."""

import math

import pytest
import torch

from physvision.core import InputError, MissingError

pytest.importorskip("dm_control")
mujoco = pytest.importorskip("mujoco")

from control_suite import ControlSuiteEnv  # noqa: E402

from physvision.physics import articulated  # noqa: E402


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(mujoco.__version__ >= "4", reason="dm_control reads models of MuJoCo 3 alone")
def test_a_task_moves_as_the_engine_that_loads_its_poles():
    world = ControlSuiteEnv("cartpole", "swingup", seed=3, action_repeat=5)
    start = world.reset()
    assert abs(float(start.state.q[0, 1]) - math.pi) < 0.1
    assert world.control_period == 0.05
    engine = articulated.cartpole(dt=world.control_period, substeps=5, integrator="runge_kutta_4")
    capsule = world.physics.model.body_inertia[-1][0]
    unit = torch.ones(1).double()
    inertia = articulated.cartpole_properties(unit[0], unit, 0.1 * unit)["inertia"].clone()
    inertia[1] = torch.diag(torch.tensor([capsule, capsule, 1e-4]).double())
    expected = engine.step(start.state, torch.tensor([[10.0 * 0.7]]).double(), {"inertia": inertia})
    moment = world.step(torch.tensor([0.7]).double())
    # The slider's damping, 5e-4 N s/m, is all that the engine does not have.
    assert moment.state.q.allclose(expected.q, atol=1e-5)
    assert moment.state.v.allclose(expected.v, atol=1e-4)
    assert 0 < moment.reward < 5
    with pytest.raises(InputError, match="expected finite numbers"):
        world.step(torch.tensor([math.nan]))
    assert ControlSuiteEnv("cartpole", "swingup", seed=3).reset().state.q.equal(start.state.q)


def test_a_mujoco_that_the_suite_cannot_read_is_told(monkeypatch):
    def load(*given, **options):
        raise AttributeError("'flex_vertedge'")

    monkeypatch.setattr("dm_control.suite.load", load)
    with pytest.raises(MissingError, match=r"flex_vertedge.*pip install 'physvision\[environments\]'"):
        ControlSuiteEnv("cartpole", "swingup")
