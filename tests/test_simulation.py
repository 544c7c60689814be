"""`physvision simulate` leaves a film and the states of the motion that the file and its controls make."""

import re

import pytest

from physvision import video
from physvision.cli import main
from physvision.core import Trajectory, load_states

CART = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="cart"><joint name="rail" type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1" mass="2"/></body>
</worldbody><actuator><motor name="push" joint="rail"/></actuator>
<keyframe><key name="moved" qpos="1.5"/></keyframe></mujoco>"""


@pytest.fixture
def cart(tmp_path):
    path = tmp_path / "cart.xml"
    path.write_text(CART)
    return path


def states(path) -> Trajectory:
    result = load_states(path)
    assert isinstance(result, Trajectory)
    return result


def test_controls_of_a_table_push_a_cart_on_film(tmp_path, cart, capsys):
    table, out = tmp_path / "push.csv", tmp_path / "new" / "film.mp4"
    table.write_text("t,push\n0,4\n0.5,0\n")
    assert main(["simulate", str(cart), "--controls", str(table), "--seconds", "1", "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    # 2 m/s² for half a second, then none.
    assert states(out.with_suffix(".safetensors")).v[0, :, 0].tolist() == pytest.approx(
        [min(0.02 * step, 1.0) for step in range(101)]
    )
    assert float(video.read(out).times[-1]) == pytest.approx(1.0, abs=0.05)


def test_rows_without_times_are_steps_and_the_start_is_a_keyframe_or_a_file(tmp_path, cart):
    table, first, second = tmp_path / "push.csv", tmp_path / "a.mp4", tmp_path / "b.mp4"
    table.write_text("push\n1\n2\n-3\n")
    assert main(["simulate", str(cart), "--controls", str(table), "--start", "moved", "--out", str(first)]) == 0
    path = first.with_suffix(".safetensors")
    assert states(path).v[0, :, 0].tolist() == pytest.approx([0, 0.005, 0.015, 0], abs=1e-12)
    assert states(path).q[0, 0, 0] == 1.5
    assert main(["simulate", str(cart), "--start", str(path), "--seconds", "0.1", "--out", str(second)]) == 0
    assert states(second.with_suffix(".safetensors")).q[0, 0, 0] == states(path).final.q[0, 0]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("push,push\n1,2\n", [], "a column stands twice among push, push"),
        ("t,pull\n0,1\n", [], "there is no control 'pull'; there are push"),
        ("t,push\n0,1\n0,2\n", [], "expected times that begin at 0 and increase"),
        ("t,push\n0,\n", [], "without empty fields"),
        ("t,push\n0,1\n", ["--start", "there"], r"there are moved\) or a file of states, got 'there'"),
        ("t,push\n0,1\n", ["--seconds", "-1"], "seconds"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, cart, capsys, text, options, expected):
    table = tmp_path / "push.csv"
    table.write_text(text)
    out = tmp_path / "new" / "film.mp4"
    assert main(["simulate", str(cart), "--controls", str(table), "--out", str(out), *options]) == 1

    assert re.search(expected, capsys.readouterr().err)
    assert not out.parent.exists()


def test_a_world_that_fails_at_once_names_what_overlaps_and_leaves_no_film(tmp_path, capsys):
    path, out = tmp_path / "fall.xml", tmp_path / "new" / "fall.mp4"
    path.write_text(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="ball" pos="0 0 1"><freejoint/>'
        '<geom type="sphere" size=".1"/></body></worldbody>'
        '<keyframe><key name="deep" qpos="0 0 .05 1 0 0 0"/></keyframe></mujoco>'
    )
    command = ["simulate", str(path), "--out", str(out), "--seconds", "0.1", "--start", "deep"]
    with pytest.warns(RuntimeWarning, match="1 of 1 worlds failed"):
        assert main(command) == 1
    message = capsys.readouterr().err
    assert re.search("'ball'.* overlap by 50 mm.*--separate", message)
    assert "the world" in message
    assert not out.parent.exists()
    assert main([*command, "--separate"]) == 0
    assert len(video.read(out)) > 1


URDF = """<robot name="arm"><link name="base"><inertial><mass value="2"/>
<inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="rod"><inertial><origin xyz="0 0 -.5"/><mass value="1"/>
<inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""


@pytest.mark.parametrize(("base", "fall"), [("auto", 0.0), ("fixed", 0.0), ("free", 9.81 / 2)])
def test_the_base_of_an_arm_falls_only_if_it_is_free(tmp_path, base, fall, capsys):
    path, out = tmp_path / "arm.urdf", tmp_path / "arm.mp4"
    path.write_text(URDF)
    assert main(["simulate", str(path), "--base", base, "--seconds", "1", "--out", str(out)]) == 0
    assert ("fixed to the world; --base free" in capsys.readouterr().err) == (base == "auto")
    final = states(out.with_suffix(".safetensors")).final.q[0]
    assert len(final) == (8 if base == "free" else 1)
    assert (-float(final[2]) if base == "free" else 0.0) == pytest.approx(fall, rel=0.02)


def test_a_scene_is_simulated_by_its_name(tmp_path):
    """With its own restitution, unless another is given."""
    heights = []
    for options in ([], ["--restitution", "0"]):
        out = tmp_path / "ball.mp4"
        assert main(["simulate", "ball", "--seconds", "0.1", "--out", str(out), *options]) == 0
        heights.append(states(out.with_suffix(".safetensors")).final.q[0, 2])
    assert heights[0] == pytest.approx(0.5, abs=1e-3)
