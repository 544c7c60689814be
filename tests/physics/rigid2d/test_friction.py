"""Sliding, sticking, rolling, stacking: closed forms of Coulomb friction."""

# pyright: reportAttributeAccessIssue=false

import math

import numpy as np
import pytest
import torch
from physics.rigid2d.scenes import start

from physvision.core import State
from physvision.physics import rigid2d

GRIDS = [1 / 30, 1 / 300]


def on_floor(*bodies, friction, gravity=(0, 100), dt=1 / 30, width=4000):
    floor = rigid2d.Rectangle((width, 20), (0, 110), static=True, friction=friction, restitution=0, name="floor")
    return rigid2d.World([floor, *bodies], gravity=gravity, dt=dt)


@pytest.mark.parametrize("dt", GRIDS)
def test_a_box_stops_after_the_distance_of_its_friction(dt):
    box = rigid2d.Rectangle((20, 20), (0, 90), velocity=(80, 0), friction=0.3, restitution=0)
    world = on_floor(box, friction=0.3, dt=dt)
    v = start(world).v.requires_grad_()
    friction = world.properties.friction.clone().requires_grad_()
    trajectory = world.rollout(State(start(world).q, v), round(4 / dt), properties={"friction": friction})
    # v²/(2 μ g); its derivatives by v and by each body's share of μ.
    np.testing.assert_allclose(trajectory.q[0, -1, 0].item(), 80**2 / 60, rtol=1e-6)
    np.testing.assert_allclose(trajectory.v[0, -1].detach(), 0, atol=1e-9)
    by_v, by_friction = torch.autograd.grad(trajectory.q[0, -1, 0], (v, friction))
    np.testing.assert_allclose(by_v[0, 0], 80 / 30, rtol=1e-6)
    np.testing.assert_allclose(by_friction, -(80**2) / 60 / 0.3 / 2, rtol=1e-6)


