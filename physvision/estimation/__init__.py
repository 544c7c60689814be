"""Nonlinear least-squares fitting of engine motions to observations, with uncertainty estimates."""

from physvision.estimation.descent import descend
from physvision.estimation.gauss_newton import Optimum, gauss_newton
from physvision.estimation.horizons import fit_with_continuation, geometric_horizons, horizon_continuation
from physvision.estimation.motion_residual import MotionResidual, SampledState, Setup
from physvision.estimation.residual import PointResidual, Residual
from physvision.estimation.settings import EstimationSettings
from physvision.estimation.unknowns import Unknown, Unknowns

__all__ = [
    "EstimationSettings",
    "MotionResidual",
    "Optimum",
    "PointResidual",
    "Residual",
    "SampledState",
    "Setup",
    "Unknown",
    "Unknowns",
    "descend",
    "fit_with_continuation",
    "gauss_newton",
    "geometric_horizons",
    "horizon_continuation",
]
