"""A model is refitted to what followed its controls: it finds the masses of the cart that is really pushed."""

import math

import pytest
import torch

from physvision import State
from physvision.control import Goal, Mpc
from physvision.control.adaptive import AdaptiveModel, AdaptiveMpc
from physvision.core import InputError
from physvision.estimation import Unknown, Unknowns
from physvision.physics import articulated


def features(state: State) -> torch.Tensor:
    return torch.cat([state.q[:, :1], state.q[:, 1:].sin(), state.q[:, 1:].cos(), state.v], 1)


def adaptive():
    engine = articulated.cartpole(dt=0.04)
    target = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0]).double()
    cost = Goal(features, target, torch.tensor([0.3, 3.0, 3.0, 0.1, 0.1]).double(), 1e-3)
    first = 0.2 * torch.ones(1, 25, 1).double()
    unknowns = Unknowns([Unknown(name, 2.0, low=0.0) for name in ("cart", "pole", "length")])

    def leaves(values):
        masses, lengths = values["pole"].unsqueeze(-1), values["length"].unsqueeze(-1)
        return articulated.cartpole_properties(values["cart"], lengths, masses)

    model = AdaptiveModel(engine, unknowns, leaves, features)
    return AdaptiveMpc(Mpc(engine, cost, 25, (-20.0, 20.0), initial_controls=first), model)


def test_it_finds_the_real_cart_and_swings_it_up():
    real = articulated.cartpole(cart_mass=1.0, masses=[0.3], lengths=[0.8], dt=0.04)
    controller = adaptive()
    with pytest.raises(InputError, match="got none"):
        controller.refit()
    state, heights = State(torch.tensor([[0.0, math.pi]]).double(), torch.zeros(1, 2).double()), []
    for step in range(90):
        control = controller.act(state).control
        end = real.step(state, control)
        controller.observe(state, control, end)
        state = end
        heights.append(float(state.q[0, 1].cos()))
        if step in (5, 20):
            controller.refit()
    values = controller.model.unknowns.values(controller.z)
    for name, entry in {"cart": 1.0, "pole": 0.3, "length": 0.8}.items():
        assert float(values[name]) == pytest.approx(entry, rel=1e-6)
    assert min(heights[-20:]) > 0.95

    # From masses with which the model fails the search begins anew.
    terminated = adaptive()
    terminated.log, terminated.z = controller.log, torch.full_like(controller.z, 90.0)
    terminated.refit()
    torch.testing.assert_close(terminated.z, controller.z, rtol=1e-6, atol=1e-6)


def test_steps_that_were_not_seen_are_left_out():
    controller = adaptive()
    zero_output, control = controller.model.engine.initial_state(2, torch.float64), torch.zeros(2, 1).double()
    unseen = State(torch.tensor([[0.0, torch.nan], [0.0, 0.0]]).double(), zero_output.v)
    controller.observe(zero_output, control, unseen)
    assert len(controller.log) == 1
