"""One impulse: ten thousand random problems, judged without a line of the solver."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from physics.articulated.impulses import check_laws, finished, on_cone, problems_of, solved, violation


def enumerated(problem):
    """Without friction: the normal velocities of every choice of closed contacts that obeys all inequalities."""
    matrix, bias, friction = problem
    normals = np.arange(len(friction)) * 3
    a, b = matrix[np.ix_(normals, normals)], bias[normals]
    results = []
    for choice in product((False, True), repeat=len(friction)):
        closed = np.flatnonzero(choice)
        push = np.zeros(len(friction))
        push[closed] = np.linalg.lstsq(a[np.ix_(closed, closed)], -b[closed], rcond=1e-12)[0]
        after = a @ push + b
        size = np.abs(b).max()
        stands = np.abs(after[closed]).max(initial=0.0) < 1e-9 * size and after.min() > -1e-9 * size
        if stands and (np.diag(a) * push).min() > -1e-9 * size:
            results.append(after)
    return results


@pytest.fixture(scope="module")
def sample():
    problems = problems_of(10_000)
    return problems, *solved(problems)


def test_ten_thousand_impulses_obey_their_laws(sample):
    check_laws(sample, on_cone)


def test_without_friction_velocities_are_those_of_one_of_all_modes(sample):
    problems, impulses, _ = sample
    separation = []
    for problem, impulse in zip(problems, impulses, strict=True):
        if not problem[2].any():
            normals = np.arange(len(problem[2])) * 3
            after = (problem[0] @ impulse + problem[1])[normals]
            # Velocities after an impulse without friction are unique, whatever the impulses are.
            nearest = min(np.abs(after - entry).max() for entry in enumerated(problem))
            separation.append(nearest / np.abs(problem[1]).max())
    print(f"of {len(separation)}: worst {max(separation):.1e}, above 1e-9: {(np.array(separation) > 1e-9).sum()}")
    assert len(separation) == 2000
    assert max(separation) < 1e-9


def test_no_impulse_adds_energy(sample):
    """Without restitution: λ · (u⁻ + u⁺) / 2 is what the velocities' energy gains."""
    problems, impulses, residuals = sample
    for (matrix, bias, _), impulse, residual in zip(problems, impulses, residuals, strict=True):
        if residual < 1e-8:
            gain = impulse @ (bias + matrix @ impulse / 2)
            assert gain <= 1e-9 * (np.abs(impulse) @ np.abs(bias))


def by_pivoting(matrix, bias):
    """Lemke's algorithm: z ≥ 0 with w = matrix z + bias ≥ 0 and z · w = 0."""
    n = len(bias)
    if bias.min() >= 0:
        return np.zeros(n)
    # Columns: w, z, the artificial unknown, the right-hand side.
    table = np.concatenate([np.eye(n), -matrix, -np.ones((n, 1)), bias[:, None]], 1)
    basis, entering, row = np.arange(n), 2 * n, int(bias.argmin())
    for _ in range(50 * n):
        table[row] /= table[row, entering]
        rest = np.arange(n) != row
        table[rest] -= np.outer(table[rest, entering], table[row])
        leaving, basis[row] = basis[row], entering
        if leaving == 2 * n:
            z = np.zeros(2 * n + 1)
            z[basis] = table[:, -1]
            return z[n : 2 * n]
        entering = leaving + n if leaving < n else leaving - n
        column = table[:, entering]
        ratios = np.where(column > 1e-12, table[:, -1] / np.where(column > 1e-12, column, 1.0), np.inf)
        row = int(ratios.argmin())
        if not np.isfinite(ratios[row]):
            return None
    return None


def in_polyhedral_cones(problem, faces):
    """Velocities after the impulse, where each cone of friction is the polyhedron in it that has so many faces."""
    matrix, bias, friction = problem
    n = len(friction)
    angles = 2 * np.pi * np.arange(faces) / faces
    # From the amounts of the normal and of each edge's direction to the three numbers of a contact.
    single = np.zeros((3, 1 + faces))
    single[0, 0] = 1.0
    single[1:, 1:] = np.cos(angles), np.sin(angles)
    edges = np.kron(np.eye(n), single)
    speeds = np.zeros((n * (1 + faces), n))
    fractions = np.zeros((n, n * (1 + faces)))
    for k in range(n):
        start = k * (1 + faces)
        speeds[start + 1 : start + 1 + faces, k] = 1.0
        fractions[k, start], fractions[k, start + 1 : start + 1 + faces] = friction[k], -1.0
    whole = np.block([[edges.T @ matrix @ edges, speeds], [fractions, np.zeros((n, n))]])
    # Opposite edges tie, and so do rows that ask for nothing; a little on each keeps the pivots from going round.
    equalities = 1e-9 * np.random.default_rng(0).uniform(1, 2, len(whole))
    result = by_pivoting(whole, np.concatenate([edges.T @ bias, np.zeros(n)]) + equalities)
    return None if result is None else matrix @ edges @ result[: len(edges.T)] + bias


def test_the_cone_is_the_limit_of_finer_polyhedra():
    """Friction along the nearest of k edges is off by an angle of up to π / k: the difference falls with k."""
    rng = np.random.default_rng(7)
    problems = []
    for k in range(120):
        matrix, bias, friction = finished(
            rng, rng.normal(size=(3 * (1 + k % 2), 9)), np.diag(rng.uniform(0.5, 2, 9)), False
        )
        # Little friction, for which velocities are unique.
        problems.append((matrix, bias, 0.2 * friction))
    impulses, residuals = solved(problems)
    assert residuals.max() < 1e-9
    separation = {}
    for faces in (16, 64):
        results = [in_polyhedral_cones(problem, faces) for problem in problems]
        assert sum(entry is None for entry in results) < 6  # where rounding misleads the pivots
        separation[faces] = np.array(
            [
                np.nan if entry is None else np.abs(p[0] @ impulse + p[1] - entry).max() / np.abs(p[1]).max()
                for p, impulse, entry in zip(problems, impulses, results, strict=True)
            ]
        )
    slides = separation[16] > 1e-9  # where all sticks or opens, the polyhedron is no different
    print({faces: (np.nanmedian(entry[slides]), np.nanmax(entry)) for faces, entry in separation.items()})
    assert slides.sum() > 40
    assert np.nanmax(separation[64]) < np.pi / 64
    assert np.nanmedian(separation[16][slides]) > 3 * np.nanmedian(separation[64][slides])


def test_a_figure_that_friction_wedges():
    """Contacts that stick but for 1e-8 of their velocities: solutions bend while compliance falls, and are lost."""
    mu, bias, *rows = (
        np.array(line.split(), dtype=float)
        for line in (Path(__file__).parent / "wedged.txt").read_text().splitlines()
        if not line.startswith("#")
    )
    lower = np.zeros((len(bias), len(bias)))
    for k, row in enumerate(rows):
        lower[k, : k + 1] = row
    matrix = lower + np.tril(lower, -1).T
    rng, problems = np.random.default_rng(0), []
    for _ in range(20):  # the same contacts in other orders
        order = rng.permutation(len(mu))
        numbers = (3 * order[:, None] + np.arange(3)).ravel()
        problems.append((matrix[np.ix_(numbers, numbers)], bias[numbers], mu[order]))
    impulses, residuals = solved(problems, len(mu))
    results = [violation(*entry) for entry in zip(problems, impulses, strict=True)]
    print(f"residuals up to {residuals.max():.1e}, violations up to {max(results):.1e}")
    assert residuals.max() < 1e-11
    assert max(results) < 1e-11
