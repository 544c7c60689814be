"""Free bodies in contact by events are integrated about their center of mass, wherever a file puts their origin."""

# pyright: reportIndexIssue=false

from itertools import pairwise

import numpy as np
import pytest
import torch
from physics.articulated.slopes import compare

from physvision import State
from physvision.core import Box, Placed, Plane, Sphere
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64
RADIUS, MASS, MOMENT = 0.1, 0.7, 0.003
CENTER = (0.03, -0.01, 0.02)
OMEGA = (6.0, -5.0, 6.2)  # rad/s, 10 in all


def pose(offset):
    """The pose of a shape that is shifted and not turned."""
    rows = [(*(float(k == j) for k in range(3)), float(offset[j])) for j in range(3)]
    return (*rows, (0.0, 0.0, 0.0, 1.0))


def ball(center, inertia=(MOMENT,) * 3, **more):
    """A ball whose center of mass is aside of its origin, and whose shape stays about the origin."""
    return Body("ball", None, [Joint("free")], MASS, center, inertia, shapes=[Placed(Sphere(RADIUS))], **more)


def engine(dt, bodies, restitution=1.0, friction=0.0, **more):
    contact = ContactSettings(friction=friction, restitution=restitution)
    return tree(bodies, dt=dt, static_shapes=[Placed(Plane())], contact=contact, **{"gravity": (0, 0, -9.81)} | more)


def start(height, velocity=(0.3, -0.2, 0.5)):
    q = torch.tensor([[0.1, 0.2, height, 0.8, 0.4, -0.4, 0.2]], dtype=DOUBLE)
    return State(
        q / torch.cat([torch.ones(3), q[0, 3:].norm().expand(4)]), torch.tensor([[*velocity, *OMEGA]]).double()
    )


def total_energy(mechanism, state, steps):
    path = mechanism.rollout(state, steps)
    assert path.status.converged.all()
    kinetic, potential = mechanism.energy(path)
    return (kinetic + potential)[0]


def test_flight_keeps_the_energy_of_an_off_center_ball():
    """Its inertia is that of a sphere, so that the exact motion is a parabola and a constant angular velocity."""
    energy = total_energy(engine(0.01, [ball(CENTER)]), start(50.0), 60)
    assert float((energy / energy[0] - 1).abs().max()) < 1e-12


def test_flight_is_that_of_the_closed_form():
    mechanism, state, steps = engine(0.01, [ball(CENTER)]), start(50.0), 60
    end, time = mechanism.rollout(state, steps).final, 0.6

    def center_of_mass(s):
        rotation = mechanism.poses(s)[0, 0, :3, :3]
        arm = rotation @ torch.tensor(CENTER).double()
        return s.q[0, :3] + arm, s.v[0, :3] + torch.linalg.cross(rotation @ s.v[0, 3:], arm)

    (x, v), (x_end, v_end) = center_of_mass(state), center_of_mass(end)
    fall = torch.tensor([0, 0, -9.81]).double()
    assert torch.allclose(x_end, x + time * v + time**2 / 2 * fall, atol=1e-12)
    assert torch.allclose(v_end, v + time * fall, atol=1e-12)


def test_elastic_bounces_keep_the_energy_of_an_off_center_ball():
    """Frictionless bounces of the sphere about the origin, which make the ball turn about its center of mass."""
    energy = total_energy(engine(0.01, [ball(CENTER)]), start(0.4), 200)
    assert float((energy / energy[0] - 1).abs().max()) < 1e-9


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_motion_does_not_depend_on_the_origin(friction):
    """One body, whose origin is elsewhere, in flight, bounces, sliding and rolling."""
    shift = torch.tensor([0.2, -0.1, 0.15]).double()
    inertia = (0.003, 0.004, 0.005)
    near = ball(CENTER, inertia)
    place = tuple((np.array(CENTER) - shift.numpy()).tolist())
    shape = Placed(Sphere(RADIUS), pose=pose(-shift.numpy()))
    far = Body("ball", None, [Joint("free")], MASS, place, inertia, shapes=[shape])
    near_engine, far_engine = (engine(0.01, [body], 0.6, friction) for body in (near, far))
    state = start(0.2)
    arm = near_engine.poses(state)[0, 0, :3, :3] @ shift
    q, v = state.q.clone(), state.v.clone()
    q[0, :3] += arm
    v[0, :3] += near_engine.poses(state)[0, 0, :3, :3] @ torch.linalg.cross(state.v[0, 3:], shift)
    first, second = near_engine.rollout(state, 80).final, far_engine.rollout(State(q, v), 80).final
    back = second.q[0, :3] - near_engine.poses(first)[0, 0, :3, :3] @ shift
    assert torch.allclose(second.q[0, 3:], first.q[0, 3:], atol=1e-10)
    assert torch.allclose(back, first.q[0, :3], atol=1e-10)
    assert torch.allclose(second.v[0, 3:], first.v[0, 3:], atol=1e-9)


