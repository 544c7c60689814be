"""Friction against spinning and rolling: closed forms, momentum of impacts, differences."""

import pytest
import torch
from physics.articulated.slopes import compare

from physvision import State
from physvision.core import InputError, Placed, Plane, Sphere
from physvision.physics.articulated import Body, ContactLaw, ContactSettings, Joint, tree

DOUBLE = torch.float64
MASS, RADIUS, INERTIA, GRAVITY = 0.5, 0.2, 0.01, 9.81
SPINNING, ROLLING = 0.03, 0.02


def ball(name="ball", **options):
    return Body(
        name, None, [Joint("free")], mass=MASS, inertia=(INERTIA,) * 3, shapes=[Placed(Sphere(RADIUS))], **options
    )


def on_ground(rotational_friction=(SPINNING, ROLLING), dt=0.01, friction=0.8, restitution=0.0, **options):
    contact = ContactSettings(friction=friction, restitution=restitution, rotational_friction=rotational_friction)
    return tree([ball()], dt=dt, static_shapes=[Placed(Plane())], contact=contact, **options)


def state(height=RADIUS, velocity=(0.0,) * 6):
    q = torch.tensor([[0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0]], dtype=DOUBLE)
    return State(q, torch.tensor([velocity], dtype=DOUBLE))


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_a_spinning_ball_slows_evenly_and_stops(direction):
    """I ω̇ = −ρ m g until it stands still, for good."""
    rate = SPINNING * MASS * GRAVITY / INERTIA
    steps = 40
    start = rate * 0.01 * 25
    path = on_ground().rollout(state(velocity=(0, 0, 0, 0, 0, direction * start)), steps)
    spin = direction * path.v[0, :, 5]
    target = [max(start - rate * 0.01 * k, 0.0) for k in range(steps + 1)]
    assert spin.tolist() == pytest.approx(target, abs=1e-9)
    assert float((path.q[0, 25:] - path.q[0, -1]).abs().max()) < 1e-10


def test_a_rolling_ball_slows_evenly_and_stops():
    """Without sliding (I + m r²) ω̇ = −σ m g; the friction that this takes is far below its largest."""
    rate = ROLLING * MASS * GRAVITY / (INERTIA + MASS * RADIUS**2)
    start, steps = rate * 0.01 * 60, 90
    path = on_ground().rollout(state(velocity=(RADIUS * start, 0, 0, 0, start, 0)), steps)
    target = [RADIUS * max(start - rate * 0.01 * k, 0.0) for k in range(steps + 1)]
    assert path.v[0, :, 0].tolist() == pytest.approx(target, abs=1e-9)
    length = RADIUS * start * 0.6 / 2
    assert float(path.q[0, -1, 0]) == pytest.approx(length, abs=1e-9)


def test_a_ball_on_a_slope_stays_where_rolling_friction_holds_it():
    """m g r sin α against σ m g cos α: it stays for tan α = σ / r − 1e-3 and rolls for tan α = σ / r + 1e-3."""
    for off, moves in ((-1e-3, False), (1e-3, True)):
        slope = ROLLING / RADIUS + off
        size = (1 + slope * slope) ** 0.5
        gravity = (GRAVITY * slope / size, 0.0, -GRAVITY / size)
        path = on_ground(gravity=gravity).rollout(state(), 100)
        acceleration = MASS * RADIUS * GRAVITY * off / size / (INERTIA + MASS * RADIUS**2) * RADIUS
        target = acceleration / 2 if moves else 0.0
        assert float(path.q[0, -1, 0]) == pytest.approx(target, abs=1e-9)


def test_rolling_friction_turns_with_the_motion():
    """Along (3, 4) it takes the same length as along an axis."""
    rate = ROLLING * MASS * GRAVITY / (INERTIA + MASS * RADIUS**2)
    start = rate * 0.01 * 60
    path = on_ground().rollout(
        state(velocity=(0.6 * RADIUS * start, 0.8 * RADIUS * start, 0, -0.8 * start, 0.6 * start, 0)), 90
    )
    length = RADIUS * start * 0.6 / 2
    assert path.q[0, -1, :2].tolist() == pytest.approx([0.6 * length, 0.8 * length], abs=1e-9)


