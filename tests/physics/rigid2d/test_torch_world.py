"""Kernels against the plain-torch step: states, and gradients to states, masses, restitution and gravity."""

# pyright: reportAttributeAccessIssue=false

import pytest
import torch
from physics.rigid2d.scenes import push, start, struck_chain
from physics.rigid2d.torch_world import TorchWorld

from physvision.core import State

LINKS, STEPS = 3, 12


def turned(angle, x, y):
    return torch.stack([torch.cos(angle) * x - torch.sin(angle) * y, torch.sin(angle) * x + torch.cos(angle) * y])


def joints(q):
    """Each link's upper pin on the lower pin of the one above it, the first on (300, 30)."""
    actual = []
    for i in range(LINKS):
        x, y, angle = q[3 * i : 3 * i + 3]
        upper = torch.stack([x, y]) + turned(angle, 0.0, -20.0 if i == 0 else -25.0)
        anchor = q.new_tensor([300.0, 30.0])
        if i:
            a, b, above = q[3 * i - 3 : 3 * i]
            anchor = torch.stack([a, b]) + turned(above, 0.0, 25.0)
        actual.append(upper - anchor)
    return torch.cat(actual)


def gap(q):
    """From the ball to the left side of the last link."""
    x, y, angle = q[3 * LINKS - 3 : 3 * LINKS]
    separation = q[3 * LINKS : 3 * LINKS + 2] - torch.stack([x, y])
    return -(torch.cos(angle) * separation[0] + torch.sin(angle) * separation[1]) - 10 - 20


def oracle(mass, restitution, gravity, push_force):
    gyration = torch.tensor([*[(20**2 + 60**2) / 12] * LINKS, 20**2 / 2], dtype=torch.float64)
    inverse = torch.stack([1 / mass, 1 / mass, 1 / (mass * gyration)], 1).flatten()
    down = torch.zeros(3 * LINKS + 3, dtype=torch.float64)
    fall = torch.stack([torch.zeros_like(gravity), gravity, torch.zeros_like(gravity)]).repeat(LINKS + 1)
    weightless = down.clone()
    weightless[-2] = -100.0
    weightless[-3] = push_force

    def acceleration(q):
        return fall + inverse * weightless

    return TorchWorld(inverse, acceleration, joints, [gap], [restitution])


def test_a_struck_chain_moves_as_in_plain_torch_and_so_do_the_gradients():
    world = struck_chain(LINKS)
    base = world.properties
    state = start(world)
    # The ball is on its way already; three more steps push it.
    q, v = state.q.clone(), state.v.clone()
    q[0, -3], v[0, -3] = 250.0, 70.0
    q, v = q.requires_grad_(), v.requires_grad_()
    mass = base.mass.clone().requires_grad_()
    restitution = base.restitution.clone().requires_grad_()
    gravity = base.gravity.clone().requires_grad_()
    leaves = {"mass": mass, "restitution": restitution, "gravity": gravity}
    trajectory = world.rollout(State(q, v), STEPS, push(world, STEPS), leaves)

    leaves = [value.detach().clone().requires_grad_() for value in (q, v, mass, restitution, gravity)]
    at, speed, own_mass, own_restitution, own_gravity = leaves
    place, rate = at[0], speed[0]
    pair = (own_restitution[LINKS - 1] + own_restitution[LINKS]) / 2
    hit = False
    for k in range(STEPS):
        plain = oracle(own_mass, pair, own_gravity[1], 1500.0 if k < 3 else 0.0)
        before = rate[-3]
        place, rate = plain.step(place, rate, world.dt)
        hit = hit or bool((rate[-3] - before).abs() > 100)
        # Both are RATTLE, solved to rounding; the impact lets 1e-9 of differences grow a little.
        torch.testing.assert_close(trajectory.q[0, k + 1], place, rtol=1e-9, atol=1e-7)
        torch.testing.assert_close(trajectory.v[0, k + 1], rate, rtol=1e-8, atol=1e-6)
    assert hit
    weights = torch.cos(torch.arange(len(place), dtype=torch.float64))
    actual = torch.autograd.grad((weights * trajectory.final.q[0]).sum(), (q, v, mass, restitution, gravity))
    expected = torch.autograd.grad((weights * place).sum(), leaves)
    for name, mine, theirs in zip(("q", "v", "mass", "restitution", "gravity"), actual, expected, strict=True):
        if name == "gravity":
            mine, theirs = mine[1:], theirs[1:]
        assert theirs.abs().max() > 0, name
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-6 * float(theirs.abs().max()), msg=name)


def test_the_oracle_itself_bounces_as_it_should():
    # A ball and a wall at 10: ∂x/∂x₀ = −1, ∂x/∂v₀ = −T.
    def wall(q):
        return 10 - q[0]

    ones = torch.ones(1, dtype=torch.float64)
    plain = TorchWorld(ones, lambda q: 0 * q, lambda q: q.new_zeros(0), [wall], [1.0])
    q, v = torch.zeros(1, dtype=torch.float64, requires_grad=True), torch.full((1,), 15.0).double().requires_grad_()
    place, _ = plain.step(q, v, 1.0)
    assert place.item() == pytest.approx(5.0)
    by_q, by_v = torch.autograd.grad(place.sum(), (q, v))
    assert by_q.item() == pytest.approx(-1.0)
    assert by_v.item() == pytest.approx(-1.0)
