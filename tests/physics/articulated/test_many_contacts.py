"""Scenes with more contacts than a workspace holds at first, which grows with what a scene needs."""

import pytest
import torch

from physvision import State
from physvision.core import Box, Placed, Plane
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64
SIZE = 0.2


def boxes(positions, dt=5e-3):
    """Boxes of a kind at rest at these positions."""
    moment = 1.0 / 6 * SIZE**2
    bodies = [
        Body(f"{k}", None, [Joint("free")], 1.0, (0, 0, 0), (moment,) * 3, shapes=[Placed(Box((SIZE,) * 3))])
        for k in range(len(positions))
    ]
    engine = tree(
        bodies,
        dt=dt,
        gravity=(0, 0, -9.81),
        static_shapes=[Placed(Plane())],
        contact=ContactSettings(friction=0.5),
    )
    q = torch.tensor([[x for position in positions for x in (*position, 1.0, 0.0, 0.0, 0.0)]], dtype=DOUBLE)
    return engine, State(q, torch.zeros(1, engine.nv, dtype=DOUBLE))


def grid(count, columns):
    return [(0.5 * (k % columns), 0.5 * (k // columns), SIZE / 2) for k in range(count)]


def check_rest(engine, start, steps):
    path = engine.rollout(start, steps)
    assert path.status.converged.all()
    assert float(path.status.penetration.max()) < 1e-6
    assert torch.allclose(path.final.q, start.q, atol=1e-6)


@pytest.mark.extended
def test_thirteen_boxes_rest_apart_from_each_other():
    check_rest(*boxes(grid(13, 4)), 100)


@pytest.mark.extended
def test_a_stack_of_ten_boxes_stands():
    check_rest(*boxes([(0.0, 0.0, SIZE * (k + 0.5)) for k in range(10)]), 100)


@pytest.mark.extended
def test_gradients_of_more_contacts_than_a_workspace_holds_at_first():
    """A push on the last of 13 boxes: it slides as it would alone."""
    engine, start = boxes(grid(13, 4))
    push = torch.tensor(1.0, dtype=DOUBLE, requires_grad=True)
    v = torch.zeros(1, engine.nv, dtype=DOUBLE)
    end = engine.rollout(State(start.q, v.index_put((torch.tensor([0]), torch.tensor([-6])), push)), 10).final
    (gradient,) = torch.autograd.grad(end.q[0, -7], push)
    # x = v t − μ g t² / 2
    assert float(gradient) == pytest.approx(0.05, rel=1e-6)


@pytest.mark.slow
def test_two_hundred_boxes_rest_on_a_floor():
    check_rest(*boxes(grid(200, 15)), 300)


@pytest.mark.slow
def test_sixty_boxes_that_land_one_after_the_other_in_the_same_step_come_to_rest():
    """More impacts in a step than a world of few bodies may have."""
    engine, start = boxes(grid(60, 8))
    q = start.q.clone()
    q[0, 2::7] += 1e-3 * (1 + torch.linspace(0, 0.2, 60, dtype=DOUBLE))
    path = engine.rollout(State(q, start.v), 20)
    assert path.status.converged.all()
    assert torch.allclose(path.final.q, start.q, atol=1e-5)
