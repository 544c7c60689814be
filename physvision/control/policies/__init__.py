"""Policies in the loop: networks that act once a control step, with gradients through them and the engine."""

from physvision.control.policies.networks import GruPolicy, MlpPolicy, Policy
from physvision.control.policies.rollouts import GradientMonitor, PolicyRollout, rollout_open_loop, rollout_policy
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
