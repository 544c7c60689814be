"""Tests of the limit of work and memory."""

from __future__ import annotations

import cProfile
import sys

import pytest
import torch

from physvision.core import InputError
from physvision.core.memory_limit import Budget


def test_the_profiler_of_the_caller_goes_on_after_a_budget():
    with cProfile.Profile() as profile:
        with Budget(10, 10**6):
            torch.zeros(3)
        assert isinstance(sys.getprofile(), cProfile.Profile)
        torch.ones(3).sum().item()
    names = {entry.code if isinstance(entry.code, str) else entry.code.co_name for entry in profile.getstats()}
    assert any("item" in name for name in names)


def test_the_profiler_of_the_caller_goes_on_after_too_much_work():
    def work():
        return [step() for _ in range(20_000)]

    def step():
        return None

    with cProfile.Profile(), pytest.raises(InputError, match="more than 10,000 calls"), Budget(10, 10**4):
        work()
    assert sys.getprofile() is None


@pytest.mark.parametrize("limit", ["calls", "numbers"])
def test_what_goes_on_after_errors_is_ended_too(limit):
    """Constructors turn a ValueError into another, and annotations have alternatives; neither outlives the limit."""

    errors = []

    def step():
        return torch.zeros(4) if limit == "numbers" else None

    def work():
        for _ in range(200_000):
            try:
                step()
            except Exception as error:
                errors.append(error)

    calls = 10**3 if limit == "calls" else 10**9
    with pytest.raises(InputError, match=f"more than 1,000 {limit}"), Budget(1000, calls):
        work()
    assert not errors