def test_tumbling_box_keeps_energy_and_angular_momentum_to_second_order():
    """A box of three different moments, its origin at a corner, weightless and far from everything."""
    moments = (0.002, 0.006, 0.007)
    momenta, energies = [], []
    for dt in (8e-3, 4e-3, 2e-3):
        shape = Placed(Box((0.2, 0.3, 0.1)), pose=pose((0.1, 0.15, 0.05)))
        box = Body("box", None, [Joint("free")], MASS, (0.1, 0.15, 0.05), moments, shapes=[shape])
        mechanism = engine(dt, [box], gravity=(0, 0, 0))
        path = mechanism.rollout(start(50.0), round(0.48 / dt))
        turned = mechanism.poses(path.final)[0, 0, :3, :3] @ (torch.tensor(moments).double() * path.final.v[0, 3:])
        first = mechanism.poses(path.state(0))[0, 0, :3, :3] @ (torch.tensor(moments).double() * path.v[0, 0, 3:])
        momenta.append(float((turned - first).norm()))
        energies.append(float((sum(mechanism.energy(path))[0] / sum(mechanism.energy(path))[0, 0] - 1).abs().max()))
    assert energies[0] < 5e-4
    for errors in (momenta, energies):
        assert all(coarse / fine > 3.5 for coarse, fine in pairwise(errors)), errors


def test_gradients_of_off_center_bodies():
    """Through flights, impacts and sliding, of a robot on an off-center base too, and of forces on free joints."""
    inertia = np.diag([0.004, 0.005, 0.006]) + 1e-3 * np.array([[0, 1, 0.5], [1, 0, -0.4], [0.5, -0.4, 0]])
    base = Body("base", None, [Joint("free")], MASS, CENTER, inertia, shapes=[Placed(Sphere(RADIUS))])
    hinge = Joint("revolute", (1, 0.5, 0), anchor=(0.01, 0, 0), damping=0.01)
    arm = Body("arm", "base", [hinge], 0.3, (0.0, 0.05, 0.1), (0.002, 0.003, 0.001), (0.1, 0, 0.02))
    fixed = Body("plate", "base", [], 0.2, (0.02, 0.03, 0.01), (0.002, 0.002, 0.001), (0, 0.05, 0.02))
    moments, shapes = (0.002, 0.003, 0.0025), [Placed(Sphere(0.08))]
    loose = Body("ball", None, [Joint("free")], 0.4, (0.02, 0.01, 0.01), moments, shapes=shapes)
    mechanism = engine(5e-3, [base, arm, fixed, loose], 0.5, 0.3)
    generator = torch.Generator().manual_seed(1)
    q = mechanism.initial_state(1, DOUBLE).q
    q[:, 2], q[:, -7], q[:, -5] = 0.14, 0.5, 0.12
    q[:, 3:7] = start(1.0).q[:, 3:]
    v = torch.randn(1, mechanism.nv, generator=generator, dtype=DOUBLE) * 2
    v[:, 2], v[:, -4] = -1.5, -1.0
    steps = 25
    controls = torch.randn(1, steps, mechanism.nv, generator=generator, dtype=DOUBLE) * 0.3
    values = {"q": q, "v": v, "controls": controls}
    names = "mass center_of_mass inertia position gravity joint_damping restitution friction shape_pose"
    values |= {name: getattr(mechanism.properties, name) for name in names.split()}
    values["joint_damping"] = values["joint_damping"].clone()

    def direction(name, value):
        way = torch.randn(value.shape, generator=generator, dtype=DOUBLE)
        if name == "inertia":
            return (way + way.mT) * 1e-3
        if name == "joint_damping":
            return (value > 0) * 0.1  # a damped free joint has its origin for a center
        if name == "shape_pose":
            return torch.cat([torch.cat([torch.zeros(3, 3), torch.ones(3, 1)], 1), torch.zeros(1, 4)]) * way * 0.1
        return way * 0.1

    weights = torch.randn(mechanism.nq + mechanism.nv, generator=generator, dtype=DOUBLE)

    def loss(inputs):
        state = State(inputs["q"], inputs["v"])
        given = {name: inputs[name] for name in values if name not in ("q", "v", "controls")}
        path = mechanism.rollout(state, steps, inputs["controls"], properties=given)
        return (torch.cat([path.final.q + path.q[:, 10], path.final.v + path.v[:, 10]], 1) * weights).sum(1)

    assert compare(loss, values, direction) >= len(values) - 1


def test_a_free_joint_with_damping_keeps_its_origin():
    """Damping acts on the velocity of the origin, so that only there it is what the property says."""
    for damping in (0.0, 0.5):
        joint = Joint("free", damping=damping)
        body = Body("ball", None, [joint], MASS, CENTER, (MOMENT,) * 3, shapes=[Placed(Sphere(RADIUS))])
        mechanism = engine(1e-4, [body], gravity=(0, 0, 0))
        end = mechanism.rollout(start(50.0), 1000).final
        smooth = tree([body], dt=1e-4, gravity=(0, 0, 0)).rollout(start(50.0), 1000).final
        assert torch.allclose(end.q, smooth.q, atol=1e-3)
