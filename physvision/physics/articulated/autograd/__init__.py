"""Differentiable computations of a tree: rollouts, dynamics and kinematics, each a launch forward and one backward."""

from physvision.physics.articulated.autograd.dynamics import (
    Acceleration as Acceleration,
    InverseDynamics as InverseDynamics,
    LinkPoses as LinkPoses,
)
from physvision.physics.articulated.autograd.rollout import (
    ContactRollout as ContactRollout,
    Rollout as Rollout,
    contact_geometry as contact_geometry,
)
