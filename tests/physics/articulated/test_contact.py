"""Trees that touch planes: closed forms with their derivatives, differences, what fails and what is refused."""

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from physics.articulated.slopes import compare
from physics.articulated.trees import contact_tree

from physvision import State
from physvision.core import (
    Box,
    Capsule,
    Disc,
    InputError,
    ModelError,
    Placed,
    Plane,
    Rectangle,
    Sphere,
    UnsupportedError,
)
from physvision.physics.articulated import Body, Compliant, ContactLaw, ContactSettings, Joint
from physvision.physics.articulated.compiler.link_parameters import rotation_matrix
from physvision.physics.articulated.contact import CompliantConstraints, CompliantLaws

DOUBLE = torch.float64


def placed(shape, position=(0.0, 0.0, 0.0), orientation=(1.0, 0.0, 0.0, 0.0)):
    pose = torch.eye(4, dtype=DOUBLE)
    pose[:3, :3] = rotation_matrix(torch.tensor(orientation, dtype=DOUBLE))
    pose[:3, 3] = torch.tensor(position, dtype=DOUBLE)
    return Placed(shape, pose=tuple(map(tuple, pose.tolist())))


GROUND = placed(Plane())


def free(shape, mass=2.0, inertia=(0.05, 0.05, 0.05)):
    return Body("body", None, [Joint("free")], mass=mass, inertia=inertia, shapes=[shape])


def world(bodies, **options):
    return contact_tree(
        bodies, **({"dt": 0.01, "static_shapes": [GROUND], "contact": "event", "gravity": (0, 0, -10.0)} | options)
    )


def at(engine, height, velocity=(0.0,) * 6):
    q = engine.initial_state(1, DOUBLE).q.clone()
    q[0, 2] = height
    return State(q, torch.tensor([velocity], dtype=DOUBLE))


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_a_bounce_and_its_derivatives(dt):
    """A ball thrown up from 1 m; e = 0.7. Exact where acceleration is constant, so to rounding times the steps."""
    g, h, v0, e, total, radius = 10.0, 1.0, 0.3, 0.7, 0.8, 0.25
    engine = world([free(placed(Sphere(radius)))], dt=dt, restitution=e)
    state = at(engine, radius + h, (0, 0, v0, 0, 0, 0))
    q, v = state.q.requires_grad_(), state.v.requires_grad_()
    own = engine.properties
    leaves = {name: getattr(own, name).clone().requires_grad_() for name in ("restitution", "shape_pose", "shape_size")}
    path = engine.rollout(State(q, v), round(total / dt), properties=leaves)
    s = math.sqrt(v0**2 + 2 * g * h)
    fall = (v0 + s) / g
    d = total - fall
    assert float(path.q[0, -1, 2]) == pytest.approx(radius + e * s * d - g * d * d / 2, abs=1e-9)
    gq, gv, ge, gp, gs = torch.autograd.grad(path.q[0, -1, 2], (q, v, *leaves.values()))
    by_height = -e + (1 + e) * g * d / s
    assert float(gq[0, 2]) == pytest.approx(by_height, abs=1e-9)
    assert float(gv[0, 2]) == pytest.approx(d * (e * v0 + g * fall) / s - e * fall, abs=1e-9)
    assert float(ge.sum()) == pytest.approx(s * d, abs=1e-9)
    # What lifts the ground, or makes the ball larger, shortens the fall and lifts the end.
    assert float(gp[0, 2, 3]) == pytest.approx(1 - by_height, abs=1e-9)
    assert float(gs[1, 0]) == pytest.approx(1 - by_height, abs=1e-9)


