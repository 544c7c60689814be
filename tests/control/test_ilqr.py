"""iLQR against Riccati's recursion, against brute force at bounds, and on swing-ups that have no closed form."""

import math

import numpy as np
import pytest
import torch

from physvision import State
from physvision.control import Bounds, Cost, Goal, IlqrSettings, ilqr
from physvision.core import InputError, Placed, Sphere
from physvision.physics import articulated

DT = 0.05


def springs(masses: int):
    """Masses in a row on a rail, between springs: their motion is linear."""
    bodies = [
        articulated.Body(
            f"mass {k}",
            None,
            [articulated.Joint("prismatic", axis=(1, 0, 0), stiffness=3.0 + k, damping=0.2)],
            mass=1.0 + k,
            inertia=(1.0,) * 3,
        )
        for k in range(masses)
    ]
    return articulated.tree(bodies, dt=DT, gravity=(0, 0, 0))


def quadratic(n: int, seed: int):
    """A random quadratic cost with cross terms, its residuals' matrices, and that of the end."""
    generator = torch.Generator().manual_seed(seed)
    W = torch.randn(2 * n, 3 * n, generator=generator, dtype=torch.float64)
    W = torch.cat([W, torch.cat([torch.zeros(n, 2 * n), 0.3 * torch.eye(n)], 1).double()])
    F = torch.randn(2 * n, 2 * n, generator=generator, dtype=torch.float64)
    offset = torch.randn(3 * n, generator=generator, dtype=torch.float64)
    cost = Cost(
        lambda state, u, step: torch.cat([state.q, state.v, u], 1) @ W.T - offset,
        lambda state: torch.cat([state.q, state.v], 1) @ F.T,
    )
    return cost, W.numpy(), F.numpy(), offset.numpy()


def riccati(A, B, W, F, offset, x, steps):
    """Controls and states of least cost, by the recursion for affine-quadratic values in NumPy."""
    n = len(A)
    P, p = F.T @ F, np.zeros(n)
    policies = []
    for _ in range(steps):
        J = np.hstack([A, B])
        H, g = W.T @ W + J.T @ P @ J, -W.T @ offset + J.T @ p
        K, k = -np.linalg.solve(H[n:, n:], H[n:, :n]), -np.linalg.solve(H[n:, n:], g[n:])
        policies.append((k, K))
        P, p = H[:n, :n] + H[:n, n:] @ K, g[:n] + H[:n, n:] @ k
    controls = []
    for k, K in reversed(policies):
        controls.append(k + K @ x)
        x = A @ x + B @ controls[-1]
    return np.array(controls), x


@pytest.mark.parametrize("masses", [1, 3])
def test_it_is_riccatis_solution_where_motion_is_linear(masses):
    engine, steps = springs(masses), 40
    cost, W, F, offset = quadratic(masses, 3)
    q = torch.linspace(-1, 1, masses, dtype=torch.float64)[None] + 0.3
    start = State(q, 0.5 * torch.ones_like(q))
    A, B = (matrix[0].numpy() for matrix in engine.linearize(start, torch.zeros_like(q)))
    target, end = riccati(A, B, W, F, offset, np.concatenate([start.q[0], start.v[0]]), steps)
    plan, progress = ilqr(engine, start, torch.zeros(1, steps, masses, dtype=torch.float64), cost)
    assert bool(progress.converged.all())
    np.testing.assert_allclose(plan.feedforward[0], target, rtol=1e-10, atol=1e-10)
    final = plan.trajectory.final
    np.testing.assert_allclose(np.concatenate([final.q[0], final.v[0]]), end, rtol=1e-10, atol=1e-10)


def test_settings_change_the_way_and_not_the_optimum():
    engine, steps = springs(2), 12
    cost, *_ = quadratic(2, 5)
    start = State(torch.tensor([[1.0, -1.0]]).double(), torch.zeros(1, 2).double())
    settings = IlqrSettings(
        step_sizes=(0.5,),
        sufficient_decrease=0.1,
        initial_damping=10.0,
        damping_growth=10.0,
        damping_decay=2.0,
        min_damping=1e-6,
        max_damping=1e4,
        rounding=1e-12,
    )
    initial = torch.zeros(1, steps, 2).double()
    (policy, result), (damped_policy, damped) = (
        ilqr(engine, start, initial, cost, iterations=200, tolerance=1e-15, settings=entry)
        for entry in (IlqrSettings(), settings)
    )
    assert int(damped.iterations) > int(result.iterations)
    torch.testing.assert_close(damped_policy.feedforward, policy.feedforward, rtol=1e-6, atol=1e-6)
    # Beyond its largest damping a world is given up before the first change.
    policy, given_up = ilqr(engine, start, initial, cost, settings=IlqrSettings(initial_damping=1.0, max_damping=1e-9))
    assert int(given_up.iterations) <= 1


