"""Fitting: an engine's motion to what was observed of it, and how sure one can be of what was found."""

from physvision.estimation.descent import descend
from physvision.estimation.gauss_newton import Optimum, gauss_newton
from physvision.estimation.horizons import doubling, fit_growing, grown
from physvision.estimation.motion_residual import MotionResidual, Seen, Setup
from physvision.estimation.residual import PointResidual, Residual
from physvision.estimation.unknowns import Unknown, Unknowns

__all__ = [
    "MotionResidual",
    "Optimum",
    "PointResidual",
    "Residual",
    "Seen",
    "Setup",
    "Unknown",
    "Unknowns",
    "descend",
    "doubling",
    "fit_growing",
    "gauss_newton",
    "grown",
]
