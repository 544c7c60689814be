"""Kernels of elastic bodies on meshes of triangles, and, on demand, of others; all in float64.

`solid` are tetrahedra, and `cloth` are triangles in space.

Symbols: positions of the nodes x at the end of a step, x₀ at its start, X at rest. In an element, F = Σ x_k ⊗ g_k
with g_k the gradient of the shape function of corner k over X. The rows of `inverse`, the inverse matrix of its edges
at rest, are g_1 … g_D, and g_0 = −Σ g_k. Cloth has two edges only, along two axes in its plane: the last row of
`inverse` and the last column of F are zeros. Moduli come multiplied by the element's volume: P is a force times a
length.
"""

from .precision import Mat, Vec
from .rollout import backward, forward
from .structs import BodyStruct, MemoryStruct, NumbersStruct
