"""The table of the motion, against laws whose velocities are known in closed form."""

import csv
import zipfile

import numpy as np
import pytest

from physvision.identification import identify
from physvision.identification.motion_table import Axes, motion_derivatives, write_motion_tables
from physvision.perception import Track

SCALE, GRAVITY, NOISE = 200.0, 9.81, 0.05  # px a meter, m/s², px
VELOCITY = np.array([1.5, 4.0])  # m/s, y up


def as_track(times, positions, noise=NOISE, unit="px", name="ball"):
    positions = positions + noise * np.random.default_rng(0).standard_normal(positions.shape)
    return Track(times, positions, np.full(len(times), noise), np.ones(len(times), bool), None, 5.0, None, name, unit)


def read_table(path, delimiter=","):
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    return {name: np.array([float(row[name].replace(",", ".") or "nan") for row in rows]) for name in rows[0]}


@pytest.fixture(scope="module")
def throw():
    """A throw without drag, of which a hand shifts the first positions, in a picture of 400 by 300 px."""
    times = np.arange(40) / 60
    height = VELOCITY[1] * times - GRAVITY / 2 * times**2
    positions = np.array([50.0, 200.0]) + SCALE * np.stack([VELOCITY[0] * times, -height], 1)
    positions[:3] += [0.0, 2.0]
    known_values = {"gravity": GRAVITY, "scale": SCALE, "drag": 0.0}
    return identify([as_track(times, positions)], "projectile", known_values, size=(400, 300))


def test_a_throw_has_the_velocity_of_its_parabola(throw, tmp_path):
    write_motion_tables(throw, tmp_path)
    table = read_table(tmp_path / "motion.csv")
    times = table["time_s"]
    assert list(table) == ["time_s"] + [
        f"ball_{name}" for name in ("x_m", "y_m", "fitted_x_m", "fitted_y_m", "vx_m/s", "vy_m/s", "ax_m/s²", "ay_m/s²")
    ]
    assert table["ball_vx_m/s"] == pytest.approx(np.full(len(times), VELOCITY[0]), abs=0.03)
    assert table["ball_vy_m/s"] == pytest.approx(VELOCITY[1] - GRAVITY * times, abs=0.03)
    assert table["ball_ay_m/s²"][1:] == pytest.approx(np.full(len(times) - 1, -GRAVITY), rel=0.02)
    height = VELOCITY[1] * times - GRAVITY / 2 * times**2
    assert table["ball_y_m"] - table["ball_y_m"][-1] == pytest.approx(height - height[-1], abs=0.015)
    assert min(table["ball_x_m"].min(), table["ball_y_m"].min()) == 0.0


def test_the_velocity_has_no_spike_where_the_hand_is_gone(throw):
    """The fitted position jumps by the hand's shift; a difference from frame to frame would show it as a velocity."""
    offset = throw.fit.values["offset"][0].numpy()
    assert np.abs(offset).max() > 1.0
    times = throw.evidence.times.numpy()
    positions, velocities, _ = motion_derivatives(throw, times)
    assert np.abs(np.diff(np.gradient(positions[:, 1], times))).max() > 2 * GRAVITY * SCALE / 60
    assert np.diff(velocities[:, 1]) == pytest.approx(np.full(len(times) - 1, GRAVITY * SCALE / 60), rel=0.02)


def test_a_fast_spring_has_the_derivatives_of_its_cosine(tmp_path):
    """Nine frames a period: differences from frame to frame would be 7 % too slow."""
    omega, amplitude, times = 16.7, 0.1, np.arange(100) / 25
    y = amplitude * np.cos(omega * times)  # down, as tracks have it
    result = identify([as_track(times, np.stack([0 * times, y], 1), 1e-5, "m")], "spring")
    write_motion_tables(result, tmp_path)
    table = read_table(tmp_path / "motion.csv")
    times = table["time_s"]
    assert table["ball_fitted_y_m"] == pytest.approx(-amplitude * np.cos(omega * times), abs=1e-4)
    assert table["ball_vy_m/s"] == pytest.approx(
        amplitude * omega * np.sin(omega * times), abs=2e-3 * amplitude * omega
    )
    acceleration = amplitude * omega**2 * np.cos(omega * times)
    assert table["ball_ay_m/s²"][1:] == pytest.approx(acceleration[1:], abs=5e-3 * amplitude * omega**2)


def test_axes_that_are_turned_and_decimal_commas(throw, tmp_path):
    """Along an axis that points down the picture, the velocity is that of the fall."""
    write_motion_tables(throw, tmp_path, ",", Axes((50.0, 200.0), -np.pi / 2))
    table = read_table(tmp_path / "motion.csv", ";")
    assert table["ball_vx_m/s"] == pytest.approx(GRAVITY * table["time_s"] - VELOCITY[1], abs=0.03)
    assert table["ball_vy_m/s"] == pytest.approx(np.full(len(table["time_s"]), VELOCITY[0]), abs=0.03)
    sheet = zipfile.ZipFile(tmp_path / "motion.xlsx").read("xl/worksheets/sheet1.xml").decode()
    assert sheet.count("<row ") == 1 + len(table["time_s"])
    assert "ball_vx_m/s" in sheet


def test_axes_are_turned_counterclockwise():
    vectors = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, -10.0]])
    assert Axes(angle=np.pi / 2).rotate(vectors) == pytest.approx(np.array([[0.0, 0.0], [0.0, -10.0], [10.0, 0.0]]))
