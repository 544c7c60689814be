"""Random scenes of everything there is: nothing fails, and neither a mirror nor another order of bodies matters."""

from random import Random

import pytest
import torch

from physvision.core import State
from physvision.physics.rigid2d import scenes


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
        others = [(*scenes.mixture(seed, flip=-1.0), -1.0), (*scenes.mixture(seed, shuffle=True), 1.0)]
        for other, order, flip in others:
            order = order if flip > 0 else same
            found = other.rollout(placed(state, order, flip), 1).final
            wanted = placed(ahead, order, flip)
            if not (torch.equal(found.q, wanted.q) and torch.equal(found.v, wanted.v)):
                off.append((seed, flip))
    assert off == []


def test_random_scenes_do_not_fail_nor_hang_on_the_side_that_they_are_seen_from():
    check(range(25))


@pytest.mark.slow  # Two minutes of processor time.
def test_a_thousand_random_scenes():
    check(range(25, 1025))