def test_an_impact_takes_spin():
    """A ball that falls spinning: its bounce has an impulse of (1 + e) m v, and takes ρ times it from the spin."""
    engine = on_ground(restitution=0.5)
    speed, spin = 2.0, 30.0
    # At the end of the fall, shortly before it strikes.
    path = engine.rollout(state(RADIUS + 1e-3, (0, 0, -speed, 0, 0, spin)), 1)
    contact = (-speed + (speed**2 + 2 * GRAVITY * 1e-3) ** 0.5) / GRAVITY
    impulse = 1.5 * MASS * (speed + GRAVITY * contact)
    assert float(path.v[0, -1, 5]) == pytest.approx(spin - SPINNING * impulse / INERTIA, abs=1e-9)
    # A small spin is taken whole.
    path = engine.rollout(state(RADIUS + 1e-3, (0, 0, -speed, 0, 0, 1.0)), 1)
    assert float(path.v[0, -1, 5]) == pytest.approx(0.0, abs=1e-12)


def test_without_lengths_it_is_the_contact_without():
    start = state(velocity=(0.5, 0.2, 0.0, 1.0, -2.0, 3.0))
    with_none = on_ground((0.0, 0.0)).rollout(start, 60)
    # The lengths are turned off in the call: the blocks are there.
    none = {"rotational_friction": torch.zeros(2, 2, dtype=DOUBLE)}
    assert float((on_ground().rollout(start, 60, properties=none).q - with_none.q).abs().max()) < 1e-11


def test_gradients_of_rotational_friction():
    """Two balls, one on the other's way, on the ground: falling, sliding, rolling, spinning, with impacts."""
    bodies = [ball("a"), ball("b")]
    contact = ContactSettings(friction=0.4, restitution=0.3, rotational_friction=(SPINNING, ROLLING))
    engine = tree(bodies, dt=0.01, static_shapes=[Placed(Plane())], contact=contact)
    leaves = ("rotational_friction", "friction", "mass", "shape_size", "inertia")
    checked = 0
    for seed in range(4):
        rng = torch.Generator().manual_seed(seed)
        q = torch.tensor([[0, 0, 0.23, 1, 0, 0, 0, 0.5, 0.05, 0.25, 1, 0, 0, 0]], dtype=DOUBLE)
        v = torch.tensor([[1.5, 0, 0, 0, 3.0, 6.0, -1.0, 0, 0, 0, 0, -9.0]], dtype=DOUBLE)
        values = {"q": q, "v": v + torch.randn(1, 12, generator=rng, dtype=DOUBLE)}
        values |= {name: getattr(engine.properties, name).clone() for name in leaves}
        weights = torch.randn(26, generator=rng, dtype=DOUBLE)

        def loss(given, weights=weights):
            properties = {name: given[name] for name in leaves}
            path = engine.rollout(State(given["q"], given["v"]), 30, properties=properties)
            assert path.status is not None
            assert path.status.converged.all()
            return torch.cat([path.q[:, -1], path.v[:, -1]], 1) @ weights

        def along(name, value, rng=rng):
            result = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
            if name == "inertia":
                result = torch.eye(3, dtype=DOUBLE).expand(2, 3, 3)
            return result if name in ("q", "v") else 0.1 * result * value

        checked += compare(loss, values, along)
    assert checked >= 20  # of 28


class PlainLaw(ContactLaw):
    kernels = "nowhere.kernels"


def test_rotational_friction_asks_for_events_or_compliant_contact():
    contact = ContactSettings(PlainLaw(), rotational_friction=(0.1, 0.0))
    with pytest.raises(InputError, match="need contact='event' or 'compliant'"):
        tree([ball()], contact=contact, static_shapes=[Placed(Plane())])
