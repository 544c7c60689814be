"""A short rollout is launched again on new memory; what it gives is what an engine gives that never ran before."""

import pytest
import torch
from physics.articulated.test_contact import DOUBLE, at, free, placed, world

from physvision import State
from physvision.core import Sphere
from physvision.physics import articulated


def result():
    return world([free(placed(Sphere(0.25)))], friction=0.4, restitution=0.5)


def end_and_gradients(engine, start, steps, controls, followed):
    q, v = start.q.clone().requires_grad_(), start.v.clone().requires_grad_()
    candidates = (q, v, controls) if followed else (q, v)
    if followed:
        controls.requires_grad_()
    trajectory = engine.rollout(State(q, v), steps, controls)
    weights = torch.linspace(1.0, 2.0, trajectory.q.numel(), dtype=DOUBLE).reshape(trajectory.q.shape)
    loss = (weights * trajectory.q).sum() + trajectory.v.sum()
    return trajectory.q, trajectory.v, trajectory.status.residual, *torch.autograd.grad(loss, candidates)


@pytest.mark.parametrize("followed", [False, True])
def test_repeated_launches_give_what_first_ones_give(followed):
    """Other states, numbers of steps, controls that lie otherwise in memory, and none, by turns."""
    engine, generator = result(), torch.Generator().manual_seed(1)
    pushes = torch.randn(1, 12, 6, dtype=DOUBLE, generator=generator)
    cases = []
    for turn in range(3):
        start = at(engine, 0.3 + 0.1 * turn, (0.5, 0.1 * turn, -3.0, 0.2, 1.0, 0.0))
        cases += [(start, 12, pushes + turn), (start, 12, pushes[:, :1].expand(1, 12, 6)), (start, 5, pushes[:, 3:8])]
    cases += cases
    for start, steps, controls in cases:
        given = end_and_gradients(engine, start, steps, controls.detach(), followed)
        fresh = end_and_gradients(result(), start, steps, controls.detach(), followed)
        for value, reference in zip(given, fresh, strict=True):
            assert torch.equal(value, reference)


def test_repeated_launches_without_contact_give_what_first_ones_give():
    engine, generator = articulated.chain([1.0, 0.7], [1.0, 2.0], dt=0.01), torch.Generator().manual_seed(2)
    for steps in (23, 12, 23, 12):
        start = State(*torch.randn(2, 3, 2, dtype=DOUBLE, generator=generator))
        controls = torch.randn(3, steps, 2, dtype=DOUBLE, generator=generator)
        given = end_and_gradients(engine, start, steps, controls, True)
        fresh = articulated.chain([1.0, 0.7], [1.0, 2.0], dt=0.01)
        for value, reference in zip(given, end_and_gradients(fresh, start, steps, controls, True), strict=True):
            assert torch.equal(value, reference)


def test_repeated_launches_see_new_properties():
    """What an engine keeps anew is what its next launch computes with."""
    engine = result()
    start = at(engine, 0.25, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    slid = engine.rollout(start, 10).final.v[0, 0]
    engine.set_properties(engine.checked({"friction": torch.zeros(2, dtype=DOUBLE)}))
    free_of_friction = engine.rollout(start, 10).final.v[0, 0]
    assert slid < 0.99
    assert free_of_friction == 1.0
