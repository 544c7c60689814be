"""Flow from labels: it leads from each pixel of a frame to the same point of a ball or of the cloth in another one."""

import pytest
import torch
from lightning import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader

from physvision.datasets import LabelSettings, TabletopRecipe, generate
from physvision.perception.flow import PyramidFlow, warp
from physvision.trainers import FlowTraining, LabeledFlowData


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    recipe = TabletopRecipe(
        trials=10, frames=12, speed=(1.0, 2.0), noise=(0.0, 0.0), quality=(100, 100), flicker=0.0, shake=1.0
    )
    return str(generate(recipe, tmp_path_factory.mktemp("tabletop") / "data", workers=1, progress=False))


def test_warped_by_the_flow_a_frame_shows_the_other_one(data):
    source = LabeledFlowData(data, batch_size=8, labels=LabelSettings())
    source.setup("validate")
    pair = source.flow_sample(next(iter(source.val_dataloader())))
    balls = pair.shapes.sum(1, True).clamp_max(1.0)
    # Away from the border, and from outlines, where one of the frames shows another ball or hidden cloth.
    inner = torch.zeros_like(balls)
    inner[..., 8:-8, 8:-8] = 1.0
    inside = inner * (torch.nn.functional.avg_pool2d(balls, 3, 1, 1) > 0.99)
    cloth = inner * (torch.nn.functional.max_pool2d(balls, 11, 1, 5) < 0.01)
    moved, unmoved = ((image - pair.first).abs() for image in (warp(pair.second, pair.flow), pair.second))
    for region in (inside, cloth):
        assert region.sum() > 50
        assert float((moved * region).sum()) < 0.6 * float((unmoved * region).sum())


def test_training_on_one_batch_reduces_its_error_of_objects(data, tmp_path):
    torch.manual_seed(0)
    source = LabeledFlowData(data, batch_size=4, labels=LabelSettings())
    source.setup("validate")
    pair = source.flow_sample(next(iter(source.val_dataloader())))
    training = FlowTraining(PyramidFlow(), learning_rate=3e-3, shapes=1.0, object_weight=1.0)
    trainer = Trainer(
        max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, default_root_dir=tmp_path
    )
    batch, batches = (DataLoader([pair] * count, batch_size=None) for count in (1, 30))
    before = trainer.validate(training, batch, verbose=False)[0]["validation/error_objects"]
    trainer.fit(training, batches)
    after = trainer.validate(training, batch, verbose=False)[0]["validation/error_objects"]
    assert after < 0.5 * before


def test_a_resumed_training_ends_as_one_that_was_not_interrupted(data, tmp_path):
    """Each batch has the order, the colors, the mirrors and the frames that it would have had."""

    def fitted(checkpoint=None):
        torch.manual_seed(0 if checkpoint is None else 1)
        source = LabeledFlowData(data, batch_size=4, labels=LabelSettings())
        training = FlowTraining(PyramidFlow(1, 4), object_weight=1.0)
        keep = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=1, save_top_k=-1)
        quiet = {"logger": False, "enable_progress_bar": False, "default_root_dir": tmp_path, "limit_val_batches": 0}
        Trainer(max_epochs=2, limit_train_batches=3, callbacks=[keep], **quiet).fit(
            training, source, ckpt_path=checkpoint
        )
        return training.state_dict()

    whole = fitted()
    for step in (2, 4):
        resumed = fitted(tmp_path / f"step={step}.ckpt")
        assert all(torch.equal(resumed[name], value) for name, value in whole.items()), step
