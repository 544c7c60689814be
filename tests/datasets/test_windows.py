"""Samples are the right frames and states, labels are nested, ranks share the shards, Lightning can learn from it."""

# pyright: reportAttributeAccessIssue=false

import os
import pickle
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils.data import DataLoader

import physvision  # noqa: F401  makes lightning importable beside a torch without CUDA

import lightning  # isort: skip

from physvision.core import DataError, InputError, brightness
from physvision.datasets import (
    BilliardsRecipe,
    DataModule,
    Dataset,
    LabelSettings,
    PendulumRecipe,
    ShardSampler,
    Windows,
    WindowShape,
    generate,
)
from physvision.datasets.shards import RecentGroups
from physvision.datasets.windows import random_stream

RECIPE = BilliardsRecipe(trials=40, frames=25, size=32, radius=2.0, balls=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sixteen training shards of two trials each."""
    return generate(RECIPE, tmp_path_factory.mktemp("data"), workers=1, progress=False)


def same(sample_a, sample_b):
    """Whether two samples are equal, NaN included."""
    (parts, structure), (rest, other_structure) = (pytree.tree_flatten(sample) for sample in (sample_a, sample_b))
    return structure == other_structure and all(
        torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0)) for a, b in zip(parts, rest, strict=True)
    )


@pytest.mark.parametrize("shape", [WindowShape(), WindowShape(2, 4), WindowShape(1, 1, stride=5)])
def test_windows_hold_the_frames_and_states_that_their_shape_says(folder, shape):
    windows = Windows(Dataset(folder), shape)
    assert len(windows) == 32 * len(range(0, 25 - shape.span + 1, shape.stride))
    indices = [0, 7, len(windows) // 2, len(windows) - 1]
    batch = windows.__getitems__(indices)
    for row, index in enumerate(indices):
        trial, start = int(batch.trial[row]), int(batch.start[row])
        assert (trial, start) == windows.locate(index)
        result = RECIPE.make("train", trial)
        target, last = range(start, start + shape.span), start + shape.frames_in - 1
        np.testing.assert_array_equal(batch.frames[row].permute(0, 2, 3, 1).numpy(), result["frames"][target])
        np.testing.assert_array_equal(batch.observed[row, -1].permute(1, 2, 0), result["frames"][last])
        steps = [0, shape.horizon]
        np.testing.assert_array_equal(
            batch.frames_at(steps)[row].permute(0, 2, 3, 1), result["frames"][[last, last + shape.horizon]]
        )
        for name in ("q", "v"):
            expected = result[name][target].reshape(len(target), -1).astype(np.float32)
            np.testing.assert_array_equal(getattr(batch.trajectory, name)[row], expected)
            np.testing.assert_array_equal(getattr(batch.ahead, name)[row], expected[shape.frames_in - 1 :])
        assert same(windows[index], batch[row])
    assert (batch.batch, batch.given, batch.horizon) == (4, shape.frames_in, shape.horizon)
    assert batch.trajectory.dt == pytest.approx(1 / 30)


def test_labels_are_nested_and_hidden_where_there_are_none(folder):
    before = np.zeros(0)
    for fraction in (0.0, 0.02, 0.1, 0.25, 1.0):
        windows = Windows(Dataset(folder), labels=LabelSettings(fraction))
        # Trials are labeled as a whole: a fraction of 32 trials of 13 windows each.
        by_trial = windows.labeled.reshape(32, 13)
        assert (by_trial.all(1) == by_trial.any(1)).all()
        assert by_trial.all(1).sum() == round(fraction * 32)
        assert set(before) <= set(np.flatnonzero(windows.labeled))
        before = np.flatnonzero(windows.labeled)
    windows = Windows(Dataset(folder), labels=LabelSettings(0.25))
    batch = windows.__getitems__(list(range(len(windows))))
    for values in (batch.trajectory.q, batch.trajectory.v):
        known = torch.isfinite(values).flatten(1)
        assert torch.equal(known.all(1), batch.labeled)
        assert torch.equal(known.any(1), batch.labeled)
    reference = Windows(Dataset(folder), labels=LabelSettings(0.25, 1))
    assert not np.array_equal(windows.labeled, reference.labeled)
    assert np.array_equal(windows.labeled, Windows(Dataset(folder), labels=LabelSettings(0.25)).labeled)


def test_properties_are_those_of_the_trial_and_hidden_with_the_states(folder):
    dataset = Dataset(folder)
    windows = Windows(dataset, labels=LabelSettings(0.5), given_properties=("radius",))
    indices = list(range(0, len(windows), 7))
    batch = windows.__getitems__(indices)
    assert set(batch.properties) == {"mass", "radius", "restitution", "sliding_deceleration"}
    assert batch.labeled.any()
    assert not batch.labeled.all()
    for row, trial in enumerate(batch.trial.tolist()):
        result = RECIPE.make("train", trial)
        for name, values in batch.properties.items():
            expected = (
                result[name][0] if batch.labeled[row] or name == "radius" else np.full_like(result[name][0], np.nan)
            )
            np.testing.assert_array_equal(values[row], expected.astype(np.float32))
            np.testing.assert_array_equal(dataset.properties(trial)[name], result[name][0])
    assert same(windows.__getitems__(indices[3:5]), batch[3:5])
    assert batch.to("meta").properties["mass"].device.type == "meta"
    assert batch.extrinsics is batch.masks is None


def test_clips_and_trajectories_are_those_of_the_trial(folder):
    dataset, result = Dataset(folder, "valid"), RECIPE.make("valid", 1)
    clip, trajectory = dataset.clip(1, 5, 20), dataset.trajectory(1, 5, 20)
    np.testing.assert_array_equal(clip.frames, result["frames"][5:20])
    np.testing.assert_allclose(clip.times, np.arange(5, 20) / 30)
    np.testing.assert_array_equal(trajectory.q[0], result["q"][5:20].reshape(15, -1))
    assert trajectory.steps == 14
    assert trajectory.v.dtype == torch.float64


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 16, 20])
def test_ranks_read_everything_and_share_no_shard(folder, ranks):
    windows = Windows(Dataset(folder))
    dataset = windows.dataset
    samplers = [ShardSampler(windows, rank=rank, ranks=ranks, seed=4) for rank in range(ranks)]
    assert len({len(sampler) for sampler in samplers}) == 1
    epochs = []
    for epoch in (0, 1):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        read = [list(sampler) for sampler in samplers]
        assert all(len(indices) == len(sampler) for indices, sampler in zip(read, samplers, strict=True))
        assert set().union(*map(set, read)) == set(range(len(windows)))
        if ranks <= 16:
            held = [{dataset.shard_of(windows.locate(index)[0]) for index in indices} for indices in read]
            assert sum(map(len, held)) == 16
        epochs.append(read)
    assert epochs[0] != epochs[1]
    assert list(ShardSampler(windows, 0, ranks, shuffle=False)) == sorted(
        ShardSampler(windows, 0, ranks, shuffle=False)
    )


@pytest.mark.parametrize(("fraction", "target_share"), [(0.1, 0.5), (0.02, 1.0), (0.5, 0.25), (0.0, 0.5), (1.0, 0.5)])
def test_labels_come_again_until_they_have_their_share(folder, fraction, target_share):
    windows = Windows(Dataset(folder), labels=LabelSettings(fraction, batch_fraction=target_share))
    sampler = ShardSampler(windows)
    read = np.array(list(sampler))
    labeled = windows.labeled[read]
    assert len(read) == len(windows)
    assert labeled.sum() == max(windows.labeled.sum(), round(target_share * len(windows)) if fraction else 0)
    times = np.bincount(read, minlength=len(windows))
    assert np.ptp(times[windows.labeled]) <= 1 if fraction else True
    assert times[~windows.labeled].max(initial=0) <= 1
    # Mixed: no quarter of the epoch is short of them.
    quarters = [part.mean() for part in np.array_split(labeled, 4)]
    assert np.allclose(quarters, labeled.mean(), atol=4 * np.sqrt(0.25 / (len(read) / 4)))


@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize("ranks", [1, 2, 3, 20])
@pytest.mark.parametrize(("fraction", "target_share"), [(0.1, 0.0), (0.5, 0.0), (0.1, 0.5)])
def test_every_batch_has_its_share_of_labels(folder, seed, ranks, fraction, target_share):
    """Over epochs, seeds and ranks, also where one seed chooses the labels and the order."""
    windows = Windows(Dataset(folder), labels=LabelSettings(fraction, seed, target_share))
    expected = max(windows.labeled.mean(), target_share)
    samplers = [ShardSampler(windows, rank, ranks, seed=seed) for rank in range(ranks)]
    assert len({len(sampler) for sampler in samplers}) == 1
    for epoch in range(4):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        labels = [windows.labeled[list(sampler)] for sampler in samplers]
        # A rank rounds its numbers of labeled and of unlabeled windows to whole ones, or to whole shards.
        slack = 28 / len(samplers[0])
        assert all(abs(known.mean() - expected) <= slack for known in labels)
        for known in labels:
            for size in (8, 16):
                counts = np.convolve(known, np.ones(size), "valid")
                assert np.abs(counts - size * known.mean()).max(initial=0) < 1


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_stratified_epoch_goes_on_where_it_was(folder, ranks):
    windows = Windows(Dataset(folder), labels=LabelSettings(0.25))
    sampler = ShardSampler(windows, ranks - 1, ranks)
    sampler.set_epoch(3)
    whole = list(sampler)
    sampler.skipped = 48
    assert list(sampler) == whole[48:]
    assert list(sampler) == whole


def test_labels_and_order_have_streams_of_their_own():
    """Seeds pad with zeros: 0, (0, 0) and (0, 0, 0) are one seed to NumPy."""
    streams = [("labels",), ("shards", 0), ("shards", 1), ("order", 0, 0), ("order", 0, 1), ("order", 1, 0)]
    draws = {tuple(random_stream(0, *stream).integers(2**32, size=4)) for stream in streams}
    assert len(draws) == len(streams)


def test_loader_workers_read_the_same(folder):
    windows = Windows(Dataset(folder))
    windows[0]  # opened before the workers start
    loaders = [DataLoader(windows, 64, num_workers=count) for count in (0, 2)]
    for here, there in zip(*loaders, strict=True):
        assert same(here, there)
    assert same(pickle.loads(pickle.dumps(windows))[3], windows[3])


def test_a_cache_drops_the_oldest_group_beyond_its_capacity():
    cache = RecentGroups(capacity=2)
    for index in range(3):
        cache.store(("a", "training", index), {"q": np.array([index])})
    assert [index for _, _, index in cache] == [1, 2]
    assert pickle.loads(pickle.dumps(cache)).capacity == 2


def test_samples_are_batches_however_they_are_loaded(folder):
    windows = Windows(Dataset(folder))
    (whole,) = islice(DataLoader(windows, 4), 1)
    assert same(whole, windows.__getitems__([0, 1, 2, 3]))
    # A data set that only knows single windows, and no batches at all.
    assert same(next(iter(DataLoader([windows[k] for k in range(4)], 4))), whole)
    assert same(next(iter(DataLoader(windows, batch_size=None))), whole[0])
    assert same(whole[1:3], whole[[1, 2]])
    assert same(whole[-1], windows[3])
    assert whole.to("meta").trajectory.q.device.type == "meta"
    assert whole.to("meta").given == 3
    moved = lightning.pytorch.utilities.move_data_to_device(whole, torch.device("meta"))
    assert moved.frames.device.type == moved.labeled.device.type == "meta"
    with pytest.raises(IndexError):
        whole[4]


def test_they_say_what_they_are(folder):
    dataset = Dataset(folder, "valid")
    predicted = repr(dataset)
    assert predicted.startswith("Dataset(billiards, valid: 4 trials, 100 frames of 32 x 32 x 3 at 30 fps, fields q, v,")
    assert str(folder) in predicted
    windows = Windows(dataset, WindowShape(2, 4), LabelSettings(0.5))
    assert repr(windows) == f"Windows(80 of 2 + 4 frames, 40 of them labeled, {predicted})"


class Brightness(lightning.LightningModule):
    """Learns the mean brightness of the target; remembers what it was given."""

    def __init__(self):
        super().__init__()
        self.level = torch.nn.Parameter(torch.zeros(()))
        self.reads, self.labels = [], []

    def training_step(self, batch, index):
        assert batch.frames.dtype == torch.uint8
        self.reads += list(zip(batch.trial.tolist(), batch.start.tolist(), strict=True))
        self.labels += batch.labeled.tolist()
        return ((brightness(batch.frames_at([batch.horizon])).mean((1, 2, 3, 4)) - self.level) ** 2).mean()

    def validation_step(self, batch, index):
        assert batch.labeled.all()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.2)


def test_lightning_learns_from_it(folder, tmp_path):
    module = Brightness()
    data = DataModule(str(folder), batch_size=32, labels=LabelSettings(0.1))
    options = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    lightning.Trainer(max_epochs=2, accelerator="cpu", default_root_dir=tmp_path, **options).fit(
        module, datamodule=data
    )
    windows = data.windows("train")
    assert len(module.reads) == 2 * len(windows)
    first, second = module.reads[: len(windows)], module.reads[len(windows) :]
    assert len(set(first)) == len(set(second)) == len(windows)
    assert first != second
    assert sum(module.labels) == 2 * 13 * round(0.1 * 32)
    # Two discs of radius 2 with one channel of three lit each.
    expected = 2 * np.pi * 4 / 32**2 * np.array(RECIPE.ball_colors()).sum(1).mean() / 3
    assert module.level.item() == pytest.approx(expected, rel=0.02)


RANKS = """
import os, sys, torch
from physvision.datasets import DataModule
torch.distributed.init_process_group("gloo")
data = DataModule(sys.argv[1], batch_size=16)
data.setup("fit")
shards = {data.windows("train").dataset.shard_of(int(t)) for batch in data.train_dataloader() for t in batch.trial}
with open(os.path.join(sys.argv[2], os.environ["RANK"]), "w") as file:
    file.write(" ".join(map(str, sorted(shards))))
torch.distributed.barrier()
"""


@pytest.mark.slow
def test_torchrun_gives_each_rank_its_shards(folder, tmp_path):
    (tmp_path / "script.py").write_text(RANKS)
    out = tmp_path / "out"
    out.mkdir()
    arguments = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(tmp_path / "script.py")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *arguments, str(folder), str(out)]
    # Gloo's threads may abort a process that has ended its work: what the processes wrote tells, not the exit code.
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert len(list(out.iterdir())) == 2, done.stderr[-3000:]
    shards = [set(map(int, (out / str(rank)).read_text().split())) for rank in range(2)]
    assert shards[0] | shards[1] == set(range(16))
    assert not shards[0] & shards[1]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda data: Windows(data, WindowShape(3, 30)), "windows of 33 frames do not fit .* has 25"),
        (lambda data: WindowShape(frames_in=0), "frames_in"),
        (lambda data: WindowShape(horizon=0), "horizon"),
        (lambda data: Windows(data, labels=LabelSettings(1.5)), "labels.fraction"),
        (lambda data: Windows(data, labels=LabelSettings(float("nan"))), "labels.fraction"),
        (lambda data: Windows(data, given_properties=["walls"]), "has mass, radius, .* there is no 'walls'"),
        (lambda data: Windows(data, masks=True), "was made without masks"),
        (lambda data: data.frames(99), "trial: expected 0 to 31"),
        (lambda data: data.frames(0, 5, 26), "stop <= 25"),
        (lambda data: data.field("masses", 0), "there is no 'masses'"),
        (lambda data: Dataset(data.folder.path, "training"), "train, valid, test"),
    ],
)
def test_bad_requests_raise(folder, call, match):
    with pytest.raises(InputError, match=match):
        call(Dataset(folder))


def test_a_split_without_trials_is_named(tmp_path):
    out = generate(PendulumRecipe(trials=2, frames=20, size=8, samples=1), tmp_path / "few", workers=1, progress=False)
    with pytest.raises(DataError, match="has no trials for valid"):
        DataModule(str(out)).setup("fit")


def test_too_small_a_fraction_is_named(folder):
    with pytest.raises(
        InputError, match=r"labels\.fraction: 0.01 of the 32 trials of train is none; use at least 0.0312"
    ):
        Windows(Dataset(folder), labels=LabelSettings(0.01))


def test_nothing_labeled_leaves_nothing_to_learn_from(folder):
    with pytest.raises(InputError, match=r"labels\.fraction"):
        ShardSampler(Windows(Dataset(folder), labels=LabelSettings(0, batch_fraction=1)))
