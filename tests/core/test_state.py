"""States and trajectories: pytrees, slices, copies."""

import copy
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from physvision import State, Trajectory
from physvision.core import Status


def status_of_two():
    good = torch.tensor([True, True])
    return Status(good, torch.zeros(2), torch.ones(2, dtype=torch.int32), -torch.ones(2, dtype=torch.int32))


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


def test_the_status_of_good_worlds_is_made_once_and_when_asked():
    result = []

    def make():
        result.append(1)
        return status_of_two()

    status = Status.deferred(make)
    assert status.is_pending
    assert result == []
    assert status.failed() == []
    assert status.first_underresolved_step.tolist() == [-1, -1]
    assert not status.is_pending
    assert result == [1]
    with pytest.raises(AttributeError, match="speed"):
        status.speed  # noqa: B018  it is asked for, which is all
    copies = pickle.loads(pickle.dumps(Status.deferred(make))), copy.deepcopy(Status.deferred(make))
    assert all(entry.residual.tolist() == [0.0, 0.0] for entry in copies)
    values, kind = tree_flatten(Status.deferred(make))
    assert tree_unflatten(values, kind).converged.tolist() == [True, True]


def test_a_status_is_printed_in_a_line():
    status = status_of_two().with_failures(torch.tensor([-1, 3]))
    expected = "Status(2 worlds: 1 failed, 0 underresolved, 0 with a step without a derivative)"
    assert repr(status) == str(Status.deferred(lambda: status)) == expected


def test_the_status_of_a_motion_and_of_what_follows_it_tells_of_both():
    """Four worlds: nothing happens, all before, all after, and both."""
    before = Status(
        converged=torch.tensor([True, False, True, False]),
        residual=torch.tensor([0.0, 0.5, 0.1, 0.3]),
        iterations=torch.tensor([1, 9, 2, 3]),
        first_failed_step=torch.tensor([-1, 3, -1, 4]),
        fallback_steps=torch.tensor([0, 2, 0, 1]),
        first_underresolved_step=torch.tensor([-1, 2, -1, 5]),
        first_grazing_step=torch.tensor([-1, 1, -1, 6]),
        regularized_impacts=torch.tensor([0, 3, 0, 4]),
        penetration=torch.tensor([0.0, 0.02, 0.01, 0.04]),
    )
    after = Status(**{name: value[[0, 2, 1, 3]] for name, value in vars(before).items()})
    target = {
        "converged": [True, False, False, False],
        "residual": [0.0, 0.5, 0.5, 0.3],
        "iterations": [1, 9, 9, 3],
        "first_failed_step": [-1, 3, 13, 4],
        "fallback_steps": [0, 2, 2, 2],
        "first_underresolved_step": [-1, 2, 12, 5],
        "first_grazing_step": [-1, 1, 11, 6],
        "regularized_impacts": [0, 3, 3, 8],
        "penetration": [0.0, 0.02, 0.02, 0.04],
    }
    whole = before.then(after, 10)
    assert vars(whole).keys() == target.keys()
    for name, values in target.items():
        assert torch.equal(getattr(whole, name), torch.tensor(values)), name


def test_threads_may_ask_one_deferred_status():
    gate = threading.Barrier(4)

    def slow():
        time.sleep(0.002)
        return status_of_two()

    def ask(status):
        gate.wait(10)
        return status.residual.tolist(), status.first_grazing_step.tolist()

    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            status = Status.deferred(slow)
            assert list(pool.map(ask, [status] * 4)) == [([0.0, 0.0], [-1, -1])] * 4
