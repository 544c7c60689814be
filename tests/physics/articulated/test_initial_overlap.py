# ruff: noqa: E501
"""Shapes that overlap at the start: pushed apart, held until they part, or passing through each other."""

# pyright: reportAttributeAccessIssue=false

import math
from pathlib import Path

import pytest
import torch
from physics.articulated.free_bodies import DOUBLE, STILL, free, state, world

from physvision import State
from physvision.core import Box, InputError, Placed, Plane, Sphere
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint
from physvision.physics.articulated.penetration import describe_penetration


def test_what_overlaps_at_the_start_is_pushed_apart_by_choice():
    """Otherwise its world fails. The heavy body moves least; what lies in the ground comes up; limits are kept."""
    arm = Body("arm", None, [Joint("revolute", (0, 1, 0), limits=(0.3, 1.0))], position=(5.0, 0, 1.0))
    engine = world(
        [free("light", Sphere(0.2), 1.0), free("heavy", Box((0.4, 0.4, 0.4)), 9.0), arm],
        static_shapes=[Placed(Plane())],
    )
    deep = state(((0, 0, 1.0), (1.0, 0, 0), STILL), ((0.3, 0, 1.0), STILL, STILL))
    deep = State(
        torch.cat([deep.q, torch.zeros(1, 1, dtype=DOUBLE)], 1), torch.cat([deep.v, torch.zeros(1, 1, dtype=DOUBLE)], 1)
    )
    deep.q[0, 9] = 0.15  # the box lies 5 cm in the ground, and then below the ball
    with pytest.warns(RuntimeWarning):
        assert engine.rollout(deep, 1).status.first_failed_step.tolist() == [0]
    separation = engine.resolve_penetration(deep)
    assert engine.contacts(separation, max_separation=0.0).separation.min(-1).values.tolist() == pytest.approx(
        [0.0], abs=1e-6
    )
    assert torch.equal(separation.v, deep.v)
    assert float(separation.q[0, 9]) == pytest.approx(0.2, abs=1e-6)
    assert float(separation.q[0, 14]) == pytest.approx(0.3, abs=1e-6)
    assert bool(engine.rollout(separation, 1).status.converged)
    side = deep.q.clone()
    side[0, [2, 9]] = 3.0
    moved = engine.resolve_penetration(State(side, deep.v)).q - side
    assert float(moved[0, 0]) == pytest.approx(-0.09, abs=1e-5)  # 10 cm, of which the heavy body takes a tenth
    assert float(moved[0, 7]) == pytest.approx(0.01, abs=1e-5)


ARM = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
  <geom name="table" type="box" size=".3 .3 .05" pos="0 0 .5"/>
  <body name="gripper" pos="0 0 1"><joint name="lift" type="slide" axis="0 0 1"/><joint name="turn" axis="0 0 1" range="-1 1"/>
    <geom name="finger" size=".02"/><geom name="palm" pos="0 0 .04" size=".02"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("lift", "turn", "cause", "depth"),
    [
        (-0.4444, 0.0, "sphere 'finger' of body 'gripper' and box 'table' of the world overlap by 14.4 mm", 0.0144),
        (0.0, 1.2, "joint 'turn' is beyond its limit by 0.2 rad", 0.0),
    ],
)
def test_the_warning_names_why_a_start_is_rejected(lift, turn, cause, depth):
    """The second of two worlds fails; the status has its penetration, and pushing apart helps, as the warning says."""
    engine = articulated.load(ARM, dt=0.002)
    start = State(torch.tensor([[0.0, 0.0], [lift, turn]], dtype=DOUBLE), torch.zeros(2, 2, dtype=DOUBLE))
    message = rf"world 1; first at step 0, where {cause}, more than the 10 mm .*resolve_penetration\(state\) pushes"
    with pytest.warns(RuntimeWarning, match=message):
        path = engine.rollout(start, 2)
    assert path.status.penetration.tolist() == pytest.approx([0.0, depth])
    assert path.status.first_failed_step.tolist() == [-1, 0]
    assert engine.rollout(engine.resolve_penetration(start), 2).status.converged.all()


