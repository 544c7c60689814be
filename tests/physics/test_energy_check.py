"""Worlds whose energy grows, or whose numbers no dtype resolves, are named in the status."""

import pytest
import torch

from physvision.core import Placed, Plane, Sphere, State
from physvision.physics import articulated, rigid2d
from physvision.physics.articulated import Body, Joint
from physvision.physics.energy_check import MAX_ENERGY_GAIN, first_energy_gain

DOUBLE = torch.float64


def tensor(*rows):
    return torch.tensor(rows, dtype=DOUBLE)


def test_growth_is_named_from_its_first_step_on():
    kinetic = tensor([1.0, 0.5, 0.6, 0.7], [1.0, 0.9, 0.8, 0.8], [1.0, 1.0, 1.0, 1.002])
    assert first_energy_gain(kinetic, torch.zeros_like(kinetic), 0.0, 0.0).tolist() == [2, -1, 3]


def test_energy_may_change_its_form():
    kinetic = tensor([0.0, 1.0, 2.0, 0.5])
    assert first_energy_gain(kinetic, 5.0 - kinetic, 0.0, 0.0).tolist() == [-1]


def test_work_explains_growth_up_to_its_size():
    kinetic, zero = tensor([0.0, 1.0, 2.0, 2.0]), torch.zeros(1, 4, dtype=DOUBLE)
    assert first_energy_gain(kinetic, zero, tensor([1.0, 1.0, 0.0]), 0.0).tolist() == [-1]
    assert first_energy_gain(kinetic, zero, tensor([1.0, 0.9, 0.0]), 0.0).tolist() == [2]


def test_resting_bodies_and_rounding_gain_nothing():
    kinetic = tensor([0.0, 1e-6, 2e-6])
    assert first_energy_gain(kinetic, torch.zeros_like(kinetic), 0.0, 1e-5).tolist() == [-1]
    potential = torch.tensor([[1e6, 1e6 + 1.0, 1e6]])
    assert first_energy_gain(torch.zeros_like(potential), potential, 0.0, 0.0).tolist() == [-1]


def chain():
    """A rod on a hinge, and its world's number of controls."""
    return articulated.chain([1.0], dt=0.01)


def disc():
    """A disc in the plane."""
    return rigid2d.World([rigid2d.Circle(0.1, (0, 0))], gravity=(0, 0), dt=0.01)


@pytest.mark.parametrize(("make", "dtype"), [(chain, DOUBLE), (chain, torch.float32), (disc, DOUBLE)])
def test_a_speed_that_its_dtype_does_not_resolve_is_a_failure(make, dtype):
    engine = make()
    start = engine.initial_state(2, dtype)
    controls = torch.zeros(2, 3, engine.nu, dtype=dtype)
    controls[0, 1, -1] = 1e100 if dtype == DOUBLE else 1e30
    with pytest.warns(RuntimeWarning, match="1 of 2 worlds failed"):
        path = engine.rollout(start, 3, controls.requires_grad_())
    assert path.status.converged.tolist() == [False, True]
    assert path.status.first_failed_step.tolist() == [2, -1]
    assert path.q[0, :2].isfinite().all()
    assert path.q[0, 2:].isnan().all()
    alone = engine.rollout(State(start.q[1:], start.v[1:]), 3)
    assert torch.equal(path.q[1:], alone.q)


def whirled(speed, dt):
    """Two rods in the plane, pinned to each other and to the world, and their start at opposite spins."""
    rods = [
        rigid2d.Rectangle((1, 0.1), (0.5, 0), velocity=(0, 0.5 * speed), spin=speed, name="inner"),
        rigid2d.Rectangle((1, 0.1), (1.5, 0), velocity=(0, 1.5 * speed), spin=-speed, name="outer"),
    ]
    pins = [rigid2d.Revolute("inner", None, (0, 0)), rigid2d.Revolute("outer", "inner", (1, 0))]
    world = rigid2d.World(rods, pins, gravity=(0, -9.81), dt=dt)
    return world, world.initial_state(1, DOUBLE)


def tumbling(speed, dt):
    """A body with an arm on a hinge, weightless above a ground, and its start at a speed."""
    hub = Body("hub", None, [Joint("free")], inertia=(0.1, 0.2, 0.3), shapes=[Placed(Sphere(0.1))])
    hinge = Joint("revolute", (0, 1, 0))
    arm = Body("arm", "hub", [hinge], 0.5, (0.3, 0, 0), (0.01, 0.05, 0.05), position=(0.5, 0, 0))
    engine = articulated.tree([hub, arm], dt=dt, gravity=(0, 0, 0), static_shapes=[Placed(Plane())], contact="event")
    q = engine.initial_state(1, DOUBLE).q
    q[:, 2] = 10.0
    return engine, State(q, speed * tensor([0.0, 0.0, 0.0, 0.3, 0.9, 0.3, -1.0]))


@pytest.mark.parametrize("make", [whirled, tumbling])
def test_a_world_that_gains_energy_is_named_and_shorter_steps_cure_it(make):
    for dt, gains in ((0.02, True), (0.002, False)):
        engine, start = make(30.0, dt)
        path = engine.rollout(start, 40)
        kinetic, potential = engine.energy(path)
        total = (kinetic + potential)[0]
        gain = float((total - total.cummin(0).values).max() / total.max())
        assert path.status.converged.all()
        assert (gain > 1.2 * MAX_ENERGY_GAIN) == gains
        assert (int(path.status.first_underresolved_step) >= 0) == gains
