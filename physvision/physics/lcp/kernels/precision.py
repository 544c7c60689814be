"""Precision of the contact solver: float64 whatever the caller's dtype, since float32 cannot decide an active set."""

import warp as wp

scalar = wp.float64
Array1d, Array2d = (wp.array(dtype=scalar, ndim=n) for n in (1, 2))
IntArray1d, IntArray2d = (wp.array(dtype=wp.int32, ndim=n) for n in (1, 2))
