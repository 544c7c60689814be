"""Complementarity at a fixed step, exact and relaxed: closed forms of the grid of time, and the central path.

The gradients of all methods that step by a fixed time are here too, forces among them.
"""

# pyright: reportInvalidTypeForm=false

import numpy as np
import pytest
import torch
import warp as wp
from contact_comparison import Complementarity, Penalty, Relaxed, Soft
from physics.articulated.impulses import problems_of, solved
from physics.articulated.slopes import compare
from physics.articulated.trees import contact_tree, stepping_robot

from physvision import State
from physvision.core import Box, InputError, Placed, Plane, Sphere
from physvision.kernels import precision
from physvision.physics.articulated import Body, ContactSettings, Joint, load

pytestmark = pytest.mark.extended
DOUBLE = torch.float64
MASS, GRAVITY, STEP = 0.8, 10.0, 1e-3
TAKEN_BACK = 0.34  # share of an overlap that is taken back in a step
LAWS = [Complementarity(), Relaxed(1e-6)]


def free(shape):
    return Body("body", None, [Joint("free")], mass=MASS, inertia=(0.01,) * 3, shapes=[Placed(shape)])


def world(bodies, law, dt=STEP, **options):
    return contact_tree(
        bodies, dt=dt, gravity=(0, 0, -GRAVITY), static_shapes=[Placed(Plane())], contact=law, **options
    )


def at_height(engine, height):
    start = engine.initial_state(dtype=DOUBLE)
    return State(start.q + torch.tensor([0, 0, height, 0, 0, 0, 0], dtype=DOUBLE), start.v)


@pytest.mark.parametrize("law", LAWS, ids=["exact", "relaxed"])
@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_a_bounce_is_that_of_the_grid(law, dt):
    """What falls is v h lower for each step, turns round at the first time on the grid, and no earlier for a nudge.

    The derivative by the height is one, whatever the step; that of the true motion is 0.578.
    """
    engine = world([free(Sphere(0.1))], law, dt, restitution=1.0)
    start = at_height(engine, 1.1 + 0.3 * dt)
    q = start.q.clone().requires_grad_()
    path = engine.rollout(State(q, start.v), round(0.8 / dt))
    height, speed, fallen = 1.0 + 0.3 * dt, 0.0, False
    for _ in range(round(0.8 / dt)):
        if height <= 0 and not fallen:
            # u + e u⁻ = κ / λ ends where κ / λ is the speed beyond the mirrored one, with λ about 2 m |v|.
            speed, fallen = -speed, True
        else:
            speed -= GRAVITY * dt
        height += dt * speed
    relaxed_contact = 0.0 if isinstance(law, Complementarity) else 2 * law.smoothing / (2 * MASS * 4.0)
    assert path.q[0, -1, 2].item() - 0.1 == pytest.approx(height, abs=1e-12 + relaxed_contact)
    (gradient,) = torch.autograd.grad(path.q[0, -1, 2], q)
    assert float(gradient[0, 2]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("law", "impulse_to_gap"),
    [
        (Complementarity(), lambda push: 0.0),
        (Complementarity(compliance=0.2), lambda push: -0.2 * push),
        (Relaxed(1e-8), lambda push: 1e-8 / push),
    ],
    ids=["exact", "yielding", "relaxed"],
)
def test_a_box_rests_where_its_weight_is_carried(law, impulse_to_gap):
    """κ g / h + R λ = 0, or κ g / h = κ' / λ, for the λ = m G h / 4 of each corner."""
    engine = world([free(Box((0.4, 0.4, 0.1)))], law, friction=0.3)
    end = engine.rollout(at_height(engine, 0.05), 400).final
    push = MASS * GRAVITY * STEP / 4
    assert float(end.q[0, 2]) - 0.05 == pytest.approx(impulse_to_gap(push) * STEP / TAKEN_BACK, abs=1e-12)
    assert float(end.v.abs().max()) < 1e-9
    listed = engine.contacts(end, max_separation=1e-3)
    assert float(listed.impulse[0, :, 2].sum()) == pytest.approx(4 * push, rel=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=["exact", "relaxed"])
def test_friction_of_what_slides(law):
    """Δp_x = −μ Δp_z; relaxed friction lacks s / |v|, which is next to nothing at this speed."""
    friction, speed, steps = 0.3, 4.0, 200
    engine = world([free(Box((0.4, 0.4, 0.1)))], law, friction=friction)
    start = at_height(engine, 0.05)
    start.v[0, 0] = speed
    end = engine.rollout(start, steps).final
    lost = friction * (GRAVITY * steps * STEP + float(end.v[0, 2]))
    lacking = 0.0 if isinstance(law, Complementarity) else law.smoothing / (friction * MASS * GRAVITY * STEP / 4)
    assert float(end.v[0, 0]) - speed == pytest.approx(-lost, rel=1e-9 + lacking)


def relaxed_contact(smoothing):
    """The solver of relaxed contact, as `solved` takes it."""

    def solver(kernels):
        module = precision.load_module(Relaxed.kernels, DOUBLE)
        Law, solve, number = module.Law, module.solve, wp.constant(wp.float64(smoothing))

        @wp.func
        def with_smoothing(workspace: kernels.ContactWorkspaceStruct, world: int, count: int):
            law = Law()
            law.smoothing = number
            return solve(law, workspace, world, count)

        return with_smoothing

    return solver


