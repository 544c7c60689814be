"""What a predictor says of a video is what is in it, at the right frame and in the right unit."""

# pyright: reportAttributeAccessIssue=false

from dataclasses import replace

import jaxtyping
import numpy as np
import pytest
import torch
from prediction import rolling

from physvision import video
from physvision.core import DeviceError, InputError, ShapeError
from physvision.models import build, load
from physvision.prediction import Predictor, save
from physvision.video import Conversion


def check(prediction, frames, steps=10):
    """Each frame's state is that of the balls, and what was expected for it as well."""
    true = rolling.positions(frames)
    assert prediction.frames.tolist() == list(range(2, frames))
    torch.testing.assert_close(prediction.times, torch.arange(2, frames, dtype=torch.float64) / rolling.FPS)
    observed = prediction.states.q.reshape(-1, 2, 3)[..., :2].numpy()
    rates = prediction.states.v.reshape(-1, 2, 3)[..., :2].numpy()
    np.testing.assert_allclose(observed, true[2:], atol=rolling.EXACT)
    # A slope over two frames.
    error = 2 * rolling.EXACT * rolling.FPS / 2
    np.testing.assert_allclose(rates, np.broadcast_to(rolling.SPEEDS, rates.shape), atol=error)
    expected = prediction.predicted.q.reshape(-1, 2, 3)[..., :2].numpy()
    assert np.isnan(expected[:steps]).all()
    assert np.isnan(prediction.psnr[:steps]).all()
    np.testing.assert_allclose(expected[steps:], true[2 + steps :], atol=rolling.EXACT + error * steps / rolling.FPS)
    ahead = prediction.future.q.reshape(-1, 2, 3)[..., :2].numpy()
    later = rolling.positions(frames + steps)[frames - 1 :]
    np.testing.assert_allclose(ahead, later, atol=rolling.EXACT + error * steps / rolling.FPS)
    assert float(prediction.reprojection_score.min()) > 0.9
    assert prediction.future_frames.shape == (steps + 1, 3, rolling.SIZE, rolling.SIZE)


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_states_and_what_follows_are_those_of_the_video(batch):
    check(rolling.predictor(batch=batch)(rolling.pictures(25)), 25)


def test_arrays_tensors_clips_files_and_cameras_are_the_same(tmp_path):
    frames = rolling.pictures(20)
    path = rolling.film(tmp_path / "a.mkv", 20)
    channels_first = torch.from_numpy(frames).permute(0, 3, 1, 2)
    observed = [
        rolling.predictor()(given)
        for given in (frames, frames / 255.0, channels_first, video.read(path), path, str(path), iter(frames))
    ]
    for item in observed:
        check(item, 20)
        torch.testing.assert_close(item.states.q, observed[0].states.q)


def test_a_camera_is_followed_while_it_films():
    requested = []

    def camera():
        for number, frame in enumerate(rolling.pictures(100)):
            requested.append(number)
            yield frame

    stream = rolling.predictor(batch=4).stream(camera())
    assert next(stream).first_frame == 2
    assert len(requested) == 6


def test_the_shipped_pendulum_sees_a_pendulum():
    from physvision.datasets import PendulumRecipe

    trial = PendulumRecipe(trials=10, frames=60, seed=5).make("test", 0)
    observed = Predictor.from_checkpoint("pendulum", horizon=0.25)(trial["frames"])
    away = observed.states.q.numpy() - trial["q"][2:]
    # A guess would be off by π/2 in the mean.
    assert np.median(np.abs(np.arctan2(np.sin(away), np.cos(away)))) < 0.2
    assert float(observed.reprojection_score.median()) > load("pendulum").scene.min_reprojection_score


def test_a_video_shorter_than_the_window():
    with pytest.raises(InputError, match=r"has 2 frames, the checkpoint needs a window of 3; give a longer video"):
        rolling.predictor()(rolling.pictures(2))


def test_a_video_of_one_window_has_a_state_and_a_future():
    observed = rolling.predictor()(rolling.pictures(3))
    assert observed.frames.tolist() == [2]
    assert observed.future.steps == 10


@pytest.mark.parametrize(
    ("video", "error", "match"),
    [
        (np.zeros((5, 20, 20, 3), np.uint8), ShapeError, r"expected frames \(48, 48\) or with 1 or 3 channels"),
        (np.zeros((5, 48), np.uint8), ShapeError, "expected \\(times, height, width\\)"),
        (np.full((5, 48, 48), np.nan), InputError, "expected finite values"),
        (np.zeros((5, 48, 48), np.int64), InputError, "uint8 levels or floats"),
    ],
)
def test_frames_of_another_kind(video, error, match):
    with pytest.raises(error, match=match):
        rolling.predictor()(video)


def test_options_that_make_no_sense():
    with pytest.raises(InputError, match="horizon: expected a positive"):
        rolling.predictor(horizon=0)
    with pytest.raises(InputError, match="batch: expected an integer"):
        rolling.predictor(batch=0)
    with pytest.raises(DeviceError, match=r"device: 'abacus' cannot be used .*give cpu"):
        rolling.predictor(device="abacus")
    with pytest.raises(InputError, match="only files are converted"):
        rolling.predictor()(rolling.pictures(5), Conversion(fps=20))


def test_a_model_that_does_not_say_what_it_expects():
    model = rolling.predictor().model
    model.scene = None
    with pytest.raises(InputError, match="does not say what videos it was made for; add a `scene:`"):
        Predictor(model)


