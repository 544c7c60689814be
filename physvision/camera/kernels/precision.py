"""Precision of the ray caster's kernels, which `physvision.kernels.precision.load` sets."""

import warp as wp

scalar = globals().get("scalar", wp.float64)
