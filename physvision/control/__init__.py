"""Control through an engine's gradients: iLQR, model-predictive control and point-to-point plans of any engine."""

from physvision.control.adaptive import (
    AdaptiveModel as AdaptiveModel,
    AdaptiveMpc as AdaptiveMpc,
    TransitionLog as TransitionLog,
)
from physvision.control.cost import Cost as Cost, Goal as Goal, Objective as Objective
from physvision.control.ilqr import IlqrResult as IlqrResult, IlqrSettings as IlqrSettings, ilqr as ilqr
from physvision.control.mpc import Decision as Decision, Mpc as Mpc
from physvision.control.point_to_point import (
    PointToPointPlan as PointToPointPlan,
    PointToPointSettings as PointToPointSettings,
    Target as Target,
    minimum_effort as minimum_effort,
    minimum_time as minimum_time,
)
from physvision.physics.feedback import Bounds as Bounds, FeedbackPolicy as FeedbackPolicy
