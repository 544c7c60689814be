"""Gradients to states, controls and every property are those of differences."""

# pyright: reportAttributeAccessIssue=false

import pytest
import torch
from derivatives import assert_gradients
from physics.soft.bodies import LAWS, METHODS, everything, moved

from physvision.core import State

CASES = [(2, law, method, False) for law in LAWS for method in METHODS]
CASES += [(3, "neo_hookean", method, False) for method in METHODS]
CASES += [(3, "st_venant_kirchhoff", method, True) for method in METHODS]


@pytest.mark.parametrize(("axes", "law", "method", "cloth"), CASES)
def test_gradients_are_those_of_differences(axes, law, method, cloth):
    body = everything(axes, law, method, cloth)
    q, v, controls = moved(body, batch=1)
    # Moduli in their own size, so that one step of differences suits all.
    leaves = {name: value for name, value in body.properties.items() if value.numel()}
    scales = {name: max(float(value.abs().max()), 1.0) for name, value in leaves.items()}

    def run(q, v, controls, *scaled):
        given = {name: value * scales[name] for name, value in zip(leaves, scaled, strict=True)}
        motion = body.rollout(State(q, v), 2, controls, given)
        return motion.q, motion.v

    inputs = (q, v, controls, *(value / scales[name] for name, value in leaves.items()))
    # Central differences of 1e-6 leave 1e-16 / 1e-6 of values in tens, and the square of the step over what friction
    # bends in: 1e-6 m in a step of 0.01 s beside a slip of 0.05 m/s, 2e-3.
    assert_gradients(run, inputs, 1e-6, atol=2e-7, rtol=4e-6)


def test_shared_numbers_have_the_sum_of_the_gradients():
    body = everything(2, "neo_hookean", "backward_euler")
    q, v, controls = moved(body)
    shared = body.properties.youngs_modulus.clone().requires_grad_()
    separation = shared.detach().repeat(2, 1).requires_grad_()
    for leaf in (shared, separation):
        body.rollout(State(q, v), 2, controls, {"youngs_modulus": leaf}).q.square().sum().backward()
    torch.testing.assert_close(shared.grad, separation.grad.sum(0))


def test_truncation_cuts_gradients_not_motion():
    body = everything(2, "linear", "backward_euler")
    q, v, controls = moved(body)
    q.requires_grad_()
    whole, cut = (body.rollout(State(q, v), 2, controls, truncate=truncate) for truncate in (None, 1))
    torch.testing.assert_close(cut.q, whole.q, rtol=0, atol=1e-12)
    assert torch.autograd.grad(cut.q[:, 1].sum(), q, retain_graph=True)[0].any()
    assert not torch.autograd.grad(cut.q[:, 2].sum(), q)[0].any()
