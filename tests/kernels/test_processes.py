"""Kernels in several processes: loaders of data after use, and one empty cache that two processes fill."""

import os
import subprocess
import sys

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from physvision.core import State
from physvision.physics.particle import Particle

SPRING = """
import torch
from physvision.core import State
from physvision.physics.particle import Particle

engine = Particle("line", dt=0.01, restoring_coefficient=40.0)
print(engine.rollout(State(torch.ones(1, 1).double(), torch.zeros(1, 1).double()), 100).final.q.item().hex())
"""


class Springs(Dataset):
    """Ends of a spring's motions."""

    def __init__(self):
        self.engine = Particle("line", dt=0.01, restoring_coefficient=40.0)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        start = State(torch.full((512, 1), 0.1 * index).double(), torch.zeros(512, 1).double())
        return self.engine.rollout(start, 50).final.q


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_loader_simulates_after_use(method):
    springs = Springs()
    expected = torch.cat([springs[index] for index in range(8)])
    loader = DataLoader(springs, None, num_workers=2, multiprocessing_context=method, timeout=300)
    assert torch.equal(torch.cat(list(loader)), expected)


def test_two_processes_fill_one_empty_cache(tmp_path):
    environment = os.environ | {"WARP_CACHE_PATH": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", SPRING]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    first, second = (process.communicate(timeout=300) for process in processes)
    assert [process.returncode for process in processes] == [0, 0], first[1] + second[1]
    assert first[0] == second[0]
    assert any(tmp_path.rglob("*.o"))
    assert len(list(tmp_path.glob("*/*"))) == 1  # and no folder that one of them compiled in
