"""Control through an engine's gradients: iterative linear-quadratic regulation of any engine, all worlds at once."""

from physvision.control.adaptive import AdaptiveMpc, Model, Record
from physvision.control.arrival import Arrival, Target, least_effort, least_time
from physvision.control.cost import Cost, Goal, Objective
from physvision.control.ilqr import Progress, ilqr
from physvision.control.mpc import Decision, Mpc
from physvision.physics.feedback import Bounds, Plan

__all__ = [
    "AdaptiveMpc",
    "Arrival",
    "Bounds",
    "Cost",
    "Decision",
    "Goal",
    "Model",
    "Mpc",
    "Objective",
    "Plan",
    "Progress",
    "Record",
    "Target",
    "ilqr",
    "least_effort",
    "least_time",
]
