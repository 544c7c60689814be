"""One's own video as a data set, and pictures of what is in one."""

import math

import cv2
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from physvision import cli, video
from physvision.core import Clip, DataError, FileError, InputError, VideoError
from physvision.datasets import (
    BilliardsRecipe,
    DataModule,
    Dataset,
    PendulumRecipe,
    generate,
    import_video,
    repair,
    show,
)
from physvision.datasets.importing import summarize
from physvision.video.overlay import Arrow, CircleOutline, Polyline, draw_overlay, image_grid

QUIET = {"progress": False}


def numbered(count, height=24, width=32):
    """Frames that say which they are: a level and a moving dot."""
    frames = np.zeros((count, height, width, 3), np.uint8)
    frames[..., 0] = np.arange(count)[:, None, None] % 251
    for number, frame in enumerate(frames):
        frame[5:9, number % (width - 4) : number % (width - 4) + 4, 1] = 255
    return frames


@pytest.fixture
def movie(tmp_path):
    return video.write(tmp_path / "own.mkv", numbered(230), 25, lossless=True)


def test_every_frame_arrives_once_and_in_order(movie, tmp_path):
    out = import_video(movie, tmp_path / "data", trial_frames=20, **QUIET)
    splits = [Dataset(out, split) for split in ("train", "valid", "test")]
    assert [len(split) for split in splits] == [10, 1, 1]
    observed = np.concatenate([split.frames(trial) for split in splits for trial in range(len(split))])
    np.testing.assert_array_equal(observed, numbered(230))
    assert splits[2].lengths() == [10]
    assert splits[0].fps == 25


@pytest.mark.parametrize(
    ("count", "lengths"),
    [
        (25, ([25], [], [])),
        (39, ([13], [13], [13])),
        (100, ([34], [34], [32])),
        (230, ([33] * 5, [33], [32])),
        (400, ([40] * 8, [40], [40])),
    ],
)
def test_short_clips_have_trials_to_validate_and_test(tmp_path, count, lengths):
    movie = video.write(tmp_path / "own.mkv", numbered(count), 25, lossless=True)
    out = import_video(movie, tmp_path / "data", **QUIET)
    splits = [Dataset(out, split) for split in ("train", "valid", "test")]
    assert tuple(split.lengths() for split in splits) == lengths
    observed = np.concatenate([split.frames(trial) for split in splits for trial in range(len(split))])
    np.testing.assert_array_equal(observed, numbered(count))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_imported_clip_is_there_to_learn_from(movie, tmp_path, workers):
    """The clip has no states: samples are frames alone, in every way in which they are loaded."""
    data = DataModule(str(import_video(movie, tmp_path / "data", **QUIET)), batch_size=16, workers=workers)
    data.setup("fit")
    batches = list(data.train_dataloader())
    assert sum(batch.batch for batch in batches) == 5 * (33 - 12)
    assert all(batch.trajectory is None and batch.properties is None and batch.ahead is None for batch in batches)
    assert not batches[0].labeled.any()
    assert batches[0].to("meta").frames.device.type == "meta"
    assert batches[0][2:5].batch == 3
    windows = data.windows("valid")
    single = next(iter(DataLoader([windows[k] for k in range(4)], 4)))
    assert torch.equal(single.frames, windows.__getitems__([0, 1, 2, 3]).frames)


@pytest.mark.parametrize(("fps", "step"), [(12.5, 2), (5, 5), (25, 1)])
def test_lower_frame_rates_take_the_frames_at_those_times(movie, tmp_path, fps, step):
    out = import_video(movie, tmp_path / "data", fps=fps, trial_frames=1000, **QUIET)
    levels = Dataset(out).frames(0)[:, 0, 0, 0]
    np.testing.assert_array_equal(levels, np.arange(0, 230, step) % 251)


def test_a_higher_frame_rate_repeats_frames(movie, tmp_path):
    out = import_video(movie, tmp_path / "data", fps=50, trial_frames=1000, **QUIET)
    levels = Dataset(out).frames(0)[:, 0, 0, 0].astype(int)
    assert np.abs(levels - np.arange(len(levels)) / 2).max() <= 1
    assert abs(len(levels) - 460) <= 1


def test_a_variable_frame_rate_is_sampled_in_time(tmp_path):
    times = torch.cumsum(torch.tensor([0.0, *([0.1] * 10), *([0.02] * 50)], dtype=torch.float64), 0)
    movie = video.write(tmp_path / "own.mkv", Clip(torch.from_numpy(numbered(61)), times), lossless=True)
    out = import_video(movie, tmp_path / "data", fps=10, **QUIET)
    levels = Dataset(out).frames(0)[:, 0, 0, 0].astype(int)
    expected = [int((times - index / 10).abs().argmin()) for index in range(len(levels))]
    assert len(levels) in (20, 21)
    np.testing.assert_array_equal(levels, expected)


