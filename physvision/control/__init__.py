"""Control through an engine's gradients: iLQR, model-predictive control and point-to-point plans of any engine."""

from physvision.control.adaptive import AdaptiveModel, AdaptiveMpc, TransitionLog
from physvision.control.cost import Cost, Goal, Objective
from physvision.control.ilqr import IlqrResult, IlqrSettings, ilqr
from physvision.control.mpc import Decision, Mpc
from physvision.control.point_to_point import (
    PointToPointPlan,
    PointToPointSettings,
    Target,
    minimum_effort,
    minimum_time,
)
from physvision.physics.feedback import Bounds, FeedbackPolicy

__all__ = [
    "AdaptiveModel",
    "AdaptiveMpc",
    "Bounds",
    "Cost",
    "Decision",
    "FeedbackPolicy",
    "Goal",
    "IlqrResult",
    "IlqrSettings",
    "Mpc",
    "Objective",
    "PointToPointPlan",
    "PointToPointSettings",
    "Target",
    "TransitionLog",
    "ilqr",
    "minimum_effort",
    "minimum_time",
]