@pytest.mark.parametrize("late", [0.0, 5e-10, -5e-10, 1e-16])
def test_an_impact_at_the_end_of_a_step_depends_on_the_start(late):
    """A gap d that closes at speed s, at the end of the tenth step or next to it: z = e (s T − d)."""
    speed, e, radius, distance = 2.0, 0.5, 0.25, 0.2 + late
    engine = world([free(placed(Sphere(radius)))], restitution=e, gravity=(0, 0, 0))
    state = at(engine, radius + distance, (0, 0, -speed, 0, 0, 0))
    q, v = state.q.requires_grad_(), state.v.requires_grad_()
    final = engine.rollout(State(q, v), 20).final
    assert final.q[0, 2].item() - radius == pytest.approx(e * (speed * 0.2 - distance), rel=1e-9)
    by_q, by_v = torch.autograd.grad(final.q[0, 2], (q, v))
    assert float(by_q[0, 2]) == pytest.approx(-e, rel=1e-9)
    assert float(by_v[0, 2]) == pytest.approx(-e * 0.2, rel=1e-9)


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_fifty_elastic_bounces_keep_energy_and_the_closed_form(dt):
    """Periodic in the time of a bounce; each of the 50 is found anew."""
    engine = world([free(placed(Sphere(0.1)))], dt=dt, restitution=1.0)
    period = 2 * math.sqrt(2 * 0.05 / 10.0)
    steps = round(50 * period / dt)
    start = at(engine, 0.15)
    path = engine.rollout(start, steps)
    times = torch.arange(steps + 1, dtype=DOUBLE) * dt
    since = (times + period / 2) % period - period / 2  # time from the nearest top
    torch.testing.assert_close(path.q[0, :, 2], 0.15 - 5 * since**2, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_a_ball_that_slides_ends_up_rolling_at_five_sevenths(dt):
    radius, v0 = 0.2, 1.4
    engine = world([free(placed(Sphere(radius)), mass=1.0, inertia=[0.4 * radius**2] * 3)], dt=dt, friction=0.3)
    path = engine.rollout(at(engine, radius, (v0, 0, 0, 0, 0, 0)), round(1.0 / dt))
    end = path.v[0, -1]
    assert float(end[0]) == pytest.approx(5 / 7 * v0, abs=1e-9)
    assert float(path.v[0, round(0.05 / dt), 0]) == pytest.approx(v0 - 0.3 * 10 * 0.05, abs=1e-9)
    # It rolls: the point that touches stands still.
    spin = rotation_matrix(path.q[0, -1, 3:]) @ end[3:]
    assert float(spin[1]) * radius == pytest.approx(float(end[0]), abs=1e-9)
    # The change from sliding to rolling falls within a step: the way is of first order there, once.
    late = 2 * v0 / (7 * 3.0)
    exact = v0 * late - 1.5 * late**2 + 5 / 7 * v0 * (1.0 - late)
    assert float(path.q[0, -1, 0]) == pytest.approx(exact, abs=3.0 * dt**2)


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_block_on_a_slope_sticks_or_slides(side, dt):
    """Four corners on a plane that is tilted by 0.3 rad, friction a little above or below its tangent."""
    angle = 0.3
    mu = math.tan(angle) + side * 1e-4
    half = angle / 2
    slope = placed(Plane(), orientation=(math.cos(half), 0.0, math.sin(half), 0.0))
    engine = world([free(placed(Box((0.4, 0.4, 0.1))))], static_shapes=[slope], friction=mu, dt=dt)
    state = engine.initial_state(1, DOUBLE)
    q = state.q.clone()
    normal = torch.tensor([math.sin(angle), 0.0, math.cos(angle)], dtype=DOUBLE)
    q[0, :3] = 0.05 * normal
    q[0, 3:] = torch.tensor([math.cos(half), 0.0, math.sin(half), 0.0])
    downhill = torch.tensor([math.cos(angle), 0.0, -math.sin(angle)], dtype=DOUBLE)
    path = engine.rollout(State(q, state.v), round(3.0 / dt))
    assert path.status is not None
    assert bool(path.status.converged)
    way = float((path.q[0, -1, :3] - q[0, :3]) @ downhill)
    slides = max(0.0, math.sin(angle) - mu * math.cos(angle)) * 10.0 / 2 * 3.0**2
    assert way == pytest.approx(slides, abs=1e-9)
    assert float((path.q[0, -1, :3] - q[0, :3]) @ normal) == pytest.approx(0.0, abs=1e-9)


def test_a_robot_comes_to_rest_on_its_feet():
    """Two legs on springs under a body: it lands, and its weight is carried without drift."""
    legs = [
        Body(f"leg {k}", "base", [Joint("prismatic", (0, 0, 1), stiffness=400.0, damping=20.0)], mass=0.2,
             inertia=(1e-3,) * 3, position=(x, y, -0.2), shapes=[placed(Sphere(0.03))])
        for k, (x, y) in enumerate([(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)])
    ]  # fmt: skip
    base = Body("base", None, [Joint("free")], mass=3.0, inertia=(0.1, 0.1, 0.1))
    engine = world([base, *legs], friction=0.8)
    state = engine.initial_state(1, DOUBLE)
    q = state.q.clone()
    q[0, 2] = 0.3
    path = engine.rollout(State(q, state.v), 400)
    assert path.status is not None
    assert bool(path.status.converged)
    assert float(path.v[0, -1].abs().max()) < 1e-6
    sunk = 3.0 * 10.0 / (4 * 400.0)
    assert float(path.q[0, -1, 2]) == pytest.approx(0.23 - sunk, abs=1e-6)
    assert float((path.q[0, -1] - path.q[0, 300]).abs().max()) < 1e-6


def scenes():
    arm = [
        Body("base", None, [Joint("free")], mass=2.0, inertia=(0.1, 0.12, 0.15), shapes=[placed(Box((0.4, 0.3, 0.1)))]),
        Body("leg", "base", [Joint("revolute", (0, 1, 0.2), damping=0.1, stiffness=3.0)], mass=0.5,
             center_of_mass=(0, 0, -0.15), inertia=(0.01, 0.01, 0.005), position=(0.2, 0.1, 0),
             shapes=[placed(Capsule(0.03, 0.25), (0, 0, -0.15))]),
        Body("arm", "base", [Joint("ball", damping=0.1, stiffness=2.0)], mass=0.5, center_of_mass=(0, 0, -0.15),
             inertia=(0.01, 0.01, 0.005), position=(-0.2, -0.1, 0),
             shapes=[placed(Capsule(0.03, 0.25), (0, 0, -0.15))]),
        Body("foot", "leg", [Joint("prismatic", (0, 0.1, 1), stiffness=200.0, damping=2.0)], mass=0.2,
             inertia=(1e-3,) * 3, position=(0, 0, -0.3), shapes=[placed(Sphere(0.05))]),
    ]  # fmt: skip
    box = free(placed(Box((0.3, 0.4, 0.2)), (0.02, 0, 0.01), (1, 0.1, 0.2, 0)), inertia=(0.05, 0.06, 0.07))
    capsule = free(placed(Capsule(0.1, 0.4), (0.02, 0, 0.01), (1, 0.1, 0.2, 0)), inertia=(0.05, 0.06, 0.07))
    return {"box": [box], "capsule": [capsule], "robot": arm}


LEAVES = (
    "mass", "center_of_mass", "inertia", "position", "joint_damping", "joint_stiffness", "gravity", "friction",
    "restitution", "shape_pose", "shape_size",
)  # fmt: skip


@pytest.mark.parametrize("friction", [0.0, 0.4])
@pytest.mark.parametrize("scene", ["box", "capsule", "robot"])
def test_gradients_through_impacts_rest_and_friction(scene, friction):
    """Against differences of the rollout itself, along a random direction of each input and property."""
    engine = world(scenes()[scene], friction=friction + 0.1, restitution=0.3)
    own = engine.properties
    checked = 0
    for seed in range(2):
        rng = torch.Generator().manual_seed(seed)
        start = engine.initial_state(1, DOUBLE).q.clone()
        start[0, 2] = 0.5
        shift = 0.3 * torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE)
        shift[0, :3] = 0
        values = {"q": engine.integrate(start, shift), "v": torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE)}
        values["u"] = 0.3 * torch.randn(1, 30, engine.nu, generator=rng, dtype=DOUBLE)
        values |= {name: getattr(own, name).clone() for name in LEAVES}
        weights = torch.randn(2, engine.nq, generator=rng, dtype=DOUBLE)

        def loss(given, weights=weights):
            leaves = {name: given[name] for name in LEAVES}
            path = engine.rollout(State(given["q"], given["v"]), 30, given["u"], leaves)
            assert path.status is not None
            assert path.status.converged.all()
            return path.q[:, -1] @ weights[0] + path.v[:, -1] @ weights[1, : engine.nv]

        def direction(name, value, rng=rng):
            along = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
            if name in ("mass", "joint_damping", "joint_stiffness", "friction", "restitution", "shape_size"):
                along = along * value  # what is zero stays zero
            if name == "inertia":
                along = (along + along.mT) * 0.001
            if name == "q":
                along[0, 3:7] = 0.0
            return along

        checked += compare(loss, values, direction)
    assert checked >= 24  # of 28


