"""A Laikago that is dropped comes to stand on its toes, alone, in a batch, and ten of them in one world."""

# pyright: reportAttributeAccessIssue=false

from dataclasses import replace
from pathlib import Path

import mujoco
import pytest
import torch

from physvision import State
from physvision.core import Placed, Plane, Sphere
from physvision.physics.articulated import Articulation, Body, ContactSettings, Joint, tree
from physvision.physics.articulated.loading import translate

DOUBLE = torch.float64
LAIKAGO = Path(__file__).parents[2] / "data" / "laikago.urdf"
TOE = 0.0265
BENT = {"upper_leg_2_hip": 0.6, "lower_leg_2_upper_leg": -1.2}  # rad, by parts of the joints' names
HIGH = 0.1 + 0.34 + TOE  # of the body at the start: its toes are about 0.1 m above the ground


def fixed(joint: Joint) -> Joint:
    """A joint whose servo pulls it to the angle at which its leg stands, with angle and velocity of the step's end."""
    if joint.kind == "free":
        return joint
    angle = next((angle for part, angle in BENT.items() if part in joint.name), 0.0)
    return replace(
        joint, stiffness=300.0, damping=10.0, implicit_spring=True, initial_position=(angle,), spring_reference=(angle,)
    )


def laikagos(count: int) -> Articulation:
    spec = mujoco.MjSpec.from_file(str(LAIKAGO))
    spec.compiler.fusestatic = False
    spec.worldbody.first_body().add_freejoint()
    bodies = translate.bodies(spec.compile())

    def copied(body: Body, k: int) -> Body:
        return replace(
            body,
            name=f"{body.name} {k}",
            parent=None if body.parent is None else f"{body.parent} {k}",
            shapes=[Placed(Sphere(TOE))] if "toe" in body.name else [],
            joints=[fixed(joint) for joint in body.joints],
        )

    robots = [copied(body, k) for k in range(count) for body in bodies]
    return tree(robots, dt=1e-3, static_shapes=[Placed(Plane())], contact=ContactSettings(friction=0.8))


def dropped(engine: Articulation, robots: int) -> State:
    start = engine.initial_state(1, DOUBLE)
    q = start.q.clone().reshape(1, robots, -1)
    q[:, :, 0] = torch.arange(robots)  # a meter apart
    q[:, :, 2] = HIGH
    return State(q.reshape(1, -1), start.v)


def test_it_stands_for_ten_seconds():
    engine = laikagos(1)
    path = engine.rollout(dropped(engine, 1), 10_000)
    assert path.status is not None
    assert bool(path.status.converged)
    assert float(path.v[0, -1].abs().max()) < 1e-9
    assert float((path.q[0, 6000:] - path.q[0, -1]).abs().max()) < 1e-6
    contacts = engine.contacts(path.final)
    assert contacts.present.tolist() == [[True] * 4]
    weight = 9.81 * float(engine.properties.mass.sum())
    force = contacts.impulse.sum(1)[0] / engine.dt
    assert float(force[2]) == pytest.approx(weight, rel=1e-6)
    assert float(force[:2].abs().max()) < 1e-6 * weight


def test_ten_in_one_world_are_ten_in_a_batch():
    """They do not touch each other, so each moves as it does alone, and a batch is bitwise one after the other."""
    steps, together, alone = 500, laikagos(10), laikagos(1)
    path = together.rollout(dropped(together, 10), steps)
    single = alone.rollout(dropped(alone, 1), steps)
    batch = alone.rollout(dropped(alone, 1).repeat(10), steps)
    assert path.status is not None
    assert bool(path.status.converged)
    separation = path.q.reshape(steps + 1, 10, -1) - single.q[0].unsqueeze(1)
    separation[:, :, 0] -= torch.arange(10)
    assert float(separation.abs().max()) < 1e-9
    assert torch.equal(batch.q, single.q.expand(10, -1, -1))
    force = together.contacts(path.final).impulse.sum(1)[0, 2] / together.dt
    reference = alone.contacts(single.final).impulse.sum(1)[0, 2] / alone.dt
    assert float(force) == pytest.approx(10 * float(reference), rel=1e-9)
