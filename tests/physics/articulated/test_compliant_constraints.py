"""All constraints of compliant contact against MuJoCo: friction cones, limits, friction loss, servos, equalities."""

# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np
import pytest
import torch
from mujoco_versions import runge_kutta_steps
from physics.articulated.slopes import compare

from physvision import State
from physvision.physics.articulated import load

pytestmark = pytest.mark.extended
DOUBLE = torch.float64

FLOOR = '<geom type="plane" size="9 9 1"/>'
BALLS = f"""{FLOOR}
  <body name="one" pos="0 0 0.1"><freejoint/><geom type="capsule" size="0.1 0.2" euler="80 10 0"/></body>
  <body name="two" pos="0.1 0.05 0.25"><freejoint/><geom type="capsule" size="0.1 0.1" euler="30 60 0"/></body>
  <body name="three" pos="-0.1 0.1 0.27"><freejoint/><geom type="sphere" size="0.1"/></body>"""
ARM = """<body name="upper" pos="0 0 1"><joint name="a" axis="0 1 0" armature="0.02" frictionloss="{loss}"/>
    <joint name="b" axis="1 0 0" armature="0.01" frictionloss="{loss}"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.04" contype="0" conaffinity="0"/>
    <site name="elbow" pos="0.02 0.01 -0.4" euler="20 0 30"/>
    <body name="lower" pos="0 0 -0.4"><joint name="c" axis="0 1 0.3"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 -0.3" size="0.03" contype="0" conaffinity="0"/>
      <site name="hand" pos="0.2 0 -0.3" euler="0 40 0"/></body></body>
  <body name="swing" pos="0.3 0 1"><joint name="d" type="ball" frictionloss="{loss}"/>
    <geom type="box" size="0.05 0.08 0.3" pos="0 0 -0.3" contype="0" conaffinity="0"/>
    <site name="rim" pos="0.05 0 -0.6"/></body>
  <body name="loose" pos="0 0.5 1"><freejoint/><geom type="box" size="0.1 0.05 0.2" contype="0" conaffinity="0"/></body>
  <body name="goal" pos="0.1 0.4 1.1" euler="20 30 10" mocap="true"/>"""
TENDON = """<tendon><fixed name="{name}" {numbers}><joint joint="a" coef="1.2"/><joint joint="c" coef="-0.7"/></fixed>
  <fixed name="single"><joint joint="b" coef="2"/></fixed></tendon>"""
OPTION = '<option jacobian="dense" tolerance="0" iterations="300" {options}><flag {flags}/></option>'


def model_xml(scene, elements="", options="", flags='clampctrl="enable"'):
    return f"<mujoco>{OPTION.format(options=options, flags=flags)}<worldbody>{scene}</worldbody>{elements}</mujoco>"


def condim(scene, number, friction="0.8 0.03 0.01"):
    return scene.replace("<geom ", f'<geom condim="{number}" friction="{friction}" ')


def arm(elements="", loss=0.0, **options):
    return model_xml(ARM.format(loss=loss), elements, **options)


def equality(text):
    return f"<equality>{text}</equality>"


CONTACTS = {
    "elliptic": model_xml(BALLS, options='cone="elliptic"'),
    "elliptic, stiff friction": model_xml(BALLS, options='cone="elliptic" impratio="10"'),
    "pyramid, stiff friction": model_xml(BALLS, options='impratio="7"'),
    "frictionless": model_xml(condim(BALLS, 1), options='cone="elliptic"'),
    "no friction": model_xml(condim(BALLS, 3, "0 0 0"), options='cone="elliptic"'),
    "elliptic, torsional": model_xml(condim(BALLS, 4), options='cone="elliptic" impratio="3"'),
    "elliptic, rolling": model_xml(condim(BALLS, 6), options='cone="elliptic" impratio="3"'),
    "pyramid, torsional": model_xml(condim(BALLS, 4)),
    "pyramid, rolling": model_xml(condim(BALLS, 6), options='impratio="2"'),
    "direct reference": model_xml(BALLS.replace("<geom ", '<geom solref="-3000 -40" solimp="0.3 0.8 0.02 0.3 3" ')),
    "flat impedance": model_xml(BALLS.replace("<geom ", '<geom solimp="0.7 0.9 0" ')),
    "linear impedance": model_xml(BALLS.replace("<geom ", '<geom solimp="0.2 0.9 0.05 0.5 1" ')),
}
PUCK = """<body><joint type="slide" axis="1 0 0" armature="0.3" range="-0.2 0.1"/>
  <joint type="slide" axis="0 1 0" armature="0.3" range="-0.1 0.2" frictionloss="0.4"/>
  <geom type="sphere" size="0.1" mass="0.5"/></body><geom type="sphere" size="0.1" pos="0.15 0.1 0.05"/>"""
