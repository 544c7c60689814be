"""Scenes of one's own: MuJoCo moves and draws them, and what was unknown of them comes out again."""

# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

import math

import cv2
import mujoco
import numpy as np
import pytest
import torch
from identification.clip_tracks import write_tracks

from physvision import video
from physvision.cli import main
from physvision.core import InputError
from physvision.estimation import Unknown
from physvision.identification import CustomScene, identify
from physvision.identification.command import build_parser
from physvision.identification.scene_names import TrackedPoints, find_entry, moving_body_names
from physvision.perception import Track
from physvision.physics import articulated, rigid2d

NOISE, FPS, SCALE, CORNER = 0.15, 60, 400.0, np.array([160.0, 40.0])
# A bob at the end of an arm that hangs on a spring; the numbers of the first are the truth.
SCENE = """<mujoco><option timestep="{step}" integrator="RK4"/><worldbody><body name="arm">
<joint name="hinge" axis="0 1 0" stiffness="{stiffness}" damping="{damping}"/>
<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".004" mass=".01" contype="0" conaffinity="0"/>
<body name="bob" pos="0 0 -.3"><geom name="ball" type="sphere" size=".03" mass=".2" contype="0" conaffinity="0"/>
<site name="tip" pos="0 0 -.03"/></body></body></worldbody></mujoco>"""
TRUTH = {"stiffness": 0.35, "damping": 0.004}


@pytest.fixture(scope="module")
def swing():
    """Times and places of the bob's middle in the scene's x and z, m."""
    model = mujoco.MjModel.from_xml_string(SCENE.format(step=1 / FPS / 8, **TRUTH))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = 0.8, -1.0
    positions = []
    for _ in range(60):
        mujoco.mj_forward(model, data)
        positions.append(data.geom("ball").xpos[[0, 2]].copy())
        for _ in range(8):
            mujoco.mj_step(model, data)
    return np.arange(60) / FPS, np.array(positions)


def to_pixels(positions):
    return CORNER + SCALE * positions * [1, -1]


def make_track(swing, name="bob"):
    times, positions = swing
    random = np.random.default_rng(0)
    observed = to_pixels(positions) + random.normal(0, NOISE, positions.shape)
    return Track(times, observed, np.full(len(times), NOISE), np.ones(len(times), bool), name=name)


def scene_file(folder):
    path = folder / "arm.xml"
    path.write_text(SCENE.format(step=0.01, stiffness=0.2, damping=0.002))
    return path


def inside_thrice_as_wide(parameter, truth):
    low, high = parameter["interval_95"]
    middle, half = (low + high) / 2, (high - low) / 2
    return abs(truth - middle) < 3 * half


def test_tracks_and_a_model_file_from_the_command_line(tmp_path, swing):
    import json

    write_tracks(tmp_path / "swing.csv", [make_track(swing)])
    arguments = [str(tmp_path / "swing.csv"), "--motion", str(scene_file(tmp_path)), "--out", str(tmp_path / "out")]
    unknowns = ["--unknown", "joint_stiffness:hinge=0.05..1", "--unknown", "joint_damping:hinge=0..0.05"]
    assert main(["identify", *arguments, *unknowns, "--follow", "bob"]) == 0
    result = json.loads((tmp_path / "out" / "parameters.json").read_text())
    assert result["motion"] == "arm"
    stiffness, damping = (result["parameters"][f"joint_{name}:hinge"] for name in TRUTH)
    assert stiffness["unit"] == "N m/rad or N/m"
    assert stiffness["value"] == pytest.approx(TRUTH["stiffness"], rel=0.02)
    assert inside_thrice_as_wide(stiffness, TRUTH["stiffness"])
    assert inside_thrice_as_wide(damping, TRUTH["damping"])
    # The arm's length is in the file: it tells the scale.
    assert result["parameters"]["scale"]["value"] == pytest.approx(SCALE, rel=0.01)
    assert result["holdout"]["relative_error"] < 0.02
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.slow
def test_a_drawn_clip_of_a_scene(tmp_path, swing):
    path = tmp_path / "swing.mp4"
    random = np.random.default_rng(1)
    ground = cv2.GaussianBlur(random.uniform(120, 220, (240, 320, 3)).astype(np.float32), (0, 0), 3)
    with video.VideoWriter(path, FPS) as writer:
        for place in to_pixels(swing[1]):
            frame = ground.copy()
            middle = np.rint((place - 0.5) * 16).astype(int)
            cv2.circle(frame, tuple(middle.tolist()), round(0.03 * SCALE * 16), (200, 25, 25), -1, cv2.LINE_AA, 4)
            writer.add(np.clip(frame + random.normal(0, 3, frame.shape), 0, 255).astype(np.uint8))
    unknown = {"joint_stiffness:hinge": (0.05, 1.0), "joint_damping:hinge": (0.0, 0.05)}
    result = identify(path, CustomScene(scene_file(tmp_path), unknown, ["ball"]))
    assert result.parameters["joint_stiffness:hinge"].value == pytest.approx(TRUTH["stiffness"], rel=0.01)
    assert result.parameters["joint_damping:hinge"].value == pytest.approx(TRUTH["damping"], rel=0.05)
    assert result.unit == "m"


