# ruff: noqa: E501
"""Model files: what is read, what is refused, and the choice of a base."""

# pyright: reportAttributeAccessIssue=false

import math

import mujoco
import numpy as np
import pytest
import torch
from mujoco_versions import IS_4

from physvision import State
from physvision.core import FileError, InputError, ModelError, UnsupportedError
from physvision.physics import articulated
from physvision.physics.articulated.loading import contacts


def test_files(tmp_path):
    with pytest.raises(FileError, match="there is no model file"):
        articulated.load(str(tmp_path / "missing.xml"))
    broken = tmp_path / "broken.xml"
    broken.write_text("<mujoco><worldbody><body></worldbody></mujoco>")
    with pytest.raises(ModelError, match=r"broken\.xml: .*XML"):
        articulated.load(str(broken))
    binary = tmp_path / "binary.xml"
    binary.write_bytes(b"\xff\xfe\x00\x00")
    with pytest.raises(InputError, match="expected text in UTF-8"):
        articulated.load(str(binary))
    with pytest.raises(InputError, match="base: expected one of auto, fixed, free, ground, got 'floating'"):
        articulated.load("<mujoco/>", base="floating")
    with pytest.raises(InputError, match="ignore: expected some of contact, pair"):
        articulated.load("<mujoco/>", ignore=("gravity",))
    with pytest.raises(InputError, match="in a tuple"):
        articulated.load("<mujoco/>", ignore="contact")


TWO = """<mujoco>{option}<worldbody>
  <body name="a"><joint name="ja" axis="0 1 0" {joint}/><geom name="ga" size="0.1"/></body>
  <body name="b" pos="1 0 0" {body}><joint name="jb"/><geom name="gb" size="0.1" {geom}/><site name="s"/></body>
</worldbody>{rest}</mujoco>"""


def two(option="", joint="", body="", geom='contype="0" conaffinity="0"', rest=""):
    return TWO.format(option=option, joint=joint, body=body, geom=geom, rest=rest)


@pytest.mark.parametrize(
    ("kind", "source", "message"),
    [
        ("pair", two(geom='type="hfield" hfield="h"', rest='<asset><hfield name="h" nrow="3" ncol="3" size="1 1 1 1"/></asset>').replace('name="gb" size="0.1"', 'name="gb"'), "pair: sphere 'ga' of 'a' and hfield 'gb' of 'b'"),
        ("surface", two(geom='surfacevel="1 0 0 0 0 0"'), "surface: sphere 'gb' of 'b'"),
        ("actuator", two(rest='<actuator><motor name="m" site="s"/></actuator>'), r"m \(it acts on a site, not on a joint or a fixed tendon\)"),
        ("actuator", two(rest='<actuator><adhesion name="m" body="a" ctrlrange="0 1"/></actuator>'), r"m \(it exerts adhesion on the contacts of a body\)\); ignore=\('actuator',\) leaves out the actuators that are rejected \(.*\); others stay"),
        ("actuator", two(rest='<actuator><intvelocity name="m" joint="ja" kp="1" actrange="-1 1"/></actuator>'), r"m \(it is a servo of integrated velocity \(intvelocity\): its activation has limits \(actrange\)\)"),
        ("actuator", two(rest='<actuator><general name="m" joint="ja" dyntype="integrator" actearly="true"/></actuator>'), r"acts a step early \(actearly\)"),
        ("contact", two(geom='surfacevel="1 0 0 0 0 0"'), "surface: "),
        ("equality", two(rest='<equality><joint name="e" joint1="ja" joint2="jb" polycoef="0 1 2 0 0"/></equality>'), r"equality: e \(its polynomial is not linear\)"),
        ("tendon", two(rest='<tendon><fixed name="t" armature="1"><joint joint="ja" coef="1"/></fixed></tendon>'), r"tendon: t \(it has inertia"),
        ("tendon", two(rest='<tendon><fixed name="t" stiffness="1" springlength="0 1"><joint joint="ja" coef="1"/></fixed></tendon>'), r"tendon: t \(its spring has a dead band"),
        ("actuator", two(joint='actuatorfrcrange="-1 1"', rest='<actuator><position name="m" joint="ja" kp="1"/><motor joint="ja"/></actuator>'), r"m \(its force is limited together with"),
        ("fluid", two(option='<option viscosity="0.1" wind="1 0 0"/>'), "fluid: wind"),
        ("gravity_compensation", two(body='gravcomp="1"'), "gravity_compensation: b"),
        ("gravity_compensation", two(body='gravcomp="1"').replace('name="b"', ""), "gravity_compensation: body 2"),
        ("nonlinear", two(joint='stiffness="1 2"'), "nonlinear: ja"),
        ("nonlinear", two(joint='damping="1 2"').replace('name="ja"', ""), "nonlinear: joint 0"),
        *(
            [("plasticity", two(joint='stiffness="1" springyield="3"').replace('name="ja"', ""), "plasticity: joint 0")]
            if IS_4 else []
        ),
        ("tendon", two(rest='<tendon><fixed stiffness="0 1"><joint joint="ja" coef="1"/></fixed></tendon>'), "tendon: tendon 0"),
        ("tendon", two(rest='<tendon><fixed damping="0 1"><joint joint="ja" coef="1"/></fixed></tendon>'), "tendon: tendon 0"),
        ("actuator", two(rest='<actuator><motor joint="ja" delay="0.1" nsample="12"/></actuator>'), "ja .its control is delayed"),
    ],
)  # fmt: skip
def test_what_cannot_be_simulated_is_named(kind, source, message):
    with pytest.raises(UnsupportedError, match=message) as caught:
        articulated.load(source)
    assert kind == "contact" or f"ignore=({kind!r},)" in str(caught.value)
    engine = articulated.load(source, ignore=(kind,))
    assert engine.nv == 2


