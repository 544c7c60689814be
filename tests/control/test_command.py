"""`physvision control` leaves a film of a task that is done."""

import pytest

from physvision import video
from physvision.cli import main
from physvision.control.pixels import FramePolicy, save_policy


@pytest.mark.extended
def test_a_cartpole_stands_up_with_a_model_that_was_wrong(tmp_path, capsys):
    path = tmp_path / "new" / "cart.mp4"
    assert main(["control", "cartpole", "--learn", "--seconds", "2.5", "--out", str(path)]) == 0
    record = capsys.readouterr().out
    assert "stands from 1." in record
    # A pole of 0.1 kg on a cart of 1 kg, 1 m long: all were 2.
    assert "0.1000 1.0000; 1.0000" in record
    clip = video.read(path)
    assert abs(len(clip.frames) - 126) <= 1
    # The red pole hangs below the cart at first and stands above it at the end.
    red = (clip.frames[..., 0].int() - clip.frames[..., 2].int() > 60).any(2)
    cart = (clip.frames[..., 2].int() - clip.frames[..., 0].int() > 60).any(2)
    first, last = ([row.nonzero().float().mean() for row in (red[k], cart[k])] for k in (0, -1))
    assert first[0] > first[1]
    assert last[0] < last[1]


@pytest.mark.extended
def test_a_pendulum_stands_after_a_given_time_with_the_least_effort(tmp_path, capsys):
    path = tmp_path / "pendulum.mp4"
    assert main(["control", "pendulum", "--objective", "effort", "--seconds", "2.9", "--out", str(path)]) == 0
    record = capsys.readouterr().out
    assert "8 of 8 searches stand after 2.90 s" in record
    assert path.stat().st_size > 5_000


@pytest.mark.parametrize(
    ("arguments", "record"),
    [
        (
            ["spinning-top"],
            "one of pendulum, cartpole, double-pendulum, acrobot, pendulum-pixels, breakout, got 'spinning-top'",
        ),
        (["cartpole", "--objective", "fame"], "expected one of stabilize, time, effort, got 'fame'"),
        (["cartpole", "--objective", "time", "--learn"], "--objective stabilize"),
        (["cartpole", "--seconds", "-1"], "seconds"),
    ],
)
def test_what_is_asked_for_wrongly_is_told(arguments, record, capsys):
    assert main(["control", *arguments]) == 1
    assert record in capsys.readouterr().err


@pytest.mark.extended
def test_a_policy_that_sees_is_filmed_with_what_it_sees(tmp_path, capsys):
    policy = FramePolicy(32, 96)
    policy.zero_output()
    file = str(save_policy(tmp_path / "still.safetensors", policy))
    path = tmp_path / "still.mp4"
    assert main(["control", "pendulum-pixels", "--policy", file, "--seconds", "0.4", "--out", str(path)]) == 0
    assert "not within 0.2 rad of upright at the end" in capsys.readouterr().out
    clip = video.read(path)
    assert clip.frames.shape == (20, 288, 864, 3)
    # The orange pole hangs below the cart in the middle, and in the corner too.
    orange = clip.frames[0, ..., 0].int() - clip.frames[0, ..., 2].int() > 120
    assert int(orange[150:260, 400:464].sum()) > 1000
    assert int(orange[34:64, :192].sum()) > 20


def test_breakout_is_filmed(tmp_path, capsys):
    pytest.importorskip("ale_py")
    path = tmp_path / "breakout.mp4"
    assert main(["control", "breakout", "--frames", "150", "--seconds", "5", "--out", str(path)]) == 0
    assert "5 lives left" in capsys.readouterr().out
    clip = video.read(path)
    assert clip.frames.shape == (300, 630, 480, 3)
    # The green way of the ball is drawn over the frames that have one.
    red, green, blue = clip.frames[-60:, 250:560].int().unbind(-1)
    assert bool(((green - red > 40) & (green - blue > 40)).any())
