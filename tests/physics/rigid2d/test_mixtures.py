"""Random scenes of everything there is: nothing fails, and neither a mirror nor another order of bodies matters."""

from random import Random

import pytest
import torch
from physics.rigid2d import scenes

from physvision.core import State
from physvision.physics.rigid2d import Circle, Revolute, World, rollout


def placed(state, order, flip=1.0):
    """A state of the same bodies in another order, mirrored if `flip` is −1."""
    signs = torch.tensor([flip, 1.0, flip], dtype=torch.float64)
    q, v = ((values.reshape(-1, 3)[order] * signs).reshape(1, -1) for values in (state.q, state.v))
    return State(q, v)


def check(seeds):
    """A hundred steps of each scene, then one step of its mirror image and of its bodies in another order: bitwise."""
    off = []
    for seed in seeds:
        world, same = scenes.mixture(seed)
        trajectory = world.rollout(world.initial_state(1, torch.float64), 100)
        assert trajectory.status.converged.all(), f"scene {seed} fails"
        assert trajectory.q.isfinite().all(), f"scene {seed} is not finite"
        state = trajectory.state(Random(seed).randrange(20, 100))
        ahead = world.rollout(state, 1).final
        variants = [(*scenes.mixture(seed, flip=-1.0), -1.0), (*scenes.mixture(seed, shuffle=True), 1.0)]
        for variant, order, flip in variants:
            order = order if flip > 0 else same
            actual = variant.rollout(placed(state, order, flip), 1).final
            expected = placed(ahead, order, flip)
            if not (torch.equal(actual.q, expected.q) and torch.equal(actual.v, expected.v)):
                off.append((seed, flip))
    assert off == []


def test_random_scenes_do_not_fail_nor_hang_on_the_side_that_they_are_seen_from():
    check(range(25))


def test_a_rope_may_be_listed_in_any_order():
    """Equal links in a row: only where they start tells them apart, and only joints say who hangs on whom."""
    links = [Circle(0.1, (0.2 * i, 0.0), name=f"{i}") for i in range(12)]
    pins = [
        Revolute("0", None, (-0.1, 0.0)),
        *(Revolute(f"{i}", f"{i - 1}", (0.2 * i - 0.1, 0.0)) for i in range(1, 12)),
    ]
    rope = World(links, pins, dt=1 / 60)
    order = list(range(12))
    Random(0).shuffle(order)
    mixed = World([links[i] for i in order], [pins[i] for i in order], dt=1 / 60)
    start = rope.initial_state(1, torch.float64)
    expected = rope.rollout(start, 60).final
    actual = mixed.rollout(placed(start, order), 60).final
    assert float(expected.v.abs().max()) > 1.0
    assert torch.equal(actual.q, placed(expected, order).q)
    assert torch.equal(actual.v, placed(expected, order).v)


def test_a_batch_that_is_computed_in_parts_is_the_same(monkeypatch):
    """The workspaces of 100,000 worlds of three bodies took 8 GB."""
    world, _ = scenes.mixture(0)

    def simulate():
        q = world.initial_state(1, torch.float64).q.repeat(120, 1).requires_grad_()
        v = 0.01 * torch.arange(120.0).double()[:, None].repeat(1, world.nv)
        path = world.rollout(State(q, v), 100)
        path.final.q.square().sum().backward()
        return path.q.detach(), q.grad

    packed, packs = rollout.Kernels._packed, []
    monkeypatch.setattr(
        rollout.Kernels, "_packed", lambda self, batch, given: packs.append(batch) or packed(self, batch, given)
    )
    expected, expected_gradient = simulate()
    assert packs == [120, 120]
    monkeypatch.setattr(rollout, "MAX_WORKSPACE", 1e6)
    actual, gradient = simulate()
    assert max(packs[2:]) < 120
    assert torch.equal(actual, expected)
    assert torch.equal(gradient, expected_gradient)


@pytest.mark.slow  # Two minutes of processor time.
def test_a_thousand_random_scenes():
    check(range(25, 1025))
