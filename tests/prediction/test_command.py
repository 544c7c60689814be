"""`physvision predict` leaves whole files, says before any work what does not fit, and ends well when it must."""

import csv
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from prediction import rolling

from physvision import video
from physvision.cli import main
from physvision.core import VideoError
from physvision.prediction import Predictor, saving
from physvision.report import VideoFigure

FILES = ["future.csv", "prediction.mp4", "report.html", "states.csv", "states.npz"]


@pytest.fixture(autouse=True)
def _balls(monkeypatch):
    """`--checkpoint balls` is the model that sees exactly."""
    from_file = Predictor.from_checkpoint.__func__

    def from_checkpoint(kind, name, **options):
        return rolling.predictor(**options) if name == "balls" else from_file(kind, name, **options)

    monkeypatch.setattr(Predictor, "from_checkpoint", classmethod(from_checkpoint))


def run(path, out, *options, checkpoint="balls"):
    return main(["predict", str(path), "--checkpoint", checkpoint, "--out", str(out), "--horizon", "0.5", *options])


def rows(out):
    with (out / "states.csv").open() as file:
        return list(csv.DictReader(file))


def left(out):
    """Names of all files, hidden ones too."""
    return sorted(path.name for path in out.iterdir())


def test_everything_is_written_and_right(tmp_path, capsys):
    assert run(rolling.film(tmp_path / "a.mkv"), tmp_path / "out") == 0
    out = tmp_path / "out"
    assert left(out) == FILES
    output = capsys.readouterr().out
    assert all(str(out / name) in output for name in FILES)
    assert "two balls" in output
    table = rows(out)
    assert len(table) == 28 * 2
    assert list(table[0])[:7] == ["time_s", "frame", "object", "x_px", "y_px", "angle_rad", "x_rate_px_per_s"]
    true = rolling.positions(30)
    for row in table:
        ball = ["red ball", "green ball"].index(row["object"])
        place = [float(row["x_px"]), float(row["y_px"])]
        np.testing.assert_allclose(place, true[int(row["frame"]), ball], atol=rolling.EXACT)
        assert float(row["time_s"]) == pytest.approx(int(row["frame"]) / rolling.FPS, abs=1e-6)
        assert float(row["confidence"]) > 0.9
    arrays = np.load(out / "states.npz")
    np.testing.assert_allclose(arrays["position"][..., :2], true[2:], atol=rolling.EXACT)
    assert arrays["objects"].tolist() == ["red ball", "green ball"]
    assert arrays["units"].tolist() == ["px", "px", "rad"]
    clip = video.read(out / "prediction.mp4")
    assert len(clip) == 28
    assert clip.fps == pytest.approx(rolling.FPS)


def test_slow_and_fast_runs_write_the_same_bytes(tmp_path, monkeypatch):
    clip, contents = rolling.film(tmp_path / "a.mkv"), []
    for pace in (1.0, 1000.0):
        now = time.perf_counter
        monkeypatch.setattr(saving, "time", SimpleNamespace(perf_counter=lambda now=now, pace=pace: pace * now()))
        assert run(clip, tmp_path / "out") == 0
        contents.append({name: (tmp_path / "out" / name).read_bytes() for name in FILES})
    assert [name for name in FILES if contents[0][name] != contents[1][name]] == []


def test_places_are_those_of_the_video_that_was_given(tmp_path):
    small = rolling.pictures(20)
    large = np.zeros((20, 120, 160, 3), np.uint8)
    large[:, 10:106, 30:126] = small.repeat(2, 1).repeat(2, 2)
    path = video.write(tmp_path / "a.mkv", large, rolling.FPS, lossless=True)
    assert run(path, tmp_path / "pixels", "--crop", "30,10,96,96") == 0
    true = (rolling.positions(20)[2:] * 2 + [30, 10]).reshape(-1, 2)
    for out, scale in (("pixels", 1.0), ("meters", 240.0)):
        if out == "meters":
            assert run(path, tmp_path / out, "--crop", "30,10,96,96", "--scale", "120px=0.5m") == 0
        unit = "px" if scale == 1.0 else "m"
        observed = [[float(row[f"x_{unit}"]), float(row[f"y_{unit}"])] for row in rows(tmp_path / out)]
        np.testing.assert_allclose(observed, true / scale, atol=2 * rolling.EXACT / scale)
        rates = [float(row[f"x_rate_{unit}_per_s"]) for row in rows(tmp_path / out)]
        np.testing.assert_allclose(rates, np.tile(rolling.SPEEDS[:, 0] * 2 / scale, 18), atol=1.0 / scale)


