"""Elastic balls in a box against an exact event-driven billiard, and the closed forms of single impacts."""

import numpy as np
import pytest
import torch
from physics.rigid2d.billiard import Billiard
from physics.rigid2d.scenes import SIX, THREE, ball, billiard, start, walls

from physvision.core import State
from physvision.physics import rigid2d

GRIDS = [(1 / 30, 100), (1 / 300, 1000)]


def flat(trajectory, step=-1):
    """Positions, then velocities, of all balls, without angles."""
    ends = (x[:, step].unflatten(1, (-1, 3))[..., :2].flatten(1) for x in (trajectory.q, trajectory.v))
    return torch.cat(tuple(ends), 1)


def jacobian(world, state, steps):
    """∂(x, v) after `steps` by ∂(x, v) before, angles left out: one world for each row."""
    balls = world.nq // 3
    rows = 4 * balls
    q, v = (x.repeat(rows, 1).requires_grad_() for x in (state.q, state.v))
    end = flat(world.rollout(State(q, v), steps))
    gradients = torch.autograd.grad((end * torch.eye(rows, dtype=end.dtype)).sum(), (q, v))
    return torch.cat([g.unflatten(1, (balls, 3))[..., :2].flatten(1) for g in gradients], 1)


@pytest.mark.parametrize(("dt", "steps"), GRIDS)
@pytest.mark.parametrize("balls", [THREE, SIX], ids=["three", "six"])
def test_balls_follow_the_exact_billiard_and_so_does_the_jacobian(balls, dt, steps):
    exact = Billiard(*balls)
    assert exact.run(steps * dt) > 5
    world = billiard(*balls, dt=dt)
    trajectory = world.rollout(start(world), steps)
    assert trajectory.status.converged.all()
    expected = np.concatenate([exact.x.ravel(), exact.v.ravel()])
    np.testing.assert_allclose(flat(trajectory)[0].numpy(), expected, atol=1e-6)
    actual = jacobian(world, start(world), steps).numpy()
    assert np.abs(actual - exact.jacobian).max() < 1e-6 * np.abs(exact.jacobian).max()


