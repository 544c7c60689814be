"""Policies in the loop: networks that are asked once a control period, with gradients through them and the engine."""

from physvision.control.policies.loop import Played, follow, play
from physvision.control.policies.networks import Dense, Policy, Recurrent
from physvision.control.policies.task import Episode, Plan, Task

__all__ = ["Dense", "Episode", "Plan", "Played", "Policy", "Recurrent", "Task", "follow", "play"]
