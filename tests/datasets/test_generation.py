"""Data sets are the same bytes however they came about, and never half-written."""

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from physvision import cli
from physvision.core import DataError, FileError, InputError, UnsupportedError, resources
from physvision.datasets import BilliardsRecipe, Dataset, PendulumRecipe, generate, generation, repair
from physvision.datasets.folder import CHECKSUMS, DESCRIPTION, divide
from physvision.datasets.recipe import integer, real, span

RECIPE = BilliardsRecipe(trials=40, frames=25, size=32, radius=2.0, balls=2)
QUIET = {"workers": 1, "progress": False}


def contents(folder):
    return {entry.name: hashlib.sha256(entry.read_bytes()).hexdigest() for entry in Path(folder).iterdir()}


@pytest.fixture
def whole(tmp_path):
    return generate(RECIPE, tmp_path / "whole", **QUIET)


def test_a_data_set_describes_itself(whole):
    description = json.loads((whole / DESCRIPTION).read_text())
    assert description["name"] == "billiards"
    assert description["recipe"]["radius"] == 2
    assert description["recipe"]["seed"] == 0
    assert description["fields"]["v"]["unit"] == "px/s, px/s, rad/s"
    assert set(description["versions"]) == {"numpy", "physvision", "pyarrow"}
    assert sum(shard["trials"] for shard in description["shards"]) == 40
    text = (whole / DESCRIPTION).read_text()
    assert not any(word in text for word in ("workers", "date", "time stamp", str(whole), os.uname().nodename))
    # The checksums are those of the tool that everyone has.
    subprocess.run(["sha256sum", "--check", "--quiet", CHECKSUMS], cwd=whole, check=True)


@pytest.mark.parametrize(
    ("trials", "frame_bytes", "largest"),
    [(1, 10_000, 1), (40, 3_072, 2), (1_000, 12_288, 32), (10_000, 12_288, 36), (100, 10**9, 1)],
)
def test_shards_are_neither_too_few_nor_too_large(trials, frame_bytes, largest):
    splits = {"train": trials - 2 * (trials // 10), "valid": trials // 10, "test": trials // 10}
    shards = divide(splits, 300, frame_bytes)
    for split, count in splits.items():
        held = [shard for shard in shards if shard.split == split]
        assert [shard.first for shard in held] == list(range(0, count, largest))
        assert sum(shard.trials for shard in held) == count
    assert max(shard.trials for shard in shards) == largest


def test_reading_gives_what_the_recipe_makes(whole):
    for split, count in (("train", 32), ("valid", 4), ("test", 4)):
        dataset = Dataset(whole, split)
        assert len(dataset) == count
        for number in (0, count - 1):
            result = RECIPE.make(split, number)
            np.testing.assert_array_equal(dataset.frames(number), result["frames"])
            for name in dataset.fields:
                np.testing.assert_array_equal(dataset.field(name, number), result[name])
                np.testing.assert_array_equal(dataset.field(name, number, 7, 23), result[name][7:23])


@pytest.mark.extended
def test_scripts_and_workers_make_the_same_bytes(tmp_path):
    """The script's processes do not run the script again."""
    script = resources.find("billiards_one.py", "datasets")
    options = ["--trials", "40", "--frames", "25", "--size", "32", "--workers", "2", "--out", str(tmp_path / "script")]
    environment = {**os.environ, "PYTHONPATH": str(script.parent.parent)}
    subprocess.run([sys.executable, str(script), *options], check=True, env=environment)
    generate(BilliardsRecipe(trials=40, frames=25, size=32, balls=1), tmp_path / "here", **QUIET)
    assert contents(tmp_path / "script") == contents(tmp_path / "here")


def test_the_seed_does_and_the_number_of_trials_does_not_change_a_trial(tmp_path):
    subset, reference = BilliardsRecipe(trials=10, frames=3), BilliardsRecipe(trials=10, frames=3, seed=1)
    many = BilliardsRecipe(trials=1000, frames=3)
    for split in ("train", "valid", "test"):
        assert np.array_equal(subset.make(split, 0)["q"], many.make(split, 0)["q"])
        assert not np.array_equal(subset.make(split, 0)["q"], reference.make(split, 0)["q"])
    assert not np.array_equal(subset.make("train", 0)["q"], subset.make("valid", 0)["q"])
    assert not np.array_equal(subset.make("train", 0)["q"], subset.make("train", 1)["q"])


@pytest.mark.parametrize("minimum", [6, pytest.param(40, marks=pytest.mark.slow)])
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(tmp_path, whole, minimum):
    expected = contents(whole)
    begin = time.perf_counter()
    generate(RECIPE, tmp_path / "timed", **QUIET)
    duration = time.perf_counter() - begin
    random, states, kills = np.random.default_rng(7), set(), 0
    while kills < minimum or (len(states) < 4 and kills < 60):
        out = tmp_path / f"killed{kills}"
        child = os.fork()
        if child == 0:
            generate(RECIPE, out, **QUIET)
            os._exit(0)
        time.sleep(random.uniform(0.0, duration))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left = contents(out) if out.exists() else {}
        states.add(len(left))
        for name, digest in left.items():
            # Whatever has a final name is final; the list of checksums grows.
            assert name.startswith(".") or name == CHECKSUMS or expected[name] == digest
        generate(RECIPE, out, **QUIET)
        assert contents(out) == expected
        shutil.rmtree(out)
        # A busy machine must not let every kill come too late or too early.
        duration *= 0.8 if left == expected else 1.1
        kills += 1
    assert len(states) >= 4  # the kills did come at different stages


def test_workers_end_with_a_killed_parent(tmp_path):
    out = tmp_path / "data"
    arguments = ["generate", "billiards", "--trials", "2000", "--workers", "2", "--out", str(out)]
    process = subprocess.Popen([sys.executable, "-m", "physvision.cli", *arguments], stderr=subprocess.DEVNULL)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 150
    while not list(out.glob("*.arrow")) and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = [int(number) for number in children.read_text().split()]
    assert len(workers) >= 2
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]
    with pytest.raises(DataError, match=r"not complete, .* are missing .*physvision repair"):
        Dataset(out)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "remove"])
