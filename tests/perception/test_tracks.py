"""Tracks in tables: what is written comes back, and tables of others are read as they are."""

import numpy as np
import pytest
from identification.clip_tracks import write_tracks

from physvision.core import InputError
from physvision.perception import Track, read_tracks
from physvision.perception.track import estimate_noise


def _track(name: str, unit: str = "px", turned: bool = False) -> Track:
    times = np.arange(8) / 30
    positions = np.stack([10 + 40 * times, 5 + 100 * times**2], 1)
    visible = np.arange(8) != 3
    positions[3] = np.nan
    angle = 3 * times if turned else None
    return Track(times, positions, np.where(visible, 0.1, np.inf), visible, angle, name=name, unit=unit)


@pytest.mark.parametrize(("unit", "turned"), [("px", False), ("px", True), ("m", False), ("m", True)])
def test_written_tracks_come_back(tmp_path, unit, turned):
    tracks = [_track("1", unit, turned), _track("2", unit)]
    write_tracks(tmp_path / "tracks.csv", tracks)
    back = read_tracks(tmp_path / "tracks.csv", unit)
    assert [track.name for track in back] == ["1", "2"]
    for track, another in zip(tracks, back, strict=True):
        assert another.unit == unit
        np.testing.assert_array_equal(another.observed, track.observed)
        np.testing.assert_allclose(another.positions[track.observed], track.positions[track.observed], rtol=1e-8)
        assert (another.angle is None) == (track.angle is None)
        if track.angle is not None:
            np.testing.assert_allclose(another.angle[track.observed], track.angle[track.observed], rtol=1e-8, atol=1e-8)


def test_table_with_byte_order_mark_semicolons_and_other_columns(tmp_path):
    rows = "\ufefft;x_m2;y_m2;r_m2;x_m1;y_m1;r_m1\n" + "".join(f"{i / 100};{i},5;7;1;3;{i};2\n" for i in range(5))
    (tmp_path / "table.csv").write_text(rows, encoding="utf-8")
    first, second = read_tracks(tmp_path / "table.csv", "mm")
    assert (first.name, second.name) == ("m2", "m1")
    np.testing.assert_allclose(first.positions[2], [2.5e-3, -7e-3])
    np.testing.assert_allclose(second.positions[:, 1], -np.arange(5) * 1e-3)


def test_table_after_a_line_of_its_program(tmp_path):
    (tmp_path / "table.txt").write_text("ball\nt\tx\ty\n0\t1\t2\n0.1\t2\t2\n0.2\t\t\n0.3\t4\t2\n")
    (track,) = read_tracks(tmp_path / "table.txt")
    np.testing.assert_array_equal(track.observed, [True, True, False, True])


@pytest.mark.parametrize("text", ["", "t,x\n0,1\n1,2\n2,3\n", "t,x,y\n0,1,2\n", "t,x,y\n0,1,a\n1,1,1\n2,1,1\n"])
def test_what_is_no_table_of_tracks_is_refused(tmp_path, text):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(InputError, match=r"table\.csv"):
        read_tracks(tmp_path / "table.csv")


def test_a_track_checks_itself():
    track = _track("a")
    with pytest.raises(InputError, match="finite values wherever"):
        Track(track.times, track.positions, track.sigma, np.ones(8, bool))
    with pytest.raises(InputError, match="increasing"):
        Track(track.times[::-1], track.positions, track.sigma, track.observed)


def test_roughness_is_the_noise_on_a_smooth_motion():
    times = np.arange(2000) / 60
    smooth = np.stack([50 * np.sin(3 * times), 20 * np.cos(3 * times)], 1)
    noise = np.random.default_rng(0).normal(0, 0.2, smooth.shape)
    assert estimate_noise(smooth + noise) == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize("count", [4, 5, 7])
@pytest.mark.parametrize("noise", [0.2, 1e-3])
def test_a_short_table_has_the_noise_about_its_parabola_in_its_unit(count, noise):
    random = np.random.default_rng(count)
    index = np.arange(count)[:, None]
    throw = 1000 * noise * (index * [1.0, -0.8] + index**2 * [0.0, 0.1])
    estimates = [estimate_noise(throw + random.normal(0, noise, throw.shape)) for _ in range(500)]
    assert np.sqrt(np.mean(np.square(estimates))) == pytest.approx(noise, rel=0.1)


def test_three_positions_show_no_noise_so_that_of_a_picture_is_taken():
    assert estimate_noise(np.array([[0.0, 0.0], [0.5, 0.1], [1.0, 0.0]])) == pytest.approx(1 / 500)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (
            [(k + 1e9 * (k > 20), k, k) for k in range(40)],
            "1e\\+09 s without a frame .*; cut the motion there",
        ),
        ([(1e300 * k, k, k) for k in range(40)], "expected numbers below 1e\\+12, .*change their units"),
        ([(k, 1e300 * k, k) for k in range(40)], "expected numbers below 1e\\+12, .*change their units"),
    ],
    ids=["gap", "times", "positions"],
)
def test_times_that_no_simulation_can_cover_are_refused(tmp_path, rows, match):
    (tmp_path / "a.csv").write_text("t,x,y\n" + "".join(f"{t},{x},{y}\n" for t, x, y in rows))
    with pytest.raises(InputError, match=match):
        read_tracks(tmp_path / "a.csv")


def test_columns_belong_together_by_their_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t,x_a,x_b,y_b,y_a\n" + "".join(f"{k},{k},{10 * k},{20 * k},{2 * k}\n" for k in range(5)))
    first, second = read_tracks(path)
    assert (first.name, second.name) == ("a", "b")
    np.testing.assert_array_equal(first.positions[4], [4, 8])
    np.testing.assert_array_equal(second.positions[4], [40, 80])
    path.write_text("t,x_a,y_b\n0,1,2\n1,2,3\n2,3,4\n")
    with pytest.raises(InputError, match="expected columns t, x, y and perhaps angle of each object, got t, x_a, y_b"):
        read_tracks(path)
