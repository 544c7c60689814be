import numpy as np
import pytest
import torch
from physics.lcp.lemke import lemke

from physvision.core import DtypeError, InputError
from physvision.physics import lcp


def residual(problem, solution):
    """max |min(z, w)| over the complementary rows and |w| over the others, scaled by the largest z and |A||z| + |b|."""
    z, w, free = solution.z.double(), solution.w.double(), problem.free
    size_z = z.abs().amax(1, True).clamp(min=1)
    terms = (problem.matrix.double().abs() @ z.abs().unsqueeze(2)).squeeze(2) + problem.vector.double().abs()
    size_w = terms.amax(1, True).clamp(min=1)
    found = torch.minimum(z / size_z, w / size_w).abs()
    found[:, :free] = (w / size_w).abs()[:, :free]
    return found.amax(1)


def random_general(n, count, generator):
    """Positive definite, not symmetric."""
    rank = n + 1
    factor = torch.randn(count, n, rank, generator=generator, dtype=torch.float64)
    skew = torch.randn(count, n, n, generator=generator, dtype=torch.float64)
    matrix = factor @ factor.mT + 0.3 * (skew - skew.mT)
    return lcp.Problem(matrix, torch.randn(count, n, generator=generator, dtype=torch.float64))


def random_degenerate(n, count, generator):
    """Half the rank that it needs, and a solution with z = w = 0 in a quarter of the rows."""
    rank = max(1, n // 2)
    factor = torch.randn(count, n, rank, generator=generator, dtype=torch.float64)
    matrix = factor @ factor.mT
    active, idle = torch.rand(2, count, n, generator=generator) < 0.5
    z, w = torch.randn(2, count, n, generator=generator, dtype=torch.float64).abs()
    z, w = z * active, w * ~active * idle
    return lcp.Problem(matrix, w - (matrix @ z.unsqueeze(2)).squeeze(2))


def random_triangular(n, count, generator):
    """P-matrices, far from symmetric: not monotone, with one solution each."""
    values = torch.randn(count, n, n, generator=generator, dtype=torch.float64)
    matrix = values.triu(1) + torch.diag_embed(0.2 + values.diagonal(dim1=1, dim2=2).abs())
    return lcp.Problem(matrix, torch.randn(count, n, generator=generator, dtype=torch.float64))


def random_mechanical(bodies, joints, contacts, count, generator, redundant=False, friction=True):
    """Bodies in the plane with random rows; redundant ones repeat rows, every third contact is smooth."""

    def draw(*shape):
        return torch.randn(count, *shape, generator=generator, dtype=torch.float64)

    nv = 3 * bodies
    mass = torch.diag_embed(0.5 + draw(nv).abs())
    pins, normals, tangents = draw(joints, nv), draw(contacts, nv), draw(contacts, nv)
    if redundant:
        pins[:, -1] = pins[:, 0]
        half = contacts // 2
        normals[:, half : 2 * half], tangents[:, half : 2 * half] = normals[:, :half], tangents[:, :half]
    coefficients = draw(contacts).abs()
    coefficients[:, ::3] = 0
    sides = torch.stack([tangents, -tangents], 2).flatten(1, 2)
    return lcp.MechanicalProblem(
        mass,
        draw(nv),
        pins,
        normals,
        sides if friction else None,
        coefficients if friction else None,
        rebound=-draw(contacts).abs() * 0.1,
    )


def all_problems():
    generator = torch.Generator().manual_seed(7)
    for n in (1, 2, 3, 5, 8, 13, 21, 40):
        yield f"general {n}", random_general(n, 75, generator), 1e-12
        yield f"degenerate {n}", random_degenerate(n, 25, generator), 1e-8
        yield f"triangular {n}", random_triangular(n, 25, generator), 1e-12
    for bodies, joints, contacts in ((1, 0, 1), (2, 1, 3), (4, 2, 6), (6, 4, 10)):
        yield f"cone {contacts}", random_mechanical(bodies, joints, contacts, 50, generator).assemble(), 1e-12
        smooth = random_mechanical(bodies, joints, contacts, 25, generator, friction=False)
        yield f"smooth {contacts}", smooth.assemble(), 1e-12
    for bodies, joints, contacts in ((3, 2, 2), (4, 3, 6), (8, 4, 10)):
        redundant = random_mechanical(bodies, joints, contacts, 50, generator, redundant=True)
        yield f"redundant {contacts}", redundant.assemble(), 1e-8


def reduced(problem, world):
    """The matrix and vector of the complementary rows, the equations eliminated, in numpy."""
    matrix, vector, free = problem.matrix[world].numpy(), problem.vector[world].numpy(), problem.free
    solved = np.linalg.solve(matrix[:free, :free], np.column_stack([matrix[:free, free:], vector[:free]]))
    lower = matrix[free:, free:] - matrix[free:, :free] @ solved[:, :-1]
    return lower, vector[free:] - matrix[free:, :free] @ solved[:, -1], solved


@pytest.mark.parametrize(("name", "problem", "bound"), list(all_problems()), ids=lambda value: str(value)[:14])
def test_random_problems_are_solved_in_both_precisions(name, problem, bound):
    solution = lcp.solve(problem)
    assert solution.status.converged.all()
    assert residual(problem, solution).max() < bound
    low = lcp.Problem(problem.matrix.float(), problem.vector.float(), problem.free)
    assert residual(low, lcp.solve(low)).max() < 1e-4


def test_agrees_with_lemke():
    generator = torch.Generator().manual_seed(11)
    compared = 0
    for n in (1, 3, 8, 21, 40):
        problem = random_general(n, 20, generator)
        z = lcp.solve(problem).z
        for world in range(20):
            found = lemke(problem.matrix[world].numpy(), problem.vector[world].numpy())
            assert found is not None
            np.testing.assert_allclose(z[world].numpy(), found, atol=1e-9 * max(1.0, np.abs(found).max()))
            compared += 1
    assert compared == 100


def test_velocities_agree_with_lemke_where_multipliers_are_not_unique():
    # With redundant rows many multipliers do, but without friction only one velocity does.
    generator = torch.Generator().manual_seed(12)
    mechanical = random_mechanical(4, 2, 6, 30, generator, redundant=True, friction=False)
    problem = mechanical.assemble()
    velocity = lcp.solve(mechanical).velocity
    nv = velocity.shape[1]
    for world in range(30):
        lower, rest, solved = reduced(problem, world)
        found = lemke(lower, rest)
        assert found is not None
        np.testing.assert_allclose(velocity[world].numpy(), (-solved[:, -1] - solved[:, :-1] @ found)[:nv], atol=1e-6)


def test_gradients_of_a_general_problem():
    generator = torch.Generator().manual_seed(3)
    problem = random_general(4, 3, generator)
    inputs = problem.matrix.requires_grad_(), problem.vector.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: lcp.solve(lcp.Problem(a, b)).z, inputs)