def test_bounds_hold_and_what_they_leave_is_the_least():
    engine, steps = springs(2), 12
    cost, *_ = quadratic(2, 5)
    start = State(torch.tensor([[1.0, -1.0]]).double(), torch.zeros(1, 2).double())
    low, action_limit = torch.tensor([-1.0, -0.4]).double(), torch.tensor([0.5, 2.0]).double()
    plan, progress = ilqr(engine, start, torch.zeros(1, steps, 2).double(), cost, (low, action_limit), tolerance=1e-14)
    controls = plan.feedforward
    assert bool(((controls >= low) & (controls <= action_limit)).all())
    assert bool((controls == low).any())
    assert bool((controls == action_limit).any())
    # The conditions of the least within bounds: no slope inside, slopes that push outwards at a bound.
    free = controls.clone().requires_grad_()
    cost.value(engine.rollout(start, steps, free), free).sum().backward()
    slope = free.grad
    assert slope is not None
    size = slope.abs().max()
    assert float(slope[(controls > low) & (controls < action_limit)].abs().max()) < 1e-6 * float(size)
    assert float(slope[controls == low].min()) > -1e-6 * float(size)
    assert float(slope[controls == action_limit].max()) < 1e-6 * float(size)
    assert bool((progress.cost_history.diff(dim=0) <= 0).all())


def upright(state: State) -> torch.Tensor:
    """Sines and cosines of the links' angles from the vertical, and velocities; zero angles hang."""
    angles = state.q.cumsum(1)
    return torch.cat([angles.sin(), angles.cos(), state.v], 1)