@pytest.mark.parametrize("dt", GRIDS)
def test_a_sliding_disc_comes_to_roll(dt):
    # A uniform disc without spin rolls after v/(3 μ g), then keeps 2/3 of its speed.
    disc = rigid2d.Circle(20, (0, 80), velocity=(60, 0), friction=0.2, restitution=0)
    world = on_floor(disc, friction=0.2, dt=dt)
    end = world.rollout(start(world), round(3 / dt)).final
    rolls = 60 / (3 * 0.2 * 100)
    expected = 60 * rolls - 0.5 * 20 * rolls**2 + 40 * (3 - rolls)
    np.testing.assert_allclose(end.v[0], [40, 0, 2], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(end.q[0, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("coefficient", [0.2, 0.5, 0.8])
def test_a_box_on_a_slope_starts_to_slide_at_the_friction_angle(coefficient):
    # Gravity is turned instead of the floor; the box is flat enough not to tip over.
    box = rigid2d.Rectangle((60, 20), (0, 90), friction=coefficient, restitution=0)
    moved = []
    limit = math.atan(coefficient)
    for angle in (limit - math.radians(0.5), limit + math.radians(0.5)):
        world = on_floor(box, friction=coefficient, gravity=(100 * math.sin(angle), 100 * math.cos(angle)))
        end = world.rollout(start(world), 60).final
        moved.append(end.q[0, 0].item())
    expected = 0.5 * 100 * (math.sin(angle) - coefficient * math.cos(angle)) * 4
    assert abs(moved[0]) < 1e-6
    np.testing.assert_allclose(moved[1], expected, rtol=1e-6)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_stack_of_five_boxes_stands_still(restitution):
    boxes = [rigid2d.Rectangle((40, 20), (0, 90 - 20 * i), friction=0.5, restitution=restitution) for i in range(5)]
    world = on_floor(*boxes, friction=0.5)
    trajectory = world.rollout(start(world), 300)
    assert trajectory.status.converged.all()
    np.testing.assert_allclose(trajectory.q[0] - trajectory.q[0, :1], 0, atol=1e-6)


def test_a_box_slides_off_a_ledge_and_falls():
    ledge = rigid2d.Rectangle((200, 20), (0, 110), static=True, friction=0.1, restitution=0)
    box = rigid2d.Rectangle((40, 20), (0, 90), velocity=(120, 0), friction=0.1, restitution=0)
    world = rigid2d.World([ledge, box], gravity=(0, 100))
    trajectory = world.rollout(start(world), 90)
    assert trajectory.status.converged.all()
    assert trajectory.q[0, -1, 1] > 200
    assert trajectory.q[0, -1, 2].abs() > 0.2
    kinetic, potential = world.energy(trajectory.flatten())
    assert (kinetic + potential).diff().max() < 1e-2


def test_dropped_boxes_come_to_rest_on_each_other():
    boxes = [rigid2d.Rectangle((40, 20), (3 * i, 80 - 30 * i), angle=0.1 * i, restitution=0.2) for i in range(4)]
    world = on_floor(*boxes, friction=0.5)
    trajectory = world.rollout(start(world), 300)
    assert trajectory.status.converged.all()
    assert trajectory.v[0, -1].abs().max() < 1e-3
    place = trajectory.q[0, -1].reshape(4, 3)
    np.testing.assert_allclose(place[:, 1], [90, 70, 50, 30], atol=1e-3)


def test_a_tower_of_balls_in_a_pit_settles():
    # Walls, floor and a pile-up: bounded events, nothing falls through.
    walls = [rigid2d.Rectangle((20, 300), (x, 0), static=True, name=f"wall {x}") for x in (-65, 65)]
    balls = [rigid2d.Circle(18, (-25 + 17 * (i % 4), 70 - 40 * i), friction=0.4, restitution=0.3) for i in range(6)]
    world = on_floor(*walls, *balls, friction=0.4)
    trajectory = world.rollout(start(world), 400)
    assert trajectory.status.converged.all()
    assert trajectory.q[0, :, 1::3].max() < 82 + 1e-6
    assert trajectory.v[0, -1].abs().max() < 0.1
    kinetic, potential = world.energy(trajectory.flatten())
    # Impacts take energy; a flow that turns by 0.02 a step keeps it to the square of that.
    assert (kinetic + potential).diff().max() < 4e-4 * kinetic.max()


def side_by_side(flip, names):
    """Two polygons that slide side by side: the second, which is braked less, leans on the first all along an edge."""
    shapes = {
        "first": ([(0, 0), (0.7, 0), (0.9, 0.5), (0, 0.8)], 0.7),
        "second": ([(-0.6, 0), (0, 0), (0, 0.6), (-0.4, 0.9)], 0.1),
    }
    bodies = [rigid2d.Rectangle((40, 1), (0, -0.5), static=True, friction=0.3)]
    for name in names:
        corners, friction = shapes[name]
        corners = [(flip * x, y) for x, y in corners][::flip]
        bodies.append(rigid2d.Polygon(corners, (flip, 0), velocity=(0.9 * flip, 0), friction=friction, name=name))
    return rigid2d.World(bodies, gravity=(0, -9.81), dt=1 / 60)


def test_friction_that_loads_do_not_determine_is_the_same_in_a_mirror_and_in_another_order():
    # The floor carries both, so that any friction between them holds their edges; how they share it brakes them.
    worlds = [side_by_side(1, ("first", "second")), side_by_side(-1, ("first", "second"))]
    worlds += [side_by_side(1, ("second", "first"))]
    motions = [world.rollout(start(world), 30) for world in worlds]
    assert all((motion.status.fallback_steps == 0).all() for motion in motions)
    q = [motion.q.reshape(31, 2, 3) for motion in motions]
    mirrored = q[1] * torch.tensor([-1.0, 1.0, -1.0])
    torch.testing.assert_close(mirrored, q[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(q[2][:, [1, 0]], q[0], rtol=0, atol=1e-12)
    # Slower than the first alone, faster than the second alone, whose pairs' coefficients are 0.5 and 0.2.
    stopped = float(q[0][-1, 0, 0] - q[0][0, 0, 0])
    assert 0.9**2 / (2 * 0.5 * 9.81) < stopped < 0.9**2 / (2 * 0.2 * 9.81)


@pytest.mark.parametrize("spin", [1.0, -1.0])
@pytest.mark.parametrize("slip", [2e-4, -1e-3])
def test_the_slow_slip_of_a_corner_that_is_open_by_less_than_a_tolerance_has_its_gradient(spin, slip):
    # A box turns about a corner that slips; it is open by half of what counts as touching, and closes in the step.
    box = rigid2d.Rectangle((20, 20), (0, 80), angle=0.3, friction=0.5, restitution=0)
    # A pendulum far away, for which the step is done in parts.
    floor = rigid2d.Rectangle((4000, 20), (0, 110), static=True, friction=0.5, restitution=0)
    bob, pin = rigid2d.Circle(5, (1000, -100), name="bob"), rigid2d.Revolute("bob", None, (900, -100))
    world = rigid2d.World([floor, box, bob], [pin], gravity=(0, 100), dt=1 / 60)
    arm = (10 * (math.cos(0.3) - math.sin(0.3)), 10 * (math.cos(0.3) + math.sin(0.3)))
    height = 100 - arm[1] - 0.5 * world._limits["tolerance"]
    place = torch.tensor([[0, height, 0.3, 1000, -100, 0]], dtype=torch.float64)
    about_corner = torch.tensor([[spin * arm[1], -spin * arm[0], spin, 0, 0, 0]], dtype=torch.float64)

    def value(slip):
        rates = about_corner + slip * torch.eye(6, dtype=torch.float64)[:1]
        return world.rollout(State(place, rates), 1).final.q[0, :3].sum()

    speed = torch.tensor(slip, dtype=torch.float64, requires_grad=True)
    (actual,) = torch.autograd.grad(value(speed), speed)
    # Places of a hundred are rounded to 1e-14.
    difference = (value(slip + 1e-6) - value(slip - 1e-6)) / 2e-6
    torch.testing.assert_close(actual, difference, rtol=1e-4, atol=0)
