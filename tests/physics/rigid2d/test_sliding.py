"""Coulomb friction with the plane and places of static bodies: laws of sliding, and gradients to both properties."""

# pyright: reportAttributeAccessIssue=false

import math

import pytest
import torch

from physvision.core import InputError, State
from physvision.physics import rigid2d

DT, RATE = 1 / 30, 40.0


def table(velocity=(30.0, 40.0), rate=RATE, **options):
    """A puck between two walls, 100 apart, whose faces are at x = 0 and 100."""
    puck = rigid2d.Circle(5.0, (50.0, 40.0), velocity=velocity, restitution=1.0, friction=0.0, **options)
    puck.sliding_deceleration = rate
    walls = [
        rigid2d.Rectangle((20.0, 1000.0), (x, 0.0), static=True, restitution=1.0, friction=0.0) for x in (-10.0, 110.0)
    ]
    return rigid2d.World([puck, *walls], gravity=(0.0, 0.0), dt=DT)


def puck(x, speed, y=40.0):
    return State(torch.tensor([[x, y, 0.0]]).double(), torch.tensor([[speed, 0.0, 0.0]]).double())


def test_a_sliding_body_stops_where_friction_has_taken_its_energy():
    """The path is v²/2a, the time v/a, the direction kept; exact at every step, the last one included."""
    world = table(velocity=(9.0, 12.0))
    path = world.rollout(world.initial_state(dtype=torch.float64), 30)
    time = DT * torch.arange(31, dtype=torch.float64)
    speed = (15.0 - RATE * time).clamp(min=0.0)
    way = torch.where(speed > 0, 15.0 * time - 0.5 * RATE * time**2, 15.0**2 / (2 * RATE))
    direction = torch.tensor([0.6, 0.8], dtype=torch.float64)
    torch.testing.assert_close(path.v[0, :, :2], speed[:, None] * direction, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(path.q[0, :, :2] - path.q[0, 0, :2], way[:, None] * direction, rtol=1e-12, atol=1e-12)


def test_a_bounce_costs_no_more_than_the_way():
    """With elastic walls the energy lost is the deceleration times the path, to the order of the splitting."""
    errors = []
    for steps in (1, 4, 16):
        world = table(velocity=(70.0, 0.0))
        fine = rigid2d.World(world.model.bodies, gravity=(0.0, 0.0), dt=DT, substeps=steps)
        final = fine.rollout(fine.initial_state(dtype=torch.float64), 30).final
        # 45 to the wall, and back: x = 95 − (path − 45).
        path = 70.0 * 1.0 - 0.5 * RATE
        errors.append(abs(float(final.q[0, 0]) - (95.0 - (path - 45.0))))
        assert float(final.v[0, 0]) == pytest.approx(-(70.0 - RATE), abs=1e-9)
    assert errors[0] < RATE * DT**2 / 2
    assert errors[2] < errors[0] / 8 + 1e-9


def test_no_deceleration_changes_nothing():
    plain, sliding = table(rate=0.0), table(rate=1e-300)
    state = plain.initial_state(dtype=torch.float64)
    assert torch.equal(plain.rollout(state, 40).q, sliding.rollout(state, 40).q)


@pytest.mark.parametrize("speed", [90.0, 20.0, 1.0])
def test_gradients_to_friction_and_walls(speed):
    """Through a bounce and in a stop: against differences of properties that each world has for itself."""
    world = table()

    def final(state_v, rate, pose):
        properties = {"sliding_deceleration": rate, "static_pose": pose}
        path = world.rollout(State(puck(80.0, speed).q, state_v), 12, properties=properties)
        return torch.cat([path.q[:, -1], path.v[:, -1]], 1)

    v = puck(80.0, speed).v + torch.tensor([[0.0, 3.0, 0.2]]).double()
    inputs = (v, torch.tensor([[RATE]]).double(), world.properties.static_pose[None].clone())
    for value in inputs:
        value.requires_grad_()
    assert torch.autograd.gradcheck(final, inputs, eps=1e-6, atol=1e-5)


def test_a_wall_that_moves_by_one_moves_what_bounces_off_it_by_two():
    world = table(rate=0.0)
    pose = world.properties.static_pose.clone().requires_grad_()
    x = world.rollout(puck(80.0, 90.0), 12, properties={"static_pose": pose}).final.q[0, 0]
    torch.testing.assert_close(torch.autograd.grad(x, pose)[0][:, 0], torch.tensor([0.0, 2.0]).double())


def test_walls_of_each_world():
    world = table(rate=0.0)
    shift = torch.tensor([0.0, -10.0]).double()
    pose = world.properties.static_pose.repeat(2, 1, 1)
    pose[:, 1, 0] += shift
    state = State(puck(80.0, 90.0).q.repeat(2, 1), puck(80.0, 90.0).v.repeat(2, 1))
    x = world.rollout(state, 12, properties={"static_pose": pose}).final.q[:, 0]
    assert float(x[1] - x[0]) == pytest.approx(-20.0)
    torch.testing.assert_close(world.poses(state, {"static_pose": pose})[:, 2, 0, 3], 110.0 + shift)


def test_where_a_puck_stopped_says_how_rough_the_table_is():
    """The deceleration from one resting place, by the gradient through the stop."""
    world = table(velocity=(30.0, 0.0), rate=10.0)
    goal = world.rollout(
        world.initial_state(dtype=torch.float64),
        100,
        properties={"sliding_deceleration": torch.tensor([25.0]).double()},
    )
    rate = torch.tensor([12.0]).double().requires_grad_()
    for _ in range(40):
        path = world.rollout(world.initial_state(dtype=torch.float64), 100, properties={"sliding_deceleration": rate})
        error = path.final.q[0, 0] - goal.final.q[0, 0]
        (slope,) = torch.autograd.grad(error, rate)
        assert math.isfinite(float(slope))
        rate = (rate - error / slope).detach().clamp(1.0, 200.0).requires_grad_()
    assert float(rate.detach()) == pytest.approx(25.0, rel=1e-6)


def test_bad_decelerations_are_refused():
    with pytest.raises(InputError, match="sliding_deceleration"):
        rigid2d.Circle(1.0, (0, 0), sliding_deceleration=-1.0)
