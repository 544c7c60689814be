"""Real type of the kernels of control, float64 whatever the dtype of the caller."""

import warp as wp

scalar = wp.float64