def test_what_is_switched_off_is_not_refused():
    off = '<option><flag contact="disable" limit="disable"/></option>'
    engine = articulated.load(two(option=off, joint='range="-1 1" limited="true"', geom=""))
    assert engine.nv == 2
    excluded = '<contact><exclude body1="a" body2="b"/></contact>'
    assert articulated.load(two(geom="", rest=excluded)).nv == 2
    still = articulated.load(two(option='<option><flag gravity="disable"/></option>'))
    assert float(still.properties.gravity.abs().sum()) == 0.0


def test_names_that_the_file_leaves_out_collide_with_none():
    source = two().replace('name="a"', 'name="body 2"').replace('name="b"', "")
    assert articulated.load(source).body_names == ("body 2", "body 2 (without a name)")


def test_the_time_step_is_that_of_the_call_or_of_the_file():
    source = two(option='<option timestep="0.004"/>')
    assert articulated.load(source).dt == 0.01
    assert articulated.load(source, dt=None).dt == 0.004


def test_keyframes_are_states_by_name():
    keys = '<keyframe><key name="up" qpos="0.1 0.2" qvel="1 2"/><key qpos="3 4"/></keyframe>'
    engine = articulated.load(two(rest=keys))
    assert engine.keyframes["up"].q.tolist() == [[0.1, 0.2]]
    assert engine.keyframes["up"].v.tolist() == [[1.0, 2.0]]
    assert engine.keyframes["key 1"].q.tolist() == [[3.0, 4.0]]
    assert engine.step(engine.keyframes["up"]).q.shape == (1, 2)


def test_actuators_without_a_name_have_that_of_their_joint_where_it_is_free():
    """Two of one joint keep their numbers, and so does one whose joint lends its name to another."""
    files = {
        ("ja", "arm"): '<motor joint="ja"/><motor name="arm" joint="jb"/>',
        ("actuator 0", "ja"): '<motor joint="ja"/><motor name="ja" joint="jb"/>',
        ("actuator 0", "actuator 1", "jb"): '<position joint="ja"/><velocity joint="ja"/><motor joint="jb"/>',
        ("ja", "m"): '<position joint="ja" kp="1" forcerange="-1 1"/><velocity name="m" joint="ja"/>',
        ("ja", "jb"): '<cylinder joint="ja" timeconst="0.3"/><motor joint="jb"/>',
    }
    for names, actuators in files.items():
        engine = articulated.load(two(rest=f"<actuator>{actuators}</actuator>"))
        assert engine.control_names == names


