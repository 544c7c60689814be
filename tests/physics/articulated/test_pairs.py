# ruff: noqa: E501
"""Bodies that touch bodies: closed forms, conservation, rest, and gradients of every pair against differences."""

import math

import pytest
import torch
from physics.articulated.free_bodies import DOUBLE, STILL, free, state, world
from physics.articulated.slopes import compare

from physvision import State
from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Placed, Plane, Sphere
from physvision.physics.articulated import Body, Joint


def succeeded(path):
    return path.status is not None and bool(path.status.converged.all())


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_spheres_head_on(dt):
    """1 m apart between surfaces, restitution e: the closed form and its derivatives by speed, mass and restitution."""
    m1, m2, e, u, total = 2.0, 0.5, 0.6, 4.0, 0.5
    engine = world([free("a", Sphere(0.1), m1), free("b", Sphere(0.2), m2)], dt=dt, restitution=e)
    start = state((STILL, (u, 0, 0), STILL), ((1.3, 0, 0), STILL, STILL))
    v = start.v.requires_grad_()
    leaves = {
        name: getattr(engine.properties, name).clone().requires_grad_()
        for name in ("mass", "restitution", "shape_size")
    }
    end = engine.rollout(State(start.q, v), round(total / dt), properties=leaves).final
    late = total - 1.0 / u
    fraction = m1 * (1 + e) / (m1 + m2)
    assert float(end.q[0, 7].detach()) == pytest.approx(1.3 + fraction * u * late, abs=1e-9)
    assert float(end.q[0, 0].detach()) == pytest.approx(1.0 + (u - m2 / m1 * fraction * u) * late, abs=1e-9)
    gv, gm, ge, gs = torch.autograd.grad(end.q[0, 7], (v, *leaves.values()))
    assert float(gv[0, 0]) == pytest.approx(fraction * total, abs=1e-9)
    assert float(gm[0]) == pytest.approx(u * late * (1 + e) * m2 / (m1 + m2) ** 2, abs=1e-9)
    assert float(ge.sum()) == pytest.approx(u * late * m1 / (m1 + m2), abs=1e-9)
    assert gs[:, 0].tolist() == pytest.approx([fraction, fraction], abs=1e-9)


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_oblique_spheres_without_friction(dt):
    """Offset b: only the part of the velocity along the line of centers is exchanged, e = 1 and equal masses."""
    radius, b, u = 0.1, 0.12, 3.0
    engine = world([free("a", Sphere(radius)), free("b", Sphere(radius))], dt=dt, restitution=1.0)
    end = engine.rollout(state(((0, b, 0), (u, 0, 0), STILL), ((1.0, 0, 0), STILL, STILL)), round(1 / dt)).final
    normal = torch.tensor([math.sqrt(1 - (b / 0.2) ** 2), -b / 0.2, 0.0], dtype=DOUBLE)
    hit_body = u * normal[0] * normal
    torch.testing.assert_close(end.v[0, 6:9], hit_body, rtol=0, atol=1e-9)
    torch.testing.assert_close(end.v[0, :3], torch.tensor([u, 0, 0], dtype=DOUBLE) - hit_body, rtol=0, atol=1e-9)
    fall = (1.0 - 0.2 * float(normal[0])) / u
    torch.testing.assert_close(
        end.q[0, 7:10], torch.tensor([1.0, 0, 0], dtype=DOUBLE) + hit_body * (1 - fall), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_a_row_of_spheres_passes_its_velocity_on(dt):
    engine = world([free(f"{k}", Sphere(0.1)) for k in range(4)], dt=dt, restitution=1.0)
    gaps = [(STILL, (1.0, 0, 0), STILL), *(((0.25 * k, 0, 0), STILL, STILL) for k in range(1, 4))]
    end = engine.rollout(state(*gaps), round(1 / dt)).final
    assert end.v[0, ::6].tolist() == pytest.approx([0, 0, 0, 1.0], abs=1e-9)
    assert float(end.q[0, 21]) == pytest.approx(0.75 + 1.0 - 0.15, abs=1e-9)


SHAPES = {
    "sphere": Sphere(0.15), "capsule": Capsule(0.1, 0.4), "box": Box((0.3, 0.4, 0.25)),
    "ellipsoid": Ellipsoid((0.12, 0.2, 0.16)), "cylinder": Cylinder(0.15, 0.25),
    "hull": Hull(((0.2, 0.1, -0.1), (-0.15, 0.12, -0.12), (0.0, -0.2, -0.1), (0.05, 0.02, 0.2), (-0.1, -0.1, 0.12))),
}  # fmt: skip
# Two convex shapes of any kind; kernels with their search are compiled on demand.
ANY = [
    ("capsule", "box"),
    ("box", "box"),
    ("box", "ellipsoid"),
    ("box", "cylinder"),
    ("cylinder", "cylinder"),
    ("cylinder", "ellipsoid"),
    ("hull", "hull"),
    ("box", "hull"),
    ("cylinder", "hull"),
    ("capsule", "hull"),
]
PAIRS = [
    ("sphere", "sphere"),
    ("sphere", "capsule"),
    ("capsule", "capsule"),
    ("sphere", "box"),
    ("sphere", "ellipsoid"),
    ("capsule", "ellipsoid"),
    ("ellipsoid", "ellipsoid"),
    ("sphere", "cylinder"),
    ("capsule", "cylinder"),
    *(pytest.param(*pair, marks=pytest.mark.extended) for pair in ANY),
]


def turned(generator):
    q = torch.randn(4, generator=generator, dtype=DOUBLE)
    return (q / q.norm()).tolist()


def collision(first_shape, second_shape, seed):
    """Two bodies that turn and run into each other."""
    rng = torch.Generator().manual_seed(seed)
    spin = torch.randn(2, 3, generator=rng, dtype=DOUBLE) * 2
    aside = 0.08 * torch.randn(3, generator=rng, dtype=DOUBLE)
    return rng, state(
        (STILL, (2.0, 0, 0), spin[0].tolist(), turned(rng)),
        ((0.75, float(aside[1]), float(aside[2])), (-1.0, 0, 0), spin[1].tolist(), turned(rng)),
    )


@pytest.mark.parametrize(("first_shape", "second_shape"), PAIRS)
def test_momentum_and_energy_of_a_collision(first_shape, second_shape):
    """Momentum and angular momentum stay, energy does not rise; equal moments of inertia make flights exact."""
    engine = world(
        [free("a", SHAPES[first_shape], 1.0, (0.01,) * 3), free("b", SHAPES[second_shape], 1.5, (0.02,) * 3)],
        friction=0.5,
        restitution=0.7,
    )
    mass, inertia = torch.tensor([1.0, 1.5], dtype=DOUBLE), torch.tensor([0.01, 0.02], dtype=DOUBLE)
    hit_body = 0
    for seed in range(6):
        path = engine.rollout(collision(first_shape, second_shape, seed)[1], 60)
        assert succeeded(path)
        v = path.v[0].reshape(-1, 2, 6)
        place = path.q[0].reshape(-1, 2, 7)[..., :3]
        turn = engine.poses(State(path.q[0], path.v[0]))[..., :3, :3]
        momentum = mass[:, None] * v[..., :3]
        angular = torch.linalg.cross(place, momentum) + inertia[:, None] * (turn @ v[..., 3:, None]).squeeze(-1)
        for total in (momentum.sum(1), angular.sum(1)):
            torch.testing.assert_close(total, total[:1].expand_as(total), rtol=0, atol=1e-10)
        kinetic = engine.energy(State(path.q[0], path.v[0]))[0]
        assert float((kinetic.diff() / kinetic[0]).max()) < 1e-9
        hit_body += int(float(kinetic[-1] / kinetic[0]) < 0.999)
    assert hit_body >= 4


LEAVES = (
    "mass",
    "center_of_mass",
    "inertia",
    "position",
    "orientation",
    "gravity",
    "friction",
    "restitution",
    "shape_pose",
    "shape_size",
)


def checked_gradients(engine, start, rng, steps=40):
    """How many of the inputs and properties have a derivative by differences; each is compared with the gradient."""
    own = engine.properties
    values = {"q": start.q, "v": start.v, "u": 0.3 * torch.randn(1, steps, engine.nu, generator=rng, dtype=DOUBLE)}
    values |= {name: getattr(own, name).clone() for name in LEAVES}
    weights = torch.randn(2, engine.nq, generator=rng, dtype=DOUBLE)

    def loss(given):
        path = engine.rollout(State(given["q"], given["v"]), steps, given["u"], {name: given[name] for name in LEAVES})
        assert succeeded(path)
        return path.q[:, -1] @ weights[0] + path.v[:, -1] @ weights[1, : engine.nv]

    def direction(name, value):
        along = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        if name in ("mass", "friction", "restitution", "shape_size"):
            along = along * value
        return (along + along.mT) * 0.001 if name == "inertia" else along

    return compare(loss, values, direction)


@pytest.mark.parametrize(("first_shape", "second_shape"), PAIRS)
def test_gradients_of_collisions(first_shape, second_shape):
    engine = world(
        [free("a", SHAPES[first_shape]), free("b", SHAPES[second_shape], 1.5)], friction=0.4, restitution=0.5
    )
    checked = 0
    for seed in range(3):
        rng, start = collision(first_shape, second_shape, seed)
        checked += checked_gradients(engine, start, rng)
    assert checked >= 34  # of 39


@pytest.mark.parametrize(
    "obstacle", ["sphere", "capsule", pytest.param("box", marks=pytest.mark.extended), "ellipsoid"]
)
def test_gradients_on_obstacles_that_stand_still(obstacle):
    """A ball and a small box fall onto an obstacle of the scenery; an arm of two links strikes another body."""
    shape = {
        "sphere": Sphere(0.6), "capsule": Capsule(0.5, 1.0), "box": Box((1.5, 1.2, 1.0)),
        "ellipsoid": Ellipsoid((0.8, 0.7, 0.6)),
    }[obstacle]  # fmt: skip
    pose = ((0.8, 0.0, 0.6, 0.0), (0.0, 1.0, 0.0, 0.0), (-0.6, 0.0, 0.8, 0.0), (0.0, 0.0, 0.0, 1.0))
    ball = free("ball", Sphere(0.15), 1.0)
    stick = free("stick", Capsule(0.08, 0.3), 1.0)
    engine = world(
        [ball, stick], static_shapes=[Placed(shape, pose=pose)], gravity=(0, 0, -10), friction=0.5, restitution=0.4
    )
    rng = torch.Generator().manual_seed(3)
    start = state(((0.1, 0.2, 1.0), STILL, STILL), ((-0.2, -0.25, 1.2), STILL, (1.0, 2.0, 0.5), turned(rng)))
    assert checked_gradients(engine, start, rng) >= 10  # of 13


def test_an_ellipsoid_on_the_ground():
    """It rocks about where it is lowest: its energy stays, and gradients are right while it bounces and rubs."""
    engine = world(
        [free("egg", Ellipsoid((0.12, 0.15, 0.2)))], static_shapes=[Placed(Plane())], gravity=(0, 0, -10), friction=0.6,
        dt=1e-3,
    )  # fmt: skip
    tilt = (math.cos(0.6), math.sin(0.6), 0.0, 0.0)
    start = state(((0, 0, 0.3), STILL, STILL, tilt))
    low = float(engine.contacts(start, max_separation=1.0).separation[0, 0])
    start.q[0, 2] -= low
    path = engine.rollout(start, 1000)
    assert succeeded(path)
    assert float(engine.contacts(path.final, max_separation=1.0).separation[0, 0]) == pytest.approx(0.0, abs=1e-5)
    kinetic, potential = engine.energy(State(path.q[0], path.v[0]))
    assert float(kinetic.max()) > 0.05
    # It sticks where it touches, so nothing is lost but what acceleration held over a step errs by.
    assert float((kinetic + potential - potential[0]).abs().max()) < 0.02 * float(kinetic.max())
    rng = torch.Generator().manual_seed(2)
    engine = world(
        [free("egg", Ellipsoid((0.12, 0.15, 0.2)))], static_shapes=[Placed(Plane())], gravity=(0, 0, -10), friction=0.4,
        restitution=0.5,
    )  # fmt: skip
    start = state(((0, 0, 0.4), (0.3, 0.1, -1.0), (1.0, 2.0, 0.5), turned(rng)))
    assert checked_gradients(engine, start, rng) >= 10  # of 13


@pytest.mark.extended
def test_gradients_of_a_tree_that_strikes_itself_and_another():
    arm = [
        Body("upper", None, [Joint("ball", damping=0.1)], 0.8, (0, 0, -0.2), (0.02, 0.02, 0.01), shapes=[Placed(Capsule(0.04, 0.3), pose=at(0, 0, -0.2))]),
        Body("lower", "upper", [Joint("revolute", (0, 1, 0.1), damping=0.05)], 0.6, (0, 0, -0.2), (0.02, 0.02, 0.01), (0, 0, -0.45), shapes=[Placed(Capsule(0.04, 0.3), pose=at(0, 0, -0.2))]),
        Body("hand", "lower", [Joint("prismatic", (0, 0, 1), stiffness=80.0, damping=1.0)], 0.3, (0, 0, 0), (0.002,) * 3, (0, 0, -0.5), shapes=[Placed(Box((0.1, 0.12, 0.08)))]),
        free("ball", Sphere(0.1), 0.4),
    ]  # fmt: skip
    engine = world(arm, gravity=(0, 0, -10), friction=0.4, restitution=0.5)
    rng = torch.Generator().manual_seed(5)
    q = engine.initial_state(1, DOUBLE).q.clone()
    q[0, :4] = torch.tensor([math.cos(0.4), 0, math.sin(0.4), 0])
    q[0, 4] = 1.8
    q[0, 6:9] = torch.tensor([-0.25, 0.02, -0.55])
    v = 0.5 * torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE)
    assert checked_gradients(engine, State(q, v), rng) >= 10  # of 13


