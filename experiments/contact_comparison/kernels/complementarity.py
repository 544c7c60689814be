"""Complementarity solved once in each step of fixed length, u = (A + R) λ + b with a compliance R, and its adjoint."""

import warp as wp

from physvision.physics.articulated.kernels.contact.solver import solve_contacts, solve_contacts_backward
from physvision.physics.articulated.kernels.precision import scalar
from physvision.physics.articulated.kernels.structs import Contact

from .fixed_step import kernels


@wp.struct
class Law:
    """Parameters of `Complementarity`, and the length of a step."""

    dt: scalar
    compliance: scalar


@wp.func
def solve(law: Law, contact: Contact, world: int, count: int):
    """Add the compliance and solve for the impulses; returns the largest residual."""
    for c in range(count):
        block = contact.solver.delassus[world, c, c]
        for k in range(3):
            block[k, k] += law.compliance
        contact.solver.delassus[world, c, c] = block
    return solve_contacts(contact, world, count)


@wp.func(inline=True)
def solve_backward(law: Law, contact: Contact, world: int, count: int):
    """Propagate the adjoint from impulse_bar to velocity_bar."""
    solve_contacts_backward(contact, world, count)


rollout, rollout_backward = kernels(Law, solve, solve_backward)
