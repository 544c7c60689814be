"""Reinforcement learning with the engine's gradients: SAC, MBPO with both enhancements, SHAC, and runs that resume."""

from physvision.learning.actor import Actor as Actor
from physvision.learning.command import learn as learn
from physvision.learning.learner import Learner as Learner, evaluate as evaluate
from physvision.learning.mbpo import Mbpo as Mbpo, MbpoSettings as MbpoSettings
from physvision.learning.networks import EnsembleMlp as EnsembleMlp
from physvision.learning.off_policy import OffPolicyAgent as OffPolicyAgent, OffPolicySettings as OffPolicySettings
from physvision.learning.replay_buffer import ReplayBuffer as ReplayBuffer
from physvision.learning.sac import Sac as Sac, SacSettings as SacSettings
from physvision.learning.sample_enhancement import SampleEnhancementSettings as SampleEnhancementSettings
from physvision.learning.shac import Shac as Shac, ShacSettings as ShacSettings
from physvision.learning.training import TrainingSchedule as TrainingSchedule, train as train
from physvision.learning.world_model import WorldModel as WorldModel, WorldModelSettings as WorldModelSettings
