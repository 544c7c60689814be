"""A program as a user writes it; `test_root.py` has type checkers reveal its types."""

from typing import TYPE_CHECKING

import torch

import physvision as pv
from physvision.control import Mpc
from physvision.datasets import DataModule, PendulumRecipe, generate
from physvision.envs import ENVIRONMENTS
from physvision.learning import ShacSettings, learn
from physvision.models import load

if TYPE_CHECKING:
    from typing import reveal_type

trajectory = pv.simulate("quadruped", seconds=0.1)
reveal_type(trajectory)  # Trajectory
reveal_type(trajectory.q)  # Tensor
reveal_type(trajectory.final)  # State
reveal_type(pv.identify("clip.mp4", "pendulum"))  # Identification
reveal_type(pv.predict("clip.mp4", "pendulum"))  # Prediction
reveal_type(pv.load("pendulum"))  # PredictiveAutoencoder

engine = pv.physics.articulated.load("scene.xml", dt=0.01)
reveal_type(engine)  # Articulation
state = engine.initial_state(batch=4, dtype=torch.float64)
reveal_type(state)  # State
reveal_type(engine.rollout(state, 10).status)  # Status
reveal_type(engine.energy(state)[0])  # Tensor
world = pv.physics.rigid2d.World([pv.physics.rigid2d.Circle(1.0, (0.0, 0.0))], dt=0.01)
reveal_type(world.step(world.initial_state()))  # State

model = load("pendulum")
reveal_type(model.observe(torch.zeros(1, 3, 1, 100, 100)).state)  # State
reveal_type(generate(PendulumRecipe(trials=10), "data"))  # Path
reveal_type(next(iter(DataModule("data").train_dataloader())).frames)  # Tensor
reveal_type(ENVIRONMENTS["Pendulum"]().action_limit)  # tuple[float, ...]
reveal_type(learn(ShacSettings(), "Pendulum")[-1])  # dict[
reveal_type(Mpc.act)  # Decision
