"""Reinforcement learning environments: differentiable ones on our engines, Gymnasium adapters, and others' simulators.

With gymnasium installed, importing this package registers every environment, for example `physvision/Pendulum-v0`.
"""

from importlib.util import find_spec

from physvision.envs.catalog import ENVIRONMENTS as ENVIRONMENTS
from physvision.envs.environment import (
    Environment as Environment,
    StepResult as StepResult,
    require_package as require_package,
)
from physvision.envs.vector_env import Transitions as Transitions, VectorEnv as VectorEnv

if find_spec("gymnasium") is not None:
    from physvision.envs.gymnasium_env import register

    register()
