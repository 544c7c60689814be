"""States and trajectories: pytrees, slices, copies."""

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from physvision import State, Trajectory


def trajectory(batch=2, steps=3):
    q = torch.arange(batch * (steps + 1) * 2.0).reshape(batch, steps + 1, 2)
    return Trajectory(q, -q)


def test_states_and_trajectories_are_pytrees():
    for value in (State(torch.ones(1, 2), torch.zeros(1, 2)), trajectory()):
        flat, spec = tree_flatten(value)
        again = tree_unflatten([2 * leaf for leaf in flat], spec)
        assert type(again) is type(value)
        assert torch.equal(again.q, 2 * value.q)


def test_states_of_a_trajectory():
    path = trajectory()
    assert (path.batch, path.steps) == (2, 3)
    assert torch.equal(path.state(0).q, path.q[:, 0])
    assert torch.equal(path.final.v, path.state(3).v)
    flat = path.flatten()
    assert flat.batch == 8
    assert torch.equal(flat.q[:4], path.q[0])


def test_repeated_worlds_stand_next_to_each_other():
    state = State(torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]]))
    assert state.repeat(2).q.flatten().tolist() == [1.0, 1.0, 2.0, 2.0]
    assert state.to(torch.float64).v.dtype == torch.float64
    tracked = State(state.q.requires_grad_(), state.v)
    assert not tracked.detach().q.requires_grad