def test_a_damaged_shard_is_named_and_made_again_alone(whole, damage):
    expected = contents(whole)
    shard = whole / "train-00003.arrow"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "remove":
        shard.unlink()
    else:
        shard.write_bytes({"flip": data, "cut": data[: len(data) // 2], "empty": b""}[damage])
    dataset = Dataset(whole)
    dataset.frames(0)
    with pytest.raises(DataError, match=r"train-00003\.arrow: the shard is (damaged|missing).*physvision repair"):
        dataset.frames(6)
    untouched = {entry: entry.stat().st_mtime_ns for entry in whole.glob("*.arrow") if entry != shard}
    repair(whole, **QUIET)
    assert contents(whole) == expected
    assert {entry: entry.stat().st_mtime_ns for entry in untouched} == untouched
    Dataset(whole).frames(6)


def test_damage_that_went_unchecked_is_still_a_typed_error(whole):
    shard = whole / "train-00000.arrow"
    shard.write_bytes(shard.read_bytes()[:2000])
    with pytest.raises(DataError, match=r"train-00000\.arrow: the shard is damaged"):
        Dataset(whole, verify=False).frames(0)


def in_child(action):
    """Run `action` in a forked process; its exception, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action()
            os.write(writing, b"nothing was raised")
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    return os.read(reading, 65536).decode()


def test_a_full_disk_leaves_whole_shards_and_no_half_written_file(tmp_path, whole):
    """A limit on file size fails the write in the middle, as a full disk does."""
    out = tmp_path / "full"
    largest = max(entry.stat().st_size for entry in whole.glob("*.arrow"))

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest - 100, largest - 100))
        generate(RECIPE, out, **QUIET)

    assert in_child(fill).startswith("FileError: ")
    left = contents(out)
    assert not [name for name in left if name.startswith(".")]
    assert all(digest == contents(whole)[name] for name, digest in left.items() if name.endswith(".arrow"))
    generate(RECIPE, out, **QUIET)
    assert contents(out) == contents(whole)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")
def test_a_full_file_system(tmp_path, whole):
    out = tmp_path / "mounted"
    out.mkdir()
    size = sum(entry.stat().st_size for entry in whole.iterdir()) // 2
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(out)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with pytest.raises(FileError, match=r"\.arrow: cannot be written \(No space left on device\).*kept"):
            generate(RECIPE, out, **QUIET)
        left = contents(out)
        assert sum(name.endswith(".arrow") for name in left) >= 1
        assert not [name for name in left if name.startswith(".")]
        assert all(digest == contents(whole)[name] for name, digest in left.items() if name.endswith(".arrow"))
    finally:
        subprocess.run(["umount", str(out)], check=True)


def test_a_folder_of_another_recipe_is_left_alone(whole):
    before = contents(whole)
    for entry, match in (
        (BilliardsRecipe(trials=40, frames=25, size=32, radius=2.5, balls=2), "radius 2 there, 2.5 here"),
        (BilliardsRecipe(trials=40, frames=25, size=32, radius=2.0, balls=2, seed=1), "seed 0 there, 1 here"),
        (PendulumRecipe(), "a data set of billiards"),
    ):
        with pytest.raises(DataError, match=match):
            generate(entry, whole, **QUIET)
    assert contents(whole) == before


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"holds other files \(thesis\.tex\) and no data set; nothing was written"):
        generate(RECIPE, tmp_path, **QUIET)
    (tmp_path / "thesis.tex").rename(tmp_path / ".thesis.partial")
    with pytest.raises(DataError, match=r"holds other files \(\.thesis\.partial\)"):
        generate(RECIPE, tmp_path, **QUIET)
    (tmp_path / ".thesis.partial").rename(tmp_path / "thesis.tex")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(FileError, match="there is a file of this name"):
        generate(RECIPE, tmp_path / "thesis.tex", **QUIET)


def test_other_versions_are_named(whole, monkeypatch):
    before = contents(whole)
    monkeypatch.setattr(BilliardsRecipe, "versions", lambda recipe: {"numpy": "0.1"})
    with pytest.raises(DataError, match=r"numpy '.*' there, '0\.1' here"):
        generate(RECIPE, whole, **QUIET)
    assert contents(whole) == before


def test_a_damaged_description_is_found_and_made_again(whole):
    expected = contents(whole)
    text = (whole / DESCRIPTION).read_text()
    (whole / DESCRIPTION).write_text(text.replace('"fps": 30', '"fps": 20'))
    for use in (lambda: Dataset(whole), lambda: repair(whole, **QUIET)):
        with pytest.raises(DataError, match=r"dataset\.json: is damaged"):
            use()
    with pytest.raises(DataError, match=r"dataset\.json: is damaged"):
        generate(PendulumRecipe(), whole, **QUIET)
    generate(RECIPE, whole, **QUIET)
    assert contents(whole) == expected
    (whole / CHECKSUMS).write_text("no checksum\n")
    with pytest.raises(DataError, match=r"checksums\.sha256: cannot be read as checksums"):
        Dataset(whole)
    (whole / CHECKSUMS).unlink()
    generate(RECIPE, whole, **QUIET)
    assert contents(whole) == expected


def test_a_shard_that_cannot_be_made_again_alike_is_not_overwritten(whole):
    checksums = whole / CHECKSUMS
    name = "train-00000.arrow"
    before = (whole / name).read_bytes()
    lines = ["0" * 64 + f"  {name}" if line.endswith(name) else line for line in checksums.read_text().splitlines()]
    checksums.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="other content than recorded"):
        generate(RECIPE, whole, **QUIET)
    assert (whole / name).read_bytes() == before


def test_two_writers_do_not_meet(tmp_path):
    out = tmp_path / "data"
    folder = generation.DataFolder(out)
    with (
        folder.prepared(generation.describe(RECIPE)),
        pytest.raises(DataError, match="another process is writing this data set"),
    ):
        generate(RECIPE, out, **QUIET)


def test_no_data_set_and_other_formats(tmp_path):
    with pytest.raises(FileError, match="holds no data set"):
        Dataset(tmp_path / "none")
    for text in ("not json", "[]", '{"format": "physvision data set 99"}'):
        (tmp_path / DESCRIPTION).write_text(text)
        with pytest.raises(DataError, match=r"dataset\.json: (cannot be read|expected the format)"):
            Dataset(tmp_path)


def test_executors_and_workers_are_checked(tmp_path):
    with pytest.raises(InputError, match="workers"):
        generate(RECIPE, tmp_path / "a", workers=0)
    assert not (tmp_path / "a").exists()


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnsupportedError, match=r"physvision\[ray\]"):
        generate(RECIPE, tmp_path / "a", executor="ray", progress=False)


@pytest.mark.slow
def test_a_ray_cluster_makes_the_same_bytes(tmp_path):
    """The command of one process uses the cluster that another one started, at RAY_ADDRESS."""
    ray = pytest.importorskip("ray", reason="needs physvision[ray]")
    arguments = ["generate", "pendulum", "--trials", "20", "--size", "16", "--frames", "10"]
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        address = ray.get_runtime_context().gcs_address
        command = [
            sys.executable,
            "-m",
            "physvision.cli",
            *arguments,
            "--executor",
            "ray",
            "--out",
            str(tmp_path / "ray"),
        ]
        subprocess.run(command, check=True, env={**os.environ, "RAY_ADDRESS": address})
    finally:
        ray.shutdown()
    assert cli.main([*arguments, "--workers", "1", "--out", str(tmp_path / "here")]) == 0
    assert contents(tmp_path / "ray") == contents(tmp_path / "here")


def test_a_declared_range_is_checked_with_its_ends():
    for declared in (real(1.0, 0), span((1.0, 2.0), 0)):
        check, value = declared.metadata["check"], declared.default
        check("value", np.multiply(value, 0.0).tolist())
        with pytest.raises(InputError, match="value"):
            check("value", np.multiply(value, -1.0).tolist())
    for declared in (real(1.0, 0, exclusive=True), span((1.0, 2.0), 0, exclusive=True)):
        with pytest.raises(InputError, match="above 0"):
            declared.metadata["check"]("value", np.multiply(declared.default, 0.0).tolist())
    with pytest.raises(InputError, match="from 2 to"):
        integer(3, 2).metadata["check"]("value", 1)