def test_the_warning_measures_with_the_properties_of_the_call():
    """A finger of 3 cm overlaps where that of the file does not, and the limits of the second world are wider."""
    engine = articulated.load(ARM, dt=0.002)
    size = engine.properties.shape_size.repeat(2, 1, 1).double()
    size[1, [placed.name == "finger" for placed in engine.geometry], 0] = 0.03
    limits = engine.properties.joint_limits.repeat(2, 1, 1).double()
    limits[1, 1] = torch.tensor([-2.0, 2.0])
    start = State(torch.tensor([[0.0, 0.0], [-0.435, 1.5]], dtype=DOUBLE), torch.zeros(2, 2, dtype=DOUBLE))
    with pytest.warns(RuntimeWarning, match="where sphere 'finger' of .* of the world overlap by 15 mm, more"):
        engine.rollout(start, 2, properties={"shape_size": size, "joint_limits": limits})


def test_what_no_joint_can_free_keeps_its_overlap():
    """A ball on two rails lies 2 mm in the ground; it rolls on, and what lies beside it is freed alone."""
    rails = [Joint("prismatic", (1, 0, 0)), Joint("prismatic", (0, 1, 0))]
    rider = Body("rider", None, rails, 1.0, inertia=(0.01,) * 3, position=(0, 0, 0.098), shapes=[Placed(Sphere(0.1))])
    engine = world([rider, free("ball", Sphere(0.1), 1.0)], static_shapes=[Placed(Plane())], gravity=(0, 0, -10))
    q = torch.tensor([[0.0, 0, 1, 0, 0.097, 1, 0, 0, 0]], dtype=DOUBLE)
    v = torch.tensor([[0.5, -0.2, 0, 0, 0, 0, 0, 0]], dtype=DOUBLE)
    start = engine.resolve_penetration(State(q, v))
    assert float(start.q[0, 4]) == pytest.approx(0.1, abs=1e-6)
    path = engine.rollout(start, 50)
    assert bool(path.status.converged)
    assert path.status.penetration.tolist() == pytest.approx([0.002])
    assert path.q[0, -1, :2].tolist() == pytest.approx([0.5 * 50 * engine.dt, -0.2 * 50 * engine.dt])


def test_a_hinge_is_pushed_out_no_farther_than_it_must():
    """By the lever that it has at the start it would turn nearly twice as far; the lever grows as it turns."""

    def at(x, z):
        return ((1.0, 0, 0, x), (0, 1.0, 0, 0), (0, 0, 1.0, z), (0, 0, 0, 1.0))

    shapes = [Placed(Sphere(0.1), pose=at(0.005, 0.3))]
    arm = Body("arm", None, [Joint("revolute", (0, 1, 0))], 1.0, inertia=(0.1,) * 3, shapes=shapes)
    engine = world([arm], static_shapes=[Placed(Sphere(0.1), pose=at(0.0, 0.42))])
    given = torch.tensor([[0.0], [1.5], [0.0]], dtype=DOUBLE)  # the second one is free
    freed = engine.resolve_penetration(State(given, torch.zeros(3, 1, dtype=DOUBLE)))
    assert given.flatten().tolist() == [0.0, 1.5, 0.0]
    assert float(freed.q[1, 0]) == 1.5
    assert float(freed.q[2, 0]) == float(freed.q[0, 0])
    offset = math.hypot(0.005, 0.3)
    away = math.acos((offset**2 + 0.42**2 - 0.2**2) / (2 * offset * 0.42))
    assert float(freed.q[0, 0]) == pytest.approx(away - math.atan2(0.005, 0.3), abs=1e-5)


