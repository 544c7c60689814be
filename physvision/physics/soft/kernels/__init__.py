"""Kernels of elastic bodies on meshes of triangles, and, where they are asked for, of others; all in float64.

`solid` are tetrahedra, and `cloth` are triangles in space.

Symbols: x places of the nodes at the end of a step, x₀ those at its start, X at rest. In an element, F = Σ x_k ⊗ g_k
with g_k the gradient of the shape function of corner k over X. The rows of `inverse`, the inverse matrix of its edges
at rest, are g_1 … g_D, and g_0 = −Σ g_k. Cloth has two edges only, along two axes of its own: the last row of `inverse`
and the last column of F are zeros. Moduli come multiplied by the element's volume: P is a force times a length.
"""

import warp as wp

D = 3 if globals().get("solid") or globals().get("cloth") else 2
CORNERS = 3 if globals().get("cloth") else D + 1
real = wp.float64
AXES = wp.constant(wp.float64(D))
Vec = wp.types.vector(D, wp.float64)
Mat = wp.types.matrix((D, D), wp.float64)
Reals = wp.array(dtype=wp.float64)
Nodes = wp.array(dtype=Vec)

from .rollout import backward, forward  # noqa: E402  what they are made of comes first
from .structs import BodyStruct, MemoryStruct, NumbersStruct  # noqa: E402

__all__ = ["BodyStruct", "Mat", "MemoryStruct", "NumbersStruct", "Vec", "backward", "forward"]