def test_gradients_with_joints_contacts_and_friction():
    generator = torch.Generator().manual_seed(5)
    one = random_mechanical(2, 2, 3, 4, generator)
    inputs = [
        one.mass,
        one.momentum,
        one.joints,
        one.contacts,
        one.friction[:, ::2],
        one.coefficients + 0.1,
        one.rebound,
    ]
    inputs = [value.clone().requires_grad_() for value in inputs]

    def solve(mass, momentum, joints, contacts, tangents, coefficients, rebound):
        sides = torch.stack([tangents, -tangents], 2).flatten(1, 2)
        problem = lcp.MechanicalProblem(mass, momentum, joints, contacts, sides, coefficients, rebound=rebound)
        return lcp.solve(problem).velocity

    assert torch.autograd.gradcheck(solve, inputs)


def test_gradient_of_a_velocity_passes_through_redundant_rows():
    generator = torch.Generator().manual_seed(6)
    one = random_mechanical(3, 3, 4, 2, generator, redundant=True, friction=False)

    def velocity(momentum):
        return lcp.solve(lcp.MechanicalProblem(one.mass, momentum, one.joints, one.contacts)).velocity

    # The compliance that shares redundant load is 64 ε, its inverse 1e14/64: differences of 1e-4 see the ridge at 1e-7.
    inputs = one.momentum.clone().requires_grad_()
    assert torch.autograd.gradcheck(velocity, inputs, eps=1e-4, atol=1e-5)


def test_an_impact_by_hand():
    # Two particles on a line, masses 1 and 3, meet at 2 and 0 with restitution 1/2: v = (-1/4, 3/4).
    tensor = torch.tensor
    problem = lcp.MechanicalProblem(
        tensor([[[1.0, 0.0], [0.0, 3.0]]]),
        tensor([[2.0, 0.0]]),
        contacts=tensor([[[-1.0, 1.0]]]),
        rebound=tensor([[-1.0]]),
    )
    solution = lcp.solve(problem)
    torch.testing.assert_close(solution.velocity, tensor([[-0.25, 0.75]]))
    torch.testing.assert_close(solution.contact, tensor([[2.25]]))


def test_a_world_without_a_solution_is_named_and_harms_no_other():
    matrix = torch.tensor([[[1.0]], [[-1.0]], [[2.0]]], dtype=torch.float64)
    solution = lcp.solve(lcp.Problem(matrix, -torch.ones(3, 1, dtype=torch.float64)))
    assert solution.status.converged.tolist() == [True, False, True]
    assert solution.status.residual[1] > 1e-3
    torch.testing.assert_close(solution.z[[0, 2]], torch.tensor([[1.0], [0.5]], dtype=torch.float64))


def test_vmap_folds_into_the_batch():
    problem = random_general(3, 4, torch.Generator().manual_seed(8))
    vectors = torch.randn(5, 4, 3, dtype=torch.float64)
    mapped = torch.func.vmap(lambda b: lcp.solve(lcp.Problem(problem.matrix, b)).z)(vectors)
    looped = torch.stack([lcp.solve(lcp.Problem(problem.matrix, b)).z for b in vectors])
    assert torch.equal(mapped, looped)


def test_bad_problems_are_refused():
    eye, one = torch.eye(2).expand(1, 2, 2), torch.ones(1, 2)
    with pytest.raises(DtypeError, match=r"problem.contacts: expected torch.float32 as problem.momentum has"):
        lcp.MechanicalProblem(eye, one, contacts=eye[:, :1].double())
    with pytest.raises(InputError, match="expected 0 to 2, the number of unknowns, got 3"):
        lcp.Problem(eye, one, free=3)
    with pytest.raises(InputError, match=r"expected μ ≥ 0, got -0\.5"):
        lcp.MechanicalProblem(eye, one, contacts=eye[:, :1], friction=eye, coefficients=torch.full((1, 1), -0.5))
    with pytest.raises(InputError, match="friction rows need the coefficient"):
        lcp.MechanicalProblem(eye, one, contacts=eye[:, :1], friction=eye)
