"""Nonlinear least-squares fitting of engine motions to observations, with uncertainty estimates."""

from physvision.estimation.descent import descend as descend
from physvision.estimation.gauss_newton import Optimum as Optimum, gauss_newton as gauss_newton
from physvision.estimation.horizons import (
    fit_with_continuation as fit_with_continuation,
    geometric_horizons as geometric_horizons,
    horizon_continuation as horizon_continuation,
)
from physvision.estimation.motion_residual import (
    MotionResidual as MotionResidual,
    SampledState as SampledState,
    Setup as Setup,
)
from physvision.estimation.residual import PointResidual as PointResidual, Residual as Residual
from physvision.estimation.settings import EstimationSettings as EstimationSettings
from physvision.estimation.unknowns import Unknown as Unknown, Unknowns as Unknowns
