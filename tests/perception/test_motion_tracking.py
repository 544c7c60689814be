"""What moves is found in drawn clips, where it is to a small part of a pixel; what cannot be found is refused."""

# pyright: reportOperatorIssue=false

import cv2
import numpy as np
import pytest
import torch

from physvision import video
from physvision.core import Clip, InputError, VideoError
from physvision.datasets.clips import Filming, draw
from physvision.perception import find_tracks

SMALL = Filming(size=(320, 240), fps=25, quality=20, noise=2.0, exposure=0.3)


def _errors(clip, track, body=0):
    """Distances from the truth, pixels, where the law holds and the thing was seen, and the share of such frames.

    A constant distance of less than a pixel is left out: an end of a spring counts as a bit of what hangs on it.
    """
    lawful = clip.times >= clip.motion.release
    fit = track.observed & lawful
    away = track.positions[fit] - clip.positions()[fit, body]
    offset = np.median(away, axis=0)
    if np.linalg.norm(offset) < 1.0:
        away = away - offset
    return np.linalg.norm(away, axis=1), fit.sum() / lawful.sum()


@pytest.fixture(scope="module")
def collision(tmp_path_factory):
    """A clip of two discs, and its file."""
    clip = draw("collision", 1, SMALL, fps=60)
    return clip, clip.write(tmp_path_factory.mktemp("collision") / "clip.mp4")


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("circular", 0),
        ("roll", 1),
        pytest.param("pendulum", 0, marks=pytest.mark.extended),
        pytest.param("spring", 1, marks=pytest.mark.extended),
    ],
)
def test_one_thing_is_followed(tmp_path, kind, seed):
    clip = draw(kind, seed, SMALL)
    (track,) = find_tracks(clip.write(tmp_path / "clip.mp4"))
    errors, visible = _errors(clip, track)
    assert visible > 0.9
    assert np.median(errors) < 0.25
    assert np.quantile(errors, 0.95) < 0.8
    np.testing.assert_allclose(track.times, clip.timestamps, atol=1e-4)


def test_paths_appear_while_they_are_tracked(collision):
    clip, path = collision
    reports = []
    find_tracks(path, on_progress=lambda fraction, paths: reports.append((fraction, paths)))
    fractions = [fraction for fraction, _ in reports]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] < 0.5 < fractions[-1] < 1
    lengths = [sum(map(len, paths)) for fraction, paths in reports if fraction < 0.55]
    assert len(set(lengths)) > 4  # they grow
    points = np.concatenate(reports[-1][1])
    distances = np.linalg.norm(points[:, None, None] - clip.positions()[None], axis=-1).min((1, 2))
    assert np.quantile(distances, 0.9) < 3.0

    def stop(fraction, paths):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_tracks(path, on_progress=stop)


def test_two_things_keep_their_identity_through_a_collision(collision):
    clip, path = collision
    tracks = find_tracks(path, objects=2)
    for body in range(2):
        errors = [np.quantile(_errors(clip, track, body)[0], 0.9) for track in tracks]
        assert min(errors) < 0.8


@pytest.mark.extended
def test_a_ball_is_followed_back_into_the_hand_that_throws_it(tmp_path):
    clip = draw("projectile", 2)
    (track, *_) = find_tracks(clip.write(tmp_path / "clip.mp4"))
    before = (clip.times > clip.motion.release - 0.12) & (clip.times < clip.motion.release)
    assert track.observed[before].sum() >= 4
    away = np.linalg.norm(track.positions - clip.positions()[:, 0], axis=1)[before & track.observed]
    assert away.max() < 0.1 * track.radius


def test_a_still_video_is_refused():
    frames = np.random.default_rng(0).normal(120, 3, (20, 64, 96, 3)).clip(0, 255).astype(np.uint8)
    with pytest.raises(InputError, match="nothing moves"):
        find_tracks(Clip(torch.from_numpy(frames), torch.arange(20) / 25))


