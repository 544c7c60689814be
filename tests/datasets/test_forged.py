"""Data sets that somebody tampered with, checksums included, are refused by an error that says so; nothing crashes."""

import copy
import hashlib
import json
import random
import shutil
from contextlib import suppress

import pytest

from physvision.core import DataError, PhysvisionError
from physvision.datasets import BilliardsRecipe, Dataset, Windows, WindowShape, generate, repair, show
from physvision.datasets.folder import CHECKSUMS, DESCRIPTION

VALUES = [None, -1, 0, 2**40, 1.5, True, "x", "../x", [], [1], {}, {"a": 1}]


def use(folder):
    """Whatever people do with a data set."""
    data = Dataset(folder, verify=False)
    data.frames(0)
    data.trajectory(0)
    for name in data.fields:
        data.field(name, 0, 3, 20)
    repr(Windows(data, WindowShape(2, 3))[0])
    show(folder, folder / "sheet.png", frames=2)
    repair(folder, workers=1, progress=False)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    recipe = BilliardsRecipe(trials=10, frames=25, size=16, radius=2.0, balls=1)
    folder = generate(recipe, tmp_path_factory.mktemp("good") / "data", workers=1, progress=False)
    use(shutil.copytree(folder, folder.with_name("copy")))
    return folder


def places(value, path=()):
    """Where something could be put into plain values."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from places(each, (*path, key))


def changed(description, path, value):
    other = copy.deepcopy(description)
    if not path:
        return value
    inner = other
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return other


def forge(folder, description):
    """Write a description, with the checksums of somebody who knows how."""
    (folder / DESCRIPTION).write_text(json.dumps(description))
    files = sorted(path for path in folder.iterdir() if path.name != CHECKSUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / CHECKSUMS).write_text("".join(lines))


def tries(folder, tmp_path, count, seed):
    """How many forged descriptions were refused."""
    chance, refused = random.Random(seed), 0
    description = json.loads((folder / DESCRIPTION).read_text())
    everywhere = list(places(description))
    for number in range(count):
        forged = tmp_path / "forged"
        shutil.rmtree(forged, ignore_errors=True)
        shutil.copytree(folder, forged)
        path, value = chance.choice(everywhere), chance.choice(VALUES)
        forge(forged, changed(description, path, value))
        try:
            use(forged)
        except PhysvisionError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{number}: {path} = {value!r}: {error!r}") from error
    return refused


def test_forged_descriptions_end_in_errors_of_ours(good, tmp_path):
    assert tries(good, tmp_path, 60, seed=1) > 30


@pytest.mark.slow
def test_a_thousand_forged_descriptions(good, tmp_path):
    assert tries(good, tmp_path, 1000, seed=2) > 500


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("shards", 0, "file"), "../../elsewhere", r"expected a plain file name, got '\.\./\.\./elsewhere'"),
        (("shards", 1, "first"), 7, "does not follow the one before it"),
        (("frame_format", "height"), "16", r"frame_format\.height: expected int, got '16'"),
        (("fields", "q", "shape"), [1, -3], "expected frames and fields of 1 to"),
        (("recipe",), 3, r"description\.recipe: expected a mapping, got 3"),
    ],
)
def test_what_is_wrong_with_a_description_is_said(good, tmp_path, path, value, match):
    forged = shutil.copytree(good, tmp_path / "forged")
    description = json.loads((forged / DESCRIPTION).read_text())
    forge(forged, changed(description, path, value))
    with pytest.raises(DataError, match=match):
        Dataset(forged)


@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=pytest.mark.slow)])
def test_forged_shards_give_the_truth_or_an_error(good, tmp_path, count):
    """Bytes are changed where lengths and offsets stand; what is read is never beyond the file."""
    chance, forged = random.Random(count), shutil.copytree(good, tmp_path / "forged")
    shard = forged / "train-00000.arrow"
    whole = shard.read_bytes()
    for _ in range(count):
        data, size = bytearray(whole), chance.choice([1, 2, 4, 8])
        at = chance.choice([chance.randrange(len(data) - 8), len(data) - 8 - chance.randrange(2500)])
        data[at : at + size] = chance.choice([bytes(size), b"\xff" * size, chance.randbytes(size)])
        shard.write_bytes(data)
        dataset = Dataset(forged, verify=False)
        with suppress(DataError):
            assert dataset.frames(0).shape == (25, 16, 16, 3)
            assert dataset.field("q", 0).shape == (25, 1, 3)
            dataset.field("masses", 0)


def test_another_type_of_column_is_refused(good, tmp_path):
    forged = shutil.copytree(good, tmp_path / "forged")
    description = json.loads((forged / DESCRIPTION).read_text())
    forge(forged, changed(description, ("frame_format", "width"), 4096))
    with pytest.raises(DataError, match="expected the columns"):
        Dataset(forged).frames(0)
