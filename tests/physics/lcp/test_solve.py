import numpy as np
import pytest
import torch
from physics.lcp.lemke import lemke

from physvision.core import DtypeError, InputError
from physvision.physics import lcp

ROWS = ("joints", "normals", "tangents")


def full_rows(rows, pairs, bodies):
    """Rows over all velocities, (batch, rows, 3 bodies), the world's left out."""
    dense = rows.new_zeros(*rows.shape[:2], bodies + 1, 3)
    for r, (a, b) in enumerate(pairs):
        dense[:, r, a] += rows[:, r, 0]
        dense[:, r, b] += rows[:, r, 1]
    return dense[:, :, :bodies].flatten(2)


def dense_problem(problem):
    """Inverse masses, free velocities, and joint, normal and tangential rows over all velocities."""
    bodies = problem.velocity.shape[1]
    pairs = (problem.joint_bodies, problem.contact_bodies, problem.contact_bodies)
    rows = [full_rows(getattr(problem, name), pair, bodies) for name, pair in zip(ROWS, pairs, strict=True)]
    return problem.inverse_mass.flatten(1), problem.velocity.flatten(1), *rows


def product(matrix, vector):
    return (matrix @ vector.unsqueeze(2)).squeeze(2)


def residual(problem, solution):
    """Largest violation of the problem's definition, scaled by the sizes of the rows, velocities and multipliers."""
    weight, free, joints, normals, tangents = dense_problem(problem)
    v = solution.velocity.flatten(1)
    impulse = product(joints.mT, solution.joint) + product(normals.mT, solution.normal)
    motion = v - free - weight * (impulse + product(tangents.mT, solution.tangent))
    normal = product(normals, v) + problem.normal_offset
    slip, bound = product(tangents, v), problem.friction * solution.normal.clamp(min=0)
    friction = solution.tangent - torch.clamp(solution.tangent - slip, -bound, bound)
    errors = [motion, product(joints, v), torch.minimum(solution.normal, normal), friction]
    terms = [v, solution.joint, solution.normal, solution.tangent, normals.abs().sum(2) * v.abs().amax(1, True)]
    scale = torch.cat(terms, 1).abs().amax(1).clamp(min=1)
    return torch.cat(errors, 1).abs().amax(1) / scale


