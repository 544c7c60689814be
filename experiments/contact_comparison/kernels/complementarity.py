"""Complementarity solved once in each step of fixed length, u = (A + R) λ + b with a compliance R, and its adjoint."""

import warp as wp

from physvision.physics.articulated.kernels.contact.solver import impulses_backward, solve_impulses
from physvision.physics.articulated.kernels.precision import scalar
from physvision.physics.articulated.kernels.structs import ContactMemory

from .fixed_step import kernels


@wp.struct
class Law:
    """The number of `Complementarity`."""

    dt: scalar
    compliance: scalar


@wp.func
def solve(law: Law, memory: ContactMemory, world: int, count: int):
    for c in range(count):
        block = memory.delassus[world, c, c]
        for k in range(3):
            block[k, k] += law.compliance
        memory.delassus[world, c, c] = block
    return solve_impulses(memory, world, count)


@wp.func(inline=True)
def solve_backward(law: Law, memory: ContactMemory, world: int, count: int):
    impulses_backward(memory, world, count)


rollout, rollout_backward = kernels(Law, solve, solve_backward)
