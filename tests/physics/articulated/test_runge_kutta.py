"""Runge–Kutta steps of bodies that rotate freely: fourth order by Euler's equations, and MuJoCo's own."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from itertools import pairwise

import mujoco
import numpy as np
import pytest
import torch
from mujoco_versions import runge_kutta_steps
from physics.articulated.test_spinning import exact
from scipy.spatial.transform import Rotation

from physvision import State
from physvision.physics.articulated import Body, Joint, load, tree

DOUBLE = torch.float64
INERTIA, SPIN = (0.006, 0.009, 0.013), (9.0, 6.0, -8.0)  # those of `exact`
CHAIN = """<mujoco><worldbody><body><freejoint/><geom type="box" size=".1 .2 .3" pos=".1 .05 0"/>
  <body pos=".3 0 0"><joint type="ball" stiffness="2" damping="0.1"/>
  <geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/>
  <body pos=".3 .1 0"><joint axis="1 2 0"/><joint type="slide" axis="0 1 1" stiffness="30"/>
  <geom type="box" size=".1 .05 .08"/></body></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("joint", ["ball", "free"])
def test_a_body_spins_by_eulers_equations_to_fourth_order(joint):
    body = Body("body", None, [Joint(joint)], 0.7, (0.0, 0.0, 0.0), INERTIA)
    turn, spin = exact(0.32)
    errors = []
    for steps in (20, 40, 80):
        engine = tree([body], dt=0.32 / steps, gravity=(0, 0, 0), integrator="runge_kutta_4")
        start = engine.initial_state(1, DOUBLE)
        v = torch.zeros_like(start.v)
        v[0, -3:] = torch.tensor(SPIN)
        end = engine.rollout(State(start.q, v), steps).final
        change = Rotation.from_quat(turn, scalar_first=True).inv() * Rotation.from_quat(
            end.q[0, -4:].numpy(), scalar_first=True
        )
        errors.append(np.hypot(change.magnitude(), float((end.v[0, -3:] - torch.tensor(spin)).norm())))
    assert errors[-1] < 1e-4
    assert all(13 < coarse / fine < 19 for coarse, fine in pairwise(errors))


@pytest.mark.parametrize("contact", ["event", "compliant"])
def test_steps_of_rotations_are_mujocos(contact):
    """A floating chain of a ball, a hinge and a slide, long steps: equal to rounding for 0.2 s."""
    h = 0.02
    model = mujoco.MjModel.from_xml_string(CHAIN)
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, h
    engine, data = (
        load(CHAIN, dt=h, ignore=("contact",), contact=contact, integrator="runge_kutta_4"),
        mujoco.MjData(model),
    )
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT.value
    generator = np.random.default_rng(0)
    mujoco.mj_integratePos(model, data.qpos, generator.normal(size=model.nv), 1.0)
    data.qvel[:] = 2 * generator.normal(size=model.nv)
    state = State(torch.tensor(data.qpos.copy())[None], torch.tensor(data.qvel.copy())[None])
    path = engine.rollout(state, 10)
    runge_kutta_steps(model, data, 10)
    np.testing.assert_allclose(path.final.q[0], data.qpos, rtol=0, atol=1e-12)
    np.testing.assert_allclose(path.final.v[0], data.qvel, rtol=0, atol=1e-11)