def test_noise_that_hides_the_background_is_named():
    """Noise of whole blocks is not averaged out by a blur."""
    blocks = np.random.default_rng(0).normal(120, 60, (20, 8, 12, 3))
    frames = blocks.repeat(8, 1).repeat(8, 2).clip(0, 255).astype(np.uint8)
    with pytest.raises(VideoError, match="or it is noise"):
        find_tracks(Clip(torch.from_numpy(frames), torch.arange(20) / 25))


def test_where_nothing_is_seen_in_noise_the_contrast_that_is_lost_is_named():
    frames = np.full((20, 64, 96, 3), 30.0)
    for number, frame in enumerate(frames):
        frame[20:30, 10 + 3 * number : 20 + 3 * number] += 6
    noisy = np.random.default_rng(0).normal(frames, 25).clip(0, 255).astype(np.uint8)
    with pytest.raises(InputError, match=r"tracked\. .*noisy, by .* levels, as in low light: .* not seen\.$"):
        find_tracks(Clip(torch.from_numpy(noisy), torch.arange(20) / 25))


@pytest.mark.parametrize(("level", "contrast", "noise"), [(120, 40, 12), (20, 10, 4)])
def test_what_differs_less_than_the_noise_is_followed_after_smoothing(level, contrast, noise):
    """A disc that differs by less than five standard deviations, and in the dark by less than codecs do."""
    rows, columns = np.mgrid[:120, :160] + 0.5
    x = 30 + 3.0 * np.arange(30)
    frames = level + contrast * (np.hypot(columns - x[:, None, None], rows - 60) < 12)[..., None].repeat(3, -1)
    noisy = np.random.default_rng(0).normal(frames, noise).clip(0, 255).astype(np.uint8)
    (track,) = find_tracks(Clip(torch.from_numpy(noisy), torch.arange(30) / 25))
    assert track.observed.sum() >= 28
    error = track.positions[track.observed] - np.stack([x, np.full(30, 60.0)], 1)[track.observed]
    assert np.abs(error).max() < 0.8
    assert any("it is smoothed by" in note for note in track.notes)
    assert any("brightened" in note for note in track.notes) == (level == 20)


def test_a_gif_of_256_dithered_colors_is_followed(tmp_path):
    """The dithering changes nearly every pixel from frame to frame, by up to 85 levels of blue."""
    clip = draw("roll", 1, SMALL)
    (track,) = find_tracks(video.write(tmp_path / "clip.gif", clip.frames(), 25))
    errors, visible = _errors(clip, track)
    assert visible > 0.9
    assert np.median(errors) < 0.25
    assert errors.max() < 1.5


def test_a_moving_camera_is_refused():
    random = np.random.default_rng(0)
    wall = np.repeat(np.repeat(random.integers(0, 255, (40, 60, 3)), 6, 0), 6, 1).astype(np.uint8)
    frames = np.stack([wall[10:210, 3 * time : 3 * time + 240] for time in range(30)])
    with pytest.raises(VideoError, match="camera"):
        find_tracks(Clip(torch.from_numpy(frames), torch.arange(30) / 25))


def test_another_number_of_things_than_expected_is_refused(collision):
    _, path = collision
    with pytest.raises(InputError, match="expected 1 moving object, found 2"):
        find_tracks(path, objects=1)
    with pytest.raises(InputError, match="expected 5 moving objects, found 2"):
        find_tracks(path, objects=5)


def test_frames_that_show_the_one_before_again_are_not_counted(tmp_path):
    clip = draw("circular", 2, SMALL, fps=15, repeat=2)
    (track,) = find_tracks(clip.write(tmp_path / "clip.mp4"))
    again = clip.shown_frames != np.arange(len(clip.shown_frames))
    assert track.observed[~again].mean() > 0.9
    assert track.observed[again].mean() < 0.1
    errors, _ = _errors(clip, track)
    assert np.quantile(errors, 0.95) < 0.6


def test_a_thing_that_moves_more_than_its_size_between_frames(tmp_path):
    clip = draw("circular", 3, SMALL, fps=8)
    (track,) = find_tracks(clip.write(tmp_path / "clip.mp4"))
    assert np.median(np.linalg.norm(np.diff(clip.positions()[:, 0], axis=0), axis=1)) > 2 * track.radius
    errors, visible = _errors(clip, track)
    assert visible > 0.85
    assert np.quantile(errors, 0.95) < 0.8