def test_a_faster_video_is_thinned_out(tmp_path):
    path = rolling.film(tmp_path / "a.mkv", 60, fps=60.0)
    assert run(path, tmp_path / "out", "--fps", "20") == 0
    table = rows(tmp_path / "out")
    assert len(table) == 2 * 18
    true = rolling.positions(20)
    for row in table:
        ball = ["red ball", "green ball"].index(row["object"])
        np.testing.assert_allclose(float(row["x_px"]), true[int(row["frame"]), ball, 0], atol=rolling.EXACT)


@pytest.mark.parametrize(
    ("make", "options", "match"),
    [
        ({"fps": 60.0}, (), "60 frames per second, the checkpoint expects 20; add --fps 20"),
        ({"fps": 60.0}, ("--fps", "30"), "got 30; give --fps 20"),
        ({"fps": 10.0}, (), "has 10 frames per second, the checkpoint needs 20; missing frames"),
        ({"fps": 10.0}, ("--fps", "20"), "missing frames cannot be interpolated"),
        ({}, ("--size", "64"), "expects frames of 48 x 48 pixels, got 64 x 64; give --size 48"),
        ({}, ("--crop", "[40,0,20,20]"), "exceed the image of 48 x 48"),
        ({}, ("--crop", "left"), "crop: expected x,y,width,height in whole pixels, got 'left'"),
        ({}, ("--crop", "0,0,48"), "crop: expected x,y,width,height in whole pixels, got '0,0,48'"),
        ({}, ("--size", "48.5"), "size: expected a side, or width,height in whole pixels, got '48.5'"),
        ({}, ("--crop", "0,0,48,24"), "48 x 24 pixels have another aspect ratio than the 48 x 48"),
        ({"frames": 2}, (), "has 2 frames, the checkpoint needs a window of 3"),
        ({"count": 1}, (), "nothing has the color of green ball.*--force"),
        ({"colors": ((0.0, 0.0, 1.0), (1.0, 1.0, 1.0))}, (), "nothing has the color of red ball"),
        ({}, ("--scale", "wide"), "expected pixels per meter"),
        ({}, ("--scale", "-3"), "expected a positive finite number"),
        ({}, ("--horizon", "-1"), "horizon: expected a positive finite number"),
        ({}, ("--device", "abacus"), "give cpu"),
    ],
)
def test_what_does_not_fit_is_said_before_any_work(tmp_path, capsys, monkeypatch, make, options, match):
    path = rolling.film(tmp_path / "a.mkv", **make)
    monkeypatch.setattr("physvision.report.StateTables", None)
    assert run(path, tmp_path / "out", *options) == 1
    output = capsys.readouterr().err
    assert __import__("re").search(match, output.replace("\n", " ")), output
    assert not (tmp_path / "out").exists()


def test_another_size_is_refused_with_what_to_add(tmp_path, capsys):
    path = video.write(tmp_path / "a.mkv", rolling.pictures(20).repeat(2, 1).repeat(2, 2), rolling.FPS, lossless=True)
    assert run(path, tmp_path / "out") == 1
    assert "96 x 96 pixels, the checkpoint expects 48 x 48; --size 48 takes the largest" in capsys.readouterr().err
    assert run(path, tmp_path / "out", "--size", "48") == 0


@pytest.mark.parametrize(
    ("content", "match"), [(None, "no such file"), (b"", "not a video"), (b"words " * 99, "not a video")]
)
def test_a_video_that_is_none(tmp_path, capsys, content, match):
    path = tmp_path / "a.mp4"
    if content is not None:
        path.write_bytes(content)
    assert run(path, tmp_path / "out") == 1
    assert match in capsys.readouterr().err


