"""Kernels run in processes that were forked from one in which they ran before, and have names for people."""

import os
import subprocess
import sys

import pytest
import torch

from physvision.kernels.launching import describe_kernel
from physvision.kernels.precision import load

FORKING = """
import os, sys, torch
from physvision.core import State
from physvision.kernels import launching
from physvision.physics import articulated

torch.set_num_threads(2)
launching.MIN_THREAD_MICROSECONDS = 1.0
engine = articulated.chain([1.0, 1.0], [1.0, 1.0], dt=0.01)
start = State(torch.ones(64, 2), torch.zeros(64, 2))
before = engine.rollout(start, 50).q
assert launching._pool.cache_info().currsize == 1
child = os.fork()
if child == 0:
    os._exit(0 if torch.equal(engine.rollout(start, 50).q, before) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("contact_rollout_backward", "gradient of rollout (articulated, event contact, float32)"),
        ("rollout", "rollout (articulated, smooth, float32)"),
    ],
)
def test_the_message_of_a_compilation_says_what_is_compiled(name, description):
    assert describe_kernel(getattr(load("physvision.physics.articulated.kernels", torch.float32), name)) == description


@pytest.mark.extended
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_simulates_on_several_cores():
    """Its parent's threads are gone there; a child that waits for them waits for ever."""
    assert subprocess.run([sys.executable, "-c", FORKING], timeout=120, check=False).returncode == 0
