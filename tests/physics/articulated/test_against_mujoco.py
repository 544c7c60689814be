"""Models that people use, against MuJoCo with contacts and limits off on both sides."""

# pyright: reportAttributeAccessIssue=false

import os
import tempfile
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from physvision import State
from physvision.physics import articulated

MIXED = """
<mujoco><worldbody>
  <body name="first" pos="0.1 0 0.2" euler="10 20 30">
    <joint type="slide" axis="1 1 0" ref="0.2" stiffness="3" springref="0.3"/>
    <joint type="hinge" axis="0 1 1" pos="0.1 0.2 0.3" ref="0.4" damping="0.3" armature="0.1"/>
    <geom type="box" size=".1 .2 .3" contype="0" conaffinity="0"/>
    <body name="welded" pos="0.3 0.1 0" quat="1 0.3 0.2 0.1">
      <geom type="capsule" size="0.05 0.2" contype="0" conaffinity="0"/>
      <body name="ball" pos="0.1 0.1 0.1" quat="1 0.1 -0.2 0.4">
        <joint name="socket" type="ball" pos="0.02 0.1 -0.1" stiffness="2" damping="0.1"/>
        <geom type="ellipsoid" size=".1 .05 .2" contype="0" conaffinity="0"/>
      </body>
    </body>
  </body>
  <body name="free" pos="1 1 1"><freejoint/><geom type="sphere" size="0.1" contype="0" conaffinity="0"/></body>
</worldbody>
<actuator>
  <position name="servo" joint="turn" kp="5" kv="0.4" gear="2"/>
</actuator></mujoco>
""".replace('<joint type="hinge" axis', '<joint name="turn" type="hinge" axis')

# A quadruped as a URDF: a free base, three hinges a leg, toes behind fixed joints.
LEG = """
  <link name="{n}hip"><inertial><origin xyz="0.01 0 0"/><mass value="1.1"/>
    <inertia ixx="0.002" iyy="0.003" izz="0.002" ixy="0.0001" ixz="0" iyz="0"/></inertial></link>
  <joint name="{n}a" type="continuous"><parent link="base"/><child link="{n}hip"/><axis xyz="1 0 0"/>
    <origin xyz="{x} {y} 0" rpy="0.1 0.2 0.3"/></joint>
  <link name="{n}thigh"><inertial><origin xyz="0 0 -0.1"/><mass value="1.5"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0.0002" iyz="0"/></inertial></link>
  <joint name="{n}b" type="continuous"><parent link="{n}hip"/><child link="{n}thigh"/><axis xyz="0 1 0"/>
    <origin xyz="0 0.05 0"/><dynamics damping="0.2" friction="0"/></joint>
  <link name="{n}shank"><inertial><origin xyz="0 0 -0.12"/><mass value="0.3"/>
    <inertia ixx="0.002" iyy="0.002" izz="0.0002" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{n}c" type="continuous"><parent link="{n}thigh"/><child link="{n}shank"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 -0.25"/></joint>
  <link name="{n}toe"><inertial><mass value="0.06"/>
    <inertia ixx="0.0001" iyy="0.0001" izz="0.0001" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.03"/></geometry></collision></link>
  <joint name="{n}d" type="fixed"><parent link="{n}shank"/><child link="{n}toe"/><origin xyz="0 0 -0.25"/></joint>
"""
QUADRUPED = (
    '<robot name="quadruped"><link name="base"><inertial><mass value="13"/>'
    '<inertia ixx="0.07" iyy="0.25" izz="0.26" ixy="0.01" ixz="0" iyz="0"/></inertial></link>'
    + "".join(LEG.format(n=f"{x}{y}", x=x, y=y) for x in (0.2, -0.2) for y in (0.1, -0.1))
    + "</robot>"
)
LAIKAGO = Path(__file__).parents[2] / "data" / "laikago.urdf"
FREE = ("contact", "limit")


def cartpole_file(poles: int) -> str:
    """The dm_control cartpole with its includes, written where MuJoCo can read it."""
    suite = pytest.importorskip("dm_control.suite.cartpole")
    xml, assets = suite.get_model_and_assets(poles)
    folder = Path(tempfile.mkdtemp())
    for name, content in assets.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "cartpole.xml").write_bytes(xml if isinstance(xml, bytes) else xml.encode())
    return str(folder / "cartpole.xml")


def ant_file() -> str:
    gymnasium = pytest.importorskip("gymnasium")
    return os.path.join(os.path.dirname(gymnasium.__file__), "envs", "mujoco", "assets", "ant.xml")  # noqa: PTH118, PTH120


def pendulum() -> str:
    rods = ""
    for k in reversed(range(3)):
        at = "0 0 0" if k == 0 else "0 0 -0.5"
        rods = (
            f'<body name="rod{k}" pos="{at}"><joint type="hinge" axis="0 1 0" damping="0.05"/>'
            f'<geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.03" mass="1"/>{rods}</body>'
        )
    return f"<mujoco><worldbody>{rods}</worldbody></mujoco>"


def oracle(source: str, free: bool) -> mujoco.MjModel:
    inline = source.lstrip().startswith("<")
    spec = mujoco.MjSpec.from_string(source) if inline else mujoco.MjSpec.from_file(source)
    spec.compiler.fusestatic = False
    if free:
        spec.worldbody.first_body().add_freejoint()
    model = spec.compile()
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT.value
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY.value
    return model