def at(x, y, z):
    return ((1.0, 0.0, 0.0, x), (0.0, 1.0, 0.0, y), (0.0, 0.0, 1.0, z), (0.0, 0.0, 0.0, 1.0))


@pytest.mark.extended
def test_a_pile_of_boxes_rests():
    """Three boxes, two of one size exactly above each other and a plank across, for 3 s."""
    shapes = [Box((0.4, 0.4, 0.2)), Box((0.4, 0.4, 0.2)), Box((1.0, 0.2, 0.1))]
    engine = world(
        [free(f"{k}", shape, 1.0 + k) for k, shape in enumerate(shapes)],
        static_shapes=[Placed(Plane())],
        gravity=(0, 0, -10),
        friction=0.5,
    )
    start = state(*(((0, 0, z), STILL, STILL) for z in (0.1, 0.3, 0.45)))
    path = engine.rollout(start, 300)
    assert succeeded(path)
    assert float((path.q[0, -1] - start.q[0]).abs().max()) < 1e-6


def test_a_cylinder_stands_rolls_and_spins():
    """Upright it rests on its rim; on its side it rolls down a slope with two thirds of the weight along it."""
    radius, length, mass = 0.1, 0.3, 2.0
    across = mass * (3 * radius**2 + length**2) / 12
    drum = free("drum", Cylinder(radius, length), mass, (across, across, mass * radius**2 / 2))
    engine = world([drum], static_shapes=[Placed(Plane())], gravity=(0, 0, -10), friction=0.6)
    path = engine.rollout(state(((0, 0, length / 2), STILL, STILL)), 200)
    assert succeeded(path)
    assert float((path.q[0, -1] - path.q[0, 0]).abs().max()) < 1e-8
    downhill = 10 * math.sin(0.2)
    gravity = (downhill, 0.0, -10 * math.cos(0.2))
    engine = world([drum], static_shapes=[Placed(Plane())], gravity=gravity, friction=0.6)
    lying = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)  # its axis along y
    path = engine.rollout(state(((0, 0, radius), STILL, STILL, lying)), 100)
    assert succeeded(path)
    assert float(path.q[0, -1, 0]) == pytest.approx(downhill / 3, abs=1e-4)
    assert float(path.v[0, -1, 0]) == pytest.approx(2 / 3 * downhill, abs=1e-4)


@pytest.mark.extended
def test_gradients_of_a_pile_are_finite():
    """Its contacts carry what fewer could, so impulses are not unique; velocities and gradients are."""
    shapes = [Box((0.6, 1.0, 0.2)), Box((0.5, 1.0, 0.2)), Box((0.4, 1.0, 0.2))]
    engine = world(
        [free(f"{k}", shape) for k, shape in enumerate(shapes)],
        static_shapes=[Placed(Plane())],
        gravity=(0, 0, -10),
        friction=0.3,
    )
    start = state(((0, 0, 0.1), STILL, STILL), ((0.05, 0, 0.3), STILL, STILL), ((-0.03, 0, 0.5), (1.0, 0, 0), STILL))
    v = start.v.requires_grad_()
    path = engine.rollout(State(start.q, v), 20)
    assert succeeded(path)
    (gradient,) = torch.autograd.grad(path.q[0, -1].sum(), v)
    assert bool(torch.isfinite(gradient).all())
    # The top slides 0.2 s, and stays as far ahead as it started faster.
    assert float(gradient[0, 12]) == pytest.approx(0.2, abs=0.02)