def test_shapes_that_overlap_at_the_start_may_pass_through_each_other():
    """Of two balls on sliders one starts within the other, a third is struck; only the first two pass."""
    source = """<mujoco><option gravity="0 0 0"/><worldbody>
      <body name="a"><joint type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
      <body name="b" pos="0.15 0 0"><joint type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
      <body name="c" pos="0.6 0 0"><joint type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
    </worldbody></mujoco>"""
    state = State(torch.zeros(1, 3, dtype=torch.float64), torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64))
    colliding = articulated.load(source, initial_penetration="keep")
    with pytest.warns(RuntimeWarning):
        assert colliding.rollout(state, 1).status.first_failed_step.tolist() == [0]
    engine = articulated.load(
        source, initial_penetration="exclude", contact=articulated.ContactSettings(restitution=1.0)
    )
    end = engine.rollout(state, 100).final
    torch.testing.assert_close(end.v, torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64), rtol=0, atol=1e-9)
    with pytest.raises(InputError, match="initial_penetration: expected one of hold, keep, exclude, got 'ignore'"):
        articulated.load(source, initial_penetration="ignore")


def test_shapes_that_overlap_at_the_start_are_held_until_they_part():
    """Two balls on sliders, one 5 cm within the other: they move as one when pushed, and bounce once they have parted."""
    source = """<mujoco><option gravity="0 0 0"/><worldbody>
      <body name="a"><joint type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
      <body name="b" pos="0.15 0 0"><joint type="slide" axis="1 0 0"/><geom name="g" size="0.1" mass="1"/></body>
    </worldbody></mujoco>"""
    engine = articulated.load(source, contact=articulated.ContactSettings(restitution=1.0))
    assert engine.held_pairs == (("sphere of 'a'", "sphere 'g' of 'b'"),)
    assert not describe_penetration(engine, engine.initial_state(1, torch.float64))
    start = engine.initial_state(1, torch.float64)
    still = engine.rollout(start, 20)
    assert still.status.converged.all()
    assert float(still.v.abs().max()) == 0.0
    assert float(still.status.penetration[0]) == pytest.approx(0.05)
    slow = torch.tensor([[5e-4, 0.0]], dtype=torch.float64)
    pushed = engine.rollout(State(start.q, slow), 50)
    # In the step of the impact, which takes the mean velocity, the first moves on by half of v h.
    assert float((pushed.q[:, :, 1] - pushed.q[:, :, 0]).min()) > -0.51 * 5e-4 * engine.dt
    torch.testing.assert_close(pushed.final.v, 0.5 * slow.sum(1, keepdim=True).expand(1, 2), rtol=1e-9, atol=0)
    # Apart by 3 cm, then back against each other.
    returning = State(
        torch.tensor([[0.0, 0.08]], dtype=torch.float64), torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    )
    end = engine.rollout(returning, 10)
    torch.testing.assert_close(end.final.v, -returning.v, rtol=0, atol=1e-9)
    separated = engine.resolve_penetration(start).q[0]
    assert float(0.15 + separated[1] - separated[0]) == pytest.approx(0.2, abs=2e-6)


@pytest.mark.parametrize("name", ["ant", "humanoid", "humanoidstandup"])
def test_gymnasiums_files_run_as_loaded(name):
    """Ankles of the ant and knees of the humanoids are beyond their limits in the file's pose: they get no further."""
    gymnasium = pytest.importorskip("gymnasium")
    file = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"
    engine = articulated.load(file, dt=5e-3)
    start = engine.initial_state(1, torch.float64)
    path = engine.rollout(start, 60)
    assert path.status.converged.all()
    lower, upper = engine.properties.joint_limits[1:].unbind(-1)  # behind the root's
    low, high = (torch.minimum(lower, start.q[0, 7:]), torch.maximum(upper, start.q[0, 7:]))
    assert (path.q[0, :, 7:] >= low - 1e-3).all()
    assert (path.q[0, :, 7:] <= high + 1e-3).all()


def test_only_pairs_that_overlap_are_held():
    """Not those whose margin is more than 1 cm."""
    source = """<mujoco><worldbody><geom type="plane" size="1 1 1" margin="0.03"/>
      <body pos="0 0 1"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""
    assert articulated.load(source).held_pairs == ()
