"""Reinforcement learning that uses the engine's gradients: SAC, MBPO with both enhancements, SHAC; runs that resume."""

from physvision.learning.command import learn
from physvision.learning.dynamics import Dynamics, DynamicsSettings
from physvision.learning.learner import Learner, evaluate
from physvision.learning.mbpo import Mbpo, MbpoSettings
from physvision.learning.neighbourhood import NeighbourSettings
from physvision.learning.networks import Actor, Layers
from physvision.learning.recorded import Recorded, RecordedSettings
from physvision.learning.replay import Replay
from physvision.learning.run import Length, run
from physvision.learning.sac import Sac, SacSettings
from physvision.learning.shac import Shac, ShacSettings

__all__ = [
    "Actor",
    "Dynamics",
    "DynamicsSettings",
    "Layers",
    "Learner",
    "Length",
    "Mbpo",
    "MbpoSettings",
    "NeighbourSettings",
    "Recorded",
    "RecordedSettings",
    "Replay",
    "Sac",
    "SacSettings",
    "Shac",
    "ShacSettings",
    "evaluate",
    "learn",
    "run",
]