def test_gradients_of_a_rollout_are_those_of_its_steps():
    engine = world(scenes()["box"], friction=0.4, restitution=0.3)
    start = at(engine, 0.4, (0.5, 0.2, -1.0, 1.0, 2.0, 0.5))

    def end(chained):
        q, v = start.q.clone().requires_grad_(), start.v.clone().requires_grad_()
        state = State(q, v)
        if chained:
            for _ in range(30):
                state = engine.step(state)
        else:
            state = engine.rollout(state, 30).final
        return state.q, torch.autograd.grad(state.q.sum() + state.v.sum(), (q, v))

    (single, gradients), (reference, rest) = end(False), end(True)
    torch.testing.assert_close(single, reference, rtol=1e-12, atol=1e-12)
    for a, b in zip(gradients, rest, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)


def test_an_overlapping_start_fails_alone():
    engine = world([free(placed(Sphere(0.25)))], restitution=0.5)
    q = at(engine, 1.0).q.repeat(3, 1)
    q[1, 2] = 0.1
    v = torch.zeros(3, 6, dtype=DOUBLE, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        path = engine.rollout(State(q, v), 60)
    assert path.status is not None
    assert path.status.first_failed_step.tolist() == [-1, 0, -1]
    (gradient,) = torch.autograd.grad(path.q[:, -1].nan_to_num().sum(), v)
    alone = engine.rollout(State(q[:1], v[:1]), 60)
    assert torch.equal(path.q[:1], alone.q)
    assert torch.equal(path.q[2], alone.q[0])
    assert float(gradient[1].abs().max()) == 0.0
    assert float(gradient[0].abs().max()) > 0.0


def test_linearisation_and_batches():
    engine = world(scenes()["box"], friction=0.4, restitution=0.3)
    state = at(engine, 0.27, (0.5, 0.2, -1.0, 1.0, 2.0, 0.5))
    matrix, _ = engine.linearize(state)
    numeric = []
    for k in range(12):
        move = torch.zeros(1, 12, dtype=DOUBLE)
        move[0, k] = 1e-6
        ends = [
            engine.step(State(engine.integrate(state.q, sign * move[:, :6]), state.v + sign * move[:, 6:]))
            for sign in (1, -1)
        ]
        numeric.append(torch.cat([engine.difference(ends[1].q, ends[0].q), ends[0].v - ends[1].v], 1) / 2e-6)
    torch.testing.assert_close(matrix[0], torch.cat(numeric).T, rtol=1e-5, atol=1e-6)
    friction = torch.tensor([[0.1, 0.1], [0.9, 0.9]], dtype=DOUBLE)
    pair = engine.rollout(state.repeat(2), 30, properties={"friction": friction})
    for k in range(2):
        alone = engine.rollout(state, 30, properties={"friction": friction[k]})
        assert torch.equal(pair.q[k], alone.q[0])


@pytest.mark.slow
def test_float32_follows_float64():
    """Slow because it compiles the kernels once more."""
    engine = world(scenes()["box"], friction=0.4, restitution=0.3)
    state = at(engine, 0.27, (0.5, 0.2, -1.0, 1.0, 2.0, 0.5))
    single = engine.rollout(state.to(torch.float32), 20)
    assert single.q.dtype == torch.float32
    torch.testing.assert_close(single.q.double(), engine.rollout(state, 20).q, rtol=0, atol=1e-3)


def test_what_cannot_touch_is_refused():
    ball, block = free(placed(Sphere(0.1))), free(placed(Box((0.1, 0.2, 0.3))))
    drum = Body("drum", None, [Joint("free")], shapes=[placed(Disc(0.1))])
    with pytest.raises(
        UnsupportedError, match="collision of box 'body' of body 'body' with disc 'drum' of body 'drum'"
    ):
        world([block, drum], static_shapes=[])
    assert world([block, drum], static_shapes=[], exclude=[("body", "drum")]).nv == 12
    with pytest.raises(InputError, match=r"exclude: expected pairs of names .* got \('body', 'barrel'\)"):
        world([ball, drum], exclude=[("body", "barrel")])
    with pytest.raises(UnsupportedError, match=r"rectangle .* use a Plane or a flat Box"):
        world([ball], static_shapes=[placed(Rectangle(1.0, 1.0))])
    with pytest.raises(InputError, match=r"contact: expected 'event', 'compliant', .* or None, got 'hard'"):
        world([free(placed(Sphere(0.1)))], contact="hard")
    with pytest.raises(InputError, match="integrator, substeps: "):
        world([free(placed(Sphere(0.1)))], integrator="runge_kutta_4")
    with pytest.raises(ModelError, match=r"friction of .*: expected numbers of at least zero"):
        world([free(placed(Sphere(0.1)))], friction=-0.1)
    with pytest.raises(ModelError, match=r"restitution of .*: expected numbers in"):
        world([free(placed(Sphere(0.1)))], restitution=1.1)


@dataclass
class MutableLaw(ContactLaw):
    kernels = "nowhere.kernels"
    stiffness: float = 1.0


def test_laws_can_be_keys():
    assert len({Compliant(), Compliant(), Compliant(width=2e-3)}) == 2
    laws = [CompliantLaws(CompliantConstraints([], [], [], [])) for _ in range(2)]
    assert len({*laws, laws[0]}) == 2
    with pytest.raises(InputError, match="contact: expected a law that is hashable"):
        ContactSettings(MutableLaw())


def test_no_impact_adds_energy_without_friction():
    """Flights in empty space are exact for a body with equal moments of inertia: what changes energy are impacts."""
    shape = placed(Box((0.3, 0.4, 0.2)))
    lid = placed(Plane(), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 0.0))
    for restitution in (1.0, 0.6):
        engine = world([free(shape)], static_shapes=[GROUND, lid], gravity=(0, 0, 0), restitution=restitution)
        rng = np.random.default_rng(0)
        for _ in range(5):
            path = engine.rollout(at(engine, 0.5, rng.normal(size=6) * [1, 1, 3, 3, 3, 3]), 200)
            kinetic = engine.energy(path)[0][0]
            change = kinetic.diff() / kinetic[:-1]
            assert float(change.max()) < 1e-9
            if restitution == 1.0:
                assert float(change.abs().max()) < 1e-9
            else:
                assert float(kinetic[-1] / kinetic[0]) < 0.9
