"""Floating-point type of the control kernels: float64 whatever the caller's.

Values of states far ahead differ by many orders of magnitude.
"""

import warp as wp

scalar = wp.float64
