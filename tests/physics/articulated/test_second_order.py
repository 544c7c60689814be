"""Steps in contact are of second order: a quarter of the error with half of the step, against finer solutions."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from physics.articulated.slopes import compare
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from physvision import State
from physvision.core import Box, Placed, Plane, Sphere
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64
G, RADIUS, MASS, ASIDE, MOMENT = 9.81, 0.1, 0.7, 0.03, 0.003
ROLLING = ContactSettings(friction=5.0)


def make(bodies, dt, contact=ROLLING, **more):
    return tree(bodies, dt=dt, gravity=(0, 0, -G), static_shapes=[Placed(Plane())], contact=contact, **more)


def ratios(errors):
    return [coarse / fine for coarse, fine in pairwise(errors)]


def eccentric(dt, spin=6.0, plane=None):
    """A ball whose center of mass is aside of its center, rolling along x from its lowest position."""
    body = Body("ball", None, [Joint("free")], MASS, (0, 0, -ASIDE), (MOMENT,) * 3, shapes=[Placed(Sphere(RADIUS))])
    engine = make([body], dt)
    q = torch.tensor([[0, 0, RADIUS, 1, 0, 0, 0]], dtype=DOUBLE)
    return engine, State(q, torch.tensor([[spin * RADIUS, 0, 0, 0, spin, 0]], dtype=DOUBLE))


def rolled(time, spin=6.0):
    """Angle and rate of the rolling ball: ½ (I + m (R² + e² − 2 R e cos θ)) θ̇² − m g e cos θ is its energy."""

    def rates(_, x):
        s, c = math.sin(x[0]), math.cos(x[0])
        inertia = MOMENT + MASS * (RADIUS**2 + ASIDE**2 - 2 * RADIUS * ASIDE * c)
        return x[1], -(MASS * RADIUS * ASIDE * s * x[1] ** 2 + MASS * G * ASIDE * s) / inertia

    return solve_ivp(rates, (0, time), (0.0, spin), method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


def test_an_eccentric_ball_rolls_to_second_order():
    errors = []
    angle, rate = rolled(1.0)
    for dt in (1e-2, 5e-3, 2.5e-3):
        engine, start = eccentric(dt)
        path = engine.rollout(start, round(1.0 / dt))
        assert path.status.converged.all()
        end = path.final
        errors.append(
            math.hypot(float(end.q[0, 0]) / RADIUS - angle, float(end.v[0, 4]) - rate, float(end.q[0, 2]) - RADIUS)
        )
    assert errors[0] < 2e-2
    assert all(ratio > 3.5 for ratio in ratios(errors)), errors


def test_an_eccentric_ball_keeps_its_energy_to_second_order():
    errors = []
    for dt in (1e-2, 5e-3, 2.5e-3):
        engine, start = eccentric(dt)
        kinetic, potential = engine.energy(engine.rollout(start, round(1.0 / dt)))
        total = (kinetic + potential)[0]
        errors.append(float((total / total[0] - 1).abs().max()))
    assert errors[0] < 1e-2
    assert all(ratio > 3.5 for ratio in ratios(errors)), errors


def tumbling(dt):
    """A box of three different moments that stands on one of its edges and turns on it, along its length too."""
    size, moments = (0.3, 0.2, 0.5), (0.048, 0.056, 0.021)
    body = Body("box", None, [Joint("free")], 2.0, (0.02, 0.01, 0.03), moments, shapes=[Placed(Box(size))])
    engine = make([body], dt)
    rotation = Rotation.from_rotvec([0.0, 0.25, 0.0])
    lowest = rotation.apply(np.array([0.15, 0.0, -0.25]))
    q = np.array([0.0, 0.0, -lowest[2], *rotation.as_quat(scalar_first=True)])
    spin = np.array([0.0, 1.2, 0.0])
    v = np.cross(spin, -lowest)
    return engine, State(torch.tensor(q[None]), torch.tensor(np.concatenate([v, rotation.inv().apply(spin)])[None]))


def cornered(dt):
    """A box that turns and tumbles on one of its corners, which sticks."""
    size, moments = (0.3, 0.2, 0.5), (0.048, 0.056, 0.021)
    body = Body("box", None, [Joint("free")], 2.0, (0.02, 0.01, 0.03), moments, shapes=[Placed(Box(size))])
    engine = make([body], dt)
    rotation = Rotation.from_rotvec([0.5, 0.4, 0.2])
    corners = np.array([[x, y, z] for x in (-0.15, 0.15) for y in (-0.1, 0.1) for z in (-0.25, 0.25)])
    lowest = min(rotation.apply(corners), key=lambda x: x[2])
    q = np.array([0.0, 0.0, -lowest[2], *rotation.as_quat(scalar_first=True)])
    spin = np.array([0.6, 0.8, 3.0])
    v = np.cross(spin, -lowest)
    return engine, State(torch.tensor(q[None]), torch.tensor(np.concatenate([v, rotation.inv().apply(spin)])[None]))


def standing_arm(dt):
    """A robot of two bodies on a ball that rolls."""
    base = Body("base", None, [Joint("free")], 0.7, (0.02, -0.01, 0.01), (0.004, 0.005, 0.006))
    base = Body(**{**vars(base), "shapes": [Placed(Sphere(RADIUS))]})
    hinge = Joint("revolute", (1, 0.4, 0.2))
    arm = Body("arm", "base", [hinge], 0.3, (0.0, 0.05, 0.2), (0.002, 0.003, 0.001), (0.0, 0, 0.02))
    engine = make([base, arm], dt)
    q = torch.tensor([[0, 0, RADIUS, 1, 0, 0, 0, 0.4]], dtype=DOUBLE)
    spin = (1.0, 2.0, 3.0)
    v = torch.tensor([[spin[1] * RADIUS, -spin[0] * RADIUS, 0, *spin, 2.0]], dtype=DOUBLE)
    return engine, State(q, v)


@pytest.mark.parametrize("scene", [tumbling, cornered, standing_arm])
def test_motion_in_contact_converges_to_second_order(scene):
    """Differences from one step to half of it, while the same contacts hold."""
    ends = []
    for dt in (8e-3, 4e-3, 2e-3, 1e-3, 5e-4):
        engine, start = scene(dt)
        path = engine.rollout(start, round(0.16 / dt))
        assert path.status.converged.all()
        ends.append(path.final)
    engine, _ = scene(1e-3)
    errors = [float(torch.cat([engine.difference(a.q, b.q), a.v - b.v], 1).norm()) for a, b in pairwise(ends)]
    assert all(ratio > 3.4 for ratio in ratios(errors)), errors


def rolls_over_ball(dt):
    """A ball that rolls and spins on a bigger one, both free, above a plane."""
    low = Body("low", None, [Joint("free")], 5.0, (0.02, 0, 0.01), (0.08, 0.09, 0.1), shapes=[Placed(Sphere(0.2))])
    top = Body("top", None, [Joint("free")], 0.5, (0, 0.01, 0.01), (0.001, 0.0015, 0.002), shapes=[Placed(Sphere(0.1))])
    engine = make([low, top], dt)
    q = torch.tensor([[0, 0, 0.2, 1, 0, 0, 0, 0, 0, 0.5, 1, 0, 0, 0]], dtype=DOUBLE)
    v = torch.tensor([[0.1, 0.05, 0, -0.25, 0.5, 1.0, 0.1, 0.05, 0, 0.25, -0.5, 4.0]], dtype=DOUBLE)
    return engine, State(q, v)


@pytest.mark.parametrize("scene", [eccentric, tumbling, cornered, standing_arm, rolls_over_ball])
def test_gradients_in_contact(scene):
    """Of every input and property, while the bodies turn in contact, sticking and sliding."""
    engine, start = scene(5e-3)
    generator = torch.Generator().manual_seed(4)
    steps = 12
    controls = torch.randn(1, steps, engine.nv, generator=generator, dtype=DOUBLE) * 0.05
    values = {"q": start.q, "v": start.v, "controls": controls}
    names = "mass center_of_mass inertia gravity friction shape_pose shape_size joint_stiffness"
    values |= {name: getattr(engine.properties, name).clone() for name in names.split()}

    def direction(name, value):
        way = torch.randn(value.shape, generator=generator, dtype=DOUBLE)
        if name == "inertia":
            return (way + way.mT) * 1e-3
        if name == "shape_pose":
            return torch.cat([torch.cat([torch.zeros(3, 3), torch.ones(3, 1)], 1), torch.zeros(1, 4)]) * way * 0.1
        if name == "joint_stiffness":
            return (value > 0) * way
        if name == "shape_size":
            return (value > 0) * way * 0.02
        if name in ("q", "v"):
            return way * 0.02
        return way * 0.1

    weights = torch.randn(engine.nq + engine.nv, generator=generator, dtype=DOUBLE)

    def loss(inputs):
        given = {name: inputs[name] for name in values if name not in ("q", "v", "controls")}
        end = engine.rollout(State(inputs["q"], inputs["v"]), steps, inputs["controls"], properties=given).final
        return (torch.cat([end.q, end.v], 1) * weights).sum(1)

    assert compare(loss, values, direction) >= len(values) - 4
