"""Faults that differentiable engines were found to have in their gradients through contact, each as a test of ours.

Genesis' audit lists: velocities from before a checkpoint used after it; J̇ v left out (see `test_tipping.py`); ancestors
that two contacts share counted twice; friction's scale forgotten; the position gradient of an offset slide put into its
quaternion; the gradient of position control never used. MuJoCo Warp's draft: the free joint's axes of an earlier step;
no gradient at all to controls where drag is implicit; equality rows with their sign turned, which we have none of.
"""

import pytest
import torch
from physics.articulated.slopes import compare

from physvision import State
from physvision.core import Placed, Plane, Sphere
from physvision.physics import articulated
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64


def walker(friction=0.7):
    """A free trunk with a turned, offset slide and a hinge, each with drag and a foot; both feet share the trunk."""
    small = {"mass": 0.4, "inertia": (0.004, 0.005, 0.003)}
    bodies = [
        Body("trunk", None, [Joint("free")], mass=1.5, inertia=(0.03, 0.04, 0.05)),
        Body(
            "slide", "trunk", [Joint("prismatic", (0.1, 0, 1), damping=4.0, stiffness=200.0)],
            position=(0.2, 0.05, -0.3), orientation=(0.98, 0.1, -0.15, 0.05), shapes=[Placed(Sphere(0.06))], **small,
        ),
        Body(
            "leg", "trunk", [Joint("revolute", (0, 1, 0.1), anchor=(0, 0, 0.25), damping=0.3, stiffness=20.0)],
            position=(-0.2, -0.04, -0.3), shapes=[Placed(Sphere(0.05))], **small,
        ),
    ]  # fmt: skip
    return tree(bodies, dt=0.01, static_shapes=[Placed(Plane())], contact=ContactSettings(friction=friction))


def state_of(engine, seed):
    rng = torch.Generator().manual_seed(seed)
    q = engine.initial_state(1, DOUBLE).q.clone()
    q[0, 2] = 0.42
    turn = q[0, 3:7] + 0.05 * torch.randn(4, generator=rng, dtype=DOUBLE)
    q[0, 3:7] = turn / turn.norm()
    return rng, State(q, 0.4 * torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE))


def test_shared_ancestors_offset_slides_friction_and_controls_have_right_gradients():
    """Both feet land and rub; every input and each property that the lists name, against differences."""
    engine, checked = walker(), 0
    leaves = ("position", "orientation", "joint_damping", "joint_stiffness", "friction", "mass")
    for seed in range(3):
        rng, start = state_of(engine, seed)
        values = {"q": start.q, "v": start.v, "u": torch.randn(1, 25, engine.nv, generator=rng, dtype=DOUBLE)}
        values |= {name: getattr(engine.properties, name).clone() for name in leaves}
        weights = torch.randn(engine.nq + engine.nv, generator=rng, dtype=DOUBLE)

        def loss(given, weights=weights):
            own = {name: given[name] for name in leaves}
            path = engine.rollout(State(given["q"], given["v"]), 25, given["u"], own)
            assert path.status is not None
            assert path.status.converged.all()
            return torch.cat([path.q[:, -1], path.v[:, -1]], 1) @ weights

        rows = engine.contacts(engine.rollout(start, 25, values["u"]).final, max_separation=1e-3)
        assert rows.present.sum() == 2

        def along(name, value, rng=rng):
            result = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
            # What may not be below zero moves in proportion.
            return result * value if name in leaves[2:] else result

        checked += compare(loss, values, along)
    assert checked >= 20  # of 27


def test_gradients_do_not_depend_on_where_a_rollout_is_cut():
    """Nothing of a step before a checkpoint is used after it: thirty steps at once are ten calls of three."""
    engine = walker()
    _, start = state_of(engine, 5)
    results = []
    for cuts in (1, 10):
        q, v = start.q.clone().requires_grad_(), start.v.clone().requires_grad_()
        state = State(q, v)
        for _ in range(cuts):
            state = engine.rollout(state, 30 // cuts).final
        results.append(torch.autograd.grad(state.q[0, 0] + state.v[0, 5], (q, v)))
    for value, reference in zip(*results, strict=True):
        torch.testing.assert_close(value, reference, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("steps", [1, 20])
def test_a_position_servo_of_a_file_passes_gradients_to_its_target(steps):
    """Its drag is implicit; the foot that it pushes stands on the ground."""
    engine = articulated.load(
        """<mujoco><worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 0.4"><joint type="slide" axis="0 0 1"/>
        <geom size="0.05" mass="2"/><body pos="0 0 -0.35"><joint name="knee" type="slide" axis="0 0 1" damping="3"/>
        <geom size="0.05" mass="0.3"/></body></body></worldbody>
        <actuator><position joint="knee" kp="300" kv="8"/></actuator></mujoco>"""
    )
    start = engine.initial_state(1, DOUBLE)

    def end(target):
        path = engine.rollout(start, steps, torch.full((1, steps, 1), 1.0, dtype=DOUBLE) * target)
        return path.v[0, -1, 0]

    target = torch.tensor(-0.02, dtype=DOUBLE, requires_grad=True)
    (gradient,) = torch.autograd.grad(end(target), target)
    difference = float(end(-0.02 + 1e-6) - end(-0.02 - 1e-6)) / 2e-6
    assert abs(difference) > 1e-3
    assert float(gradient) == pytest.approx(difference, rel=1e-6)
