"""Friction as a pyramid: single impulses against every choice of modes, and motions in closed form."""

from itertools import product

import numpy as np
import pytest
import torch
from physics.articulated.impulses import check_laws, on_pyramid, problems_of, solved
from physics.articulated.slopes import compare
from physics.articulated.trees import contact_tree
from scipy.optimize import linprog

from physvision import State
from physvision.core import Box, InputError, Placed, Plane, Sphere
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

pytestmark = pytest.mark.extended
DOUBLE = torch.float64
# What a contact may do: open, or along each tangent stick (0) or rub (1, −1).
CHOICES = [None, *product((0, 1, -1), repeat=2)]


def laws(problem, modes):
    """Equations E λ = e and inequalities G λ ≤ g of one choice of modes, as velocities."""
    matrix, bias, friction = problem
    equal, less = [], []
    for k, mode in enumerate(modes):
        n, weight, single = 3 * k, matrix[3 * k, 3 * k], np.eye(len(bias))
        rows = matrix[n : n + 3], bias[n : n + 3]
        if mode is None:
            equal += [(weight * single[n + j], 0.0) for j in range(3)]
            less.append((-rows[0][0], rows[1][0]))
            continue
        equal.append((rows[0][0], -rows[1][0]))
        less.append((-weight * single[n], 0.0))
        for j, side in zip((1, 2), mode, strict=True):
            bound = friction[k] * single[n]
            if side == 0:
                equal.append((rows[0][j], -rows[1][j]))
                less += [(weight * (sign * single[n + j] - bound), 0.0) for sign in (1, -1)]
            else:
                equal.append((weight * (single[n + j] - side * bound), 0.0))
                less.append((side * rows[0][j], -side * rows[1][j]))
    return *(np.array(entry) for entry in zip(*equal, strict=True)), *(
        np.array(entry) for entry in zip(*less, strict=True)
    )


def separation(problem, impulse):
    """How far the velocities after an impulse are from those of the nearest solution, among all choices of modes."""
    matrix, bias, friction = problem
    every = [laws(problem, modes) for modes in product(CHOICES, repeat=len(friction))]
    equal, right, size = (
        np.array([entry[0] for entry in every]),
        np.array([entry[1] for entry in every]),
        np.abs(bias).max(),
    )
    after, nearest = matrix @ impulse + bias, np.inf
    result = np.linalg.pinv(equal, rcond=1e-12) @ right[..., None]
    stands = np.flatnonzero(np.abs(equal @ result - right[..., None]).max((1, 2)) < 1e-9 * size)
    for k in stands:
        reference = result[k, :, 0]
        if (every[k][2] @ reference - every[k][3]).max() < 1e-9 * size:
            nearest = min(nearest, np.abs(after - matrix @ reference - bias).max() / size)
    for k in stands:
        # Impulses that are not unique may give many velocities: the same contact twice, with friction that differs.
        if nearest > 1e-9 and np.linalg.matrix_rank(equal[k], tol=1e-10) < len(bias):
            nearest = min(nearest, nearest_of(every[k], matrix / size, (after - bias) / size))
    return nearest


