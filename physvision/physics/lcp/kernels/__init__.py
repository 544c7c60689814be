"""Warp kernels of the linear complementarity problem.

They compute in float64 whatever the caller's dtype: an active set that is found in float32 is a matter of luck.
"""

import warp as wp

scalar = wp.float64
