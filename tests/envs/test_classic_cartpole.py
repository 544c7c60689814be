"""The written-out CartPole against gymnasium's."""

import classic_cartpole
import numpy as np
import pytest
import torch


def test_it_is_gymnasiums_cartpole_at_full_force():
    gymnasium = pytest.importorskip("gymnasium")
    theirs = gymnasium.make("CartPole-v1").unwrapped
    generator = torch.Generator().manual_seed(0)
    states = classic_cartpole.reset(5, generator)
    for start in states:
        theirs.reset(seed=0)
        theirs.state = start.numpy().copy()
        ours = start[None]
        for action in (1, 1, 0, 1, 0, 0, 0, 1):
            _, _, end, *_ = theirs.step(action)
            ours = classic_cartpole.step(ours, torch.tensor([2.0 * action - 1]).double())
            np.testing.assert_allclose(np.array(theirs.state, float), ours[0], rtol=1e-12, atol=1e-14)
            assert bool(classic_cartpole.is_terminal(ours)) == end