def test_switched_off_actuators_keep_their_controls():
    pair = '<actuator><motor name="m" joint="ja" group="1"/><position name="p" joint="jb" kp="5"/></actuator>'
    engine = articulated.load(two(option='<option actuatorgroupdisable="1"/>', rest=pair))
    assert engine.control_names == ("m", "p")
    still = State(torch.zeros(1, 2).double(), torch.zeros(1, 2).double())
    free = engine.acceleration(still)
    push = torch.tensor([[1.0, 0.0]]).double()
    assert torch.equal(engine.acceleration(still, push), free)
    assert not torch.equal(engine.acceleration(still, push.flip(1)), free)


def test_bases():
    urdf = (
        '<robot name="r"><link name="root"><inertial><mass value="2"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '</link><joint name="j" type="continuous"><parent link="root"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>'
    )
    assert articulated.load(urdf).nv == 1
    assert articulated.load(urdf, base="fixed").nv == 1
    assert articulated.load(urdf, base="free").nv == 7
    mjcf = '<mujoco><worldbody><body><geom size="1"/><body><joint/><geom size="1"/></body></body></worldbody></mujoco>'
    assert articulated.load(mjcf, ignore=("contact",)).nv == 1
    assert articulated.load(mjcf, base="free", ignore=("contact",)).nv == 7


def test_a_mesh_stands_as_the_box_that_it_is():
    """On its corners, and with a geom that only decorates, which touches nothing."""
    corners = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.2, 0.2) for z in (-0.3, 0.3))
    source = """<mujoco><option gravity="0 0 -10"/><asset><mesh name="m" vertex="{corners} 0 0 0.1"/></asset><worldbody>
      <geom type="plane" size="1 1 1"/><body pos="0 0 0.5"><freejoint/><geom {geom}/>
      <geom size="2" contype="0" conaffinity="0" mass="0"/></body></worldbody></mujoco>"""
    ends = []
    for geom in ('type="mesh" mesh="m"', 'type="box" size="0.1 0.2 0.3"'):
        engine = articulated.load(
            source.format(corners=corners, geom=geom), dt=0.01, contact=articulated.ContactSettings(restitution=0.5)
        )
        path = engine.rollout(engine.initial_state(1, torch.float64), 150)
        assert path.status is not None
        assert bool(path.status.converged)
        ends.append(path.q[0])
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=1e-7)  # meshes are kept in single precision
    assert float(ends[0][-1, 2]) == pytest.approx(0.3, abs=1e-6)
    # 0.2 m of fall, half of the speed after the bounce.
    assert float(ends[0][20:40, 2].max()) == pytest.approx(0.3 + 0.2 / 4, abs=1e-3)


def test_the_collision_shapes_of_a_urdf_touch():
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(
        f'<link name="{name}">{inertia}<collision><origin xyz="0 0 -0.1"/><geometry><sphere radius="0.1"/></geometry></collision></link>'
        for name in ("base", "middle", "end")
    )
    joints = "".join(
        f'<joint name="{child}" type="revolute"><limit lower="-1" upper="1" effort="1" velocity="1"/><parent link="{parent}"/>'
        f'<child link="{child}"/><axis xyz="0 1 0"/></joint>'
        for parent, child in (("base", "middle"), ("middle", "end"))
    )
    engine = articulated.load(f'<robot name="r">{links}{joints}</robot>', ignore=("limit",), base="free")
    listed = engine.contacts(engine.initial_state(1, torch.float64))
    # Base and end overlap; those that a joint connects pass through each other.
    assert [engine.body_names[k] for k in (*listed.first_body[0].tolist(), *listed.second_body[0].tolist())] == [
        "base",
        "end",
    ]
    assert float(listed.separation[0, 0]) == pytest.approx(-0.2)
    with pytest.raises(InputError, match="no shapes can collide"):
        articulated.load(two()).contacts(State(torch.zeros(1, 2), torch.zeros(1, 2)))


