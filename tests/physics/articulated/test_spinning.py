"""A free body that spins: Euler's equations, energy, and gradients of all that its turning depends on."""

import math
from itertools import pairwise

import numpy as np
import torch
from physics.articulated.slopes import compare
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from physvision import State
from physvision.core import Placed, Plane, Sphere
from physvision.physics.articulated import Body, Joint, tree

DOUBLE = torch.float64
MASS, CENTER, INERTIA = 0.7, (0.03, -0.02, 0.05), (0.006, 0.009, 0.013)
SPIN = (9.0, 6.0, -8.0)  # rad/s


def thrown(dt, height=50.0, center=CENTER):
    """A weightless body above a plane, its center of mass aside."""
    body = Body("body", None, [Joint("free")], MASS, center, INERTIA, shapes=[Placed(Sphere(0.1))])
    engine = tree([body], dt=dt, gravity=(0, 0, 0), static_shapes=[Placed(Plane())], contact="event")
    q = torch.tensor([[0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0]], dtype=DOUBLE)
    # The center of mass rests: the origin moves about it.
    return engine, State(q, torch.tensor([[*-np.cross(SPIN, center), *SPIN]], dtype=DOUBLE))


def exact(time):
    """The quaternion and the velocity of Euler's equations after a time, about the center of mass."""
    moments = np.array(INERTIA)

    def rates(_, state):
        w, (s, *r) = state[4:], state[:4]
        turn = np.concatenate([[-np.dot(r, w)], s * w + np.cross(r, w)]) / 2
        return np.concatenate([turn, -np.cross(w, moments * w) / moments])

    result = solve_ivp(rates, (0, time), [1, 0, 0, 0, *SPIN], method="DOP853", rtol=1e-12, atol=1e-13)
    return result.y[:4, -1], result.y[4:, -1]


def test_a_body_spins_by_eulers_equations_to_second_order():
    time, errors = 0.32, []
    turn, spin = exact(time)
    for dt in (4e-3, 2e-3, 1e-3):
        engine, start = thrown(dt)
        end = engine.rollout(start, round(time / dt)).final
        separation = Rotation.from_quat(turn, scalar_first=True).inv() * Rotation.from_quat(
            end.q[0, 3:], scalar_first=True
        )
        errors.append(math.hypot(separation.magnitude(), float((end.v[0, 3:] - torch.tensor(spin)).norm())))
    assert errors[0] < 0.05
    assert all(3.6 < coarse_steps / fine < 4.4 for coarse_steps, fine in pairwise(errors))


def test_what_spins_gains_no_energy_to_speak_of():
    """In a step x⁴ / 8 of the share that is not about the axis of turning; x here is at most 0.05."""
    engine, start = thrown(5e-3, center=(0, 0, 0))
    kinetic, _ = engine.energy(engine.rollout(start, 200))
    assert float((kinetic / kinetic[0, 0] - 1).abs().max()) < 200 * 0.05**4 / 8


def test_gradients_of_what_turning_depends_on():
    """Through an impact too, whose time moves the length of the flights about it."""
    engine, start = thrown(8e-3, height=0.25)
    generator = torch.Generator().manual_seed(1)
    fall = torch.tensor([[0.3, -0.2, -2.0, *SPIN]], dtype=DOUBLE)
    values = {"q": start.q, "v": fall}
    values |= {name: getattr(engine.properties, name) for name in ("mass", "center_of_mass", "inertia", "restitution")}
    values["restitution"] = values["restitution"] + 0.6

    def direction(name, value):
        way = torch.randn(value.shape, generator=generator, dtype=DOUBLE)
        return (way + way.mT) * 1e-2 if name == "inertia" else way * 0.1

    def loss(inputs):
        state = State(inputs["q"], inputs["v"])
        end = engine.rollout(state, 20, properties={name: inputs[name] for name in values if name not in "qv"}).final
        weights = torch.arange(1.0, 14.0, dtype=DOUBLE)
        return (torch.cat([end.q, end.v], 1) * weights).sum(1)

    assert compare(loss, values, direction) == len(values)