CASES = {
    "cartpole": lambda: (cartpole_file(1), False),
    "double cartpole": lambda: (cartpole_file(2), False),
    "pendulum": lambda: (pendulum(), False),
    "ant": lambda: (ant_file(), False),
    "quadruped urdf": lambda: (QUADRUPED, True),
    "laikago urdf": lambda: (str(LAIKAGO), True),
    "every joint": lambda: (MIXED, False),
}


@pytest.mark.parametrize("case", CASES)
def test_models_agree(case):
    source, free = CASES[case]()
    base = "free" if free else "auto"
    engine, model = articulated.load(source, base=base, ignore=FREE), oracle(source, free)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    assert (engine.nq, engine.nv) == (model.nq, model.nv)
    assert engine.body_names == tuple(model.body(k).name or f"body {k}" for k in range(1, model.nbody))
    for _ in range(20):
        q = model.qpos0.copy()
        mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 1.0)
        data.qpos[:], data.qvel[:] = q, rng.normal(size=model.nv)
        data.ctrl[:] = rng.uniform(-1.5, 1.5, model.nu)
        wrenches = rng.normal(size=(model.nbody, 6))
        data.xfrc_applied[:] = wrenches
        force = np.zeros(model.nv) if model.nu else rng.normal(size=model.nv)
        data.qfrc_applied[:] = force
        mujoco.mj_forward(model, data)

        state = State(torch.tensor(q)[None], torch.tensor(data.qvel)[None])
        control = torch.tensor(data.ctrl if model.nu else force)[None]
        result = engine.acceleration(state, control, wrenches=torch.tensor(wrenches[1:])[None])[0].numpy()
        np.testing.assert_allclose(result, data.qacc, atol=1e-9 * max(1.0, np.abs(data.qacc).max()), rtol=0)

        mass_matrix = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, mass_matrix)
        np.testing.assert_allclose(engine.mass_matrix(state)[0], mass_matrix, atol=1e-12 * np.abs(mass_matrix).max())
        poses = engine.poses(state)[0].numpy()
        np.testing.assert_allclose(poses[:, :3, 3], data.xpos[1:], atol=1e-12)
        np.testing.assert_allclose(poses[:, :3, :3].reshape(-1, 9), data.xmat[1:], atol=1e-12)
        for row, body in enumerate(engine.body_names):
            point, expected = rng.normal(size=3), np.zeros((6, model.nv))
            at = data.xpos[row + 1] + data.xmat[row + 1].reshape(3, 3) @ point
            mujoco.mj_jac(model, data, expected[:3], expected[3:], at, row + 1)
            np.testing.assert_allclose(
                engine.jacobian(state, (body, row)[row % 2], point.tolist())[0], expected, atol=1e-11
            )
        data.ctrl[:] = 0.0
        mujoco.mj_forward(model, data)
        data.qacc[:] = rng.normal(size=model.nv)
        mujoco.mj_inverse(model, data)
        # Springs and dampers of servos belong to the engine's joints.
        expected = data.qfrc_inverse - ("position" in source) * data.qfrc_actuator
        torque = engine.inverse_dynamics(state, torch.tensor(data.qacc)[None])[0].numpy()
        np.testing.assert_allclose(torque, expected, atol=1e-11 * max(1.0, np.abs(expected).max()), rtol=0)
        kinetic, potential = (float(value[0]) for value in engine.energy(state))
        # A servo's spring belongs to the engine's potential; MuJoCo books it as an actuator.
        assert kinetic == pytest.approx(data.energy[1], rel=1e-11)
        if "position" not in source:
            assert potential == pytest.approx(data.energy[0], rel=1e-11, abs=1e-11)


SERVO = '<actuator><position joint="hinge" kp="20" kv="3" gear="1.5"/></actuator></mujoco>'


@pytest.mark.parametrize(
    ("source", "integrator"),
    [
        (pendulum(), "mjINT_EULER"),
        (pendulum(), "mjINT_IMPLICITFAST"),
        (pendulum().replace("<joint", '<joint name="hinge"', 1).replace("</mujoco>", SERVO), "mjINT_IMPLICITFAST"),
    ],
)
def test_semi_implicit_steps_are_mujocos(source, integrator):
    """Trajectories agree step by step with those of MuJoCo's integrators that take the same drag implicitly."""
    model = mujoco.MjModel.from_xml_string(source)
    model.opt.timestep = 0.005
    model.opt.integrator = getattr(mujoco.mjtIntegrator, integrator)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT.value
    data = mujoco.MjData(model)
    data.qpos[:] = 0.5, 0.3, -0.2
    engine = articulated.load(source, dt=0.005, ignore=FREE)
    start = State(torch.tensor(data.qpos.copy())[None], torch.zeros(1, 3, dtype=torch.float64))
    result = engine.rollout(start, 200).q[0]
    expected = [data.qpos.copy()]
    for _ in range(200):
        mujoco.mj_step(model, data)
        expected.append(data.qpos.copy())
    np.testing.assert_allclose(result, np.array(expected), atol=1e-10)


def test_integrate_and_difference_are_mujocos():
    model = oracle(MIXED, False)
    engine, rng = articulated.load(MIXED), np.random.default_rng(1)
    for _ in range(20):
        dv = rng.normal(size=model.nv)
        q = model.qpos0.copy()
        mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 1.0)
        moved, back = q.copy(), np.zeros(model.nv)
        mujoco.mj_integratePos(model, moved, dv, 1.0)
        mujoco.mj_differentiatePos(model, back, 1.0, q, moved)
        result = engine.integrate(torch.tensor(q)[None], torch.tensor(dv)[None])
        np.testing.assert_allclose(result[0], moved, atol=1e-12)
        np.testing.assert_allclose(engine.difference(torch.tensor(q)[None], result)[0], back, atol=1e-12)
