"""Kernels of advection of momentum and dye, in float64.

Fields have ghost cells, so that kernels are independent of boundaries. With nx × ny cells,

    u, velocity through the left face of cell (i, j), i from −1 to nx + 1, j from −1 to ny   (nx + 3, ny + 2)
    v, through its lower face, i from −1 to nx, j from −1 to ny + 1                          (nx + 2, ny + 3)
    c, in the cell, i and j from −3                                                          (nx + 6, ny + 6)

Kernels of momentum take both velocities as one array, (2, …, …), and as periodic: with ghost cells, their results at
the outermost faces are not used; without, they are the kernels of a box with periodic axes.
"""

from physvision.physics.fluid.kernels.dye import carry, carry_backward
from physvision.physics.fluid.kernels.momentum import convect, convect_backward, started
from physvision.physics.fluid.kernels.waves import filtered
