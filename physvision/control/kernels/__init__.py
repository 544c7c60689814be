"""Warp kernels of control: the backward pass of iLQR."""

from .riccati import backward, four, layout
