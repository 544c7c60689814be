"""The ray caster's kernels, run once for each precision: see `physvision.kernels.precision`."""

from .nearest import nearest
from .prepare import Numbers, prepare
from .render import render, render_adjoint
from .scene import Contents, Gradients, Patch
