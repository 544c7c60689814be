"""Motion with a sticking contact converges to MuJoCo's, as that gets hard and steps small: first order in ours."""

import mujoco
import numpy as np
import torch

from physvision.physics import articulated

SECONDS = 0.3
FINER = 50  # MuJoCo's steps in one of ours
SOFT = 5  # of MuJoCo's steps: the time constant of its contacts

_SCENE = """
<mujoco>
  <compiler angle="radian"/>
  <option cone="elliptic" impratio="100" integrator="Euler" iterations="200" tolerance="1e-14"/>
  <default><geom condim="{condim}" friction="{friction} 0 0" density="800"/></default>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    {bodies}
  </worldbody>
</mujoco>"""

# A leg that lands on its foot and folds over it.
STICKING = _SCENE.format(condim=3, friction=3, bodies="""
    <body pos="0 0 0.6">
      <joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
      <joint name="turn" type="hinge" axis="0 1 0"/>
      <geom type="box" size="0.15 0.1 0.08" contype="0" conaffinity="0"/>
      <body pos="0.02 0 -0.05"><joint type="hinge" axis="0 1 0" stiffness="60" damping="1.5" springref="0.4"/>
        <geom type="capsule" fromto="0 0 0 0.1 0 -0.22" size="0.03" contype="0" conaffinity="0"/>
        <body pos="0.1 0 -0.22"><joint type="hinge" axis="0 1 0" stiffness="60" damping="1.5" springref="-0.5"/>
          <geom type="capsule" fromto="0 0 0 -0.1 0 -0.2" size="0.02" contype="0" conaffinity="0"/>
          <geom type="sphere" pos="-0.1 0 -0.22" size="0.03"/></body></body></body>""")  # fmt: skip


def difference(scene: str, h: float) -> tuple[float, bool]:
    """The largest difference of positions at any of our steps, and whether a contact slid in MuJoCo."""
    engine = articulated.load(scene, dt=h)
    path = engine.rollout(engine.initial_state(1, torch.float64), round(SECONDS / h))
    assert path.status is not None
    assert bool(path.status.converged)
    model = mujoco.MjModel.from_xml_string(scene)
    model.opt.timestep = h / FINER
    model.geom_solref[:] = SOFT * h / FINER, 1.0
    model.geom_solimp[:] = 0.9999, 0.9999, 1e-6, 0.5, 2.0
    data = mujoco.MjData(model)
    worst, struck = 0.0, False
    for step in range(1, round(SECONDS / h) + 1):
        mujoco.mj_step(model, data, FINER)
        worst = max(worst, float(np.abs(path.q[0, step].numpy() - data.qpos).max()))
        struck |= data.ncon > 0
    return worst, struck


def test_motion_converges_to_that_of_hard_contact_in_mujoco():
    found = [difference(STICKING, h) for h in (4e-3, 2e-3, 1e-3, 5e-4)]
    assert all(struck for _, struck in found)
    errors = [error for error, _ in found]
    # First order: an eighth of the step, an eighth of the difference; MuJoCo's own error falls alike.
    assert errors[0] < 0.05
    assert 4 < errors[0] / errors[3] < 16
