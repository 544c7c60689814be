"""A small pendulum autoencoder and its data."""

import torch

from physvision.core import Coordinates
from physvision.datasets import DataModule, LabelSettings, WindowShape
from physvision.models import PredictiveAutoencoder, build
from physvision.trainers import (
    ForecastSettings,
    OptimizationSettings,
    PredictionTraining,
    StateLossSettings,
    Supervision,
)

import lightning  # isort: skip

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
            "engine": {"class_path": "physvision.physics.PhysicsLayer", "init_args": layer},
            "decoder": {"class_path": "physvision.models.MlpDecoder", "init_args": common},
            "max_speed": 60.0,
        },
    }


def make_training(hidden=16, forecast=None, optimization=None, **options):
    """A module that always starts the same; `forecast` and `optimization` are options of their settings."""
    torch.manual_seed(3)
    model = build(configuration(hidden=hidden))
    assert isinstance(model, PredictiveAutoencoder)
    supervision = Supervision(Coordinates(2, (0, 1)), state_loss=StateLossSettings(velocity_weight=0.1))
    options["forecast"] = ForecastSettings(**{"eval_steps": (0, 5), **(forecast or {})})
    options["optimization"] = OptimizationSettings(**{"warmup_updates": 0, **(optimization or {})})
    return PredictionTraining(model, supervision, **options)


def make_data(folder, **options):
    """A data module of the data set in `folder`."""
    defaults = {"batch_size": 32, "shape": WindowShape(horizon=5), "memory": True}
    return DataModule(folder, **{**defaults, **options})


class Losses(lightning.Callback):
    """Keeps the loss of each epoch."""

    def __init__(self):
        self.epochs = []

    def on_train_epoch_end(self, trainer, pl_module):
        self.epochs.append(float(trainer.callback_metrics["train/loss"]))


def losses_of_epochs(folder, data, samples, processes):
    """Eight epochs in which all `samples` are one batch, shared by the processes."""
    torch.manual_seed(3)
    module = PredictionTraining(
        build(configuration()),
        Supervision(Coordinates(2, (0, 1))),
        forecast=ForecastSettings(eval_steps=(0, 5)),
        optimization=OptimizationSettings(warmup_updates=0),
    )
    losses = Losses()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=processes,
        strategy="ddp" if processes > 1 else "auto",
        max_epochs=8,
        callbacks=[losses],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        limit_val_batches=0,
        default_root_dir=folder,
    )
    # Four trials with labels and six without, so that two processes have equally many of both.
    trainer.fit(
        module,
        DataModule(data, batch_size=samples // processes, shape=WindowShape(horizon=5), labels=LabelSettings(0.4)),
    )
    return losses.epochs
