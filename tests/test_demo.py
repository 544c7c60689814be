"""The demo leaves a film that plays and a picture, and says where."""

from physvision import video
from physvision.cli import main


def test_the_demo_draws(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("physvision.demo.SECONDS", 1)
    monkeypatch.setattr("physvision.demo.STILL", 0.5)
    assert main(["demo", "--out", str(tmp_path / "new")]) == 0
    said = capsys.readouterr().out
    film, picture = tmp_path / "new" / "pendulum.mp4", tmp_path / "new" / "pendulum.png"
    assert str(film) in said
    assert str(picture) in said
    clip = video.read(film)
    assert clip.frames.shape == (31, 640, 640, 3)
    moved = (clip.frames[0].int() - clip.frames[-1].int()).abs().amax(-1)
    assert (moved > 50).float().mean() > 0.01
    assert picture.stat().st_size > 10_000


def test_a_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file" / "out")]) == 1
    assert "cannot be made a folder" in capsys.readouterr().err
