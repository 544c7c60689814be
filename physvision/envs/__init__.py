"""Reinforcement learning environments: differentiable ones on our engines, Gymnasium adapters, and others' simulators.

With gymnasium installed, importing this package registers every environment, for example `physvision/Pendulum-v0`.
"""

from importlib.util import find_spec

from physvision.envs.catalog import ENVIRONMENTS
from physvision.envs.environment import Environment, StepResult, require_package
from physvision.envs.vector_env import Transitions, VectorEnv

__all__ = ["ENVIRONMENTS", "Environment", "StepResult", "Transitions", "VectorEnv", "require_package"]

if find_spec("gymnasium") is not None:
    from physvision.envs.gymnasium_env import register

    register()