def test_colors_and_numbers_that_do_not_fit_are_named():
    yellow, blue = (1.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    with pytest.raises(InputError, match=r"nothing has the color of green ball; 1 objects of other colors"):
        rolling.predictor()(rolling.pictures(20, colors=(rolling.COLORS[0], blue)))
    with pytest.raises(
        InputError, match=r"nothing has the color of green ball.*objects: red ball, green ball\..*`force=True`"
    ):
        rolling.predictor()(rolling.pictures(20, count=1))
    with pytest.raises(InputError, match="of other colors"):
        rolling.predictor()(np.maximum(rolling.pictures(20), rolling.pictures(20, colors=(blue, yellow))[:, :, ::-1]))
    with pytest.raises(InputError, match="2 objects have the color of red ball"):
        rolling.predictor()(np.maximum(rolling.pictures(20), rolling.pictures(20, count=1)[:, ::-1]))
    # Whoever insists gets what the model makes of it.
    assert len(rolling.predictor()(rolling.pictures(20, count=1), force=True).frames) == 18


def test_noise_and_black_are_no_pendulum():
    predictor = Predictor.from_checkpoint("pendulum")
    noise = np.random.default_rng(0).integers(0, 256, (10, 100, 100, 1)).astype(np.uint8)
    for wrong in (noise, np.zeros((10, 100, 100), np.uint8), 255 - np.zeros((10, 100, 100), np.uint8)):
        with pytest.raises(InputError, match=r"the rendered state explains .*It expects three rods"):
            predictor(wrong)


def test_a_state_that_no_frame_shows_is_not_sure():
    """An encoder that sees nothing always reports the same state, which a fit explains as a pendulum at rest."""
    prediction = Predictor.from_checkpoint("pendulum", horizon=0.5)(np.zeros((40, 100, 100), np.uint8), force=True)
    assert prediction.confidence.max() == 0.0
    assert prediction.predicted_confidence.nan_to_num(0.0).max() == 0.0
    assert prediction.warnings[0].startswith("The rendered state explains nothing of the image")


def test_the_encoders_own_confidence_is_reported():
    instance = rolling.predictor()
    encoder = instance.model.encoder
    observe = encoder.observe
    encoder.observe = lambda frames: replace(observe(frames), confidence=torch.full((len(frames), 1, 2), 0.25))
    assert instance(rolling.pictures(10)).confidence.unique().tolist() == [0.25]


def test_a_window_whose_motion_fails_does_not_hurt_the_others():
    frames = rolling.pictures(30)
    frames[10:12] = 0
    instance = rolling.predictor(batch=8)
    observed = instance(frames)
    true = rolling.positions(30)[2:]
    good = np.r_[0:8, 12:28]
    np.testing.assert_allclose(observed.states.q.reshape(-1, 2, 3)[good, :, :2].numpy(), true[good], atol=rolling.EXACT)
    assert observed.confidence[8:10].max() == 0


def test_training_configurations_without_a_scene_still_build():
    import yaml

    from physvision.core import resources

    configuration = yaml.safe_load(resources.find("pendulum.yaml", "trainers").read_text())["model"]["model"]
    del configuration["init_args"]["scene"]
    assert build(configuration).scene is None


def test_objects_say_what_they_are_in_one_line():
    instance = rolling.predictor()
    observed = instance(rolling.pictures(20))
    (segment,) = instance.stream(rolling.pictures(20))
    assert repr(instance) == "Predictor(two balls, 0.5 s ahead, on cpu)"
    assert (
        repr(observed) == "Prediction(two balls: 18 frames, 0.95 s, 0.5 s ahead, reprojection score 100%, 0 warnings)"
    )
    assert repr(segment) == "Segment(frames 2 to 19, from 0.10 s)"


def test_a_prediction_is_saved_from_python(tmp_path):
    data = save(rolling.predictor(), rolling.pictures(30), tmp_path / "out")
    assert sorted(item.name for item in (tmp_path / "out").iterdir()) == [
        "future.csv",
        "prediction.mp4",
        "report.html",
        "states.csv",
        "states.npz",
    ]
    true = rolling.positions(30)[2:]
    np.testing.assert_allclose(data.rows["position"][..., :2], true, atol=rolling.EXACT)
    assert [item.origin for item in data.parameters] == ["assumed, given to the checkpoint"] * 2
    assert repr(data) == "ReportData(two balls in the frames given: 28 frames, 0 notes)"


def test_advice_is_for_python_where_it_is_called_from_python(tmp_path):
    for frames, match in (
        ({"fps": 60.0}, "add `fps=20` to resample"),
        ({"count": 1}, "or add `force=True` to continue"),
    ):
        with pytest.raises(InputError, match=match):
            rolling.predictor()(rolling.film(tmp_path / "a.mkv", **frames))


def test_nothing_in_place_of_a_model_or_a_video(monkeypatch):
    """Where types are not checked before, as for a user."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    expected = "video: expected a file, a clip, frames or an iterator of single frames"
    advice = r"Predictor\.from_checkpoint\(name\) loads one"
    with pytest.raises(InputError, match=f"^model: expected a PredictiveAutoencoder, got NoneType; {advice}$"):
        Predictor(None)
    for wrong, kind in ((None, "NoneType"), (5, "int")):
        with pytest.raises(InputError, match=f"^{expected}, got {kind}$"):
            rolling.predictor()(wrong)
