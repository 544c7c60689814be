"""A pendulum on a cart that is swung up by what a camera sees of it: scene, camera, task and network."""

from physvision.control.pixels.network import FramePolicy
from physvision.control.pixels.task import FromFrames, FromState, Starts, Upright, leaning, stays_up
from physvision.control.pixels.view import Looks, View

__all__ = ["FramePolicy", "FromFrames", "FromState", "Looks", "Starts", "Upright", "View", "leaning", "stays_up"]
