"""What the worker makes of tracks whose physics is known: a length, other motions by sliders, and files."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from identification.clip_tracks import throw_at_a_wall
from scipy.integrate import solve_ivp

from physvision.app.schema import IdentifyRequest, Ruler, SavedAnalysis, SavedTrack, SavedTracks, to_json
from physvision.app.tasks import Tasks
from physvision.core import InputError
from physvision.perception import Track

LENGTH, GRAVITY, SCALE, AMPLITUDE = 0.4, 9.81, 300.0, 0.9
PIVOT = (160.0, 40.0)


def pendulum():
    """A pendulum without losses, from an ODE solver, with noise of a tenth of a pixel."""
    times = np.arange(90) / 30

    def slope(time, state):
        return state[1], -GRAVITY / LENGTH * math.sin(state[0])

    angle = solve_ivp(slope, (0, 3), (AMPLITUDE, 0.0), t_eval=times, rtol=1e-10, atol=1e-12).y[0]
    positions = np.array(PIVOT) + SCALE * LENGTH * np.stack([np.sin(angle), np.cos(angle)], 1)
    noise = 0.1 * np.random.default_rng(0).standard_normal(positions.shape)
    return Track(times, positions + noise, np.full(90, 0.1), np.ones(90, bool), radius=5.0, name="object 1")


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    """Tasks, a job of an opened analysis, and what the page was shown of it."""
    ruler = Ruler((0.0, 0.0, 30.0, 40.0), 50 / SCALE)
    request = IdentifyRequest("pendulum", ruler=ruler, origin=PIVOT)
    saved = SavedAnalysis(1, "a.mp4", (320.0, 240.0), (SavedTrack.of(pendulum()),), request, "pendulum")
    tasks, stages = Tasks(), []
    job = {"analysis": "a", "name": "a", "clip": None, "files": str(tmp_path_factory.mktemp("analysis") / "files")}
    shown = tasks.run(
        {**job, "kind": "restore", "request": to_json(saved)}, lambda **data: stages.append(data["stage"])
    )
    assert stages == ["fitting pendulum", "intervals"]
    return tasks, job, shown


def run(analysis, kind, **request):
    tasks, job, _ = analysis
    return tasks.run({**job, "kind": kind, "request": json.dumps(request)}, lambda **data: None)


def test_the_result_has_the_length(analysis):
    result = analysis[2]["result"]
    values = {entry["name"]: entry for entry in result["parameters"]}
    assert values["length"]["value"] == pytest.approx(LENGTH, rel=0.005)
    assert values["gravity"]["value"] == pytest.approx(GRAVITY, rel=0.01)
    assert values["mass"]["value"] is None
    assert values["mass"]["reason"]
    low, high = values["length"]["range"]
    assert low < LENGTH < high
    assert result["scale"] == pytest.approx(SCALE, rel=1e-6)
    x, y = zip(*result["observed"], strict=True)
    assert result["origin"] == [min(x), max(y)]  # the lower left corner, as in motion.csv
    assert len(result["observed"]) == len(result["fitted"]) == len(result["times"]) == 90
    total = np.add(result["energy"]["kinetic"], result["energy"]["potential"])
    assert np.ptp(total) < 0.02 * np.ptp(result["energy"]["kinetic"])
    json.dumps(analysis[2], allow_nan=False)


@pytest.mark.parametrize("ratio", [0.6, 1.02, 1.5])
def test_a_longer_string_swings_more_slowly_at_the_same_gravity(analysis, ratio):
    before = {entry["name"]: entry["value"] for entry in analysis[2]["result"]["parameters"]}
    answer = run(analysis, "simulate", values={"length": ratio * before["length"]})
    assert answer["values"]["gravity"] == pytest.approx(before["gravity"], rel=1e-3)
    assert (answer["values"]["period"] / before["period"]) ** 2 == pytest.approx(ratio, rel=2e-3)
    assert answer["values"]["amplitude"] == pytest.approx(before["amplitude"], rel=0.02)
    positions = np.array([row for row in answer["positions"] if row[0] is not None])
    radius = np.linalg.norm(positions - np.array(PIVOT), axis=1)
    assert radius == pytest.approx(SCALE * ratio * LENGTH, rel=0.02)
    assert len(answer["positions"]) == 90 + len(analysis[2]["result"]["future"]["times"])


def test_without_changes_it_is_the_motion_that_was_found(analysis):
    answer = run(analysis, "simulate", values={})
    assert np.allclose(answer["positions"][:90], analysis[2]["result"]["fitted"], atol=0.02)


@pytest.mark.parametrize("values", [{"length": -0.1}, {"mass": 1.0}, {"nothing": 1.0}, {"period": 0.0}])
def test_values_that_no_motion_has(analysis, values):
    with pytest.raises(InputError, match=r"cannot have that value|expected some of"):
        run(analysis, "simulate", values=values)
    assert run(analysis, "simulate", values={})["values"]["length"] == pytest.approx(LENGTH, rel=0.005)


def test_the_files_and_the_motion_in_its_axes(analysis):
    files = run(analysis, "export", film=False)["files"]
    assert {"analysis.json", "motion.csv", "parameters.xlsx", "parameters.tex", "report.html", "states.csv"} <= set(
        files
    )
    folder = analysis[1]["files"]
    with (Path(folder) / "motion.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    x, y, vx, vy = (
        np.array([float(row[f"object_1_{name}"]) for row in rows]) for name in ("x_m", "y_m", "vx_m/s", "vy_m/s")
    )
    assert np.hypot(x, y) == pytest.approx(LENGTH, rel=0.01)
    assert y.max() < 0  # below the pivot, y up
    fastest = math.sqrt(2 * GRAVITY * LENGTH * (1 - math.cos(AMPLITUDE)))
    assert np.hypot(vx, vy).max() == pytest.approx(fastest, rel=0.02)


SCENE = f"""<mujoco><option gravity="0 0 -7"/><worldbody><body name="bob" pos="0 0 1">
<joint name="hinge" axis="0 1 0"/><geom name="ball" type="sphere" size=".02" pos="0 0 {-LENGTH}"/></body>
</worldbody></mujoco>"""


@pytest.fixture
def own(tmp_path):
    """Tasks, and a job of an analysis whose tracks are known, in a folder of its own."""
    (tmp_path / "a").mkdir()
    saved = SavedTracks((320.0, 240.0), (SavedTrack.of(pendulum()),))
    (tmp_path / "a" / "tracks.json").write_text(to_json(saved), encoding="utf-8")
    return Tasks(), {"analysis": "own", "name": "a", "clip": None, "files": str(tmp_path / "a" / "files")}, None


def test_a_motion_without_a_scale_has_sliders_too(own):
    run(own, "identify", motion="pendulum")
    answer = run(own, "simulate", values={"period": 1.5})
    assert answer["values"]["period"] == pytest.approx(1.5, rel=1e-3)
    assert "length" not in answer["values"]


def test_an_own_scene_is_read_and_offers_what_can_be_unknown(own):
    tasks, job, _ = own
    with pytest.raises(InputError, match="choose the file"):
        run(own, "identify", motion="own_scene", unknown=["gravity:z"])
    for text in (
        "no scene",
        "<mujoco/>",
        "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>",
        "<a" + " " * 2**20,
    ):
        with pytest.raises(InputError):
            tasks.run({**job, "kind": "scene", "request": text}, lambda **data: None)
    scene = tasks.run({**job, "kind": "scene", "request": SCENE}, lambda **data: None)["scene"]
    assert scene["bodies"] == ["bob"]
    offered = {entry["name"]: entry["value"] for entry in scene["properties"]}
    assert offered["gravity:z"] == -7.0
    assert offered["joint_damping:hinge"] == 0.0
    with pytest.raises(InputError, match="at least one property"):
        run(own, "identify", motion="own_scene")


@pytest.mark.extended
def test_an_own_scene_is_identified_and_saved(own, tmp_path):
    tasks, job, _ = own
    scene = tasks.run({**job, "kind": "scene", "request": SCENE}, lambda **data: None)["scene"]
    ruler = {"points": [0, 0, 30, 40], "length": 50 / SCALE}
    result = run(own, "identify", motion="own_scene", scene="b.xml", unknown=["gravity:z"], ruler=ruler)["result"]
    values = {entry["name"]: entry["value"] for entry in result["parameters"]}
    assert values["gravity:z"] == pytest.approx(-GRAVITY, rel=0.01)
    assert any("the lengths of the scene and the given scale" in line for _, line in result["basis"])
    energy = result["energy"]
    assert energy["note"] == ""
    total = np.add(energy["kinetic"], energy["potential"])
    assert np.ptp(total) < 0.02 * np.ptp(energy["kinetic"])
    assert "--motion b.xml --unknown gravity:z" in result["command"]
    answer = run(own, "simulate", values={"gravity:z": -5.0})
    assert answer["values"]["gravity:z"] == pytest.approx(-5.0, rel=1e-3)
    text = (tmp_path / "a" / "files" / "analysis.json").read_text(encoding="utf-8")
    again = {"analysis": "again", "name": "b", "clip": None, "files": str(tmp_path / "b" / "files")}
    (tmp_path / "b").mkdir()
    reopened = Tasks().run({**again, "kind": "restore", "request": text}, lambda **data: None)
    assert reopened["scene"] == scene
    assert np.allclose(reopened["result"]["fitted"], result["fitted"], atol=0.05)


@pytest.mark.parametrize("kind", ["simulate", pytest.param("identify", marks=pytest.mark.extended)])
def test_another_worker_goes_on_with_the_same_analysis(analysis, kind):
    _, job, shown = analysis
    request = {"values": {}} if kind == "simulate" else {"motion": "pendulum"}
    answer = Tasks().run({**job, "kind": kind, "request": json.dumps(request)}, lambda **data: None)
    positions = answer["positions"][:90] if kind == "simulate" else answer["result"]["fitted"]
    assert np.allclose(positions, shown["result"]["fitted"], atol=0.05)


@pytest.mark.parametrize("kind", ["simulate", "identify", "export"])
def test_an_analysis_that_was_never_made(analysis, tmp_path, kind):
    tasks, job, _ = analysis
    request = '{"values": {}}' if kind == "simulate" else "{}"
    job = {**job, "analysis": "b", "files": str(tmp_path / "files"), "kind": kind, "request": request}
    with pytest.raises(InputError, match="nothing was tracked yet"):
        tasks.run(job, lambda **data: None)


def test_a_checkpoint_is_named_and_never_a_path(analysis):
    for name in ("../models/pendulum.safetensors", "/etc/passwd", "flow", ""):
        with pytest.raises(InputError, match="checkpoint: expected one of"):
            run(analysis, "predict", checkpoint=name)
    with pytest.raises(InputError, match="no clip"):
        run(analysis, "predict", checkpoint="pendulum")


@pytest.mark.extended
def test_a_checkpoint_predicts_a_clip(analysis, tmp_path):
    from physvision import video
    from physvision.datasets import PendulumRecipe

    clip = video.write(tmp_path / "a.mp4", PendulumRecipe(trials=10, frames=40, seed=1).make("test", 0)["frames"], 20)
    tasks, job, _ = analysis
    request = json.dumps({"checkpoint": "pendulum", "horizon": 0.5, "film": False})
    job = {**job, "clip": str(clip), "kind": "predict", "files": str(tmp_path / "files"), "request": request}
    prediction = tasks.run(job, lambda **data: None)["prediction"]
    assert prediction["command"] == "physvision predict a --checkpoint pendulum --horizon 0.5"
    assert set(prediction["files"]) == {"predicted_report.html", "predicted_states.csv", "predicted_states.npz"}
    assert {path.name for path in tmp_path.iterdir()} == {"a.mp4", "files"}
    rows = (tmp_path / "files" / "predicted_states.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * 38  # links, and frames from the third on


@pytest.mark.extended
def test_a_throw_that_ends_at_a_wall_is_shown_up_to_the_wall(tmp_path):
    """Long after its end no motion is simulated, which must not cost the result."""
    track = throw_at_a_wall()
    request = IdentifyRequest("projectile", known={"gravity": (9.81, 0.0)})
    saved = SavedAnalysis(1, "a.mp4", (432.0, 240.0), (SavedTrack.of(track),), request, "projectile")
    tasks = Tasks()
    job = {"analysis": "wall", "name": "a", "clip": None, "files": str(tmp_path / "files")}
    shown = tasks.run({**job, "kind": "restore", "request": to_json(saved)}, lambda **data: None)["result"]
    end = next(index for index in range(479, 0, -1) if shown["fitted"][index][0] is not None)
    assert track.times[end] == pytest.approx(0.7, abs=0.03)
    assert shown["span"][1] == pytest.approx(track.times[end])
    assert shown["future"]["times"] == []
    values = {"speed": 1.02 * next(entry["value"] for entry in shown["parameters"] if entry["name"] == "speed")}
    request = json.dumps({"values": values})
    positions = tasks.run({**job, "kind": "simulate", "request": request}, lambda **data: None)["positions"]
    assert positions[end][0] > shown["fitted"][end][0]
    assert positions[end + 1][0] is None