def nearest_of(law, matrix, expected):
    """The least largest number of matrix · λ − wanted for impulses that obey a choice of modes."""
    equal, right, less, bound = law
    ones, none = np.ones((len(expected), 1)), np.zeros((len(bound), 1))
    above = np.block([[less, none], [matrix, -ones], [-matrix, -ones]])
    result = linprog(
        [*np.zeros(len(expected)), 1.0],
        above,
        np.concatenate([bound, expected, -expected]),
        np.concatenate([equal, 0 * ones], 1),
        right,
        bounds=[(None, None)] * (len(expected) + 1),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return result.fun if result.status == 0 else np.inf


@pytest.fixture(scope="module")
def sample():
    problems = problems_of(10_000, seed=3)
    return problems, *solved(problems, parts=("pyramidal",))


def test_ten_thousand_impulses_obey_their_laws(sample):
    check_laws(sample, on_pyramid)


def enumerated(sample, counts):
    """The largest distance to a solution of the first so many problems with so many contacts."""
    problems, impulses, residuals = sample
    worst = {}
    for contacts, count in counts.items():
        selected = [k for k, entry in enumerate(problems) if len(entry[2]) == contacts and residuals[k] < 1e-8][:count]
        worst[contacts] = max(separation(problems[k], impulses[k]) for k in selected)
        print(f"{contacts} contacts, {len(selected)} problems, worst {worst[contacts]:.1e}", flush=True)
    return max(worst.values())


def test_velocities_are_those_of_one_of_all_modes(sample):
    assert enumerated(sample, {1: 200, 2: 60, 3: 4}) < 1e-9


@pytest.mark.slow
def test_velocities_are_those_of_one_of_all_modes_in_many_problems(sample):
    assert enumerated(sample, {1: 10_000, 2: 500, 3: 50, 4: 2}) < 1e-9


def world(bodies, scenery=(), **options):
    down = (0, 0, -10)
    options = {"contact": "event", "friction_model": "pyramid"} | options
    return contact_tree(bodies, gravity=down, static_shapes=scenery, **options)


@pytest.mark.slow
def test_a_block_that_slides_askew_is_held_along_each_tangent():
    """Along x and y it slows down by μ g each, and stands still along the one while it still slides along the other."""
    friction, dt = 0.2, 1e-2
    block = Body("block", None, [Joint("free")], mass=0.7, inertia=(0.01,) * 3, shapes=[Placed(Box((0.4, 0.4, 0.1)))])
    engine = world([block], [Placed(Plane())], friction=friction, dt=dt)
    start = engine.initial_state(dtype=DOUBLE)
    q, v = start.q + torch.tensor([0, 0, 0.05, 0, 0, 0, 0], dtype=DOUBLE), start.v.clone()
    v[0, 0], v[0, 1] = 1.0, -0.5
    path = engine.rollout(State(q, v), 60)
    times = torch.arange(61, dtype=DOUBLE) * dt
    target = torch.stack([(1.0 - 2.0 * times).clamp(min=0), -(0.5 - 2.0 * times).clamp(min=0)], -1)
    torch.testing.assert_close(path.v[0, :, :2], target, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_gradients_of_every_input_and_property():
    """Balls that strike each other and the ground askew: tangents turn with the normal from ball to ball."""

    def ball(name, radius, mass):
        return Body(
            name, None, [Joint("free")], mass=mass, inertia=(0.4 * mass * radius**2,) * 3,
            shapes=[Placed(Sphere(radius))],
        )  # fmt: skip

    engine = world(
        [ball("one", 0.1, 0.5), ball("two", 0.15, 1.2)], [Placed(Plane())], friction=0.3, restitution=0.6, dt=5e-3
    )
    rng = torch.Generator().manual_seed(0)
    q = torch.tensor([[0.0, 0.0, 0.5, 1, 0, 0, 0, 0.05, 0.06, 0.2, 1, 0, 0, 0]], dtype=DOUBLE)
    v = torch.randn(1, 12, generator=rng, dtype=DOUBLE)
    leaves = ("mass", "inertia", "friction", "restitution", "shape_size", "gravity", "shape_pose")
    values = {"q": q, "v": v, "u": torch.randn(1, 50, 12, generator=rng, dtype=DOUBLE)}
    values |= {name: getattr(engine.properties, name).clone() for name in leaves}
    weights = torch.randn(2, 14, generator=rng, dtype=DOUBLE)

    def loss(given):
        path = engine.rollout(State(given["q"], given["v"]), 50, given["u"], {name: given[name] for name in leaves})
        return path.q[:, -1] @ weights[0] + path.v[:, -1] @ weights[1, :12]

    def direction(name, value):
        along = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        if name in ("mass", "friction", "restitution", "shape_size"):
            along = along * value
        return (along + along.mT) * 0.001 if name == "inertia" else along

    assert compare(loss, values, direction) >= 9  # of 10


def test_what_has_friction_of_its_own_is_refused():
    ball = Body("ball", None, [Joint("free")], mass=1.0, inertia=(0.01,) * 3, shapes=[Placed(Sphere(0.1))])
    with pytest.raises(InputError, match="friction_model: 'pyramid' needs contact='event'"):
        tree([ball], contact=ContactSettings("compliant", friction_model="pyramid"))
    with pytest.raises(InputError, match="friction_model: expected one of cone, pyramid, got 'round'"):
        tree([ball], contact=ContactSettings(friction_model="round"))