def test_a_video_without_a_checkpoint_names_those_there_are(tmp_path, capsys):
    assert main(["predict", str(rolling.film(tmp_path / "a.mkv"))]) == 1
    assert "expected a name or a path, --checkpoint NAME; there are " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("nothing", None, r"'nothing' is neither a file nor one of the models that come with physvision .*pendulum"),
        ("a.safetensors", b"words", "cannot be read as safetensors .* another kind of file"),
        ("a.safetensors", b"", "cannot be read as safetensors"),
        ("a.ckpt", b"words", "damaged or holds more than tensors|cannot be read; it is damaged"),
    ],
)
def test_a_checkpoint_that_is_none(tmp_path, capsys, name, content, match):
    path = rolling.film(tmp_path / "a.mkv")
    checkpoint = name
    if content is not None:
        checkpoint = str(tmp_path / name)
        Path(checkpoint).write_bytes(content)
    assert run(path, tmp_path / "out", checkpoint=checkpoint) == 1
    output = capsys.readouterr().err
    assert __import__("re").search(match, output), output
    assert not (tmp_path / "out").exists()


def test_a_scale_for_states_that_are_in_si_units_already(tmp_path, capsys):
    path = video.write(tmp_path / "a.mkv", np.zeros((5, 100, 100, 1), np.uint8), 20, lossless=True)
    assert run(path, tmp_path / "out", "--scale", "100", checkpoint="pendulum") == 1
    assert "are in rad and its parameters in SI units already; leave it out" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    path = rolling.film(tmp_path / "a.mkv")
    (tmp_path / "file").write_text("")
    assert run(path, tmp_path / "file") == 1
    assert "cannot be made a folder" in capsys.readouterr().err
    assert run(path, "/proc/self/task") == 1
    assert "cannot be written to (" in capsys.readouterr().err


def whole(out, frames):
    """All files are there, valid, and of `frames` frames."""
    assert left(out) == FILES
    table = rows(out)
    assert len(table) == 2 * frames
    assert all(all(row.values()) for row in table)
    assert len(np.load(out / "states.npz")["time"]) == frames
    assert len(video.read(out / "prediction.mp4")) == frames
    assert (out / "report.html").read_text().rstrip().endswith("</html>")


def test_an_interrupted_run_is_whole_up_to_there(tmp_path, capsys, monkeypatch):
    rendered, add, before = [], VideoFigure.add, signal.getsignal(signal.SIGINT)

    def interrupted(self, frames):
        rendered.append(frames)
        if len(rendered) == 2:
            signal.raise_signal(signal.SIGINT)
        add(self, frames)

    monkeypatch.setattr(VideoFigure, "add", interrupted)
    path = rolling.film(tmp_path / "a.mkv", 60)
    assert run(path, tmp_path / "out", "--batch", "8") == 130
    whole(tmp_path / "out", 16)
    assert "Interrupted by Ctrl-C: these results end at 0.85 s" in " ".join(capsys.readouterr().out.split())
    assert "Interrupted by Ctrl-C" in (tmp_path / "out" / "report.html").read_text()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_video_that_breaks_off_leaves_what_came_before(tmp_path, capsys, monkeypatch):
    def broken(path, color, conversion):
        yield from enumerate_times(rolling.pictures(20))
        raise VideoError(f"{path}: damaged or cut off after 20 frames (bad luck)")

    def enumerate_times(frames):
        return ((number / rolling.FPS, frame) for number, frame in enumerate(frames))

    monkeypatch.setattr("physvision.video.scene_frames.stream", broken)
    path = rolling.film(tmp_path / "a.mkv", 60)
    assert run(path, tmp_path / "out", "--batch", "8") == 1
    assert "damaged or cut off after 20 frames" in capsys.readouterr().err
    whole(tmp_path / "out", 16)


def test_a_film_that_cannot_be_written_leaves_the_tables(tmp_path, capsys, monkeypatch):
    def full(self, frames):
        raise VideoError("prediction.mp4: not written, failed after 8 frames (No space left on device)")

    monkeypatch.setattr(VideoFigure, "_write", full)
    assert run(rolling.film(tmp_path / "a.mkv", 60), tmp_path / "out", "--batch", "8") == 1
    output = capsys.readouterr()
    assert "No space left on device); make room and run again, or go without a video" in output.err
    assert left(tmp_path / "out") == ["future.csv", "report.html", "states.csv", "states.npz"]
    # Drawing is one piece behind.
    assert len(rows(tmp_path / "out")) == 2 * 16