def test_a_hand_is_no_thing_that_is_thrown(tmp_path):
    clip = draw("projectile", 1, SMALL, fps=50)
    (track,) = find_tracks(clip.write(tmp_path / "clip.mp4"))
    errors, visible = _errors(clip, track)
    assert visible > 0.85
    assert np.quantile(errors, 0.9) < 0.8


def test_a_portrait_with_a_rotation_flag(tmp_path):
    clip = draw("fall", 1, SMALL, size=(240, 320), fps=60, quarter_turns=1)
    (track,) = find_tracks(clip.write(tmp_path / "clip.mp4"), objects=1)
    errors, visible = _errors(clip, track)
    assert visible > 0.8
    assert np.quantile(errors, 0.9) < 0.8


def _square(centers, background, size=12):
    """Frames of a red square at whole pixels; None where it is not there."""
    frames = np.repeat(background[None], len(centers), 0)
    for frame, place in zip(frames, centers, strict=True):
        if place is not None:
            frame[place[1] : place[1] + size, place[0] : place[0] + size] = (200, 30, 30)
    return Clip(torch.from_numpy(frames), torch.arange(len(frames)) / 30)


def _wall():
    return np.random.default_rng(1).normal(150, 3, (120, 200, 3)).clip(0, 255).astype(np.uint8)


def test_one_that_stands_still_most_of_the_time():
    centers = [(20, 50)] * 20 + [(20 + 3 * step, 50) for step in range(20)] + [(77, 50)] * 20
    (track,) = find_tracks(_square(centers, _wall()))
    assert track.observed.mean() > 0.9
    truth = np.array(centers) + 6.0
    assert np.abs(track.positions - truth)[track.observed].max() < 0.3


def test_one_that_leaves_is_not_seen_afterwards():
    centers = [(10 + 6 * step, 40) for step in range(29)] + [None] * 20
    (track,) = find_tracks(_square(centers, _wall()))
    assert track.observed[:28].mean() > 0.9
    assert not track.observed[30:].any()
    assert np.isnan(track.positions[35]).all()


def test_a_box_or_a_color_points_at_one_of_several():
    first = _square([(10 + 4 * step, 20) for step in range(40)], _wall())
    frames = first.frames.numpy().copy()
    for step, frame in enumerate(frames):
        frame[80:92, 180 - 4 * step : 192 - 4 * step] = (30, 60, 200)
    clip = Clip(torch.from_numpy(frames), first.times)
    assert len(find_tracks(clip)) == 2
    (red,) = find_tracks(clip, object="red")
    (blue,) = find_tracks(clip, object=(0, 70, 60, 30))
    assert red.positions[20, 1] == pytest.approx(26, abs=0.2)
    assert blue.positions[20, 1] == pytest.approx(86, abs=0.2)
    (cut,) = find_tracks(clip, crop=(0, 60, 200, 60), start=0.2, stop=1.0)
    assert cut.positions[10, 1] == pytest.approx(86, abs=0.2)
    assert cut.times[0] == pytest.approx(0.2)
    with pytest.raises(InputError, match="object: no moving object"):
        find_tracks(clip, object="yellow")


def test_a_shaking_camera_is_steadied():
    """Shifts of up to a pixel and more, to a twentieth of a pixel where the background shows them."""
    random = np.random.default_rng(3)
    wall = cv2.GaussianBlur(random.normal(128, 80, (140, 220, 3)).astype(np.float32), (0, 0), 2.0)
    shifts = random.normal(0, 0.7, (40, 2))
    frames = np.zeros((40, 120, 200, 3), np.uint8)
    for step, shift in enumerate(shifts):
        picture = wall.copy()
        cv2.circle(picture, (16 * (30 + 4 * step), 16 * 70), 16 * 9, (250.0, 220.0, 20.0), -1, cv2.LINE_AA, 4)
        matrix = np.array([[1, 0, shift[0] - 10], [0, 1, shift[1] - 10]])
        frames[step] = cv2.warpAffine(picture, matrix, (200, 120), flags=cv2.INTER_CUBIC).clip(0, 255)
    (track,) = find_tracks(Clip(torch.from_numpy(frames), torch.arange(40) / 30))
    truth = np.stack([20.5 + 4.0 * np.arange(40), np.full(40, 60.5)], 1)
    away = (track.positions - truth)[track.observed]
    assert away.std(0).max() < 0.15
    assert "shakes" in track.notes[0]


