"""Differentiable computations of a tree: rollouts, dynamics and kinematics, each a launch forward and one backward."""

from physvision.physics.articulated.autograd.contact_rollout import ContactRollout
from physvision.physics.articulated.autograd.dynamics import Acceleration, InverseDynamics, LinkPoses
from physvision.physics.articulated.autograd.rollout import Rollout

__all__ = ["Acceleration", "ContactRollout", "InverseDynamics", "LinkPoses", "Rollout"]
