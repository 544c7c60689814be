"""Moving bodies without mass, whose mass hangs in bodies that are welded to them."""

# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np
import pytest
import torch

from physvision import State
from physvision.core import ModelError
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint

FRAME = """<mujoco><option><flag contact="disable"/></option><worldbody><body name="frame" pos="0 0 1">{joint}
  <body name="load" pos=".1 .2 .3" euler="10 20 30"><geom type="box" size=".1 .2 .3"/>
    <body name="arm" pos=".1 0 0"><joint axis="0 1 0"/>
      <body name="tip" pos="0 .1 0"><geom type="sphere" size=".1"/></body></body></body></body></worldbody></mujoco>"""


JOINTS = ["<freejoint/>", '<joint type="ball"/>', '<joint type="slide"/><joint axis="1 0 0"/>']


@pytest.mark.parametrize("joint", JOINTS)
def test_accelerations_are_mujocos(joint):
    model = mujoco.MjModel.from_xml_string(FRAME.format(joint=joint))
    engine, data, random = articulated.load(FRAME.format(joint=joint)), mujoco.MjData(model), np.random.default_rng(0)
    for _ in range(10):
        q, v = np.array(model.qpos0), random.normal(size=model.nv)
        mujoco.mj_integratePos(model, q, random.normal(size=model.nv), 1.0)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        result = engine.acceleration(State(torch.from_numpy(q)[None], torch.from_numpy(v)[None]))[0].numpy()
        np.testing.assert_allclose(result, data.qacc, rtol=0, atol=1e-12 * np.abs(data.qacc).max())


def test_a_link_without_any_mass_is_refused():
    bodies = [Body("frame", None, [Joint()], mass=0.0, inertia=(0,) * 3), Body("load", "frame")]
    engine = articulated.tree(bodies)
    with pytest.raises(ModelError, match="mass of 'frame': expected numbers above zero, got 0"):
        articulated.tree([bodies[0], Body("load", "frame", mass=0.0)])
    with pytest.raises(ModelError, match="inertia of 'frame': expected a positive definite matrix"):
        articulated.tree([bodies[0], Body("load", "frame", inertia=(1.0, 1.0, 0.0))])
    with pytest.raises(ModelError, match="inertia of 'load': expected a positive definite matrix"):
        articulated.tree([bodies[0], Body("load", "frame", inertia=(1.0, 1.0, -1.0))])
    with pytest.raises(ModelError, match="mass of 'frame': expected numbers above zero, got 0"):
        engine.step(engine.initial_state(), None, {"mass": torch.zeros(2)})