def test_many_balls_in_a_row_or_a_column_follow_the_exact_billiard():
    # So many that pairs are found by a sweep: along x in one scene, along y in the other.
    generator = np.random.default_rng(3)
    velocities = generator.uniform(-150, 150, (16, 2))
    for along in (0, 1):
        positions = np.stack([[25 + 94 * (i // 4), 25 + 110 * (i % 4)][:: 1 - 2 * along] for i in range(16)])
        exact = Billiard(positions, velocities[:, :: 1 - 2 * along])
        assert exact.run(0.5) > 5
        world = billiard(positions.tolist(), velocities[:, :: 1 - 2 * along].tolist())
        assert len(world.model.pairs) > 64
        trajectory = world.rollout(start(world), 15)
        assert trajectory.status.fallback_steps == 0
        np.testing.assert_allclose(flat(trajectory)[0].numpy(), np.r_[exact.x.ravel(), exact.v.ravel()], atol=1e-6)


@pytest.mark.parametrize(("dt", "steps"), GRIDS)
def test_a_bounce_turns_position_and_velocity_round(dt, steps):
    # The grid is met on purpose: the ball reaches the wall at 28/30 s, exactly at the end of a step.
    world = rigid2d.World([*walls(), ball((100, 100), (300, 0))], gravity=(0, 0), dt=dt)
    actual = jacobian(world, start(world), steps)
    time = steps * dt
    # Two bounces in 10/3 s: at 380 and at 20; an odd number shows at half the time.
    expected = torch.tensor([1.0, 0.0, time, 0.0], dtype=torch.float64)
    torch.testing.assert_close(actual[0], expected, rtol=1e-6, atol=1e-9)
    half = jacobian(world, start(world), steps // 2)
    torch.testing.assert_close(half[0], -expected * torch.tensor([1, 1, 0.5, 1]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dt", [1 / 30, 1 / 300])
@pytest.mark.parametrize("gap", [60.0, 61.7])
def test_equal_balls_head_on_exchange_their_motion(dt, gap):
    world = rigid2d.World([ball((0, 0), (100, 0)), ball((40 + gap, 0))], gravity=(0, 0), dt=dt)
    steps = round(2 / dt)
    actual = jacobian(world, start(world), steps)
    expected = torch.tensor([1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(actual[2], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dt", [1 / 30, 1 / 300])
@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.8, 1.0])
def test_restitution_of_a_fall(dt, restitution):
    # From rest at height h, gravity g: impact after √(2h/g), then upwards with e √(2gh).
    floor = rigid2d.Rectangle((400, 20), (0, 110), static=True, restitution=restitution, friction=0)
    world = rigid2d.World([floor, ball((0, 0), restitution=restitution)], gravity=(0, 100), dt=dt)
    hit, speed = np.sqrt(2 * 80 / 100), np.sqrt(2 * 100 * 80)
    time = 1.5
    trajectory = world.rollout(start(world), round(time / dt))
    left = time - hit
    height = restitution * speed * left - 50 * left**2 if restitution else 0.0
    rate = restitution * speed - 100 * left if restitution else 0.0
    np.testing.assert_allclose(trajectory.q[0, -1, 1], 80 - height, rtol=1e-6)
    np.testing.assert_allclose(-trajectory.v[0, -1, 1], rate, rtol=1e-6, atol=1e-9)


def test_ten_elastic_balls_keep_their_energy_for_ten_seconds():
    generator = np.random.default_rng(3)
    positions = [(60 + 90 * (i % 4), 60 + 90 * (i // 4)) for i in range(10)]
    world = billiard(positions, generator.uniform(-200, 200, (10, 2)).tolist())
    trajectory = world.rollout(start(world), 300)
    kinetic, _ = world.energy(trajectory.flatten())
    assert trajectory.status.converged.all()
    torch.testing.assert_close(kinetic, kinetic[:1].expand_as(kinetic), rtol=1e-6, atol=0)


def test_nothing_tunnels():
    speeds = [3000.0, 30000.0, 300000.0]
    world = billiard([(200, 200)], [(1, 0)], dt=1 / 30)
    state = start(world, 3)
    angle = torch.tensor(0.3, dtype=torch.float64)
    v = torch.stack([torch.tensor([s * angle.cos(), s * angle.sin(), 0]) for s in speeds]).double()
    trajectory = world.rollout(State(state.q, v), 30)
    # The fastest bounces some 30 times a step; all stay inside.
    assert trajectory.status.converged.all()
    assert trajectory.q[..., :2].min() > 20 - 1e-6
    assert trajectory.q[..., :2].max() < 380 + 1e-6
    # Each bounce gives by the compliance of 1e-12; the fastest has a thousand.
    torch.testing.assert_close(trajectory.v[:, -1].norm(dim=1), torch.tensor(speeds).double(), rtol=4e-9, atol=0)


def test_simultaneous_impacts_share_momentum():
    # One ball between two that come from either side at the same moment: by symmetry it stays.
    world = rigid2d.World([ball((0, 0), (50, 0)), ball((100, 0)), ball((200, 0), (-50, 0))], gravity=(0, 0))
    end = world.rollout(start(world), 60).final
    np.testing.assert_allclose(end.v[0].reshape(3, 3)[:, 0], [-50, 0, 50], atol=1e-6)


def test_worlds_of_a_batch_do_not_mix():
    world = billiard(*SIX)
    generator = torch.Generator().manual_seed(1)
    state = start(world, 5)
    state = State(state.q, state.v + 20 * torch.randn(state.v.shape, generator=generator, dtype=torch.float64))
    together = world.rollout(state, 50)
    for i in range(5):
        alone = world.rollout(State(state.q[i : i + 1], state.v[i : i + 1]), 50)
        assert torch.equal(alone.q[0], together.q[i])


def test_float32_states_are_converted_both_ways():
    world = billiard(*THREE)
    single, double = world.rollout(world.initial_state(), 50), world.rollout(start(world), 50)
    assert single.q.dtype == torch.float32
    torch.testing.assert_close(single.q, double.q.float(), rtol=1e-4, atol=1e-2)
