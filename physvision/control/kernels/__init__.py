"""Warp kernels of control: the backward pass of iLQR.

They compute in float64 whatever the caller's dtype: values of states far ahead differ by many orders of magnitude.
"""

import warp as wp

scalar = wp.float64

from .riccati import backward, four, layout  # noqa: E402

__all__ = ["backward", "four", "layout", "scalar"]
