"""A small data set and a small model for it."""

import pytest
import torch
from trainers.small import SIZE, make_data, make_training

from physvision.core import State
from physvision.datasets import PendulumRecipe, generate


@pytest.fixture(scope="session")
def pendulum(tmp_path_factory):
    """Twelve trials of two links, ten to learn from: 160 samples with a horizon of five."""
    recipe = PendulumRecipe(trials=12, frames=23, lengths=(1.5, 1.5), size=SIZE, samples=1, angle=1.0)
    return str(generate(recipe, tmp_path_factory.mktemp("pendulum"), workers=1, progress=False))


@pytest.fixture
def training():
    """Makes modules of the same start."""
    return make_training


@pytest.fixture
def data(pendulum):
    """Makes data modules."""
    return lambda **options: make_data(pendulum, **options)


def swinging(batch):
    """States of a gentle swing."""
    return State(torch.rand(batch, 2) - 0.5, torch.rand(batch, 2) - 0.5)
