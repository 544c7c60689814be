"""A small data set and a small model for it."""

import pytest
import torch

from physvision.core import State
from physvision.datasets import DataModule, PendulumRecipe, generate
from physvision.models import Coordinates, PredictiveAutoencoder, build
from physvision.trainers import PredictionTraining, Supervision

SIZE = 12
COORDINATES = {"size": 2, "angles": [0, 1]}
FRAME = [1, SIZE, SIZE]


def configuration(lengths=(1.0, 2.0), hidden=16):
    """Of a small pendulum autoencoder."""
    common = {"frame": FRAME, "coordinates": COORDINATES, "hidden": hidden}
    chain = {
        "class_path": "physvision.physics.articulated.chain",
        "init_args": {"lengths": [1.0, 1.0], "dt": 0.05, "integrator": "runge_kutta_4"},
    }
    layer = {
        "engine": chain,
        "learned": {"lengths": list(lengths)},
        "leaves": "physvision.physics.articulated.chain_properties",
    }
    return {
        "class_path": "physvision.models.PredictiveAutoencoder",
        "init_args": {
            "encoder": {"class_path": "physvision.models.MlpEncoder", "init_args": {**common, "dt": 0.05}},
            "engine": {"class_path": "physvision.models.PhysicsLayer", "init_args": layer},
            "decoder": {"class_path": "physvision.models.MlpDecoder", "init_args": common},
            "fastest": 60.0,
        },
    }


@pytest.fixture(scope="session")
def pendulum(tmp_path_factory):
    """Twelve trials of two links, ten to learn from: 160 samples with a horizon of five."""
    recipe = PendulumRecipe(trials=12, frames=23, lengths=(1.5, 1.5), size=SIZE, samples=1, angle=1.0)
    return str(generate(recipe, tmp_path_factory.mktemp("pendulum"), workers=1, progress=False))


@pytest.fixture
def training():
    """Makes modules of the same start."""

    def make(hidden=16, **options):
        torch.manual_seed(3)
        model = build(configuration(hidden=hidden))
        assert isinstance(model, PredictiveAutoencoder)
        module = PredictionTraining(
            model, Supervision(Coordinates(2, (0, 1)), velocity=0.1), warmup=0, measured=(0, 5), **options
        )
        module.configuration = configuration(hidden=hidden)
        return module

    return make


@pytest.fixture
def data(pendulum):
    """Makes data modules."""
    return lambda **options: DataModule(
        pendulum, **{"batch_size": 32, "horizon": 5, "frames_out": 5, "memory": True, "brightness": False, **options}
    )


def swinging(batch):
    """States of a gentle swing."""
    return State(torch.rand(batch, 2) - 0.5, torch.rand(batch, 2) - 0.5)
