"""Descriptions of data sets that are damaged or hostile end in a typed error, at once."""

import copy
import json
import random
import time

import pytest

from physvision import cli
from physvision.core import PhysvisionError
from physvision.datasets import Dataset, PendulumRecipe, generate
from physvision.datasets.folder import CHECKSUMS, DESCRIPTION
from physvision.datasets.registry import faults, recipe_of, repair

ODD = [
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x" * 300,
    "../../a",
    "[/a]",
    [],
    [[]],
    {},
    {"a": 1},
]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    recipe = PendulumRecipe(trials=10, frames=14, size=8, samples=1)
    return generate(recipe, tmp_path_factory.mktemp("data"), workers=1, progress=False)


def places(value, path=()):
    """Paths of all values in a nested description."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in pairs:
        yield from places(entry, (*path, key))


def mutated(description, random):
    """A description with one value that is odd, missing, or of another place."""
    changed = copy.deepcopy(description)
    *way, key = random.choice([path for path in places(changed) if path])
    target = changed
    for step in way:
        target = target[step]
    kind = random.randrange(3)
    if kind == 0:
        target[key] = random.choice(ODD)
    elif kind == 1:
        del target[key]
    else:
        target[key] = copy.deepcopy(description[random.choice(list(description))])
    return changed


def nested(depth):
    return f"{'[' * depth}{']' * depth}"


def test_mutated_descriptions_end_in_a_typed_error(small, tmp_path):
    description, chance = json.loads((small / DESCRIPTION).read_text()), random.Random(4)
    folder = tmp_path / "set"
    folder.mkdir()
    for shard in description["shards"]:
        (folder / shard["file"]).symlink_to(small / shard["file"])
    checksums = [line for line in (small / CHECKSUMS).read_text().splitlines() if not line.endswith(DESCRIPTION)]
    (folder / CHECKSUMS).write_text("\n".join(checksums) + "\n")
    texts = [json.dumps(mutated(description, chance)) for _ in range(400)]
    texts += [nested(100_000), "{" * 1000, "9" * 10_000, '{"format": ' + nested(5000) + "}"]
    loaded = 0
    for text in texts:
        (folder / DESCRIPTION).write_text(text)
        start = time.process_time()
        for read in (
            lambda: Dataset(folder).frames(0),
            lambda: faults(folder),
            lambda: recipe_of(Dataset(folder).folder.description()),
        ):
            try:
                read()
                loaded += 1
            except PhysvisionError:
                pass
        assert time.process_time() - start < 20
    # Some changes, such as that of a version, leave a data set that can be read.
    assert 0 < loaded < 3 * len(texts)


def test_a_shard_lies_in_its_folder(small, tmp_path):
    description = json.loads((small / DESCRIPTION).read_text())
    description["shards"][0]["file"] = "../outside.arrow"
    (tmp_path / DESCRIPTION).write_text(json.dumps(description))
    with pytest.raises(PhysvisionError, match=r"shards\[0\]|file: expected the name of a file"):
        Dataset(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"), [("trials", 10**30), ("trials", 10**12), ("frames", 10**9), ("size", 10**6)]
)
def test_counts_of_a_recipe_are_bounded(small, tmp_path, name, value, capsys):
    description = json.loads((small / DESCRIPTION).read_text())
    description["recipe"][name] = value
    (tmp_path / DESCRIPTION).write_text(json.dumps(description))
    with pytest.raises(PhysvisionError, match="frame_format" if name == "size" else name):
        repair(tmp_path, progress=False)
    assert cli.main(["generate", "pendulum", "--out", str(tmp_path / "new"), f"--{name}", str(value)]) == 1
    assert "expected" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
