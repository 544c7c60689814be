"""Precision of the planar kernels: float64 whatever the caller's dtype.

Times of impact and active sets that are decided in float32 are a matter of luck, and processors that run one world a
thread are as fast in either precision.
"""

import warp as wp

scalar = wp.float64
vec2 = wp.vec2d
vec4 = wp.vec4d
