"""Model-predictive control: it holds what falls, and goes on with its last good plan where it cannot plan."""

# pyright: reportAttributeAccessIssue=false

import math

import pytest
import torch

from physvision import State
from physvision.control import Goal, Mpc
from physvision.core import InputError, ShapeError
from physvision.physics import articulated


def pole(state: State) -> torch.Tensor:
    return torch.cat([state.q[:, 1:].sin(), state.q[:, 1:].cos(), state.q[:, :1], state.v], 1)


def upright(horizon=25, **options):
    cart = articulated.cartpole(dt=0.04)
    target = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0]).double()
    cost = Goal(pole, target, torch.tensor([3.0, 3.0, 0.3, 0.1, 0.1]).double(), 1e-3)
    return cart, Mpc(cart, cost, horizon, (-20.0, 20.0), **options)


def test_a_cartpole_swings_up_and_stays():
    cart, controller = upright(initial_controls=0.2 * torch.ones(1, 25, 1).double())
    state = State(torch.tensor([[0.0, math.pi]]).double(), torch.zeros(1, 2).double())
    angles = []
    for _ in range(100):
        decision = controller.act(state)
        assert bool(decision.replanned.all())
        assert float(decision.control.abs().max()) <= 20.0
        state = cart.step(state, decision.control)
        angles.append(float(state.q[0, 1]))
    assert max(1 - math.cos(angle) for angle in angles[-20:]) < 0.05


def test_what_is_not_seen_goes_on_with_the_last_good_plan():
    _, controller = upright()
    state = State(torch.tensor([[0.0, 0.2], [0.0, -0.1]]).double(), torch.zeros(2, 2).double())
    before = controller.act(state)
    target = controller._controls[0].clone()
    blind = State(state.q.clone(), state.v.clone())
    blind.q[0, 1] = torch.nan
    with pytest.warns(RuntimeWarning, match=r"world 0: its observed state is not finite.*last good plan"):
        after = controller.act(blind)
    assert before.replanned.tolist() == [True, True]
    assert after.replanned.tolist() == [False, True]
    assert after.plan_age.tolist() == [1, 0]
    torch.testing.assert_close(after.control[0], target[0])
    for step in range(1, 30):
        last = controller.act(blind)
        torch.testing.assert_close(last.control[0], target[step] if step < 24 else torch.zeros(1).double())
    assert int(last.plan_age[0]) == 30


def test_a_model_that_fails_is_told_and_the_last_plan_goes_on():
    cart, controller = upright()
    state = State(torch.tensor([[0.0, 0.2]]).double(), torch.zeros(1, 2).double())
    controller.act(state)
    target = controller._controls[0, 0].clone()
    # A model in which every motion ends in infinity.
    controller.properties = {"joint_stiffness": torch.full_like(cart.properties.joint_stiffness, 1e306)}
    with pytest.warns(RuntimeWarning, match="the model failed on every plan"):
        decision = controller.act(state)
    assert decision.replanned.tolist() == [False]
    torch.testing.assert_close(decision.control[0], target)


def test_bad_arguments():
    cart, controller = upright()
    with pytest.raises(ShapeError, match="expected controls of 25 steps, got 3"):
        upright(initial_controls=torch.zeros(1, 3, 1))
    controller.act(cart.initial_state(2, torch.float64))
    with pytest.raises(ShapeError, match="expected 2 worlds as before, got 1"):
        controller.act(cart.initial_state(1, torch.float64))
    controller.bounds = (1.0, -1.0)
    with pytest.raises(InputError, match="expected the lower ones first"):
        controller.act(cart.initial_state(2, torch.float64))
