"""Precision of the planar kernels: float64 whatever the caller's dtype.

In float32, rounding decides times of impact and active sets, and CPUs, with one world per thread, are equally fast in
either precision.
"""

import warp as wp

scalar = wp.float64
vec2 = wp.vec2d
vec4 = wp.vec4d
