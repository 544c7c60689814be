"""The command from tracks and from a drawn clip: the files it leaves, and what it says of wrong options."""

import json

import numpy as np
import pytest
from identification.clip_tracks import tracks_of, write_tracks

from physvision.cli import main
from physvision.datasets.clips import draw
from physvision.identification.command import _parse_known_values, _parse_scale, build_parser


def test_tracks_as_a_table(tmp_path, capsys):
    clip = draw("spring", 1, duplicated=0.0)
    write_tracks(tmp_path / "spring.csv", tracks_of(clip))
    arguments = [str(tmp_path / "spring.csv"), "--motion", "spring", "--known", f"mass={clip.truth['mass']}±0.001"]
    assert main(["identify", *arguments, "--out", str(tmp_path / "out")]) == 0
    result = json.loads((tmp_path / "out" / "parameters.json").read_text())
    assert result["motion"] == "spring"
    stiffness = result["parameters"]["stiffness"]
    assert stiffness["unit"] == "N/m"
    low, high = stiffness["interval_68"]
    # A deviation of the mass of one gram is one of the stiffness of k/m grams.
    assert 0.9 < (high - low) / 2 / (0.001 * clip.truth["stiffness"] / clip.truth["mass"]) < 1.3
    assert (tmp_path / "out" / "states.csv").read_text().count("\n") == len(clip.times) + 1
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()
    assert "95 %" in capsys.readouterr().out


