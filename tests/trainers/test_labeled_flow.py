"""Flow from labels: it leads from each pixel of a frame to the same point of a ball or of the cloth in another one."""

import pytest
import torch
from lightning import Trainer

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


def test_training_reduces_the_error_of_objects(data, tmp_path):
    torch.manual_seed(0)
    source = LabeledFlowData(data, batch_size=4, labels=LabelSettings())
    training = FlowTraining(PyramidFlow(), learning_rate=3e-3, shapes=1.0, object_weight=1.0)
    trainer = Trainer(
        max_steps=40, logger=False, enable_checkpointing=False, enable_progress_bar=False, default_root_dir=tmp_path
    )
    before = trainer.validate(training, source, verbose=False)[0]["validation/error_objects"]
    trainer.fit(training, source)
    after = trainer.validate(training, source, verbose=False)[0]["validation/error_objects"]
    assert after < 0.9 * before
