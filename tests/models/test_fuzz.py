"""Checkpoints that somebody tampered with load or are refused by an error of ours; none crashes or asks for much."""

import copy
import json
import random

import pytest
import torch
from models.test_checkpoints import CONFIGURATION
from safetensors.torch import save_file

from physvision.core import CheckpointError
from physvision.models import build, load
from physvision.models.checkpoints import FORMAT

NESTED = json.loads("[" * 200 + "]" * 200)
PART = {"class_path": "physvision.models.MlpEngine", "init_args": {"coordinates": {"size": 2}, "dt": 0.05}}
VALUES = [
    *(None, True, -1, 0, 3, 10**5, 10**12, 2.5, float("nan"), float("inf"), "", "x", "os.system", "<mujoco/>"),
    *([], [1], [1.0] * 900, [[]] * 5, {}, {"a": 1}, {"class_path": "os.system"}, {"class_path": [1]}, NESTED, PART),
    *("physvision.models.table", {"class_path": "physvision.physics.articulated.load", "init_args": {"source": "<"}}),
    {"class_path": "physvision.models.table", "init_args": {"balls": 10**9}},
    {"class_path": "physvision.models.GraphEngine", "init_args": {"coordinates": {"size": 2}, "dt": 1, "bodies": 2}},
]
TENSORS = [
    torch.zeros(0),
    torch.zeros(3, dtype=torch.int8),
    torch.full((16, 64), torch.nan),
    torch.zeros(1).expand(10**6, 10**6),
    torch.zeros(2, 2, dtype=torch.complex64),
    torch.eye(3).to_sparse(),
    torch.empty(10**6, 10**6, device="meta"),
    *(None, [1.0], {"a": torch.zeros(2)}),
]


def places(value, path=()):
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from places(each, (*path, key))


def changed(whole, path, value):
    if not path:
        return value
    other = copy.copy(whole)
    other[path[0]] = changed(whole[path[0]], path[1:], value)
    return other


def refused(tmp_path, count, seed):
    """How many of so many mutations were refused; any other error than ours is one of the test's."""
    chance, found = random.Random(seed), 0
    weights = build(CONFIGURATION).state_dict()
    everywhere = list(places(CONFIGURATION))
    for number in range(count):
        configuration, tensors = CONFIGURATION, dict(weights)
        for _ in range(chance.choice([0, 1, 1, 2])):
            path = chance.choice(everywhere)
            try:
                configuration = changed(configuration, path, chance.choice(VALUES))
            except (KeyError, IndexError, TypeError):
                continue  # the first change took away the second one's place
        training = number % 2
        path = tmp_path / ("bad.ckpt" if training else "bad.safetensors")
        if training:
            if chance.random() < 0.5:
                tensors[chance.choice(list(tensors))] = chance.choice(TENSORS)
            states = {f"model.{name}": value for name, value in tensors.items()}
            torch.save({"state_dict": states, "configuration": json.dumps(configuration)}, path)
        else:
            kept = {name: value.clone() for name, value in tensors.items()}
            save_file(kept, path, {"format": FORMAT, "configuration": json.dumps(configuration)})
        if chance.random() < 0.2:
            data = bytearray(path.read_bytes())
            for _ in range(chance.choice([1, 20])):
                data[chance.randrange(len(data))] = chance.randrange(256)
            path.write_bytes(data)
        try:
            load(path)
        except CheckpointError:
            found += 1
        except Exception as error:
            raise AssertionError(f"{number} of seed {seed}: {configuration!r:.2000}: {error!r:.500}") from error
    return found


def test_mutated_checkpoints_end_in_errors_of_ours(tmp_path):
    assert refused(tmp_path, 150, seed=1) > 50


@pytest.mark.slow
def test_thousands_of_mutated_checkpoints(tmp_path):
    assert refused(tmp_path, 3000, seed=2) > 1000
