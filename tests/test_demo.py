"""The demo leaves, for each checkpoint, a video, what is seen in it and a page, and says where."""

# pyright: reportAttributeAccessIssue=false

import json

import pytest
from PIL import Image

from physvision import demo, video
from physvision.cli import main
from physvision.models import load, shipped

CLIPS = [name for name in demo.CLIPS if name in shipped()]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.extended if name != "billiards-1" else ()) for name in CLIPS]
)
def test_the_demo_shows_every_checkpoint(tmp_path, capsys, monkeypatch, name):
    monkeypatch.setattr(demo, "SECONDS", 3)
    out = tmp_path / "new"
    law = name == "pendulum"
    assert main(["demo", "--out", str(out), "--checkpoints", f"[{name}]", *([] if law else ["--no-law"])]) == 0
    predicted = capsys.readouterr().out
    assert predicted.splitlines()[-1].endswith("physvision open")
    for path in (out / name / "report.html", out / name / "prediction.mp4", out / "demo.gif"):
        assert str(path) in predicted
        assert path.stat().st_size > 10_000
    if law:
        assert "The true length is 0.25876 m" in predicted
        length = json.loads((out / "bob" / "parameters.json").read_text())["parameters"]["length"]["value"]
        assert abs(length / 0.25876 - 1) < 0.005
    with Image.open(out / "demo.gif") as picture:
        assert picture.n_frames > 10
    assert (out / "demo.gif").stat().st_size < 1.5e6
    before = load(name).scene.frames_in - 1
    assert len(video.read(out / f"{name}.mp4")) == len(video.read(out / name / "prediction.mp4")) + before


def test_every_shipped_checkpoint_can_be_shown():
    assert set(shipped()) <= set(demo.CLIPS)


def test_checkpoints_that_are_not_there(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path), "--checkpoints", "[nothing]"]) == 1
    message = capsys.readouterr().err
    assert "none of nothing is shipped; there are " in message
    assert all(name in message for name in shipped())


def test_a_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file" / "out")]) == 1
    assert "cannot be created as the folder" in capsys.readouterr().err