def test_results_as_tables_with_decimal_commas_and_a_budget(tmp_path):
    clip = draw("spring", 1, duplicated=0.0)
    write_tracks(tmp_path / "spring.csv", tracks_of(clip))
    arguments = [str(tmp_path / "spring.csv"), "--motion", "spring", "--known", f"mass={clip.truth['mass']}±0.001"]
    assert main(["identify", *arguments, "--decimal", ",", "--out", str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out" / "parameters.csv").read_text(encoding="utf-8").splitlines()
    table = {
        row[0]: dict(zip(lines[0].split(";"), row, strict=True)) for row in (line.split(";") for line in lines[1:])
    }
    parameters = json.loads((tmp_path / "out" / "parameters.json").read_text())["parameters"]
    stiffness = table["stiffness"]
    assert float(stiffness["value"].replace(",", ".")) == pytest.approx(parameters["stiffness"]["value"], rel=1e-3)
    # The mass is uncertain by far more than the tracks, and the period does not depend on it.
    budget = parameters["stiffness"]["budget"]
    assert budget["known_values"] > 3 * max(budget["tracking"], budget["model"])
    low, high = parameters["stiffness"]["interval_68"]
    assert np.hypot.reduce(list(budget.values())) == pytest.approx((high - low) / 2)
    assert parameters["period"]["budget"]["known_values"] == 0.0
    states = (tmp_path / "out" / "states.csv").read_text().splitlines()
    assert len(states[1].split(";")) == len(states[0].split(";")) == 5
    assert {path.suffix for path in (tmp_path / "out").glob("parameters.*")} == {".json", ".csv", ".xlsx", ".tex"}


def test_a_folder_of_tracks(tmp_path):
    write_tracks(tmp_path / "round.csv", tracks_of(draw("circular", 1, duplicated=0.0)))
    (tmp_path / "broken.csv").write_text("t,x,y\n0,1,2\n")
    assert main(["identify", "--batch", str(tmp_path), "--motion", "circular", "--out", str(tmp_path / "out")]) == 0
    table = (tmp_path / "out" / "parameters.csv").read_text()
    assert "round.csv,circular,period" in table
    assert "broken.csv,rejected" in table


@pytest.mark.slow
def test_a_clip(tmp_path):
    clip = draw("pendulum", 1)
    path = clip.write(tmp_path / "swing.mp4")
    arguments = [str(path), "--motion", "pendulum", "--known", "gravity=9.81", "--out", str(tmp_path / "out")]
    assert main(["identify", *arguments]) == 0
    result = json.loads((tmp_path / "out" / "parameters.json").read_text())
    assert abs(result["parameters"]["length"]["value"] / clip.truth["length"] - 1) < 0.01
    assert (tmp_path / "out" / "prediction.mp4").stat().st_size > 10_000


def test_options_as_people_write_them():
    given = ["a.mp4", "--known", "gravity=9.81", "--from", "1", "--to=2", "--known=mass=3"]
    options = build_parser().parse_args(given)
    assert (options.video, options.start, options.stop) == ("a.mp4", 1.0, 2.0)
    assert options.known == ["gravity=9.81", "mass=3"]


def test_angles_may_be_given_in_degrees():
    values = _parse_known_values(["angle=30°±1°,gravity=9.81", "length=0.3±0.001"])
    assert values["angle"].value == pytest.approx(np.pi / 6)
    assert values["angle"].std == pytest.approx(np.pi / 180)
    assert values["gravity"].value == 9.81
    assert _parse_known_values(["angle=0.5"])["angle"].value == 0.5


def test_a_comma_before_a_digit_is_a_decimal_comma():
    values = _parse_known_values(["length=0,25±0,01,gravity=9,81, mass=24,3g"])
    assert {name: known_value.value for name, known_value in values.items()} == pytest.approx(
        {"length": 0.25, "gravity": 9.81, "mass": 0.0243}
    )
    assert values["length"].std == 0.01


@pytest.mark.parametrize(
    ("text", "value", "std"),
    [
        ("length=25cm", 0.25, 0.0),
        ("length=25±0.5cm", 0.25, 0.005),
        ("length=0.25m±5mm", 0.25, 0.005),
        ("mass=24.3 g", 0.0243, 0.0),
        ("angle=30deg", np.pi / 6, 0.0),
        ("angle=30+-1deg", np.pi / 6, np.pi / 180),
        ("gravity=981cm/s^2", 9.81, 0.0),
        ("gravity=9.81m/s2", 9.81, 0.0),
        ("stiffness=2N/cm", 200.0, 0.0),
        ("scale=4px/mm", 4000.0, 0.0),
        ("mass:cart=250g", 0.25, 0.0),
        ("length=1e-1", 0.1, 0.0),
    ],
)
def test_known_values_with_units(text, value, std):
    (known_value,) = _parse_known_values([text]).values()
    assert (known_value.value, known_value.std) == pytest.approx((value, std))


def test_a_scale_by_two_points_and_their_distance_in_centimeters():
    assert _parse_scale("0,0,30,40=12.5cm±1mm").value == pytest.approx(400)
    assert _parse_scale("0,0,30,40=12.5cm±1mm").std == pytest.approx(400 / 125)


def test_nothing_and_a_folder_that_is_not_there(capsys):
    assert main(["identify"]) == 1
    assert "expected a video, or a folder" in capsys.readouterr().err
    assert main(["identify", "--batch", "nowhere"]) == 1
    assert "expected a folder of clips, got nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--known", "gravity"], "expected name=value"),
        (["--known", "gravity=fast"], "expected a number"),
        (["--known", "lenght=0.3"], "expected some of gravity, length"),
        (["--known", "gravity=-9.81"], "expected a number above zero"),
        (["--known", "gravity=9.81°"], "expected a unit out of m/s², cm/s², or none for SI, got '°'"),
        (["--known", "length=10inch"], "expected a unit out of m, cm, mm"),
        (["--known", "drag=-0.1"], "expected a number of at least zero"),
        (["--known", "gravity=nan"], "expected a finite number"),
        (["--known", "gravity=9.81±-1"], "at least zero, got 9.81 ± -1"),
        (["--known"], "argument --known: expected one argument"),
        (
            ["--known", "mass=1", "--motion", "pendulum"],
            "pendulum cannot use mass; leave it out",
        ),
        (["--known", "mass=1", "--motion", "circular"], "a kind that uses it: spring"),
        (["--scale", "inf"], "expected a finite number"),
        (["--fps", "0"], "expected a positive finite number"),
        (["--fps", "-30"], "expected a positive finite number"),
        (["--scale", "1,2,3=4"], "expected 4 numbers"),
        (["--decimal", ";"], 'expected "." or ","'),
        (["--scale", "1,2,1,2=4"], "two points that differ"),
    ],
)
def test_options_that_make_no_sense(options, message, capsys):
    assert main(["identify", "missing.mp4", *options]) == 1
    assert message in capsys.readouterr().err


