"""Policies in the loop: networks that act once a control step, with gradients through them and the engine."""

from physvision.control.policies.networks import MlpPolicy as MlpPolicy, Policy as Policy
from physvision.control.policies.rollouts import (
    ControlTask as ControlTask,
    FeedbackTask as FeedbackTask,
    GradientMonitor as GradientMonitor,
    OpenLoopTask as OpenLoopTask,
    PolicyRollout as PolicyRollout,
    rollout_open_loop as rollout_open_loop,
    rollout_policy as rollout_policy,
)
