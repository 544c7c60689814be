"""Random problems of one impulse, and the solvers of the kernels alone."""

# pyright: reportInvalidTypeForm=false

from importlib import import_module
from itertools import product

import numpy as np
import torch
import warp as wp

from physvision.kernels import precision
from physvision.kernels.launching import array, fill
from physvision.physics.articulated.arrays import CONTACT_MEMORY

PACKAGE = "physvision.physics.articulated.kernels"
MAX_ITERATIONS = 4  # contacts of a problem


def by_newton(kernels):
    """The solver of the event engine."""
    return import_module(f"{kernels.__name__}.contact.solver").solve_contacts


def solved(problems, limit=MAX_ITERATIONS, solver=by_newton, parts=()):
    """Impulses and residuals that a solver finds for (A, b, friction) of up to `most` contacts each."""
    kernels = precision.load(PACKAGE, torch.float64, *parts)
    ContactMemory, solve_impulses = kernels.ContactWorkspaceStruct, solver(kernels)

    @wp.kernel(enable_backward=False, module="unique")
    def solve_all(workspace: ContactMemory, counts: wp.array(dtype=wp.int32), residuals: wp.array(dtype=wp.float64)):
        world = wp.tid()
        residuals[world] = solve_impulses(workspace, world, counts[world])

    batch = len(problems)
    counts = {"contacts": limit} | dict.fromkeys(
        (
            "evaluations",
            "links",
            "velocities",
            "positions",
            "pairs",
            "groups",
            "candidates",
            "shapes",
            "limits",
            "lengths",
            "coupled",
        ),
        1,
    )
    workspace, fixed = ContactMemory(), {}
    for name, field in CONTACT_MEMORY.items():
        fixed[name] = torch.zeros(
            batch, *field.shape(counts), dtype=torch.int32 if field.entry == "whole" else torch.float64
        )
    for k, (matrix, bias, friction) in enumerate(problems):
        n = len(friction)
        fixed["solver.delassus"][k, :n, :n] = torch.as_tensor(matrix).reshape(n, 3, n, 3).permute(0, 2, 1, 3)
        fixed["blocks.free_velocity"][k, :n] = torch.as_tensor(bias).reshape(n, 3)
        fixed["blocks.friction"][k, :n] = torch.as_tensor(friction)
        fixed["solver.island_member"][k, :n] = torch.arange(n)
        fixed["solver.island_end"][k, 0] = n
    for name, field in CONTACT_MEMORY.items():
        fill(workspace, name, fixed[name], kernels.ENTRIES[field.entry])
    sizes = torch.tensor([len(friction) for _, _, friction in problems], dtype=torch.int32)
    residuals = torch.zeros(batch, dtype=torch.float64)
    wp.launch(solve_all, dim=batch, inputs=[workspace, array(sizes), array(residuals)], device="cpu")
    impulses = [fixed["solver.impulse"][k, : int(n)].reshape(-1).numpy() for k, n in enumerate(sizes)]
    return impulses, residuals.numpy()


def random_problem(rng, slippery):
    """Contacts of a random system; often more rows than it has velocities, and the same contact twice."""
    contacts = int(rng.integers(1, MAX_ITERATIONS + 1))
    velocities = int(rng.integers(1, 13))
    jacobian = rng.normal(size=(3 * contacts, velocities))
    if contacts > 1 and rng.random() < 0.2:
        jacobian[:3] = jacobian[3:6]
    root = rng.normal(size=(velocities, velocities)) + np.eye(velocities)
    inverse = np.linalg.inv(root @ root.T + 0.1 * np.eye(velocities))
    return finished(rng, jacobian, inverse, slippery)


def box_problem(rng, slippery):
    """A box on its four lower corners: twelve rows of rank six."""
    half = rng.uniform(0.1, 0.5, 3)
    rows = []
    for x, y in product((-1, 1), repeat=2):
        arm = half * [x, y, -1]
        cross = np.array([[0, arm[2], -arm[1]], [-arm[2], 0, arm[0]], [arm[1], -arm[0], 0]])
        rows.append(np.concatenate([np.eye(3), cross], 1)[[2, 0, 1]])
    mass = rng.uniform(0.5, 2.0)
    moments = mass / 3 * (half @ half - half**2)
    return finished(rng, np.concatenate(rows), np.diag(1 / np.concatenate([[mass] * 3, moments])), slippery)


def finished(rng, jacobian, inverse, slippery):
    velocity = rng.normal(size=jacobian.shape[1])
    bias = jacobian @ velocity
    contacts = len(jacobian) // 3
    friction = np.zeros(contacts) if slippery else rng.uniform(0.0, 1.0, contacts)
    return jacobian @ inverse @ jacobian.T, bias, friction


def problems_of(count, seed=0):
    """So many problems, a quarter of them a box on four corners, a fifth without friction."""
    rng = np.random.default_rng(seed)
    makers = (random_problem, random_problem, random_problem, box_problem)
    return [makers[k % 4](rng, slippery=k % 5 == 0) for k in range(count)]


def on_cone(expected, bound):
    """The nearest friction that a cone allows."""
    length = np.linalg.norm(expected)
    return expected * min(1.0, bound / length) if length > 0 else expected


def on_pyramid(expected, bound):
    """The nearest friction that a pyramid allows."""
    return np.clip(expected, -bound, bound)


def violation(problem, impulse, nearest=on_cone):
    """How far the impulse is from what is asked, as velocities over the largest: by projection on what is allowed."""
    matrix, bias, friction = problem
    u, worst = (matrix @ impulse + bias).reshape(-1, 3), 0.0
    for k, (slip, push) in enumerate(zip(u, impulse.reshape(-1, 3), strict=True)):
        weight = np.trace(matrix[3 * k : 3 * k + 3, 3 * k : 3 * k + 3])
        normal = max(0.0, push[0] - slip[0] / weight)
        dry_friction = nearest(push[1:] - slip[1:] / weight, friction[k] * normal)
        worst = max(worst, weight * abs(push[0] - normal), weight * np.abs(push[1:] - dry_friction).max())
    return worst / np.abs(bias).max()


def check_laws(sample, nearest):
    """Each impulse of a sample obeys its laws, or its residual names it: such a step fails, and the status says so."""
    problems, impulses, residuals = sample
    result = np.array([violation(*entry, nearest) for entry in zip(problems, impulses, strict=True)])
    named = ~(residuals < 1e-8)
    print(f"named {named.sum()}, worst of the others {result[~named].max():.1e}")
    assert result[~named].max() < 1e-9
    assert named.sum() <= 1
