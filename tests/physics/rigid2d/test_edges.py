"""What touches changes edges and corners: off a ledge, over a corner, from a corner to an edge."""

import math

import pytest
import torch
from physics.rigid2d.scenes import start

from physvision.core import State
from physvision.physics import rigid2d

GRAVITY = 10.0


def moved(world, place, speed):
    """The start, its first coordinate and its rate replaced."""
    state = start(world)
    q, v = state.q.clone(), state.v.clone()
    q[0, 0], v[0, 0] = place, speed
    return State(q, v)


def off_a_ledge(round_shape, dt):
    """A ball, or a box that cannot turn, before the end of a ledge at x = 0; where its last support is."""
    ledge = rigid2d.Rectangle((4, 1), (-2, -0.5), static=True, friction=0, restitution=0)
    if round_shape:
        body, joints = rigid2d.Circle(0.3, (-0.5, 0.3), name="body", friction=0, restitution=0), []
    else:
        body = rigid2d.Rectangle((0.6, 0.6), (-0.5, 0.3), name="body", friction=0, restitution=0)
        joints = [rigid2d.HoldAngle("body")]
    return rigid2d.World([ledge, body], joints, gravity=(0, -GRAVITY), dt=dt), 0.0 if round_shape else 0.3


@pytest.mark.parametrize("dt", [1 / 30, 1 / 200])
@pytest.mark.parametrize("round_shape", [True, False])
def test_what_leaves_a_ledge_falls_from_the_moment_at_which_its_support_ends(round_shape, dt):
    # Faster than √(g r), a ball leaves a corner at once.
    world, beyond = off_a_ledge(round_shape, dt)
    steps = round(0.5 / dt)
    place, speed = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (-0.5, 2.3))
    trajectory = world.rollout(moved(world, place, speed), steps)
    assert trajectory.status.fallback_steps == 0
    height = trajectory.final.q[0, 1]
    fallen = dt * steps - (beyond - place) / speed
    exact = 0.3 - GRAVITY / 2 * fallen**2
    # An end counts as passed 1.5e-7 of the world's size later.
    late = 2e-7 * world.model.extent / 2.3
    assert abs(float((height - exact).detach())) < GRAVITY * 0.5 * late
    actual, expected = (torch.autograd.grad(value, (place, speed)) for value in (height, exact))
    torch.testing.assert_close(actual, expected, rtol=0, atol=2 * GRAVITY * late)


def test_a_ball_rolls_round_a_corner_as_a_pendulum_stands_on_its_head():
    # Without friction it turns about the corner: θ̈ = (g/r) sin θ, until the corner bears nothing: cos θ = v²/(g r).
    ledge = rigid2d.Rectangle((4, 1), (-2, -0.5), static=True, friction=0, restitution=0)
    ball = rigid2d.Circle(0.4, (-0.1, 0.4), velocity=(0.5, 0), friction=0, restitution=0)
    world = rigid2d.World([ledge, ball], gravity=(0, -GRAVITY), dt=1 / 240)
    trajectory = world.rollout(start(world), 96)
    x, y = trajectory.q[0, :, 0], trajectory.q[0, :, 1]
    assert trajectory.status.fallback_steps == 0
    reached = 0.1 / 0.5
    # Energy: v² = v₀² + 2 g r (1 − cos θ); it leaves where v² = g r cos θ.
    leaves = (0.5**2 / (GRAVITY * 0.4) + 2) / 3
    on_corner = (x > 0) & (y > leaves * 0.4)
    assert on_corner.sum() > 10
    assert abs((x[on_corner] ** 2 + y[on_corner] ** 2).sqrt() - 0.4).max() < 1e-6
    assert (y[x <= 0] - 0.4).abs().max() < 1e-9
    # The time from the corner to an angle, by a fine sum of dθ/θ̇.
    k = int(on_corner.nonzero()[-1])
    theta = math.atan2(float(x[k]), float(y[k]))
    angles = torch.linspace(0, theta, 200001, dtype=torch.float64)
    rates = (0.5**2 + 2 * GRAVITY * 0.4 * (1 - angles.cos())).sqrt() / 0.4
    assert abs(reached + float(torch.trapezoid(1 / rates, angles)) - k / 240) < 1e-4


