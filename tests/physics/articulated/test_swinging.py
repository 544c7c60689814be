"""Trees in flight, with contact by events: a step is of second order, also where joints swing what they carry."""

# pyright: reportIndexIssue=false

from itertools import pairwise

import torch
from physics.articulated.slopes import compare
from physics.articulated.trees import contact_tree

from physvision import State
from physvision.core import Placed, Plane, Sphere
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64
INERTIA = (0.006, 0.009, 0.013)


def arm(name, axis, offset, **more):
    """A body on a hinge beside the base."""
    hinge = Joint("revolute", axis, **more)
    return Body(name, "base", [hinge], 0.3, (0.0, 0.05, 0.2), (0.002, 0.003, 0.001), offset)


def floating(dt, **more):
    """A weightless base that carries two arms."""
    base = Body("base", None, [Joint("free")], 0.7, (0.03, -0.02, 0.05), INERTIA, shapes=[Placed(Sphere(0.1))])
    bodies = [base, arm("left", (1, 0.5, 0), (0.1, 0, 0)), arm("right", (0, 1, 0.3), (-0.1, 0, 0.05))]
    more = {"gravity": (0, 0, 0)} | more
    return contact_tree(bodies, dt=dt, static_shapes=[Placed(Plane())], contact="event", **more)


def spun(height=50.0):
    q = torch.tensor([[0, 0, height, 1, 0, 0, 0, 0.3, -0.4]], dtype=DOUBLE)
    v = torch.tensor([[0.1, -0.2, 0.3, 4.0, 3.0, -5.0, 6.0, -4.0]], dtype=DOUBLE)
    return State(q, v)


def momentum(engine, state):
    """Linear and angular momentum about the world's origin."""
    p = (engine.mass_matrix(state) @ state.v.unsqueeze(-1)).squeeze(-1)[0]
    turn = engine.poses(state)[0, 0, :3, :3]
    return torch.cat([p[:3], turn @ p[3:6] + torch.linalg.cross(state.q[0, :3], p[:3])])


def ratios(errors):
    return [coarse_steps / fine for coarse_steps, fine in pairwise(errors)]


def test_a_floating_base_with_arms_keeps_energy_and_momentum_to_second_order():
    time, start = 0.4, spun()
    first = momentum(floating(1e-3), start)
    energy, momenta, positions = [], [], []
    for dt in (8e-3, 4e-3, 2e-3, 1e-3):
        engine = floating(dt)
        end = engine.rollout(start, round(time / dt)).final
        energy.append(abs(float((sum(engine.energy(end)) / sum(engine.energy(start)) - 1)[0])))
        momenta.append(float((momentum(engine, end) - first)[3:].norm()))
        positions.append(end.q)
    separation = [float(floating(1e-3).difference(before, after).norm()) for before, after in pairwise(positions)]
    assert energy[1] < 1e-3
    for errors in (energy, momenta, separation):
        assert all(ratio > 3.5 for ratio in ratios(errors)), errors


def test_a_pendulum_keeps_its_energy_to_second_order():
    hinge = Joint("revolute", (0, 1, 0))
    bob = Body("bob", None, [hinge], 0.5, (0, 0, -0.3), (0.002,) * 3, (0, 0, 9), shapes=[Placed(Sphere(0.1))])
    errors = []
    for dt in (1e-2, 5e-3, 2.5e-3):
        engine = tree([bob], dt=dt, static_shapes=[Placed(Plane())], contact="event")
        start = State(torch.tensor([[2.0]], dtype=DOUBLE), torch.zeros(1, 1, dtype=DOUBLE))
        total = sum(engine.energy(engine.rollout(start, round(1.0 / dt))))
        errors.append(float((total - total[:, :1]).abs().max()))
    assert errors[0] < 0.02
    assert all(ratio > 3.5 for ratio in ratios(errors)), errors


def test_gradients_of_a_tree_in_flight_and_through_an_impact():
    base = Body("base", None, [Joint("free")], 0.7, (0.03, -0.02, 0.05), INERTIA, shapes=[Placed(Sphere(0.1))])
    fixed = {"stiffness": 3.0, "damping": 0.02}
    bodies = [
        base,
        arm("left", (1, 0.5, 0), (0.1, 0, 0), **fixed),
        arm("right", (0, 1, 0.3), (-0.1, 0, 0.05), **fixed, implicit_spring=True),
    ]
    wrist = Body("wrist", "left", [Joint("ball")], 0.2, (0.01, 0.02, 0.05), (0.001, 0.002, 0.0015))
    slider = Body("slider", "right", [Joint("prismatic", (0.3, 0, 1))], 0.1, (0, 0.02, 0.0), (0.001,) * 3)
    # Its impacts cut the flights of the others too.
    ball = Body("ball", None, [Joint("free")], 0.4, (0, 0, 0), (0.001,) * 3, shapes=[Placed(Sphere(0.1))])
    engine = tree(
        [*bodies, wrist, slider, ball],
        dt=8e-3,
        static_shapes=[Placed(Plane())],
        contact=ContactSettings(restitution=0.5),
    )
    generator = torch.Generator().manual_seed(3)
    q = engine.initial_state(1, DOUBLE).q
    q[:, 2], q[:, -7], q[:, -5] = 0.25, 2.0, 0.17
    v = torch.randn(1, engine.nv, generator=generator, dtype=DOUBLE) * 2
    v[:, 2], v[:, -4] = -2.0, -1.5
    values = {"q": q, "v": v, "controls": torch.randn(1, 20, engine.nv, generator=generator, dtype=DOUBLE) * 0.1}
    names = (
        "mass center_of_mass inertia position orientation gravity joint_stiffness joint_damping armature restitution"
    )
    values |= {name: getattr(engine.properties, name) for name in names.split()}
    for name in ("joint_stiffness", "joint_damping", "armature", "restitution"):
        values[name] = values[name] + 0.01  # may become less

    def direction(name, value):
        way = torch.randn(value.shape, generator=generator, dtype=DOUBLE)
        return (way + way.mT) * 1e-2 if name == "inertia" else way * 0.1

    def loss(inputs):
        state = State(inputs["q"], inputs["v"])
        given = {name: inputs[name] for name in values if name not in ("q", "v", "controls")}
        end = engine.rollout(state, 20, inputs["controls"], properties=given).final
        weights = torch.arange(1.0, 1 + engine.nq + engine.nv, dtype=DOUBLE)
        return (torch.cat([end.q, end.v], 1) * weights).sum(1)

    assert compare(loss, values, direction) == len(values)