ROWS = {
    "friction loss": arm(loss=0.6),
    "armature of slides": model_xml(PUCK),
    "tendon friction": arm(TENDON.format(name="cord", numbers='frictionloss="0.5" solimpfriction="0.4 0.9 0.01"')),
    "tendon limit": arm(TENDON.format(name="cord", numbers='limited="true" range="-0.1 0.2" margin="0.02"')),
    "tendon spring": arm(TENDON.format(name="cord", numbers='stiffness="30" springlength="0.1"')),
    "servo": arm(
        '<actuator><position joint="a" kp="40" forcerange="-3 2" gear="1.5"/><position joint="c" kp="9"/>'
        '<motor joint="b" ctrlrange="-1 1" forcerange="-0.4 0.5"/></actuator>'
    ),
    "servo of a tendon": arm(
        TENDON.format(name="cord", numbers="")
        + '<actuator><position tendon="cord" kp="40" forcerange="-3 3"/></actuator>'
    ),
    "joint equality": arm(equality('<joint joint1="a" joint2="c" polycoef="0.1 0.5 0 0 0" solref="0.05 0.8"/>')),
    "one joint": arm(equality('<joint joint1="b" polycoef="0.2 0 0 0 0" solimp="0.5 0.9 0.5 0.3 3"/>')),
    "tendon equality": arm(
        TENDON.format(name="cord", numbers="")
        + equality('<tendon tendon1="cord" tendon2="single" polycoef="0.1 0.6"/>')
    ),
    "connect": arm(equality('<connect body1="lower" body2="swing" anchor="0.2 0 -0.3" solimp="0.3 0.9 0.3 0.4 3"/>')),
    "connect to the world": arm(equality('<connect body1="loose" anchor="0.1 0 0.2"/>')),
    "connected sites": arm(equality('<connect site1="hand" site2="rim" solref="-200 -10"/>')),
    "weld": arm(equality('<weld body1="lower" body2="loose" torquescale="0.4" solimp="0.3 0.9 2 0.4 3"/>')),
    "weld to a mocap body": arm(equality('<weld body1="goal" body2="loose" relpose="0 0 0 1 0 0 0"/>')),
    "welded sites": arm(equality('<weld site1="elbow" site2="rim" torquescale="3"/>')),
    "string": arm(
        '<tendon><spatial limited="true" range="0.1 0.3" margin="0.01"><site site="hand"/><site site="rim"/></spatial>'
        "</tendon>"
    ),
    "all": arm(
        TENDON.format(name="cord", numbers='limited="true" range="-0.1 0.2" frictionloss="0.3"')
        + '<actuator><position tendon="cord" kp="40" forcerange="-3 3"/></actuator>'
        + equality('<weld body1="goal" body2="loose"/><joint joint1="a" joint2="b"/>'),
        loss=0.2,
    ),
}


# Moved in proportion to themselves, for they must not change sign.
POSITIVE = (
    "mass", "joint_damping", "friction_loss", "friction", "rotational_friction", "transmission_stiffness",
    "transmission_damping", "transmission_force_range",
)  # fmt: skip


def random_state(model, random, spread):
    q, v = np.array(model.qpos0), random.normal(size=model.nv)
    mujoco.mj_integratePos(model, q, spread * random.normal(size=model.nv), 1.0)
    return q, v


def batch(*rows):
    return [torch.from_numpy(np.array(row))[None] for row in rows]