@pytest.mark.parametrize(
    ("reach", "steps", "iterations"),
    [((8.0, 8.0), 100, 40), pytest.param((0.0, 8.0), 120, 200, marks=pytest.mark.slow)],
)
def test_two_links_swing_up(reach, steps, iterations):
    """The double pendulum by its two joints, and the acrobot by its second joint alone."""
    chain = articulated.chain([1.0, 1.0], [1.0, 1.0], dt=DT)
    target = torch.tensor([0.0, 0, -1, -1, 0, 0]).double()
    weights = torch.tensor([0.1, 0.1, 0.1, 0.1, 0.01, 0.01]).double()
    cost = Goal(upright, target, weights, 1e-3, torch.full((6,), 900.0).double())
    worlds = 3
    first = 0.5 * torch.randn(worlds, steps, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    hanging = State(torch.zeros(worlds, 2).double(), torch.zeros(worlds, 2).double())
    largest = torch.tensor(reach).double()
    plan, progress = ilqr(chain, hanging, first, cost, (-largest, largest), iterations=iterations, tolerance=1e-4)
    assert bool((progress.cost_history.diff(dim=0) <= 0).all())
    assert bool((plan.feedforward.abs() <= largest).all())
    # From random controls some searches end in a worse local least than others.
    off = (upright(plan.trajectory.final) - target).abs().amax(1)
    assert float(off[progress.cost.argmin()]) < 0.05


def test_a_goal_is_the_cost_of_its_squares():
    """Features, controls and the end as one sum, against residuals written out."""
    chain = articulated.chain([1.0, 0.6], [1.0, 2.0], dt=DT)
    target, weights = torch.tensor([0.0, 0.1, -1, -1, 0.2, 0]).double(), torch.rand(6).double()
    last = torch.rand(6).double()
    named = Goal(upright, target, weights, 0.3, last)
    written = Cost(
        lambda state, u, step: torch.cat([(upright(state) - target) * weights.sqrt(), u * 0.3**0.5], 1),
        lambda state: (upright(state) - target) * last.sqrt(),
    )
    controls = torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    path = chain.rollout(State(torch.rand(2, 2).double(), torch.rand(2, 2).double()), 4, controls)
    torch.testing.assert_close(named.value(path, controls), written.value(path, controls))
    for value, reference in zip(
        expanded(named, chain, path, controls), expanded(written, chain, path, controls), strict=True
    ):
        torch.testing.assert_close(value, reference)


def expanded(cost, engine, path, controls):
    """First derivatives of a cost and its Gauss–Newton Hessians, of each step and of the end, δu last."""
    result = cost.residuals(engine, path, controls)
    nu, J = controls.shape[2], result.running_jacobian
    J = torch.nn.functional.pad(J, (0, 2 * engine.nv + nu - J.shape[3]))
    W, K, V = result.weights, result.final_jacobian, result.final_weights
    slope, curvature = 2 * (W * result.running)[:, :, None] @ J, 2 * J.mT * W @ J
    slope[..., -nu:] += 2 * result.control_weight * controls[:, :, None]
    curvature.diagonal(dim1=2, dim2=3)[..., -nu:] += 2 * result.control_weight
    return slope, curvature, 2 * (V * result.final)[:, None] @ K, 2 * K.mT * V @ K


def test_feedback_brings_a_disturbed_motion_back():
    """The plan's gains hold an inverted double pendulum that falls without them."""
    chain = articulated.chain([1.0, 1.0], [1.0, 1.0], dt=DT)
    target = torch.tensor([0.0, 0, -1, -1, 0, 0]).double()
    cost = Goal(upright, target, torch.ones(6).double(), 1e-2)
    inverted = State(torch.tensor([[math.pi, 0.0]]).double(), torch.zeros(1, 2).double())
    zero_output = torch.zeros(1, 60, 2).double()
    plan, _ = ilqr(chain, inverted, zero_output, cost)
    off = State(inverted.q + 0.05, inverted.v)
    held, _ = chain.rollout_feedback(
        off, plan, Bounds(torch.full((2,), -50.0).double(), torch.full((2,), 50.0).double())
    )
    fallen = chain.rollout(off, 60, plan.feedforward)
    # The last steps, which little depends on, are held less.
    assert float((held.state(40).q - inverted.q).abs().max()) < 0.2 * 0.05
    assert float((fallen.final.q - inverted.q).abs().max()) > 0.5


def test_bounds_in_the_wrong_order_are_refused():
    engine = springs(1)
    with pytest.raises(InputError, match="expected the lower ones first"):
        ilqr(engine, engine.initial_state(), torch.zeros(1, 3, 1), Cost(lambda s, u, k: u), (1.0, -1.0))


@pytest.mark.extended
def test_a_plan_leads_through_a_strike():
    """A slider is pushed so that it strikes another, which glides on to where it shall be after a second.

    A strike at time t with speed w sends the other off with (1 + e) m w / (m + m′). Over the way s to it the least
    ∫ u² dt is 4 (w² t² − 3 s w t + 3 s²) / t³; of all t the best is taken. A plan may also strike twice.
    """
    way, gap, restitution, masses = 1.5, 0.2, 0.5, (1.0, 0.5)
    sliders = [
        articulated.Body(
            name,
            None,
            [articulated.Joint("prismatic", axis=(1, 0, 0))],
            mass=mass,
            shapes=[Placed(Sphere(0.1))],
            position=(x, 0, 0),
        )
        for name, mass, x in zip("ab", masses, (0.0, 0.2 + gap), strict=True)
    ]
    engine = articulated.tree(
        sliders, dt=0.01, contact=articulated.ContactSettings(restitution=restitution), gravity=(0, 0, 0)
    )
    goal = Goal(
        lambda state: state.q[:, 1:],
        torch.tensor([way]).double(),
        torch.zeros(1).double(),
        0.01,
        torch.tensor([1e5]).double(),
    )
    rest, first = State(torch.zeros(1, 2).double(), torch.zeros(1, 2).double()), torch.zeros(1, 100, 2).double()
    first[:, :, 0] = 6.0
    low, action_limit = torch.tensor([-100.0, 0.0]).double(), torch.tensor([100.0, 0.0]).double()
    plan, progress = ilqr(engine, rest, first, goal, (low, action_limit), iterations=60, tolerance=1e-8)
    times = np.linspace(0.1, 0.5, 401)
    speed = way * sum(masses) / ((1 + restitution) * masses[0] * (1 - times))
    effort = 4 * (speed**2 * times**2 - 3 * gap * speed * times + 3 * gap**2) / times**3
    assert bool((progress.cost_history.diff(dim=0) <= 0).all())
    assert float(plan.trajectory.q[0, -1, 1]) == pytest.approx(way, abs=1e-3)
    assert float(0.01 * plan.feedforward.square().sum()) < 1.1 * effort.min()
