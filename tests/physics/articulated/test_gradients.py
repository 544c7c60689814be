"""Gradients: differences in float64 for every input and every property, and the identities they must obey."""

# pyright: reportAttributeAccessIssue=false

import dataclasses

import pytest
import torch
from derivatives import assert_gradients
from physics.articulated.trees import everything, random_state

from physvision import State
from physvision.core import DerivativeError
from physvision.physics.articulated import Articulation, Body, Joint, tree
from physvision.physics.articulated.model.properties import TreeProperties

# Those that move bodies without contact; those of shapes, stops, transmissions and media have tests of their own.
LEAVES = tuple(
    name
    for name, leaf in TreeProperties.leaves().items()
    if leaf.shape[0] not in ("shapes", "transmissions") and name not in ("joint_limits", "fluid", "drag_size")
)

INTEGRATORS = ("semi_implicit_euler", "runge_kutta_4")
# Central differences with step 1e-6 leave about 1e-9 of curvature and rounding in numbers of order one.
CHECK = {"eps": 1e-6, "atol": 2e-7, "rtol": 2e-6}


def leaves(engine: Articulation) -> dict[str, torch.Tensor]:
    return {name: getattr(engine.properties, name).clone().requires_grad_() for name in LEAVES}


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("substeps", [1, 2])
def test_rollout_inputs(integrator, substeps):
    engine = everything(integrator=integrator, substeps=substeps)
    state, steps = random_state(engine, 0, batch=2), 3
    controls = torch.randn(2, steps, engine.nu, dtype=torch.float64)
    wrenches = torch.randn(2, steps, engine.model.bodies, 6, dtype=torch.float64)

    def run(q, v, controls, wrenches):
        trajectory = engine.rollout(State(q, v), steps, controls, wrenches=wrenches)
        return trajectory.q, trajectory.v

    inputs = [tensor.clone().requires_grad_() for tensor in (state.q, state.v, controls, wrenches)]
    assert_gradients(run, inputs, **CHECK)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("leaf", LEAVES)
def test_rollout_properties(leaf, integrator):
    engine = everything(integrator=integrator)
    state = random_state(engine, 1, batch=2)
    controls = torch.randn(2, 2, engine.nu, dtype=torch.float64)
    wrenches = torch.randn(2, 2, engine.model.bodies, 6, dtype=torch.float64)

    def run(value):
        trajectory = engine.rollout(state, 2, controls, {leaf: value}, wrenches=wrenches)
        return trajectory.q, trajectory.v

    value = getattr(engine.properties, leaf).clone().requires_grad_()
    assert_gradients(run, (value,), **CHECK)
    # Something must depend on it, or the check would be empty.
    q, v = run(value)
    (gradient,) = torch.autograd.grad((q.sum() + v.sum()), value)
    assert float(gradient.abs().max()) > 1e-6


@pytest.mark.parametrize("method", ["acceleration", "inverse_dynamics", "energy", "poses", "mass_matrix", "jacobian"])
def test_functions_of_the_state(method):
    engine = everything()
    state = random_state(engine, 2)
    values = leaves(engine)
    extra = torch.randn(1, engine.nv, dtype=torch.float64, requires_grad=True)
    takes_extra, point = method in ("acceleration", "inverse_dynamics"), torch.tensor([[0.1, -0.2, 0.3]]).double()

    def run(q, v, extra, *numbers):
        call = getattr(engine, method)
        properties = dict(zip(values, numbers, strict=True))
        given = (extra,) if takes_extra else (engine.body_names[-1], point) if method == "jacobian" else ()
        return call(State(q, v), *given, properties)

    inputs = [state.q.clone().requires_grad_(), state.v.clone().requires_grad_(), extra, *values.values()]
    assert_gradients(run, inputs, **CHECK)


