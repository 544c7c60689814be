"""The result as the terminal shows it: what it rests on, its clock, and the level of its intervals."""

import re
from dataclasses import replace

import numpy as np
import pytest
from identification.clip_tracks import throw_at_a_wall, write_tracks

from physvision.cli import main
from physvision.identification import identify
from physvision.identification.model import KnownValue
from physvision.identification.output import _key_numbers
from physvision.identification.result_text import result_lines
from physvision.perception import Track

SLOWER = 8  # 240 frames a second, written as 30


@pytest.fixture(scope="module")
def spring():
    times = np.arange(90) / 30
    positions = np.stack([100 + 0 * times, 120 + 50 * np.cos(7 * times)], 1)
    positions += np.random.default_rng(0).normal(0, 0.1, positions.shape)
    track = Track(times, positions, np.full(90, 0.1), np.ones(90, bool), radius=6.0, name="mass")
    known_values = {"mass": (0.5, 0.01), "damping": 0.0}
    return identify([track], "spring", known_values)


def rows(lines):
    return {line[2:16].strip(): line[17:] for line in lines[1:]}


def test_what_a_result_rests_on(spring):
    shown = rows(result_lines(spring))
    assert shown["frame rate"] == "30 frames/s, by the time stamps of the file"
    assert spring.scale_interval is None
    assert shown["scale"].startswith("unknown, so that lengths are in pixels")
    assert shown["taken as exact"] == "damping 0 1/s; give ± if it is not"
    assert shown["known"] == "mass 0.5 ± 0.01 kg"
    assert shown["fitted"] == "0.00 to 2.97 s"
    assert shown["stiffness"].startswith("24.5")


def test_tiles_have_the_interval(spring):
    """Of a mass known to 2 %, the 95 % interval of the stiffness is 1.96 times as wide."""
    tiles = {label.split(",")[0]: (value, label) for value, label in _key_numbers(spring)}
    value, label = tiles["stiffness"]
    low, high = (float(number) for number in label.removeprefix("stiffness, 95 %: ").split(" to "))
    assert float(value.removesuffix(" N/m")) == pytest.approx(24.5, abs=0.1)
    assert (high - low) / 2 == pytest.approx(1.96 * 0.02 * 24.5, rel=0.05)


def slow_motion(stretch=1):
    track = throw_at_a_wall()
    return Track(stretch * track.times, track.positions, track.sigma, track.observed, radius=6.0, name="ball")


def test_slow_motion_has_one_clock_for_the_part_and_one_for_the_motion():
    """A throw between 0.3 and 0.7 s, filmed at 240 frames a second: 2.4 to 5.6 s of the file."""
    known_values = {"gravity": 9.81}
    time_range = (SLOWER * 0.2, SLOWER * 0.9)
    result = identify([slow_motion(SLOWER)], "projectile", known_values, fps=240, time_range=time_range)
    start, end = result.span
    assert 0.2 <= start < 0.4
    assert end == pytest.approx(0.7, abs=0.02)
    assert float(result.evidence.times[0]) == pytest.approx(0.2, abs=1 / 240)
    shown = rows(result_lines(result))
    assert shown["frame rate"] == "240 frames/s, as given; the time stamps of the file say 30"
    assert shown["fitted"] == (
        f"{start:.2f} to {end:.2f} s of the motion: {SLOWER * start:.2f} to {SLOWER * end:.2f} s of the file, "
        "as --from and --to count"
    )
    assert result.scale_interval is not None
    low, high = result.scale_interval
    assert low < 2 * 1560 / 9.81 < high < 1.1 * low  # px/m, from the acceleration in px/s²
    assert re.fullmatch(r"[\d.]+ px/m \(95 %: [\d.]+ to [\d.]+\), from the known gravity", shown["scale"])
    direct = identify([slow_motion()], "projectile", known_values, time_range=(0.2, 0.9))
    assert result.parameters["speed"].value == pytest.approx(direct.parameters["speed"].value, rel=1e-6)


def test_the_part_that_is_printed_is_the_one_to_give(tmp_path, capsys):
    write_tracks(tmp_path / "throw.csv", [slow_motion(SLOWER)])
    arguments = ["identify", str(tmp_path / "throw.csv"), "--motion", "projectile", "--known", "gravity=981cm/s²"]
    assert main([*arguments, "--fps", "240", "--from", "1.6", "--to", "6", "--out", str(tmp_path / "out")]) == 0
    output = capsys.readouterr().out
    assert "scale          " in output
    assert "taken as exact gravity 9.81 m/s²" in output
    assert " s of the file, as --from and --to count" in output


def test_small_errors_have_no_exponent(spring):
    known_values = {"mass": KnownValue(0.0243, 5e-5)}
    fit = replace(spring.fit, evidence=replace(spring.evidence, known_values=known_values))
    assert rows(result_lines(replace(spring, fit=fit)))["known"] == "mass 0.0243 ± 0.00005 kg"