def test_a_folder_of_pictures_becomes_a_data_set(tmp_path):
    (tmp_path / "pictures").mkdir()
    for number, frame in enumerate(numbered(25)):
        cv2.imwrite(str(tmp_path / "pictures" / f"{number}.png"), frame[..., ::-1])
    dataset = Dataset(import_video(tmp_path / "pictures", tmp_path / "data", fps=25, **QUIET))
    np.testing.assert_array_equal(dataset.frames(0), numbered(25))
    assert dataset.fps == 25


def test_crop_size_and_gray(movie, tmp_path):
    cropped = Dataset(import_video(movie, tmp_path / "a", crop=(4, 2, 16, 20), **QUIET)).frames(0, 0, 5)
    np.testing.assert_array_equal(cropped, numbered(5)[:, 2:22, 4:20])
    small = Dataset(import_video(movie, tmp_path / "b", size=12, gray=True, **QUIET))
    assert small.frame_format.shape == (12, 12, 1)
    square = np.stack([cv2.cvtColor(frame[:, 4:28], cv2.COLOR_RGB2GRAY) for frame in numbered(5)])
    expected = np.stack([cv2.resize(frame, (12, 12), interpolation=cv2.INTER_AREA) for frame in square])
    assert np.abs(small.frames(0, 0, 5)[..., 0].astype(int) - expected).max() <= 2
    wide = Dataset(import_video(movie, tmp_path / "c", size=(64, 48), **QUIET))
    assert wide.frame_format.shape == (48, 64, 3)


def test_an_import_goes_on_and_repairs(movie, tmp_path):
    out = import_video(movie, tmp_path / "data", trial_frames=20, **QUIET)
    before = {entry.name: entry.read_bytes() for entry in out.iterdir()}
    (out / "valid-00000.arrow").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"import own\.mkv into it again"):
        repair(out, **QUIET)
    import_video(movie, out, trial_frames=20, **QUIET)
    assert {entry.name: entry.read_bytes() for entry in out.iterdir()} == before
    with pytest.raises(DataError, match="another recipe"):
        import_video(movie, out, trial_frames=10, **QUIET)


def test_videos_that_cannot_be_read_write_nothing(movie, tmp_path):
    out = tmp_path / "data"
    with pytest.raises(FileError, match="no such file"):
        import_video(tmp_path / "none.mp4", out, **QUIET)
    data = movie.read_bytes()
    movie.write_bytes(data[: len(data) // 2])
    with pytest.raises(VideoError, match="cut off"):
        import_video(movie, out, **QUIET)
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"fps": math.nan}, "fps"),
        ({"fps": 0.0}, "fps"),
        ({"crop": (20, 0, 20, 20)}, "exceed the image of 32 x 24"),
        ({"crop": (0, 0, 0, 5)}, "crop width"),
        ({"size": 0}, "size"),
        ({"trial_frames": 0}, "trial_frames"),
    ],
)
def test_bad_options_write_nothing(movie, tmp_path, options, match):
    with pytest.raises(InputError, match=match):
        import_video(movie, tmp_path / "data", **options, **QUIET)
    assert not (tmp_path / "data").exists()


def test_marks_are_drawn_where_they_belong():
    frame = np.zeros((20, 20, 3), np.uint8)
    marks = [CircleOutline((10.0, 6.0), 4.0), Arrow((3.0, 3.0), (3.0, 15.0)), Polyline(((5.0, 18.0), (15.0, 18.0)))]
    rows, columns = np.nonzero(draw_overlay(frame, marks[:1], magnification=8)[..., 0] > 128)
    assert np.hypot((columns + 0.5) / 8 - 10.0, (rows + 0.5) / 8 - 6.0) == pytest.approx(4.0, abs=0.15)
    rows, columns = np.nonzero(draw_overlay(frame, marks[1:2], magnification=8)[..., 0] > 60)
    assert (rows.min() / 8, rows.max() / 8) == pytest.approx((3.0, 15.0), abs=0.3)
    assert np.median(columns) / 8 == pytest.approx(3.0, abs=0.3)
    rows, columns = np.nonzero(draw_overlay(frame, marks[2:], magnification=8)[..., 0] > 200)
    assert np.median(rows) / 8 == pytest.approx(18.0, abs=0.3)
    page = image_grid([draw_overlay(frame, (), 2)] * 5, 3)
    assert page.shape == (2 * 46 + 6, 3 * 46 + 6, 3)