def test_meshes_of_packages_are_found(tmp_path):
    """In a folder that is named, and around the file; else it is said what to do."""
    corners = [(x, y, z) for x in (-0.1, 0.1) for y in (-0.2, 0.2) for z in (-0.3, 0.3)]
    faces = [
        (1, 2, 4),
        (1, 4, 3),
        (5, 7, 8),
        (5, 8, 6),
        (1, 5, 6),
        (1, 6, 2),
        (3, 4, 8),
        (3, 8, 7),
        (1, 3, 7),
        (1, 7, 5),
        (2, 6, 8),
        (2, 8, 4),
    ]
    mesh = "".join(f"v {x} {y} {z}\n" for x, y, z in corners) + "".join(f"f {a} {b} {c}\n" for a, b, c in faces)
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    urdf = f'<robot name="r"><link name="base">{inertia}<collision><geometry><mesh filename="package://arm/meshes/box.obj"/></geometry></collision></link></robot>'
    for place, given in (("elsewhere", (tmp_path / "elsewhere",)), ("around", ())):
        (tmp_path / place / "arm" / "meshes").mkdir(parents=True)
        (tmp_path / place / "arm" / "meshes" / "box.obj").write_text(mesh)
        folder = tmp_path if given else tmp_path / place / "arm" / "urdf"
        folder.mkdir(exist_ok=True)
        (folder / "r.urdf").write_text(urdf)
        if given:
            with pytest.raises(
                FileError, match=r"'package://arm/meshes/box.obj' does not exist; name the folder .* packages="
            ):
                articulated.load(folder / "r.urdf", base="free")
        assert articulated.load(folder / "r.urdf", base="free", packages=given).nv == 6


@pytest.mark.parametrize("bodies", [0, 2])
def test_a_scene_in_which_nothing_moves(bodies):
    """It loads as what stands still: a camera can draw it, and no step changes it."""
    inside = (
        "<body name='a' pos='1 0 0'><geom size='.1' pos='0 1 0'/><body name='b' pos='0 0 2'/></body>" if bodies else ""
    )
    engine = articulated.load(f"<mujoco><worldbody><geom type='plane' size='0 0 1'/>{inside}</worldbody></mujoco>")
    start = engine.initial_state(3, torch.float64)
    assert (engine.nq, engine.nv, len(engine.body_names)) == (0, 0, bodies)
    path = engine.rollout(start, 4)
    assert path.q.shape == (3, 5, 0)
    assert path.status is not None
    assert path.status.converged.all()
    assert [float(energy.sum()) for energy in engine.energy(start)] == [0.0, 0.0]
    appearance = engine.appearance(start)
    assert appearance.poses.shape == (3, 1 + bool(bodies), 4, 4)
    if bodies:
        assert engine.poses(start)[0, :, :3, 3].tolist() == [[1, 0, 0], [1, 0, 2]]
        assert appearance.poses[2, 1, :3, 3].tolist() == [1, 1, 0]


def test_servos_are_stable_where_loops_of_torques_are_not():
    """The bounds of docs/own_robot.md: kv of 2 inertias / dt in a loop, kp of 4 inertias / dt² without a limited force."""
    foot = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="j" axis="0 1 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia=".001 .001 .001"/></body></worldbody><actuator>{}</actuator></mujoco>"""

    def speed(kp, kv, limits="", loop=False):
        servo = '<motor joint="j"/>' if loop else f'<position joint="j" kp="{kp}" kv="{kv}" {limits}/>'
        engine = articulated.load(foot.format(servo), dt=0.002)
        state = State(torch.zeros(1, 1).double(), torch.ones(1, 1).double())
        for _ in range(50):
            state = engine.step(state, -kp * state.q - kv * state.v if loop else None)
        return abs(float(state.v))

    assert speed(1.0, 0.9, loop=True) < 1.0 < 1e3 < speed(1.0, 1.1, loop=True)
    assert speed(1.0, 1.1) < 0.1
    assert speed(950.0, 0.0) < 10.0 < 1e3 < speed(1050.0, 0.0)
    assert speed(1e6, 0.0, 'forcerange="-20 20"') < 1e-3


