"""Policies in the loop: networks that act once a control step, with gradients through them and the engine."""

from physvision.control.policies.gradient_monitor import GradientMonitor
from physvision.control.policies.networks import GruPolicy, MlpPolicy, Policy
from physvision.control.policies.rollouts import PolicyRollout, rollout_open_loop, rollout_policy
from physvision.control.policies.task import ControlTask, FeedbackTask, OpenLoopTask

__all__ = [
    "ControlTask",
    "FeedbackTask",
    "GradientMonitor",
    "GruPolicy",
    "MlpPolicy",
    "OpenLoopTask",
    "Policy",
    "PolicyRollout",
    "rollout_open_loop",
    "rollout_policy",
]
