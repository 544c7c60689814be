"""A pendulum on a cart that is swung up from camera frames: scene, renderer, task, network and evaluation."""

from physvision.control.pixels.network import FramePolicy
from physvision.control.pixels.policy_file import build_policy, load_policy, save_policy
from physvision.control.pixels.renderer import CartPoleRenderer, SceneVariation
from physvision.control.pixels.task import (
    CartPoleTask,
    PixelCartPoleTask,
    StartDistribution,
    StateCartPoleTask,
    is_upright,
    upright_angle,
)
from physvision.control.pixels.trials import TrialResults, run_trials, task_for_policy

__all__ = [
    "CartPoleRenderer",
    "CartPoleTask",
    "FramePolicy",
    "PixelCartPoleTask",
    "SceneVariation",
    "StartDistribution",
    "StateCartPoleTask",
    "TrialResults",
    "build_policy",
    "is_upright",
    "load_policy",
    "run_trials",
    "save_policy",
    "task_for_policy",
    "upright_angle",
]