FULL = """
import resource, signal, sys
from prediction import rolling
from physvision.prediction import Predictor
import physvision.cli
Predictor.from_checkpoint = classmethod(lambda kind, name, **options: rolling.predictor(**options))
# What cannot grow beyond this is as on a full disk.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(physvision.cli.main(["predict", *sys.argv[2:], "--checkpoint", "balls"]))
"""


@pytest.mark.extended
@pytest.mark.parametrize(
    ("room", "shown", "retained"), [(12_000, 400, ["future.csv", "states.csv", "states.npz"]), (400, 20, [])]
)
def test_a_full_disk_leaves_nothing_half_written(tmp_path, room, shown, retained):
    path, out = rolling.film(tmp_path / "a.mkv", shown), tmp_path / "out"
    command = [sys.executable, "-c", FULL, str(room), str(path), "--out", str(out), "--batch", "16"]
    search_path = f"{Path(__file__).parents[1]}{os.pathsep}{Path(__file__).parents[2]}"
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": search_path}, timeout=250
    )
    assert done.returncode == 1, done.stderr
    assert "Make room" in done.stderr
    assert "Traceback" not in done.stderr
    assert (left(out) if out.exists() else []) == retained
    if retained:
        table = rows(out)
        frames = len(table) // 2
        assert 0 < frames < 398
        assert all(len(row) == 19 and all(row.values()) for row in table)
        assert len(np.load(out / "states.npz")["time"]) == frames


def test_what_was_there_stays_until_there_is_better(tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert run(rolling.film(tmp_path / "a.mkv"), out) == 0
    before = (out / "states.csv").read_bytes()
    monkeypatch.setattr(VideoFigure, "add", lambda self, frames: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(tmp_path / "a.mkv", out)
    assert (out / "states.csv").read_bytes() == before
    assert left(out) == FILES


def test_a_run_without_a_film_leaves_no_film_of_another(tmp_path):
    out = tmp_path / "out"
    assert run(rolling.film(tmp_path / "a.mkv"), out) == 0
    assert run(tmp_path / "a.mkv", out, "--no-film") == 0
    assert left(out) == ["future.csv", "report.html", "states.csv", "states.npz"]


def test_force_alone_goes_on_and_the_page_says_with_what(tmp_path, capsys):
    path, out = rolling.film(tmp_path / "a.mkv", count=1), tmp_path / "out"
    assert run(path, out) == 1
    assert "or add --force to continue" in capsys.readouterr().err
    assert not out.exists()
    assert run(path, out, "--force") == 0
    assert "Nothing has the color of green ball." in (out / "report.html").read_text()
    assert "Nothing has the color of green ball." in " ".join(capsys.readouterr().out.split())


KILLED = """
import os, signal, sys
from prediction import rolling
from physvision.prediction import save
from physvision.report import StateTables

add = StateTables.add
StateTables.add = lambda self, **values: (add(self, **values), os.kill(os.getpid(), signal.SIGKILL))
save(rolling.predictor(), rolling.pictures(60), sys.argv[1])
"""


@pytest.mark.extended
def test_what_a_killed_run_left_half_written_goes_with_the_next(tmp_path):
    out = tmp_path / "out"
    search_path = f"{Path(__file__).parents[1]}{os.pathsep}{Path(__file__).parents[2]}"
    environment = {**os.environ, "PYTHONPATH": search_path}
    subprocess.run([sys.executable, "-c", KILLED, str(out)], env=environment, timeout=250)
    assert all(name.startswith(".") for name in left(out))
    assert left(out)
    assert run(rolling.film(tmp_path / "a.mkv"), out) == 0
    assert left(out) == FILES


@pytest.mark.extended
def test_memory_does_not_grow_with_the_video(tmp_path):
    kilobytes = []
    for frames in (200, 1200):
        run(rolling.film(tmp_path / f"{frames}.mkv", frames), tmp_path / str(frames), "--no-film")
        kilobytes.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    # A thousand frames of 48 × 48 × 3 floats would be 27 MB, and the predicted ones as many again.
    assert kilobytes[1] - kilobytes[0] < 20_000