def test_a_ball_is_followed_where_only_its_light_half_shows():
    """It flies out from before something as dark as its shadow side, of which less than half of it can be told."""
    random = np.random.default_rng(0)
    times = np.arange(90) / 240
    centers = np.stack([-8 + 3.0 * np.arange(90), 100 - 1.6 * np.arange(90) + 0.02 * np.arange(90) ** 2], 1)
    rows, columns = np.mgrid[0:120, 0:240].astype(float) + 0.5
    frames = []
    for x, y in centers:
        wall = np.where(columns < 60, 40.0, 160.0)
        covered = np.clip(3.6 - np.hypot(columns - x, rows - y), 0, 1)
        light = np.clip(-0.2 + 0.8 * (y - rows) + 0.8 * (x - columns), 0, 1)
        picture = wall * (1 - covered) + covered * (40 + 170 * light)
        frames.append(np.repeat(picture[..., None], 3, -1) + random.normal(0, 2, (120, 240, 3)))
    clip = Clip(torch.from_numpy(np.stack(frames).clip(0, 255).astype(np.uint8)), torch.from_numpy(times))
    (track,) = find_tracks(clip)
    dark = (centers[:, 0] > 4) & (centers[:, 0] < 55)
    assert track.observed[dark].mean() > 0.9
    away = np.linalg.norm(track.positions - centers, axis=1)
    # Half of a disc of 3.6 pixels has its middle 1.5 pixels from the disc's; the track says that it is unsure there.
    assert away[dark & track.observed].max() < 2.0
    clear = (centers[:, 0] > 70) & track.observed
    assert np.median(track.sigma[dark & track.observed]) > 2 * np.median(track.sigma[clear])


def test_a_large_thing_of_two_colors_that_passes_a_ruler(tmp_path):
    """A dark ring around a light middle, cut by a string, before a wall with a bright ruler right below its path."""
    random = np.random.default_rng(0)
    times = np.arange(50) / 25
    centers = np.stack([40 + 4.6 * np.arange(50), np.full(50, 88.0)], 1)
    rows, columns = np.mgrid[0:140, 0:320].astype(float) + 0.5
    wall = np.where((rows > 109)[..., None], [230.0, 190.0, 70.0], [190.0, 200.0, 170.0])
    frames = []
    for x, y in centers:
        away = np.hypot(columns - x, rows - y)
        ring, middle = np.clip(20.5 - away, 0, 1), np.clip(9.5 - away, 0, 1)
        picture = wall * (1 - ring[..., None]) + ring[..., None] * [40.0, 45.0, 50.0]
        picture = picture * (1 - middle[..., None]) + middle[..., None] * [225.0, 120.0, 100.0]
        string = np.clip(2.0 - np.abs(rows - y + 0.5 * (columns - x)), 0, 1) * (columns > x)
        picture = picture * (1 - string[..., None]) + string[..., None] * 235.0
        frames.append(picture + random.normal(0, 3, picture.shape))
    clip = Clip(torch.from_numpy(np.stack(frames).clip(0, 255).astype(np.uint8)), torch.from_numpy(times))
    (track,) = find_tracks(clip)
    away = track.positions[track.observed] - centers[track.observed]
    assert track.observed.mean() > 0.9
    assert np.linalg.norm(away - np.median(away, axis=0), axis=1).max() < 0.8