def test_an_engine_in_python_goes_on_with_what_was_found(swing):
    engine = articulated.load(SCENE.format(step=0.01, stiffness=0.2, damping=0.004), dt=1 / FPS, substeps=4,
                              integrator="runge_kutta_4")  # fmt: skip
    result = identify([make_track(swing)], CustomScene(engine, {"joint_stiffness:hinge": None}), {"scale": SCALE})
    value = result.parameters["joint_stiffness:hinge"].value
    assert value == pytest.approx(TRUTH["stiffness"], rel=0.02)
    assert result.engine.properties.joint_stiffness.tolist() == pytest.approx([value])
    assert result.trajectory.steps == result.fit.problem.steps
    assert "scale" not in result.parameters


def test_leaves_of_ones_own_make_properties_from_unknowns(swing):
    """A rod without a spring does not swing like that: what is found is far from the arm, and said to be."""
    engine = articulated.chain([1.0], dt=1 / FPS, substeps=4, integrator="runge_kutta_4")
    start = engine.initial_state(1, torch.float64)
    truth = articulated.chain_properties(torch.tensor([0.45], dtype=torch.float64))
    motion = engine.rollout(type(start)(start.q + 0.9, start.v), len(swing[0]) - 1, properties=truth)
    ends = 0.45 * torch.stack([motion.q[0, :, 0].sin(), -motion.q[0, :, 0].cos()], 1) / 2
    unknown = {"lengths": Unknown("lengths", [1.0], low=0.0, unit="m")}
    own = CustomScene(engine, unknown, follow=[engine.body_names[0]], property_function=articulated.chain_properties)
    result = identify([make_track((swing[0], ends.numpy()), "tip")], own)
    assert float(result.parameters["lengths"].value) == pytest.approx(0.45, rel=0.02)


def test_names_of_properties():
    engine = articulated.load(SCENE.format(step=0.01, **TRUTH), dt=0.01)
    assert find_entry(engine, "mass:bob").value == pytest.approx(0.2)
    assert find_entry(engine, "gravity:z").value == pytest.approx(-9.81)
    assert int(find_entry(engine, "mass").mask.sum()) == 2
    assert float(find_entry(engine, "position:bob:z").value) == pytest.approx(-0.3)
    assert find_entry(engine, "inertia:bob:yy").mask[1, 1, 1]
    for name, message in {
        "weight": "no property 'weight'",
        "mass:cart": "nothing is called 'cart'; expected one of arm, bob",
        "gravity": "an axis is needed, such as gravity:z",
        "gravity:w": "no axis 'w'",
        "mass:bob:x": "has no x",
    }.items():
        with pytest.raises(InputError, match=message):
            find_entry(engine, name)


