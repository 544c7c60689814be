# ruff: noqa: E501
"""Lists of contacts: their pairs, impulses and forces, of states and of trajectories."""

import math

import pytest
import torch
from physics.articulated.free_bodies import DOUBLE, STILL, free, state, world

from physvision import State
from physvision.core import Box, Placed, Plane, ShapeError, Sphere
from physvision.physics.articulated import Body, Joint


def test_contacts_are_listed_with_what_they_push():
    """One world rests: its impulses carry the weight. Another flies, a third strikes within the step; all are padded."""
    shape = Box((0.4, 0.4, 0.2))
    engine = world(
        [free("low", shape, 2.0), free("high", Sphere(0.1), 0.5)],
        static_shapes=[Placed(Plane(), name="ground")],
        gravity=(0, 0, -10),
        friction=0.5,
        restitution=0.5,
    )
    rest = state(((0, 0, 0.1), STILL, STILL), ((0, 0, 0.3), STILL, STILL))
    separation = state(((0, 0, 1.0), STILL, STILL), ((0, 0, 2.0), STILL, STILL))
    falls = state(((0, 0, 1.0), STILL, STILL), ((1.0, 0, 0.101), (0, 0, -2.0), STILL))
    three = State(*(torch.cat([getattr(entry, name) for entry in (rest, separation, falls)]) for name in ("q", "v")))
    listed = engine.contacts(three)
    assert listed.present.sum(-1).tolist() == [5, 0, 1]
    assert listed.first.shape == (3, 5)
    assert listed.first[1].tolist() == [-1] * 5
    names = [engine.geometry[row].name for row in listed.second[0].tolist()]
    assert sorted(names) == ["ground"] * 4 + ["low"]
    k = names.index("low")
    assert engine.body_names[listed.first_body[0, k]] == "high"
    torch.testing.assert_close(
        listed.impulse[0, k], torch.tensor([0, 0, 0.5 * 10 * 0.01], dtype=DOUBLE), rtol=0, atol=1e-9
    )
    torch.testing.assert_close(
        listed.impulse[0].sum(0)[2] - listed.impulse[0, k, 2],
        torch.tensor(2.5 * 10 * 0.01, dtype=DOUBLE),
        rtol=0,
        atol=1e-9,
    )
    torch.testing.assert_close(listed.normal[0], torch.tensor([[0.0, 0, 1]], dtype=DOUBLE).expand(5, 3))
    torch.testing.assert_close(listed.point[0, k], torch.tensor([0, 0, 0.2], dtype=DOUBLE))
    # 1 mm at 2 m/s and a little more; restitution one half.
    speed = math.sqrt(4 + 2 * 10 * 0.001)
    assert float(listed.impulse[2, 0, 2]) == pytest.approx(0.5 * 1.5 * speed, abs=1e-9)
    assert float(listed.separation[2, 0]) == pytest.approx(0.001)
    pushed = engine.contacts(rest, control=torch.tensor([[0.0] * 8 + [3.0] + [0.0] * 3], dtype=DOUBLE))
    assert float(pushed.impulse[0, :, 2].sum()) == pytest.approx(0.01 * (25 - 3 + 5 - 3), abs=1e-9)


def test_contact_forces_are_those_of_the_step_with_its_control():
    """A box of 2 kg on the ground, without a control and lifted by 3 N."""
    box = Body("box", None, [Joint("prismatic", (0, 0, 1))], mass=2.0, shapes=[Placed(Box((0.2, 0.2, 0.2)))])
    engine = world([box], static_shapes=[Placed(Plane())], gravity=(0, 0, -10))
    rest = State(torch.tensor([[0.1]], dtype=DOUBLE), torch.zeros(1, 1, dtype=DOUBLE))
    for lift in (0.0, 3.0):
        points, forces = engine.contact_forces(rest, torch.tensor([[lift]], dtype=DOUBLE))
        assert len(points) == len(forces) == 4
        assert forces.sum(0).tolist() == pytest.approx([0, 0, 2 * 10 - lift], abs=1e-9)
    assert float(engine.contact_forces(rest)[1].sum(0)[2]) == pytest.approx(2 * 10, abs=1e-9)
    with pytest.raises(ShapeError, match="state: expected one world, got 2"):
        engine.contact_forces(rest.repeat(2))


def test_contacts_of_a_trajectory_are_those_of_its_states():
    """Boxes that fall 1 and 3 cm; a state that is not finite touches nothing."""
    box = Body("box", None, [Joint("prismatic", (0, 0, 1))], mass=2.0, shapes=[Placed(Box((0.2, 0.2, 0.2)))])
    engine = world([box], static_shapes=[Placed(Plane())], gravity=(0, 0, -10))
    path = engine.rollout(State(torch.tensor([[0.11], [0.13]], dtype=DOUBLE), torch.zeros(2, 1, dtype=DOUBLE)), 10)
    controls = torch.linspace(0, 3, 20, dtype=DOUBLE).reshape(2, 10, 1)
    listed = engine.contacts(path, controls)
    assert listed.impulse.shape == (2, 10, 4, 3)
    assert not listed.present[:, 0].any()
    for step in range(10):
        single = engine.contacts(path.state(step), controls[:, step])
        count = single.present.shape[1]
        assert torch.equal(listed.present[:, step, :count], single.present)
        assert not listed.present[:, step, count:].any()
        torch.testing.assert_close(listed.impulse[:, step, :count], single.impulse)
    lost = engine.contacts(State(path.final.q * torch.tensor([[torch.nan], [1.0]]), path.final.v))
    assert lost.present.any(1).tolist() == [False, True]
