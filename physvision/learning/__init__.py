"""Reinforcement learning with the engine's gradients: SAC, MBPO with both enhancements, SHAC, and runs that resume."""

from physvision.learning.actor import Actor
from physvision.learning.command import learn
from physvision.learning.learner import Learner, evaluate
from physvision.learning.mbpo import Mbpo, MbpoSettings
from physvision.learning.networks import EnsembleMlp
from physvision.learning.off_policy import OffPolicyAgent, OffPolicySettings
from physvision.learning.replay_buffer import ReplayBuffer
from physvision.learning.sac import Sac, SacSettings
from physvision.learning.sample_enhancement import SampleEnhancementSettings
from physvision.learning.shac import Shac, ShacSettings
from physvision.learning.training import TrainingSchedule, train
from physvision.learning.world_model import WorldModel, WorldModelSettings

__all__ = [
    "Actor",
    "EnsembleMlp",
    "Learner",
    "Mbpo",
    "MbpoSettings",
    "OffPolicyAgent",
    "OffPolicySettings",
    "ReplayBuffer",
    "Sac",
    "SacSettings",
    "SampleEnhancementSettings",
    "Shac",
    "ShacSettings",
    "TrainingSchedule",
    "WorldModel",
    "WorldModelSettings",
    "evaluate",
    "learn",
    "train",
]
