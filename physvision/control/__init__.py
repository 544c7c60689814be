"""Control through an engine's gradients: iterative linear-quadratic regulation of any engine, all worlds at once."""

from physvision.control.cost import Cost, goal
from physvision.control.feedback import Bounds, Plan, follow
from physvision.control.ilqr import Progress, ilqr

__all__ = ["Bounds", "Cost", "Plan", "Progress", "follow", "goal", "ilqr"]
