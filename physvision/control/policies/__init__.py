"""Policies in the loop: networks that are asked once a control period, with gradients through them and the engine."""

from physvision.control.policies.loop import Played, play
from physvision.control.policies.networks import Dense, Policy, Recurrent
from physvision.control.policies.servo import Servo
from physvision.control.policies.task import Task

__all__ = ["Dense", "Played", "Policy", "Recurrent", "Servo", "Task", "play"]
