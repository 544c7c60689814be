"""Names and videos that nobody expects end in a message, from every command."""

import numpy as np
import pytest

from physvision import cli, video
from physvision.core import CheckpointError, InputError
from physvision.models import load
from physvision.prediction import Predictor

LONG = "x" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", f"{LONG}.mp4", "--checkpoint", "pendulum"],
        ["predict", "small.mp4", "--checkpoint", LONG],
        ["predict", "small.mp4", "--checkpoint", f"{LONG}.safetensors"],
        ["identify", f"{LONG}.mp4"],
        ["identify", "small.mp4", "--motion", f"{LONG}.xml"],
        ["simulate", f"{LONG}.xml"],
        ["import", f"{LONG}.mp4"],
        ["import", "small.mp4", "--out", LONG],
        ["show", LONG],
        ["verify", LONG],
        ["repair", LONG],
        ["export", LONG],
        ["export", f"{LONG}.ckpt"],
        ["fit", "--config", f"{LONG}.yaml"],
        ["fit", "--config", "pendulum.yaml", "--ckpt_path", LONG],
        ["learn", "sac", "--config", LONG],
        ["learn", "sac", "--out", LONG],
        ["generate", "pendulum", "--out", LONG],
    ],
    ids=lambda arguments: " ".join(arguments).replace(LONG, "LONG"),
)
def test_a_name_that_no_file_can_have_is_named(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    video.write("small.mp4", np.zeros((3, 16, 16, 3), np.uint8), 30)
    assert cli.main(arguments) == 1
    assert f"physvision {arguments[0]}: " in capsys.readouterr().err


@pytest.fixture
def one_pixel(tmp_path, monkeypatch):
    """A folder of pictures of a single pixel, for no video format has such frames."""
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    (tmp_path / "one").mkdir()
    for index in range(40):
        Image.fromarray(np.full((1, 1, 3), 5 * index, np.uint8)).save(tmp_path / "one" / f"{index:03}.png")
    return "one"


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "one", "--checkpoint", "pendulum", "--fps", "20"],
        ["predict", "one", "--checkpoint", "pendulum", "--fps", "20", "--size", "100"],
        ["identify", "one", "--fps", "30"],
        ["import", "one", "--fps", "30", "--out", "data"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_video_of_one_pixel(one_pixel, capsys, arguments):
    status = cli.main(arguments)
    assert status == 0 if arguments[0] == "import" else status == 1
    assert status == 0 or f"physvision {arguments[0]}: " in capsys.readouterr().err


def test_an_output_folder_with_markup_is_printed_as_it_is(tmp_path, monkeypatch, capsys):
    from physvision.datasets import PendulumRecipe

    monkeypatch.chdir(tmp_path)
    frames = PendulumRecipe(trials=10, frames=8).make("test", 0)["frames"]
    video.write("a.mp4", frames, 20)
    out = "[/a] x"
    assert (
        cli.main(["predict", "a.mp4", "--checkpoint", "pendulum", "--out", out, "--horizon", "0.1", "--no-film"]) == 0
    )
    assert "[/a] x/states.csv" in capsys.readouterr().out


def test_a_horizon_is_bounded():
    with pytest.raises(InputError, match="horizon: expected at most 100,000 frames"):
        Predictor.from_checkpoint("pendulum", horizon=1e9)


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "quadruped", "--seconds", "1e9"],
        ["simulate", "quadruped", "--seconds", "1", "--dt", "1e-12"],
        ["control", "cartpole", "--seconds", "1e300"],
        ["control", "pendulum-pixels", "--seconds", "1e9"],
        ["control", "breakout", "--seconds", "1e9"],
    ],
    ids=" ".join,
)
def test_a_duration_is_bounded(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 1
    assert "1,000,000 steps" in capsys.readouterr().err


def test_weights_that_are_not_finite_are_refused(tmp_path):
    from physvision.models import save

    model = load("pendulum")
    name, parameter = next(iter(model.named_parameters()))
    parameter.data[0] = float("nan")
    save(tmp_path / "a.safetensors", model)
    with pytest.raises(CheckpointError, match=f"{name} holds .* values that are not finite"):
        load(tmp_path / "a.safetensors")


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("color", [1e308, 0.0, 0.0], "color: expected channels from 0 to 1"),
        ("radius", float("nan"), "expected numbers, got NaN"),
        ("radius", -1.0, "radius: expected a positive finite number"),
        ("radius", float("inf"), "radius: expected a positive finite number"),
        ("points", [[0.0, 0.0, 1e300]], "points: expected finite coordinates"),
        ("body", -1, "body: expected an integer of at least 0"),
    ],
)
def test_looks_that_no_scene_has_are_refused(tmp_path, key, value, match):
    from physvision.core.resources import folder
    from physvision.core.weights import read_weights, write_weights
    from physvision.models.checkpoints import FORMAT

    tensors, configuration = read_weights(folder("models") / "billiards-1.safetensors", FORMAT)
    configuration["init_args"]["scene"]["objects"][0][key] = value
    with pytest.raises(CheckpointError, match=match):
        load(write_weights(tmp_path / "a.safetensors", tensors, configuration, FORMAT))
