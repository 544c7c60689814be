"""The ray caster's kernels, run once for each precision: see `physvision.kernels.precision`."""

import warp as wp

scalar = globals().get("scalar", wp.float64)

from .nearest import nearest  # noqa: E402
from .prepare import Numbers, prepare  # noqa: E402
from .render import render, render_adjoint  # noqa: E402
from .scene import Contents, Gradients, Patch  # noqa: E402

__all__ = ["Contents", "Gradients", "Numbers", "Patch", "nearest", "prepare", "render", "render_adjoint"]
