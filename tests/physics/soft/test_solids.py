"""Rigid balls and boxes on soft bodies: rest, sliding, impact, and cloth over a ball."""

# pyright: reportAttributeAccessIssue=false

import math

import numpy as np
import pytest
import torch

from physvision.core import InputError, ModelError, State
from physvision.physics import soft

GRAVITY = 9.81


def test_a_ball_rests_on_a_block_and_the_ground_carries_both():
    mesh = soft.rectangle((0.4, 0.2), (8, 4))
    ground = soft.Ground((0.0, 0.0), (0.0, 1.0), 0.5)
    ball = soft.Collider((0.2, 0.26), 0.06, mass=20.0)
    body = soft.SoftBody(
        mesh,
        soft.Material(5e4, viscous_time=0.02),
        contact=soft.SoftContact(grounds=[ground], colliders=[ball]),
        dt=0.01,
    )
    run = body.rollout(body.initial_state(dtype=torch.float64), 300)
    assert run.status.converged.all()
    assert run.v[0, -1].abs().max() < 1e-3
    positions, center = body.node_positions(run.final)[0], body.collider_positions(run.final)[0, 0]
    stiffness = body.properties.contact_stiffness * torch.from_numpy(mesh.node_areas)
    reaction = (stiffness * (-positions[:, 1]).clamp(min=0)).sum()
    assert float(reaction) == pytest.approx((20.0 + 0.4 * 0.2 * 1000.0) * GRAVITY, rel=1e-3)
    # What the ball presses with is what it weighs, and it stands in the middle of a dent.
    separation = positions - center
    far = separation.norm(dim=1)
    press = (stiffness * (0.06 - far).clamp(min=0))[:, None] * -separation / far[:, None]
    torch.testing.assert_close(press.sum(0), torch.tensor([0.0, 20.0 * GRAVITY]).double(), rtol=1e-3, atol=0.5)
    assert float(center[1]) < 0.255
    assert float(center[0]) == pytest.approx(0.2, abs=1e-3)


@pytest.mark.parametrize("friction", [0.2, 0.4])
def test_a_box_stays_or_slides_by_its_friction(friction):
    """On a slope of 0.3; the block below it does not move."""
    slope, angle = 0.3, math.atan(0.3)
    mesh = soft.rectangle((2.0, 0.1), (40, 1))
    box = soft.Collider((0.5, 0.15), 0.02, (0.13, 0.03), mass=5.0, friction=friction)
    down = (GRAVITY * math.sin(angle), -GRAVITY * math.cos(angle))
    body = soft.SoftBody(
        mesh,
        soft.Material(1e5),
        contact=soft.SoftContact(colliders=[box]),
        dt=0.002,
        kinematic=range(len(mesh.nodes)),
        gravity=down,
    )
    run = body.rollout(body.initial_state(dtype=torch.float64), 250)
    speed = body.collider_positions(run)[0, :, 0, 0].diff() / body.dt
    expected = max(GRAVITY * math.cos(angle) * (slope - friction), 0.0)
    assert float(speed[-1] - speed[125]) / (124 * body.dt) == pytest.approx(expected, abs=0.05)
    assert abs(float(speed[-1])) < 2e-3 or friction < slope


def test_a_ball_that_hits_a_body_keeps_momentum():
    """With nothing around, whatever the step: contact pushes both by the same impulse; friction too."""
    mesh = soft.box((0.2, 0.2, 0.2), (2, 2, 2))
    ball = soft.Collider((0.33, 0.12, 0.09), 0.1, mass=4.0, friction=0.5)
    body = soft.SoftBody(
        mesh, soft.Material(1e5), contact=soft.SoftContact(colliders=[ball]), dt=0.005, gravity=(0.0, 0.0, 0.0)
    )
    start = body.initial_state(dtype=torch.float64)
    v = start.v.clone()
    v[0, -3:] = torch.tensor([-2.0, 0.5, 0.0])
    run = body.rollout(State(start.q, v), 60)
    mass = torch.from_numpy(np.append(np.zeros(len(mesh.nodes)), 4.0))
    np.add.at(mass.numpy(), mesh.elements, (mesh.volumes * 1000.0 / 4)[:, None])
    momentum = (mass[:, None] * run.v[0].unflatten(-1, (-1, 3))).sum(1)
    torch.testing.assert_close(momentum, momentum[:1].expand_as(momentum), rtol=0, atol=1e-7)
    assert run.v[0, -1, -3] > -1.0
    kinetic, potential = body.energy(run.final)
    assert float(kinetic + potential) < float(body.energy(State(start.q, v))[0])


def test_cloth_lies_on_a_ball_that_is_held_and_hangs_down_around_it():
    mesh = soft.cloth((1.0, 1.0), (10, 10), (-0.5, -0.5, 0.31))
    ball = soft.Collider((0.0, 0.0, 0.0), 0.3, friction=0.5, kinematic=True)
    material = soft.Material(1e5, thickness=2e-3, density=300.0, viscous_time=0.01, velocity_decay=2.0)
    body = soft.SoftBody(mesh, material, contact=soft.SoftContact(colliders=[ball], stiffness=1e5), dt=0.02)
    run = body.rollout(body.initial_state(dtype=torch.float64), 200)
    assert run.status.converged.all()
    positions = body.node_positions(run.final)[0]
    separation = positions.norm(dim=1)
    force = (
        (1e5 * torch.from_numpy(mesh.node_areas) * (0.3 - separation).clamp(min=0))[:, None]
        * positions
        / separation[:, None]
    )
    # Friction carries a part, so the normal forces alone only nearly make up the weight.
    weight = 300.0 * 2e-3 * GRAVITY
    assert 0.6 * weight < float(force[:, 2].sum()) < 1.05 * weight
    assert separation.min() > 0.3 - 0.01
    assert float(positions[:, 2].min()) < -0.05
    assert body.collider_positions(run.final).abs().max() == 0.0


def test_what_a_solid_is_not_is_refused():
    mesh = soft.rectangle((1.0, 1.0), (1, 1))

    def result(*given, **named):
        return soft.SoftBody(
            mesh, soft.Material(1e5), contact=soft.SoftContact(colliders=[soft.Collider(*given, **named)]), dt=0.01
        )

    with pytest.raises(InputError, match="center: expected 2 finite numbers"):
        result((0.0, 0.0, 0.0), 0.1)
    with pytest.raises(InputError, match="half_size: expected 2 finite numbers"):
        result((0.0, 2.0), 0.1, (0.1,))
    with pytest.raises(ModelError, match="radius of 'collider 0': expected numbers above zero"):
        result((0.0, 2.0), 0.0)
    with pytest.raises(ModelError, match="collider_mass of 'collider 0': expected numbers above zero"):
        result((0.0, 2.0), 0.1, mass=0.0)
    with pytest.raises(InputError, match="half_size: expected numbers of at least zero"):
        result((0.0, 2.0), 0.1, (-0.1, 0.1))