def rocking(angle, spin):
    """A tall box on its right lower corner, which stays where it is."""
    half = (0.3, 0.9)
    surface = {"friction": 1.0, "restitution": 0.0}
    along, across = math.cos(angle), math.sin(angle)
    lever = (-along * half[0] - across * half[1], along * half[1] - across * half[0])
    floor = rigid2d.Rectangle((40, 1), (0, -0.5), static=True, **surface)
    box = rigid2d.Rectangle((0.6, 1.8), lever, angle=angle, name="box", **surface)
    box.velocity, box.spin = (-spin * lever[1], spin * lever[0]), spin
    return rigid2d.World([floor, box], gravity=(0, -GRAVITY), dt=1 / 60)


def test_a_block_that_rocks_from_one_corner_to_the_other_keeps_housners_share_of_its_spin():
    # Housner (1963): about the corner that strikes, angular momentum is kept: ω⁺/ω⁻ = 1 − (3/2) sin² α, tan α = b/h.
    world = rocking(-0.1, 0.0)
    trajectory = world.rollout(start(world), 60)
    angle, spin = trajectory.q[0, :, 2], trajectory.v[0, :, 2]
    k = int((angle > 0).nonzero()[0])
    half, inertia = math.hypot(0.3, 0.9), 4 / 3
    alpha = math.atan2(0.3, 0.9)

    def kinetic(tilt):
        # (4/3) m R² ω²/2 is what the center, at R cos(α − |θ|), has lost in height; upright it is at R cos α.
        return 2 * GRAVITY * half * (math.cos(alpha - tilt) - math.cos(alpha)) / (inertia * half**2)

    before = math.sqrt(kinetic(0.1))
    after = before * (1 - 1.5 * math.sin(alpha) ** 2)
    actual = float(spin[k]) ** 2 + kinetic(float(angle[k]))
    assert abs(math.sqrt(actual) - after) < 1e-3 * after


def slides(dt=1 / 60):
    """A box whose front is over the end of a ledge: it slides on, with friction, tips and falls."""
    ledge = rigid2d.Rectangle((4, 1), (-2, -0.5), static=True, friction=0.3, restitution=0.1)
    box = rigid2d.Rectangle((0.8, 0.4), (-0.45, 0.2), velocity=(1.9, 0), friction=0.2, restitution=0.1)
    return rigid2d.World([ledge, box], gravity=(0, -GRAVITY), dt=dt), 45


def rocks(dt=1 / 60):
    """A box let fall from one corner: it strikes with the other, rocks and comes down again."""
    world = rocking(-0.12, 0.0)
    return world, 50


def rolls_over(dt=1 / 60):
    """A ball that rolls off a step, round its corner, on to the floor below."""
    surface = {"friction": 0.6, "restitution": 0.2}
    bodies = [
        rigid2d.Rectangle((20, 1), (0, -0.5), static=True, **surface),
        rigid2d.Rectangle((4, 0.3), (-2, 0.15), static=True, **surface),
        rigid2d.Circle(0.25, (-0.206, 0.55), velocity=(0.6, 0), spin=-2.4, **surface),
    ]
    return rigid2d.World(bodies, gravity=(0, -GRAVITY), dt=dt), 50


@pytest.mark.parametrize("scene", [slides, rocks, rolls_over])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_over_edges_and_corners_are_those_of_differences(scene, seed):
    world, steps = scene()
    state, generator = start(world), torch.Generator().manual_seed(seed)
    dq, dv, weights = torch.randn(3, 1, world.nq, generator=generator, dtype=torch.float64)
    # Along the ledge or upwards alone: nothing is pushed into what it stands on.
    dq = dq * torch.tensor([1.0, 0.0, 0.0])
    dv = dv * torch.tensor([1.0, 0.0, 0.0])
    moves = torch.tensor([1e-4, -1e-4, 1e-5, -1e-5], dtype=torch.float64).unsqueeze(1)
    ends = world.rollout(State(state.q + moves * dq, state.v + moves * dv), steps)
    values = ends.final.q @ weights[0]
    large_difference, small_difference = (values[0] - values[1]) / 2e-4, (values[2] - values[3]) / 2e-5
    change = torch.zeros((), dtype=torch.float64, requires_grad=True)
    trajectory = world.rollout(State(state.q + change * dq, state.v + change * dv), steps)
    assert trajectory.status.fallback_steps == 0
    (actual,) = torch.autograd.grad(trajectory.final.q[0] @ weights[0], change)
    torch.testing.assert_close(large_difference, small_difference, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(actual, small_difference, rtol=1e-5, atol=1e-6)