@pytest.mark.parametrize("seed", [101, 113])
def test_what_rests_until_it_is_struck_is_found_with_what_strikes_it(tmp_path, seed):
    """It is no shadow of the other; where it then moves by less than its size, parts of it always hide a place."""
    clip = draw("collision", seed, Filming(size=(320, 240), fps=50.0, fill_fraction=0.75))
    tracks = find_tracks(clip.write(tmp_path / "clip.mp4"), min_objects=2)
    assert len(tracks) == 2
    centers = clip.positions()
    for body in range(2):
        off = [
            np.median(np.linalg.norm((track.positions - centers[:, body])[track.observed], axis=1)) for track in tracks
        ]
        assert min(off) < 0.5


def test_a_thing_that_gets_smaller_on_its_way_is_followed_from_the_beginning():
    """Thrown away from the camera, a ball rolls on, half as large, for most of the clip."""
    rows, columns = np.mgrid[:120, :160] + 0.5
    frames = np.full((120, 120, 160, 3), 150, np.uint8)
    first, flight, radii = 12, 24, np.array([7.0, 4.0])
    for number in range(first, len(frames)):
        elapsed = number - first
        fraction = min(elapsed / flight, 1.0)
        x, y = 12 + 2.5 * min(elapsed, flight) + 0.8 * max(elapsed - flight, 0), 80 - 4 * elapsed + elapsed**2 / 6
        y = y if elapsed < flight else 80.0
        coverage = np.clip(radii[0] + fraction * np.diff(radii) - np.hypot(columns - x, rows - y) + 0.5, 0, 1)
        frames[number] = np.round(150 - 110 * coverage)[..., None]
    noisy = frames + np.random.default_rng(0).normal(0, 2, frames.shape)
    (track,) = find_tracks(Clip(torch.from_numpy(noisy.clip(0, 255).astype(np.uint8)), torch.arange(120) / 60))
    assert np.flatnonzero(track.observed)[0] <= first + 2
    # As large as what a hand might add is its error, and not as large as the ball.
    assert track.sigma[track.observed].max() < 0.4 * track.radius


def test_a_ball_that_a_narrow_post_hides_in_part_says_how_unsure_its_place_is():
    """A ball that swings behind a post half as wide as its radius; the center of what shows is beside its own."""
    random, rows, columns = np.random.default_rng(0), *(np.mgrid[:120, :240] + 0.5)
    times = np.arange(120) / 30
    x = 120 + 60 * np.cos(3 * times)
    frames = 160.0 - 110 * np.clip(20.5 - np.hypot(columns - x[:, None, None], rows - 60), 0, 1)
    frames[:, :, 126:136] = 95
    noisy = random.normal(frames[..., None].repeat(3, -1), 2).clip(0, 255).astype(np.uint8)
    (track,) = find_tracks(Clip(torch.from_numpy(noisy), torch.from_numpy(times)))
    errors = np.linalg.norm(track.positions - np.stack([x, np.full(120, 60.0)], 1), axis=1)[track.observed]
    assert errors.max() > 4.0
    assert (errors / track.sigma[track.observed]).max() < 4.0
    assert np.median(errors[np.abs(x[track.observed] - 131) > 28]) < 0.2
    assert np.median(track.sigma[track.observed][np.abs(x[track.observed] - 131) > 28]) < 0.2


def test_a_dark_picture_is_brightened_also_without_noise(tmp_path):
    """A block in a quarter of the light, of a few levels' contrast: compression changes it as much as it moves."""
    clip = draw("slide", 20, brightness=0.25, flicker=0.08)
    (track,) = find_tracks(clip.write(tmp_path / "clip.mp4"))
    errors, visible = _errors(clip, track)
    assert visible > 0.9
    assert np.sqrt(np.square(errors).mean()) < 1.2
    assert any("picture is dark" in note for note in track.notes)


@pytest.mark.extended
def test_a_static_camera_in_flickering_light_is_not_taken_for_a_moving_one(tmp_path):
    """Corners hardly move, while the shift against the first frame drifts in the light."""
    clip = draw("collision", 60, brightness=0.4, flicker=0.04)
    assert len(find_tracks(clip.write(tmp_path / "clip.mp4"), min_objects=2)) == 2