def test_actuators_pull_fixed_tendons():
    """A motor on a tendon pushes each of its joints by its share; MuJoCo's accelerations are the same."""
    source = """<mujoco><worldbody><body><joint name="x" axis="0 1 0"/><geom size="0.1" pos="0 0 -.3"/>
      <body pos="0 0 -.5"><joint name="y" axis="1 0 0"/><geom size="0.2" pos="0 0 -.2"/></body></body></worldbody>
      <tendon><fixed name="t"><joint joint="x" coef="0.7"/><joint joint="y" coef="-1.3"/></fixed></tendon>
      <actuator><motor tendon="t" gear="3" ctrlrange="-1 1"/><motor joint="y" gear="2"/>
      <general tendon="t" gainprm="2" forcerange="-1 1"/></actuator></mujoco>"""
    engine, model = articulated.load(source, ignore=("contact",)), mujoco.MjModel.from_xml_string(source)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = [0.3, -0.4], [0.5, 0.2], [1.7, -0.6, 0.9]
    mujoco.mj_forward(model, data)
    state = State(torch.tensor(data.qpos)[None], torch.tensor(data.qvel)[None])
    result = engine.acceleration(state, torch.tensor(data.ctrl)[None])
    assert result[0].tolist() == pytest.approx(data.qacc.tolist(), rel=1e-9)
    # A servo on a tendon is a row of the contact problem, which a step has and `acceleration` has not.
    servo, dt = source.replace('<motor tendon="t"', '<position tendon="t" kp="2" kv="0.3"'), 1e-8
    engine, model = articulated.load(servo, dt, ignore=("contact",)), mujoco.MjModel.from_xml_string(servo)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = [0.3, -0.4], [0.5, 0.2], [1.7, -0.6, 0.9]
    mujoco.mj_forward(model, data)
    after = engine.step(state, torch.tensor(data.ctrl)[None])
    assert ((after.v - state.v) / dt)[0].tolist() == pytest.approx(data.qacc.tolist(), rel=1e-5)


def test_what_resists_may_be_left_out():
    """Turning friction, dry friction, ties and tendons have rows; `ignore` takes them away."""
    rest = (
        '<equality><joint joint1="ja" joint2="jb"/></equality>'
        '<tendon><fixed stiffness="1"><joint joint="ja" coef="1"/></fixed></tendon>'
    )
    source = two(joint='frictionloss="1"', geom='condim="4"', rest=rest)
    engine = articulated.load(source)
    assert engine.properties.transmission_rest_position.shape == (2,)
    assert engine.properties.friction_loss.tolist() == [1.0, 0.0]
    assert engine.properties.rotational_friction.tolist() == [[0.005, 0.0001]] * 2
    plain = articulated.load(source, ignore=("rotational_friction", "friction_loss", "equality", "tendon"))
    assert plain.properties.transmission_rest_position.shape == (0,)
    assert plain.properties.friction_loss.tolist() == [0.0, 0.0]


def test_an_equality_of_joints_holds_from_the_reference_position():
    """q_a − 0.3 = 0.1 + 2 (q_b − 0.2), of joints whose references are 0.3 and 0.2, under a motion of both."""
    tied = '<equality><joint joint1="ja" joint2="jb" polycoef="0.1 2 0 0 0"/></equality>'
    source = two(joint='ref="0.3"', rest=tied).replace(
        '<joint name="jb"/>', '<joint name="jb" axis="0 1 0" ref="0.2"/>'
    )
    engine = articulated.load(source.replace("<mujoco>", '<mujoco><compiler angle="radian"/>'), dt=0.005)
    q = torch.tensor([[0.3 + 0.1 + 2 * 0.3, 0.2 + 0.3]], dtype=torch.float64)
    path = engine.rollout(State(q, torch.tensor([[2.0, 1.0]], dtype=torch.float64)), 100)
    off = path.q[0, :, 0] - 0.3 - 0.1 - 2 * (path.q[0, :, 1] - 0.2)
    assert float(off.abs().max()) < 1e-12
    assert float((path.q[0, -1] - q).abs().max()) > 0.3