@pytest.mark.parametrize("name", [*CONTACTS, *ROWS])
def test_accelerations_are_mujocos(name):
    """Of random states; semi-implicit Euler without damping gives v′ = v + h q̈."""
    xml, spread, h = (CONTACTS | ROWS)[name], 0.05 if name in CONTACTS else 0.6, 0.002
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.timestep = h
    engine, data = load(xml, dt=h, contact="compliant"), mujoco.MjData(model)
    random, compared = np.random.default_rng(1), 0
    for _ in range(60):
        data.qpos[:], data.qvel[:] = random_state(model, random, spread)
        data.ctrl[:] = random.normal(size=model.nu)
        mujoco.mj_forward(model, data)
        q, v, control = batch(data.qpos, data.qvel, data.ctrl)
        result = (engine.step(State(q, v), control if model.nu else None).v - v)[0].numpy() / h
        compared += bool(data.nefc or model.nu or model.ntendon)
        np.testing.assert_allclose(result, data.qacc, rtol=0, atol=1e-8 * np.abs(data.qacc).max())
    assert compared >= 40


@pytest.mark.parametrize("name", ["friction loss", "tendon limit", "servo", "servo of a tendon", "joint equality"])
def test_runge_kutta_steps_are_mujocos(name):
    """Over 0.1 s, with dampers, of which a Runge–Kutta step takes none implicitly."""
    xml = ROWS[name].replace('jacobian="dense"', 'jacobian="dense" integrator="RK4" timestep="0.002"')
    xml = xml.replace('kp="40"', 'kp="40" kv="2"').replace("<joint ", '<joint damping="0.1" ', 1)
    model = mujoco.MjModel.from_xml_string(xml)
    engine, data = load(xml, dt=0.002, contact="compliant", integrator="runge_kutta_4"), mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = random_state(model, np.random.default_rng(2), 0.3)
    q, v = batch(data.qpos, data.qvel)
    end = engine.rollout(State(q, v), 50).final
    runge_kutta_steps(model, data, 50)
    np.testing.assert_allclose(end.q[0], data.qpos, rtol=0, atol=1e-9)
    np.testing.assert_allclose(end.v[0], data.qvel, rtol=0, atol=1e-8)


LEAVES = (
    "mass", "inertia", "position", "joint_damping", "friction_loss", "friction", "rotational_friction", "shape_pose",
    "transmission_stiffness", "transmission_damping", "transmission_rest_position", "transmission_force_range",
)  # fmt: skip


@pytest.mark.parametrize("name", [*CONTACTS, *ROWS])
def test_gradients_of_every_input_and_property(name):
    """Against central differences over 8 steps."""
    xml = (CONTACTS | ROWS)[name].replace('kp="40"', 'kp="40" kv="1"')
    engine, model = load(xml, dt=0.002, contact="compliant"), mujoco.MjModel.from_xml_string(xml)
    random = np.random.default_rng(5)
    q, v = batch(*random_state(model, random, 0.03 if name in CONTACTS else 0.4))
    steps, rng = 8, torch.Generator().manual_seed(2)
    own = engine.properties
    leaves = [leaf for leaf in LEAVES if getattr(own, leaf).numel()]
    values = {"q": q, "v": v} | {leaf: getattr(own, leaf).clone() for leaf in leaves}
    if engine.nu:
        values["u"] = 0.3 * torch.randn(1, steps, engine.nu, generator=rng, dtype=DOUBLE)
    weights = torch.randn(2, max(engine.nq, 1), generator=rng, dtype=DOUBLE)

    def loss(given):
        properties = {leaf: given[leaf] for leaf in leaves}
        path = engine.rollout(State(given["q"], given["v"]), steps, given.get("u"), properties)
        assert path.status.converged.all()
        return (path.q @ weights[0] + path.v @ weights[1, : engine.nv]).mean(1)

    def direction(leaf, value):
        along = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        if leaf in POSITIVE:
            return torch.where(value.isfinite(), along * value, 0.0)
        return 0.3 * along[..., :1, :1] * value if leaf == "inertia" else 0.1 * along

    assert compare(loss, values, direction) >= len(values) - 1
