"""Policies in the loop: networks that are asked once a control period, with gradients through them and the engine."""

from physvision.control.policies.loop import Played, play, play_open_loop
from physvision.control.policies.networks import Dense, Policy, Recurrent
from physvision.control.policies.task import Episode, OpenLoop, Task
from physvision.control.policies.watching import Watch

__all__ = ["Dense", "Episode", "OpenLoop", "Played", "Policy", "Recurrent", "Task", "Watch", "play", "play_open_loop"]
