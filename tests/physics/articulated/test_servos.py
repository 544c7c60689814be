"""Servos: springs and drag that are taken at the end of a step."""

import math

import pytest
import torch
from physics.articulated.slopes import compare

from physvision import State
from physvision.core import ModelError, Placed, Plane, Sphere
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64


def slider(stiffness, damping, dt, **options):
    joint = Joint(
        "prismatic", (1, 0, 0), stiffness=stiffness, damping=damping, spring_reference=(0.7,), implicit_spring=True
    )
    return tree([Body("slider", None, [joint], mass=2.0)], dt=dt, gravity=(0, 0, 0), **options)


@pytest.mark.parametrize("contact", [None, "event"])
@pytest.mark.parametrize("stiffness", [30.0, 3e6])
def test_a_step_ends_where_its_spring_says(stiffness, contact):
    """m (v′ − v) = h (k (q* − q − h v′) − c v′): stable at any stiffness, here up to h² k / m = 150."""
    h, c, m, q, v = 0.01, 1.5, 2.0, 0.2, -0.4
    # Event contact asks for something that may touch.
    scenery = {"contact": contact, "static_shapes": [Placed(Plane())]} if contact else {}
    engine = slider(stiffness, c, h, **scenery)
    path = engine.rollout(State(torch.tensor([[q]], dtype=DOUBLE), torch.tensor([[v]], dtype=DOUBLE)), 1000)
    after = (m * v + h * stiffness * (0.7 - q)) / (m + h * c + h * h * stiffness)
    assert float(path.v[0, 1, 0]) == pytest.approx(after, rel=1e-12)
    # Drag, and the drag that the spring adds, bring it to rest.
    left = math.exp(-(c + h * stiffness) / (2 * m) * 1000 * h)
    assert float(path.q[0, -1, 0]) == pytest.approx(0.7, abs=max(1e-9, left))
    # It is never faster than the spring's energy allows, or than it has to be to get there in a step.
    assert float(path.v[0].abs().max()) <= max(abs(after), math.sqrt(v**2 + stiffness / m * 0.5**2)) + 1e-12


def test_its_error_falls_with_the_step():
    """It is of first order: a damped oscillation, against steps a hundred times as short."""
    start = State(torch.zeros(1, 1, dtype=DOUBLE), torch.ones(1, 1, dtype=DOUBLE))
    ends = [float(slider(200.0, 3.0, dt).rollout(start, round(0.5 / dt)).q[0, -1, 0]) for dt in (4e-3, 2e-3, 2e-5)]
    assert (ends[0] - ends[2]) / (ends[1] - ends[2]) == pytest.approx(2.0, abs=0.1)


def leg(contact):
    """A hip and a knee with servos, above the ground that the foot strikes."""
    shared = {"damping": 0.6, "stiffness": 90.0, "implicit_spring": True}
    body = {"mass": 0.8, "inertia": (0.01, 0.012, 0.004), "center_of_mass": (0, 0, -0.1)}
    bodies = [
        Body("trunk", None, [Joint("prismatic", (0, 0, 1))], mass=3.0),
        Body("thigh", "trunk", [Joint("revolute", (0, 1, 0.2), spring_reference=(0.3,), **shared)], **body),
        Body(
            "shin", "thigh", [Joint("revolute", (0, 1, 0), spring_reference=(-0.6,), **shared)], position=(0, 0, -0.25),
            shapes=[Placed(Sphere(0.05), pose=((1.0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, -0.25), (0, 0, 0, 1)))], **body,
        ),
    ]  # fmt: skip
    return tree(bodies, dt=0.01, contact=ContactSettings(contact, friction=0.6), static_shapes=[Placed(Plane())])


@pytest.mark.parametrize("contact", [None, "event"])
def test_gradients_of_servos(contact):
    """Also where the foot strikes the ground within a step, which cuts the time over which springs are taken."""
    engine, checked = leg(contact), 0
    leaves = ("joint_stiffness", "joint_damping", "spring_reference", "mass", "position")
    for seed in range(3):
        rng = torch.Generator().manual_seed(seed)
        values = {
            "q": torch.tensor([[0.62, 0.2, -0.5]], dtype=DOUBLE)
            + 0.02 * torch.randn(1, 3, generator=rng, dtype=DOUBLE),
            "v": torch.randn(1, 3, generator=rng, dtype=DOUBLE),
        }
        values |= {name: getattr(engine.properties, name).clone() for name in leaves}
        weights = torch.randn(6, generator=rng, dtype=DOUBLE)

        def loss(given, weights=weights):
            path = engine.rollout(State(given["q"], given["v"]), 30, properties={name: given[name] for name in leaves})
            assert path.status is not None
            assert path.status.converged.all()
            return torch.cat([path.q[:, -1], path.v[:, -1]], 1) @ weights

        def along(name, value, rng=rng):
            result = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
            return result * value if name in ("joint_stiffness", "joint_damping", "mass") else result

        checked += compare(loss, values, along)
    assert checked >= 18  # of 21


def test_a_ball_joint_has_no_servo():
    with pytest.raises(ModelError, match="implicit_spring needs a revolute or prismatic joint, got 'ball'"):
        tree([Body("a", None, [Joint("ball", implicit_spring=True)])])
