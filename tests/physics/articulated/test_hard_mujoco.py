"""Motion with contact converges to MuJoCo's, as that gets hard and steps small.

A contact of MuJoCo with the time constant τ and the damping ratio ζ is r″ = −2 r′/τ − r/(ζτ)² as long as it pushes.
What strikes it leaves at exp(−2) = 0.14 of its speed for ζ = 1, however short τ is, and at about 1/(4 ζ²) for large ζ:
only with large ζ has its limit no restitution, as ours.
"""

# pyright: reportAttributeAccessIssue=false

from itertools import pairwise

import mujoco
import numpy as np
import pytest
import torch

from physvision.physics import articulated

SECONDS = 0.3
FINER = 50  # MuJoCo's steps in one of ours
SOFT = 5  # of MuJoCo's steps: the time constant of its contacts
MUJOCO_ERROR = 4e-4  # m or rad, of the tumbling box at the hardest contacts that are tried
OVERDAMPED = 10.0  # their damping ratio

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


SLIPPERY = STICKING.replace('condim="3"', 'condim="1"')
# A box that lands on one corner, turns about it and strikes with others, which slide.
TUMBLING = _SCENE.format(
    condim=1,
    friction=1,
    bodies="""
    <body pos="0 0 0.3" euler="0.3 0.2 0"><freejoint/><geom type="box" size="0.15 0.1 0.08"/></body>""",
)


def difference(scene: str, h: float) -> tuple[float, bool]:
    """The largest difference of positions at any of our steps, and whether a contact slid in MuJoCo."""
    engine = articulated.load(scene, dt=h)
    path = engine.rollout(engine.initial_state(1, torch.float64), round(SECONDS / h))
    assert path.status is not None
    assert bool(path.status.converged)
    model = mujoco.MjModel.from_xml_string(scene)
    model.opt.timestep = h / FINER
    model.geom_solref[:] = SOFT * h / FINER, OVERDAMPED
    model.geom_solimp[:] = 0.9999, 0.9999, 1e-6, 0.5, 2.0
    data = mujoco.MjData(model)
    worst, hit_body = 0.0, False
    for step in range(1, round(SECONDS / h) + 1):
        mujoco.mj_step(model, data, FINER)
        worst = max(worst, float(np.abs(path.q[0, step].numpy() - data.qpos).max()))
        hit_body |= data.ncon > 0
    return worst, hit_body


def test_what_strikes_a_critically_damped_contact_in_mujoco_leaves_it_however_hard_it_is():
    ball = _SCENE.format(condim=1, friction=1, bodies="""
        <body pos="0 0 0.6"><freejoint/><geom type="sphere" size="0.1"/></body>""")  # fmt: skip
    restitution = {}
    for ratio in (1.0, OVERDAMPED):
        model = mujoco.MjModel.from_xml_string(ball)
        model.opt.timestep = 1e-5
        model.geom_solref[:] = 100e-5, ratio
        model.geom_solimp[:] = 0.9999, 0.9999, 1e-6, 0.5, 2.0
        data = mujoco.MjData(model)
        data.qpos[2], data.qvel[2] = 0.1 + 1e-5, -1.0
        fastest = 0.0
        for _ in range(1000):
            mujoco.mj_step(model, data)
            fastest = max(fastest, data.qvel[2])
        restitution[ratio] = fastest
    # Steps are a hundredth of the time constant, and gravity takes 0.02 m/s in the two that the contact lasts.
    assert restitution[1.0] == pytest.approx(np.exp(-2.0), abs=0.02)
    assert restitution[OVERDAMPED] == pytest.approx(1 / (4 * OVERDAMPED**2), abs=0.002)


@pytest.mark.parametrize("scene", [STICKING, SLIPPERY, TUMBLING], ids=["sticking", "slippery", "tumbling"])
def test_motion_converges_to_that_of_hard_contact_in_mujoco(scene):
    results = [difference(scene, h) for h in (4e-3, 2e-3, 1e-3, 5e-4)]
    assert all(entry for _, entry in results)
    errors = [error for error, _ in results]
    # An eighth of the step, an eighth of the difference, down to the error of MuJoCo's own hard contacts.
    assert errors[0] < 0.06
    assert errors[3] < max(errors[0] / 4, MUJOCO_ERROR)


def test_a_tumbling_box_differs_little_from_that_of_finer_steps():
    """Its difference from MuJoCo is MuJoCo's error: the own one is smaller by a factor of thirty."""
    paths = []
    for h in (4e-3, 2e-3, 1e-3):
        engine = articulated.load(TUMBLING, dt=h)
        path = engine.rollout(engine.initial_state(1, torch.float64), round(SECONDS / h))
        paths.append(path.q[0, :: round(4e-3 / h)])
    assert all(float((fine - coarse).abs().max()) < MUJOCO_ERROR / 30 for coarse, fine in pairwise(paths))