@pytest.mark.parametrize(
    "recipe", [BilliardsRecipe(trials=1, frames=8, shake=2.0), PendulumRecipe(trials=1, frames=8, lengths=(2.0, 1.0))]
)
def test_states_are_drawn_over_what_is_seen(tmp_path, recipe):
    """Where a mark lies, the frame beneath is lit: rings about balls, lines along links."""
    trial = recipe.make("train", 0)
    for number in range(8):
        frame = trial["frames"][number].max(-1)
        for mark in recipe.marks({name: trial[name][number] for name in recipe.fields}):
            points = {CircleOutline: lambda m: [m.center], Arrow: lambda m: [m.start], Polyline: lambda m: m.points}[
                type(mark)
            ](mark)
            inside = [point for point in points if min(point) >= 1 and max(point) <= len(frame) - 2]
            assert all(frame[int(y), int(x)] > 80 for x, y in inside)


def test_show_draws_data_sets_and_videos(movie, tmp_path):
    out = generate(PendulumRecipe(trials=1, frames=10, size=40), tmp_path / "data", workers=1, progress=False)
    rendered = video.read(show(out, tmp_path / "drawn.png", frames=4))
    plain = video.read(show(out, tmp_path / "plain.png", frames=4, states=False))
    assert rendered.frames.shape == plain.frames.shape
    assert not torch.equal(rendered.frames, plain.frames)
    assert len(video.read(show(out, tmp_path / "clip.mp4"))) == 10
    assert video.read(show(movie, tmp_path / "movie.png", frames=6)).frames.shape[0] == 1
    assert len(video.read(show(movie, tmp_path / "movie.mp4"))) == 230


def test_the_command_line_makes_verifies_repairs_and_shows(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = ["generate", "billiards", "--trials", "10", "--frames", "12", "--workers", "1", "--out", "set"]
    assert cli.main(result) == 0
    assert len(Dataset("set")) == 8
    assert cli.main(["verify", "set"]) == 0
    (tmp_path / "set" / "train-00000.arrow").write_bytes(b"")
    assert cli.main(["verify", "set"]) == 1
    assert "train-00000.arrow: damaged" in capsys.readouterr().out
    assert cli.main(["repair", "set", "--workers", "1"]) == 0
    assert cli.main(["verify", "set"]) == 0
    assert cli.main(["show", "set", "--out", "clip.mp4"]) == 0
    assert cli.main(["import", "clip.mp4", "--size", "16", "--crop", "0,0,100,100", "--fps", "10"]) == 0
    assert Dataset("data/clip").frame_format.shape == (16, 16, 3)
    end = capsys.readouterr().out.splitlines()[-1]
    assert end.startswith(f"data/clip: {len(Dataset('data/clip'))} train trial of ")
    assert "too few for validation and test" in end
    assert end.endswith("next: physvision fit --config FILE --data.path data/clip")
    assert cli.main([*result, "--radius", "2"]) == 1
    assert "radius 3.2 there, 2 here" in capsys.readouterr().err
    assert cli.main(["import", "none.mp4"]) == 1


SMALL = ["--trials", "2", "--frames", "4", "--size", "32"]


@pytest.mark.parametrize(("recipe", "count"), [("billiards", 3), ("billiards_one", 1), ("pendulum", 3)])
def test_recipes_that_come_along_go_by_their_names(tmp_path, recipe, count):
    command = ["generate", recipe.removesuffix("_one"), "--config", f"{recipe}.yaml", "--out", str(tmp_path / "data")]
    assert cli.main([*command, *SMALL, "--workers", "1"]) == 0
    assert len(Dataset(tmp_path / "data").field("mass", 0)[0]) == count


def test_an_import_ends_with_its_trials(movie, tmp_path):
    out = import_video(movie, tmp_path / "data", trial_frames=20, **QUIET)
    counts = {split: len(Dataset(out, split)) for split in ("train", "valid", "test")}
    text = ", ".join(f"{count} {split}" for split, count in counts.items())
    assert summarize(out).startswith(f"{out}: {text} trials of 20 frames, the last of 10; next: physvision fit ")


def test_a_recipe_that_does_not_come_along_is_named(capsys):
    assert cli.main(["generate", "billiards", "--config", "nowhere.yaml"]) == 1
    assert "'nowhere.yaml' is neither a file nor one of the datasets" in capsys.readouterr().err
