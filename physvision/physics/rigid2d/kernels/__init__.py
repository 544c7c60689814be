"""Warp kernels of the rigid-body world in the plane: one thread simulates one world.

They compute in float64 whatever the caller's dtype: times of impact and active sets that are found in float32 are a
matter of luck, and the processors that run one world a thread are as fast in either.
"""

import warp as wp

scalar = wp.float64
vec2 = wp.vec2d
vec4 = wp.vec4d
