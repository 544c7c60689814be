"""Precision of the planar kernels: float64 whatever the caller's dtype.

In float32, rounding decides times of impact and active sets, and CPUs, with one world per thread, are equally fast in
either precision.
"""

import warp as wp

scalar = wp.float64
vec2 = wp.vec2d
vec4 = wp.vec4d
Array1d, Array2d, Array3d = (wp.array(dtype=scalar, ndim=n) for n in (1, 2, 3))
IntArray1d, IntArray2d, IntArray3d = (wp.array(dtype=wp.int32, ndim=n) for n in (1, 2, 3))
