"""Precision of the contact solver: float64 whatever the caller's dtype, since float32 cannot decide an active set."""

import warp as wp

scalar = wp.float64
