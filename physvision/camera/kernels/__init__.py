"""The ray caster's kernels, run once for each precision: see `physvision.physics.precision`."""

import warp as wp

scalar = globals().get("scalar", wp.float64)

from .nearest import nearest  # noqa: E402
from .prepare import prepare  # noqa: E402
from .render import render, render_adjoint  # noqa: E402
from .scene import Scene  # noqa: E402

__all__ = ["Scene", "nearest", "prepare", "render", "render_adjoint"]