def random_problem(bodies, joints, contacts, count, generator, redundant=False, friction=True):
    """Bodies in the plane at random places; redundant rows repeat others, every third contact is smooth."""

    def draw(*shape):
        return torch.randn(count, *shape, generator=generator, dtype=torch.float64)

    def pairs(number):
        first = [i % bodies for i in range(number)]
        return [(a, (a + 1 + i // bodies) % (bodies + 1)) for i, a in enumerate(first)]

    def rows(direction, arms):
        turned = torch.stack([-arms[..., 1], arms[..., 0]], -1)
        sides = torch.stack([direction, -direction], 2)
        return torch.cat([sides, (turned * sides).sum(-1, keepdim=True)], -1)

    def unit(number):
        angle = 3 * draw(number)
        return torch.stack([angle.cos(), angle.sin()], -1)

    ends, joint_ends = pairs(contacts), pairs(joints)
    normal, arms = unit(contacts), draw(contacts, 2, 2)
    normals = rows(normal, arms)
    tangents = rows(torch.stack([-normal[..., 1], normal[..., 0]], -1), arms)
    pins = rows(unit(joints), draw(joints, 2, 2))
    if redundant:
        half = contacts // 2
        ends[half : 2 * half], joint_ends[-1] = ends[:half], joint_ends[0]
        pins[:, -1] = pins[:, 0]
        normals[:, half : 2 * half], tangents[:, half : 2 * half] = normals[:, :half], tangents[:, :half]
    coefficients = 0.5 * torch.rand(count, contacts, generator=generator, dtype=torch.float64)
    coefficients[:, ::3] = 0
    return lcp.Problem(
        1 / (0.5 + draw(bodies, 3).abs()),
        draw(bodies, 3),
        joint_ends,
        pins,
        contact_bodies=ends,
        normals=normals,
        normal_offset=-draw(contacts).abs() * 0.1,
        tangents=tangents,
        friction=coefficients if friction else torch.zeros_like(coefficients),
    )


def all_problems():
    generator = torch.Generator().manual_seed(7)
    for bodies, joints, contacts in ((1, 0, 1), (2, 1, 3), (4, 2, 6), (6, 4, 10), (16, 4, 30)):
        # Joints yield by 1e-12 of their load, which reaches thirty times the velocities.
        yield f"cone {contacts}", random_problem(bodies, joints, contacts, 75, generator), 1e-10
        yield f"smooth {contacts}", random_problem(bodies, joints, contacts, 75, generator, friction=False), 1e-10
    for bodies, joints, contacts in ((3, 2, 2), (4, 3, 6), (8, 4, 10)):
        yield f"redundant {contacts}", random_problem(bodies, joints, contacts, 75, generator, redundant=True), 1e-8


def reduced(problem, world):
    """Matrix and vector of the normals, the joints eliminated, in numpy; and the velocities they lead to."""
    weight, free, joints, normals, _ = (value[world].numpy() for value in dense_problem(problem))
    coupling = joints * weight @ joints.T
    inverse = np.linalg.pinv(coupling) if len(joints) else coupling

    def constrained(v):
        return v - weight[:, None] * joints.T @ inverse @ joints @ v

    start, response = constrained(free[:, None]), constrained(weight[:, None] * normals.T)
    vector = (normals @ start)[:, 0] + problem.normal_offset[world].numpy()
    return normals @ response, vector, lambda z: (start + response @ z[:, None])[:, 0]


@pytest.mark.parametrize(("name", "problem", "bound"), list(all_problems()), ids=lambda value: str(value)[:14])
def test_random_problems_are_solved_in_both_precisions(name, problem, bound):
    solution = lcp.solve(problem)
    assert solution.status.converged.all()
    assert residual(problem, solution).max() < bound
    tensors = {key: value.float() for key, value in vars(problem).items() if isinstance(value, torch.Tensor)}
    low = lcp.Problem(joint_bodies=problem.joint_bodies, contact_bodies=problem.contact_bodies, **tensors)
    assert residual(low, lcp.solve(low)).max() < 1e-4


def test_agrees_with_lemke():
    generator = torch.Generator().manual_seed(11)
    compared = 0
    for bodies, joints, contacts in ((1, 0, 1), (2, 1, 3), (4, 2, 6), (8, 4, 10), (20, 4, 30)):
        problem = random_problem(bodies, joints, contacts, 20, generator, friction=False)
        z = lcp.solve(problem).normal
        for world in range(20):
            expected = lemke(*reduced(problem, world)[:2])
            assert expected is not None
            np.testing.assert_allclose(z[world].numpy(), expected, atol=1e-9 * max(1.0, np.abs(expected).max()))
            compared += 1
    assert compared == 100


def test_velocities_agree_with_lemke_where_multipliers_are_not_unique():
    # With redundant rows many multipliers do, but without friction only one velocity does.
    generator = torch.Generator().manual_seed(12)
    problem = random_problem(4, 2, 6, 30, generator, redundant=True, friction=False)
    velocity = lcp.solve(problem).velocity.flatten(1)
    for world in range(30):
        matrix, vector, velocities = reduced(problem, world)
        expected = lemke(matrix, vector)
        assert expected is not None
        np.testing.assert_allclose(velocity[world].numpy(), velocities(expected), atol=1e-6)


def test_gradients_with_joints_contacts_and_friction():
    generator = torch.Generator().manual_seed(5)
    problem = random_problem(3, 2, 3, 4, generator)
    names = ("inverse_mass", "velocity", *ROWS, "normal_offset", "friction", "joint_offset")
    values = {**vars(problem), "friction": problem.friction + 0.1, "joint_offset": torch.zeros(4, 2).double()}
    inputs = [values[name].clone().requires_grad_() for name in names]

    def solve(*tensors):
        return lcp.solve(lcp.Problem(**{**values, **dict(zip(names, tensors, strict=True))})).velocity

    assert torch.autograd.gradcheck(solve, inputs)


def test_gradient_of_a_velocity_passes_through_redundant_rows():
    generator = torch.Generator().manual_seed(6)
    problem = random_problem(3, 3, 4, 2, generator, redundant=True, friction=False)

    def velocity(free):
        return lcp.solve(lcp.Problem(**{**vars(problem), "velocity": free})).velocity

    inputs = problem.velocity.clone().requires_grad_()
    assert torch.autograd.gradcheck(velocity, inputs, eps=1e-4, atol=1e-5)


def test_an_impact_by_hand():
    # Two particles on a line, masses 1 and 3, meet at 2 and 0 with restitution 1/2: v = (-1/4, 3/4).
    tensor = torch.tensor
    line = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    problem = lcp.Problem(
        tensor([[[1.0, 1.0, 1.0], [1 / 3, 1.0, 1.0]]]),
        tensor([line]) + tensor([2.0, 0.0, 0.0]) * tensor([[[1.0], [0.0]]]),
        contact_bodies=[(1, 0)],
        normals=tensor([[[[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]]]),
        normal_offset=tensor([[-1.0]]),
    )
    solution = lcp.solve(problem)
    torch.testing.assert_close(solution.velocity[:, :, 0], tensor([[-0.25, 0.75]]))
    torch.testing.assert_close(solution.normal, tensor([[2.25]]))


def test_a_world_without_a_solution_is_named_and_harms_no_other():
    # In the second world neither body yields.
    inverse = torch.tensor([1.0, 0.0, 2.0], dtype=torch.float64)[:, None, None].expand(3, 1, 3)
    velocity = torch.tensor([-1.0, 0.0, 0.0], dtype=torch.float64).expand(3, 1, 3)
    normals = torch.tensor([[[1.0, 0, 0], [-1.0, 0, 0]]], dtype=torch.float64).expand(3, 1, 2, 3)
    solution = lcp.solve(lcp.Problem(inverse, velocity, contact_bodies=[(0, 1)], normals=normals))
    assert solution.status.converged.tolist() == [True, False, True]
    assert solution.status.residual[1] > 1e-3
    torch.testing.assert_close(solution.normal[[0, 2]], torch.tensor([[1.0], [0.5]], dtype=torch.float64))


def test_vmap_folds_into_the_batch():
    problem = random_problem(3, 1, 3, 4, torch.Generator().manual_seed(8))
    velocities = torch.randn(5, 4, 3, 3, dtype=torch.float64)

    def velocity(free):
        return lcp.solve(lcp.Problem(**{**vars(problem), "velocity": free})).velocity

    mapped = torch.func.vmap(velocity)(velocities)
    looped = torch.stack([velocity(free) for free in velocities])
    assert torch.equal(mapped, looped)


def test_bad_problems_are_refused():
    ones, rows = torch.ones(1, 2, 3), torch.ones(1, 1, 2, 3)
    with pytest.raises(DtypeError, match=r"problem.normals: expected torch.float32 as problem.velocity has"):
        lcp.Problem(ones, ones, contact_bodies=[(0, 1)], normals=rows.double())
    with pytest.raises(InputError, match=r"problem\.contact_bodies: expected bodies 0 to 2, the world"):
        lcp.Problem(ones, ones, contact_bodies=[(0, 3)], normals=rows)
    with pytest.raises(InputError, match=r"problem\.normals: expected 1 rows, one for each pair of bodies, got None"):
        lcp.Problem(ones, ones, contact_bodies=[(0, 1)])
    bad = torch.full((1, 1), -0.5)
    with pytest.raises(InputError, match=r"expected μ ≥ 0, got -0\.5"):
        lcp.Problem(ones, ones, contact_bodies=[(0, 1)], normals=rows, tangents=rows, friction=bad)
    with pytest.raises(InputError, match="tangents need the friction coefficient"):
        lcp.Problem(ones, ones, contact_bodies=[(0, 1)], normals=rows, tangents=rows)
