"""Warp kernels of control: the backward pass of iLQR.

They compute in float64 whatever the caller's dtype: values of states far ahead differ by many orders of magnitude.
"""

from .precision import scalar
from .riccati import backward, four, layout

__all__ = ["backward", "four", "layout", "scalar"]