@pytest.mark.parametrize("smoothing", [1e-2, 1e-6])
def test_relaxed_impulses_are_on_the_central_path(smoothing):
    """λ_n u_n = κ, μ λ_n ψ + λ_t · u_t = κ, λ_t ψ + μ λ_n u_t = 0, of what at least one free body's freedoms carry.

    With fewer freedoms contacts may hold each other without room between, and there is no such path.
    """
    problems = [entry for entry in problems_of(2000, seed=1) if np.linalg.matrix_rank(entry[0]) >= 6]
    impulses, residuals = solved(problems, solver=relaxed_contact(smoothing))
    named, worst = ~(residuals < 1e-9), 0.0
    for k in np.flatnonzero(~named):
        (matrix, bias, friction), impulse = problems[k], impulses[k]
        slips, size = (matrix @ impulse + bias).reshape(-1, 3), np.abs(bias).max()
        for weight, mu, slip, push in zip(np.diag(matrix)[::3], friction, slips, impulse.reshape(-1, 3), strict=True):
            assert push[0] > 0
            off = [abs(push[0] * slip[0] - smoothing) / (push[0] + slip[0] / weight), *np.abs(push[1:] * size)]
            if mu > 0:
                bound = mu * push[0]
                psi = (smoothing - push[1:] @ slip[1:]) / bound
                off[1:] = np.abs(push[1:] * psi + bound * slip[1:]) / (bound + psi / weight)
            worst = max(worst, *(entry / size for entry in off))
    print(f"smoothing {smoothing}: of {len(problems)} {named.sum()} are named, worst of the others {worst:.1e}")
    assert worst < 1e-8
    assert named.mean() < 0.01


def test_a_model_file_is_simulated_by_the_method_that_is_asked_for():
    file = """<mujoco><option gravity="0 0 -10"/><worldbody><geom type="plane" size="1 1 1"/>
    <body pos="0 0 0.12"><freejoint/><geom type="sphere" size="0.1" mass="0.8"/></body></worldbody></mujoco>"""
    ends = []
    for law in ("event", Complementarity()):
        engine = load(file, dt=1e-2, contact=ContactSettings(law, restitution=0.5))
        ends.append(engine.rollout(engine.initial_state(dtype=DOUBLE), 20).final.q[0, 2].item())
    ball = Body("body", None, [Joint("free")], mass=MASS, inertia=(0.0032,) * 3, shapes=[Placed(Sphere(0.1))])
    same = world([ball], Complementarity(), 1e-2, restitution=0.5, friction=1.0)
    assert ends[1] == pytest.approx(same.rollout(at_height(same, 0.12), 20).final.q[0, 2].item(), abs=1e-12)
    assert abs(ends[0] - ends[1]) > 1e-4


LEAVES = (
    "mass", "center_of_mass", "inertia", "position", "orientation", "joint_damping", "joint_limits", "gravity",
    "friction", "restitution", "shape_pose", "shape_size",
)  # fmt: skip
FORCES = {
    "penalty": Penalty(stiffness=2e3, damping=30.0),
    "soft": Soft(stiffness=2e3, distance=4e-3),
}
METHODS = FORCES | {"yielding complementarity": Complementarity(compliance=1e-2), "relaxed": Relaxed(1e-5)}


@pytest.mark.parametrize("law", METHODS.values(), ids=METHODS)
def test_gradients_of_every_input_and_property(law):
    """A robot of three bodies with stops falls on the ground and on its own foot, and slides."""
    engine = world(stepping_robot(), law, dt=2e-3, friction=0.5, restitution=0.4)
    steps, rng = 60, torch.Generator().manual_seed(2)
    start = engine.initial_state(dtype=DOUBLE)
    q = engine.integrate(start.q, 0.2 * torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE))
    q[0, 2] = 0.31
    v = torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE)
    v[0, 2] = -1.0
    own = engine.properties
    values = {"q": q, "v": v, "u": 0.3 * torch.randn(1, steps, engine.nu, generator=rng, dtype=DOUBLE)}
    values |= {name: getattr(own, name).clone() for name in LEAVES}
    weights = torch.randn(2, engine.nq, generator=rng, dtype=DOUBLE)
    max_penetration = []

    def loss(given):
        path = engine.rollout(State(given["q"], given["v"]), steps, given["u"], {name: given[name] for name in LEAVES})
        max_penetration.append(float(path.status.penetration.min()))
        return (path.q @ weights[0] + path.v @ weights[1, : engine.nv]).mean(1)

    def direction(name, value):
        along = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        if name in ("mass", "friction", "restitution", "shape_size", "joint_damping"):
            along = along * value
        if name == "joint_limits":
            along = torch.where(value.isfinite(), along, 0.0)
        return (along + along.mT) * 0.001 if name == "inertia" else along

    assert compare(loss, values, direction) >= 13  # of 15
    assert min(max_penetration) > 1e-3


def test_bad_numbers_and_names_are_refused():
    with pytest.raises(InputError, match="smoothing"):
        Relaxed(smoothing=0.0)
    with pytest.raises(InputError, match="compliance"):
        Complementarity(compliance=-1.0)
    with pytest.raises(InputError, match="'compliant'"):
        world([free(Sphere(0.1))], "springy")