BRICK = (
    '<robot name="brick"><link name="brick"><inertial><mass value="1"/>'
    '<inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>'
    '<collision><origin rpy="0 {pitch} 0"/><geometry><box size=".6 .2 .1"/></geometry></collision></link></robot>'
)


@pytest.mark.parametrize("pitch", [0.0, 0.3])
def test_a_urdf_stands_on_a_ground(pitch):
    """Its lowest point is on the plane z = 0, and it stays above it."""
    engine = articulated.load(BRICK.format(pitch=pitch), base="ground", dt=0.005)
    start = engine.initial_state(1, torch.float64)
    assert float(start.q[0, 2]) == pytest.approx(0.3 * math.sin(pitch) + 0.05 * math.cos(pitch), abs=1e-9)
    path = engine.rollout(start, 200)
    assert path.status is not None
    assert path.status.converged.all()
    assert float(path.status.penetration) < 1e-5
    assert float(path.q[0, -1, 2]) == pytest.approx(0.05, abs=1e-3 if pitch else 1e-7)


def test_a_ground_of_the_file_is_not_doubled():
    """A body above it stays where it is."""
    plane = "<mujoco><worldbody><geom type='plane' size='0 0 1'/><body pos='0 0 1'><geom size='.1'/></body></worldbody></mujoco>"
    engine = articulated.load(plane, base="ground")
    assert len(engine.geometry) == 2
    assert float(engine.initial_state(1).q[0, 2]) == 1.0


def test_forces_without_actuators_have_the_names_of_joints():
    """A joint of several axes has one name for each."""
    assert articulated.load(BRICK.format(pitch=0), base="free").control_names == tuple(
        f"brick {kind} {axis}" for kind in ("force", "torque") for axis in "xyz"
    )
    assert articulated.chain([1.0, 1.0]).control_names == articulated.chain([1.0, 1.0]).joint_names


def test_bodies_without_names_are_lifted_each_by_its_own_height():
    """One that lies below the ground is lifted, one above it stays."""
    body = "<body pos='{} 0 {}'><geom size='.1'/></body>"
    engine = articulated.load(
        f"<mujoco><worldbody>{body.format(0, -1)}{body.format(1, 2)}</worldbody></mujoco>", base="ground"
    )
    assert engine.initial_state(1, torch.float64).q[0, [2, 9]].tolist() == pytest.approx([0.1, 2.0])


def test_pairs_that_pass_the_masks_are_those_of_all_geoms():
    random = np.random.default_rng(0)

    def body(depth, name):
        masks = random.integers(0, 3, (3, 2))
        geoms = "".join(f'<geom size=".1" contype="{a}" conaffinity="{b}"/>' for a, b in masks)
        inner = "".join(body(depth - 1, f"{name}{k}") for k in range(2)) if depth else ""
        return f'<body name="{name}">{random.choice(["", "<freejoint/>" if depth == 2 else "<joint/>"])}{geoms}{inner}</body>'

    for exclude in ("", '<contact><exclude body1="a" body2="b0"/><exclude body1="a0" body2="a1"/></contact>'):
        xml = f"<mujoco><worldbody>{body(2, 'a')}{body(2, 'b')}<geom size='.1'/></worldbody>{exclude}</mujoco>"
        model = mujoco.MjModel.from_xml_string(xml)
        types, affinities, bodies = model.geom_contype, model.geom_conaffinity, model.geom_bodyid
        expected = np.nonzero(np.triu(contacts._mask_matrix(model, types, affinities, bodies), 1))
        first, second = contacts._filtered_geoms(model)
        assert len(first) > 20
        np.testing.assert_array_equal([first, second], expected)