def test_tables_in_millimeters_and_pictures_without_times(tmp_path, capsys):
    clip = draw("circular", 1, duplicated=0.0)
    (track,) = tracks_of(clip)
    rows = [
        f"{t:.5f};{1e3 * x:.3f};{-1e3 * y:.3f}" for t, (x, y) in zip(track.times, track.positions / 400, strict=True)
    ]
    (tmp_path / "round.csv").write_text("t;x;y\n" + "\n".join(rows).replace(".", ","))
    options = ["--motion", "circular", "--unit", "mm", "--out", str(tmp_path / "out")]
    assert main(["identify", str(tmp_path / "round.csv"), *options]) == 0
    result = json.loads((tmp_path / "out" / "parameters.json").read_text())
    radius = clip.truth["radius"] * clip.options["scale"] / 400
    assert result["parameters"]["radius"]["value"] == pytest.approx(radius, rel=0.02)
    assert result["noise_m"] < 0.01  # meters, not pixels
    assert "x_m" in (tmp_path / "out" / "states.csv").read_text().splitlines()[0]
    capsys.readouterr()
    (tmp_path / "pictures").mkdir()
    assert main(["identify", str(tmp_path / "pictures")]) == 1
    assert "--fps 30" in capsys.readouterr().err


SWING = np.arange(60) / 30
ROWS = [f"{t:.4f},{300 + 50 * np.cos(7 * t):.4f},200,{400 + 20 * np.cos(9 * t):.4f},100" for t in SWING]


def write_table(path, rows, head="t,x_bob,y_bob,x_cart,y_cart"):
    path.write_text("\n".join([head, *rows]) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([f"{t:.4f},5,5,7,7" for t in SWING], "nothing moves: none of bob, cart leaves its first position"),
        ([f"{t:.4f},,,nan,nan" for t in SWING], "at least 5 positions of a moving object, got bob: 0, cart: 0"),
        (ROWS[:1], "at least three rows"),
        (ROWS[::-1], "expected finite, increasing seconds"),
    ],
    ids=["still", "nothing seen", "one row", "backwards"],
)
def test_tables_of_which_nothing_can_be_told(tmp_path, rows, message, capsys):
    assert main(["identify", write_table(tmp_path / "table.csv", rows), "--out", str(tmp_path / "out")]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--crop", "0,0,100,100"], "crop: applies to videos, but tracks were given"),
        (["--object", "#c02020"], "expected the name of a track, one of bob, cart, got '#c02020'"),
        (["--from", "5"], "at least 5 positions of a moving object, got bob: 0, cart: 0"),
        (["--from", "1", "--to", "0.5"], "stop: expected more than start"),
    ],
)
def test_options_that_tables_cannot_follow(tmp_path, options, message, capsys):
    assert main(["identify", write_table(tmp_path / "table.csv", ROWS), "--motion", "spring", *options]) == 1
    assert message in capsys.readouterr().err


def test_the_part_of_a_table_that_is_meant(tmp_path):
    path, out = write_table(tmp_path / "table.csv", ROWS), tmp_path / "out"
    options = ["--motion", "spring", "--object", "cart", "--from", "0.5", "--to", "1.8", "--out", str(out)]
    assert main(["identify", path, *options]) == 0
    result = json.loads((out / "parameters.json").read_text())
    assert result["parameters"]["period"]["value"] == pytest.approx(2 * np.pi / 9, rel=1e-4)
    assert result["warnings"] == []
    assert len((out / "states.csv").read_text().splitlines()) == 1 + 39


@pytest.mark.parametrize(("stiffness", "warnings"), [(98.0, 0), (9.0, 1)])
def test_what_is_told_twice_must_agree(tmp_path, stiffness, warnings):
    """A period of 2 π / 7 s and a mass of 2 kg make 98 N/m."""
    path, out = write_table(tmp_path / "table.csv", ROWS), tmp_path / "out"
    options = ["--motion", "spring", "--object", "bob", "--known", f"mass=2,stiffness={stiffness}", "--out", str(out)]
    assert main(["identify", path, *options]) == 0
    result = json.loads((out / "parameters.json").read_text())
    assert sum("contradict" in warning for warning in result["warnings"]) == warnings
