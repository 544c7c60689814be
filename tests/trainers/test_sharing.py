"""Lightning Fabric, and parameters that are sharded by `fully_shard`: the updates are those of a loop of torch's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning.fabric import Fabric
from torch import distributed
from trainers.shared_training import updates
from trainers.small import SIZE, configuration

from physvision.models import build


@pytest.fixture
def group():
    """A group of this process alone."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def test_fabric_updates_as_torch():
    _compare(updates("fabric"))
    model = Fabric(accelerator="cpu", devices=1).setup(build(configuration()))
    with pytest.raises(ValueError, match="frozen dataclass"):
        model(torch.rand(1, 3, 1, SIZE, SIZE), 2)


@pytest.mark.usefixtures("group")
def test_a_sharded_model_updates_as_a_whole_one():
    _compare(updates("fsdp"))


@pytest.mark.extended
@pytest.mark.parametrize("way", ["fabric", "fsdp"])
def test_two_processes_update_as_one(way, tmp_path):
    """Each has half the clips."""
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m", "trainers.shared_training"]
    weights = tmp_path / "weights.pt"
    done = subprocess.run(
        [sys.executable, *command, way, str(weights)],
        capture_output=True,
        text=True,
        timeout=200,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[1:3])),
            "OMP_NUM_THREADS": "1",
        },
    )
    # Gloo's threads may abort a process that has ended its work, so that the exit code tells nothing.
    assert weights.exists(), done.stderr[-3000:]
    _compare(torch.load(weights))


def _compare(weights):
    """With those of a loop in this process, which moves every parameter."""
    expected, start = updates("torch"), updates("torch", steps=0)
    assert expected.keys() == weights.keys()
    for name, value in expected.items():
        assert not value.equal(start[name]), name
        # Means of halves are summed in another order.
        torch.testing.assert_close(weights[name], value, rtol=1e-5, atol=1e-8)
