"""A pendulum on a cart that is swung up by what a camera sees of it: scene, camera, task and network."""

from physvision.control.pixels.files import load_policy, policy_of, save_policy
from physvision.control.pixels.network import FramePolicy
from physvision.control.pixels.task import FromFrames, FromState, Starts, Upright, leaning, stays_up
from physvision.control.pixels.trials import Trials, task_of, trials
from physvision.control.pixels.view import Looks, View

__all__ = [
    "FramePolicy",
    "FromFrames",
    "FromState",
    "Looks",
    "Starts",
    "Trials",
    "Upright",
    "View",
    "leaning",
    "load_policy",
    "policy_of",
    "save_policy",
    "stays_up",
    "task_of",
    "trials",
]