def test_bounds_of_properties_are_those_of_their_ranges():
    world = rigid2d.World([rigid2d.Circle(0.1, (0, 0))], dt=0.01)
    bounds = {name: find_entry(world, name) for name in ("restitution", "friction", "gravity:x")}
    assert {name: (entry.low, entry.high) for name, entry in bounds.items()} == {
        "restitution": (0.0, 1.0), "friction": (0.0, np.inf), "gravity:x": (-np.inf, np.inf),
    }  # fmt: skip


def test_what_is_seen_of_a_body_and_in_which_plane():
    engine = articulated.load(SCENE.format(step=0.01, **TRUTH), dt=0.01)
    assert moving_body_names(engine) == ["arm", "bob"]
    start = engine.initial_state(1, torch.float64)
    observed = TrackedPoints(engine, ["bob", "tip"]).positions(start)[0]
    torch.testing.assert_close(observed[:, 2], torch.tensor([-0.3, -0.33], dtype=torch.float64))
    right, up = TrackedPoints(engine, ["bob"]).plane()
    assert right.tolist() == pytest.approx([1, 0, 0], abs=1e-6)
    assert up.tolist() == pytest.approx([0, 0, 1], abs=1e-6)
    assert TrackedPoints(engine, ["bob"]).plane("-xz")[0].tolist() == [-1, 0, 0]
    world = rigid2d.World([rigid2d.Circle(1.0, (0, 0))], gravity=(0, 9.81), dt=0.01)
    right, up = TrackedPoints(world, list(world.body_names)).plane()
    assert right.tolist() == pytest.approx([1, 0, 0], abs=1e-6)
    assert up.tolist() == pytest.approx([0, -1, 0], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unknown": {}}, "expected at least one unknown property"),
        ({"unknown": {"joint_stiffness:hinge": (2.0, 1.0)}}, "with low below high"),
        (
            {"unknown": {"mass:bob": None}, "follow": ["ball", "bell"]},
            "nothing|no body, shape or site is called 'bell'",
        ),
        ({"unknown": {"mass:bob": None}, "plane": "xx"}, "the axes to the right and up"),
    ],
)
def test_what_makes_no_sense_is_said(tmp_path, swing, options, message):
    tracks = [make_track(swing, name) for name in options.get("follow", ["bob"])]
    with pytest.raises(InputError, match=message):
        identify(tracks, CustomScene(scene_file(tmp_path), **options))


def test_options_without_a_scene(capsys):
    assert main(["identify", "missing.mp4", "--motion", "pendulum", "--unknown", "mass=1..2"]) == 1
    assert "--motion scene.xml" in capsys.readouterr().err
    options = build_parser().parse_args(["a.mp4", "--unknown", "mass:a=1..2", "--unknown=mass:b=..3"])
    assert options.unknown == ["mass:a=1..2", "mass:b=..3"]
    assert math.isfinite(SCALE)


@pytest.mark.slow
def test_a_scene_of_ones_own_in_which_things_touch():
    ball = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body name="ball" pos="0 0 1">
    <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
    <geom name="ball" type="sphere" size=".05" mass=".1"/></body></worldbody></mujoco>"""
    times, restitution = np.arange(60) / 60, 0.8
    impact = np.sqrt(2 * 0.95 / 9.81)
    since = times - impact
    up = np.where(since < 0, 1 - 9.81 * times**2 / 2, 0.05 + restitution * 9.81 * impact * since - 9.81 * since**2 / 2)
    positions = np.stack([100 + 60 * times, 300 - 200 * up], 1) + np.random.default_rng(0).normal(0, 0.2, (60, 2))
    track = Track(times, positions, np.full(60, 0.2), np.ones(60, bool), name="ball")
    # Of ball and floor alike: that of a pair is the mean of the two.
    result = identify([track], CustomScene(ball, {"restitution": (0.1, 0.99)}, follow=["ball"]), {"scale": 200.0})
    low, high = result.parameters["restitution"].interval_95
    assert low < restitution < high
    assert high - low < 0.1