def test_a_shared_property_gets_the_sum_over_worlds():
    engine = everything()
    state = random_state(engine, 3, batch=4)
    weights = torch.randn(4, engine.nv, dtype=torch.float64)
    for name, shared in leaves(engine).items():
        own = shared.detach().expand(4, *shared.shape).clone().requires_grad_()
        total = [
            torch.autograd.grad((engine.rollout(state, 5, properties={name: value}).v[:, -1] * weights).sum(), value)[0]
            for value in (shared, own)
        ]
        torch.testing.assert_close(total[0], total[1].sum(0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_rollout_is_its_steps_in_a_chain(integrator):
    engine = everything(integrator=integrator)
    start = random_state(engine, 4, batch=3)
    controls = torch.randn(3, 6, engine.nu, dtype=torch.float64)
    weights = torch.randn(3, engine.nv, dtype=torch.float64)

    def gradients(run):
        mass = engine.properties.mass.clone().requires_grad_()
        q, v, u = (tensor.clone().requires_grad_() for tensor in (start.q, start.v, controls))
        end = run(State(q, v), u, {"mass": mass})
        return end, torch.autograd.grad((end.v * weights).sum() + end.q.sum(), (q, v, u, mass))

    def chained(state, u, properties):
        for k in range(6):
            state = engine.step(state, u[:, k], properties)
        return state

    whole, whole_gradients = gradients(lambda state, u, p: engine.rollout(state, 6, u, p).final)
    steps, step_gradients = gradients(chained)
    torch.testing.assert_close(whole.q, steps.q, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(whole.v, steps.v, rtol=1e-13, atol=1e-13)
    for value, reference in zip(whole_gradients, step_gradients, strict=True):
        torch.testing.assert_close(value, reference, rtol=1e-9, atol=1e-10)


def test_linearize_against_finite_differences():
    engine = everything()
    state, h = random_state(engine, 5, batch=2), 1e-6
    control = torch.randn(2, engine.nu, dtype=torch.float64)
    a, b = engine.linearize(state, control)

    def moved(dq, dv, du):
        return engine.step(State(engine.integrate(state.q, dq), state.v + dv), control + du)

    def column(k, size, place):
        step = torch.zeros(2, size, dtype=torch.float64)
        step[:, k] = h
        none = [torch.zeros(2, n, dtype=torch.float64) for n in (engine.nv, engine.nv, engine.nu)]
        ends = []
        for sign in (1, -1):
            arguments = list(none)
            arguments[place] = sign * step
            ends.append(moved(*arguments))
        return torch.cat([engine.difference(ends[1].q, ends[0].q), ends[0].v - ends[1].v], 1) / (2 * h)

    nv = engine.nv
    numeric = torch.stack([column(k, nv, 0) for k in range(nv)] + [column(k, nv, 1) for k in range(nv)], 2)
    torch.testing.assert_close(a, numeric, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(
        b, torch.stack([column(k, engine.nu, 2) for k in range(engine.nu)], 2), rtol=1e-6, atol=1e-7
    )


def test_truncation_cuts_the_past():
    engine = everything()
    v = random_state(engine, 6).v.clone().requires_grad_()
    q = random_state(engine, 6).q
    controls = torch.zeros(1, 9, engine.nu, dtype=torch.float64, requires_grad=True)
    last = engine.rollout(State(q, v), 9, controls, truncate=4).v[:, -1].sum()
    gv, gu = torch.autograd.grad(last, (v, controls))
    assert float(gv.abs().max()) == 0.0  # state 9 reaches back to state 8 only
    reached = gu[0].abs().amax(-1) > 0
    assert reached.tolist() == [False] * 8 + [True]
    # Cut or not, the gradient within the horizon is the same.
    full = torch.autograd.grad(engine.rollout(State(q, v), 9, controls).v[:, -1].sum(), controls)[0]
    torch.testing.assert_close(gu[0, 8], full[0, 8])


def test_functional_transforms():
    """vmap folds into the batch, jacrev is a vmap over the backward pass, and both agree with plain autograd."""
    engine = everything()
    state = random_state(engine, 7)
    mass = engine.properties.mass

    def final(v, mass):
        return engine.rollout(State(state.q, v), 3, properties={"mass": mass}).v[:, -1]

    rows = torch.stack([state.v * k for k in (0.5, 1.0, 2.0)])
    mapped = torch.func.vmap(final, in_dims=(0, None))(rows, mass)
    torch.testing.assert_close(mapped, torch.stack([final(row, mass) for row in rows]))
    expected = torch.autograd.functional.jacobian(final, (state.v, mass))
    result = torch.func.jacrev(final, argnums=(0, 1))(state.v, mass)
    for value, reference in zip(result, expected, strict=True):
        torch.testing.assert_close(value, reference)
    per_row = torch.func.vmap(torch.func.grad(lambda v: final(v, mass).sum()))(rows)
    torch.testing.assert_close(per_row[1], torch.autograd.functional.jacobian(lambda v: final(v, mass).sum(), state.v))


def test_a_map_repeats_the_worlds_of_properties_that_were_checked_before():
    """What is mapped may be any input: the worlds that the properties tell apart come again for each of its rows."""
    engine = everything()
    torch.manual_seed(9)
    state, rows = random_state(engine, 9, batch=2), 0.3 * torch.randn(3, 2, engine.nv, dtype=torch.float64)
    properties = engine.checked({"mass": engine.properties.mass * torch.tensor([[1.0], [2.0]], dtype=torch.float64)}, 2)

    def moved(row):
        return State(engine.integrate(state.q, row), row)

    calls = (
        lambda row: engine.rollout(state, 2, row[:, None].expand(2, 2, -1), properties).q,
        lambda row: engine.poses(moved(row), properties),
        lambda row: torch.stack(engine.energy(moved(row), properties)),
        lambda row: engine.acceleration(state, row, properties),
    )
    for call in calls:
        torch.testing.assert_close(torch.func.vmap(call)(rows), torch.stack([call(row) for row in rows]))


def test_derivatives_that_are_not_there_say_so():
    engine = everything()
    state = random_state(engine, 8)
    v = state.v.clone().requires_grad_()
    (gradient,) = torch.autograd.grad((engine.step(State(state.q, v)).v ** 2).sum(), v, create_graph=True)
    with pytest.raises(DerivativeError, match=r"second derivatives .* are not implemented"):
        gradient.sum().backward()

    def end(v):
        return engine.step(State(state.q, v)).v

    with pytest.raises(DerivativeError, match="second derivatives"):
        torch.autograd.functional.hessian(lambda v: end(v).square().sum(), state.v)
    with pytest.raises(DerivativeError, match=r"forward-mode derivatives .* are not implemented"):
        torch.func.jvp(end, (state.v,), (torch.ones_like(state.v),))
    with pytest.raises(DerivativeError, match="forward-mode derivatives"):
        torch.func.jacfwd(end)(state.v)
    with pytest.raises(DerivativeError, match="derivatives"):
        torch.func.hessian(lambda v: end(v).square().sum())(state.v)


def test_float32_gradients_follow_float64():
    engine = everything()
    state = random_state(engine, 9, batch=2)

    def gradient(dtype):
        values = {name: getattr(engine.properties, name).to(dtype).requires_grad_() for name in LEAVES}
        q, v = (tensor.to(dtype).requires_grad_() for tensor in (state.q, state.v))
        end = engine.rollout(State(q, v), 5, properties=values).final
        return torch.autograd.grad(end.v.sum() + end.q.sum(), (q, v, *values.values()))

    for single, double in zip(gradient(torch.float32), gradient(torch.float64), strict=True):
        # Rounding of 6e-8, five steps, sums of some tens of terms: 1e-4 of the largest number is ample.
        assert float((single - double).abs().max()) <= 1e-4 * max(1.0, float(double.abs().max()))


def test_properties_are_a_pytree_and_keep_their_shapes():
    engine = everything()
    flat, spec = torch.utils._pytree.tree_flatten(engine.properties)
    assert len(flat) == len(TreeProperties.leaves()) == len(dataclasses.fields(engine.properties))
    assert torch.utils._pytree.tree_unflatten(flat, spec).mass is engine.properties.mass


def test_a_spring_pulls_from_any_turn():
    """A ball joint turned by nearly π and by nearly nothing: the logarithm's two delicate places."""
    bodies = [Body("ball", None, [Joint("ball", stiffness=2.0)], mass=1.0, inertia=(0.1, 0.2, 0.3))]
    engine = tree(bodies, gravity=(0.0, 0.0, 0.0))
    for angle in (1e-9, 1e-4, 1e-3, 2e-3, 1.0, 3.14):
        axis = torch.tensor([0.36, 0.48, 0.8], dtype=torch.float64)
        half = torch.tensor([angle / 2], dtype=torch.float64)
        turn = torch.cat([half.cos(), half.sin() * axis])
        q = turn[None].requires_grad_()
        v = torch.zeros(1, 3, dtype=torch.float64)
        torque = engine.inverse_dynamics(State(q, v), v)
        torch.testing.assert_close(torque, 2.0 * angle * axis[None], rtol=1e-9, atol=1e-15)
        assert_gradients(lambda q, v=v: engine.inverse_dynamics(State(q, v), v), (q,), **CHECK)


def test_vectorized_jacobian_of_torch_refuses():
    """The page on torch says so, and names `jacrev`, whose rows are those of torch's loop."""
    engine = everything()
    start = random_state(engine, 4)

    def end(v):
        return engine.rollout(State(start.q, v), 3).final.v

    rows = torch.func.jacrev(end)(start.v)
    torch.testing.assert_close(rows, torch.autograd.functional.jacobian(end, start.v), rtol=1e-12, atol=1e-12)
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::detach"):
        torch.autograd.functional.jacobian(end, start.v, vectorize=True)
