"""Synthetic samples: balls stand where their labels say, and teach an encoder that never saw a label."""

# pyright: reportAttributeAccessIssue=false

from dataclasses import replace

import pytest
import torch
from trainers.small import configuration

from physvision.core import Coordinates, InputError, Trajectory
from physvision.datasets import Sample
from physvision.models import (
    BallCamera,
    CameraDecoder,
    PredictiveAutoencoder,
    TableEncoder,
    TrackPropertyHead,
    VggEncoder,
    build,
    tabletop,
    tabletop_leaves,
)
from physvision.models.table_crops import CROP_CHANNELS, CROP_OUTPUTS
from physvision.trainers import PredictionTraining, Stages, Supervision
from physvision.trainers.synthetic import SyntheticSettings, synthetic

SLOTS, GIVEN = 3, 12


def autoencoder():
    torch.manual_seed(0)
    head = TrackPropertyHead(
        {"restitution": (0.8, 0.95), "sliding_deceleration": (2.0, 10.0)}, {"radius": (3.0, 5.0), "mass": (0.5, 2.0)}
    )
    network = VggEncoder(CROP_CHANNELS, CROP_OUTPUTS, 0.05, 1, 0.0)
    encoder = TableEncoder(SLOTS, (64, 64), 1 / 30, network, BallCamera(SLOTS), head)
    decoder = CameraDecoder(BallCamera(SLOTS))
    return PredictiveAutoencoder(encoder, tabletop(SLOTS), decoder, max_speed=1e3, property_leaves=tabletop_leaves)


def clips(model, batch=8):
    """Clips of an empty gray table, as seen by a camera that stands still."""
    camera = model.encoder.camera.caster.camera
    poses = camera.extrinsics.float().expand(batch, GIVEN, 4, 4)
    frames, unknown = torch.full((batch, GIVEN, 3, 64, 64), 128, dtype=torch.uint8), torch.zeros(batch)
    nothing = torch.full((batch, GIVEN, 3 * SLOTS), torch.nan)
    walls = torch.tensor([8.0, 8.0, 56.0, 56.0]).expand(batch, -1)
    labels = Trajectory(nothing, nothing, dt=1 / 30)
    return Sample(frames, labels, GIVEN, unknown > 0, unknown.long(), unknown.long(), {"walls": walls}, poses)


@pytest.mark.parametrize("settings", [SyntheticSettings(), SyntheticSettings(max_shadow=0.0)], ids=["lit", "no shadow"])
def test_balls_are_drawn_where_the_labels_have_them_and_only_shadows_elsewhere(settings):
    model = autoencoder()
    sample = synthetic(model, clips(model), settings)
    assert bool(sample.labeled.all())
    values = sample.properties
    columns, rows = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="xy")
    positions = sample.trajectory.q[:, -1].unflatten(1, (SLOTS, 3))
    change = sample.frames[:, -1] - 128 / 255
    painted, brighter = change.abs().amax(1) > 0.1, change.amax(1) > 0.1
    # The camera looks straight down from 2.5 widths: parallax is at most a fifteenth of the height of a ball's center.
    apart = (torch.stack([columns, rows], -1)[None, None] + 0.5 - positions[:, :, None, None, :2]).norm(dim=-1)
    apart = torch.where(values["present"][..., None, None] > 0.5, apart, 1e3)
    radius = values["radius"][..., None, None]
    assert not bool((brighter & (apart > radius + 2.0).all(1)).any())
    shadow = settings.shadow_distance[1] * radius if settings.max_shadow else 0.0
    assert not bool((painted & (apart > radius + shadow + 3.0).all(1)).any())
    covered = (apart < radius - 2.0) & (values["present"][..., None, None] > 0.5)
    shown = [
        float(painted[trial][covered[trial, ball]].float().mean()) for trial, ball in covered.any((2, 3)).nonzero()
    ]
    assert len(shown) == int(values["present"].sum())
    # A color may be gray by chance.
    assert sum(fraction > 0.9 for fraction in shown) >= 0.8 * len(shown)
    within = positions[values["present"] > 0.5][:, :2]
    assert bool(((within > 8.0) & (within < 56.0)).all())


def test_labels_of_the_clips_are_not_used():
    model = autoencoder()
    unlabeled = clips(model)
    known = Trajectory(torch.full_like(unlabeled.trajectory.q, 30.0), torch.zeros_like(unlabeled.trajectory.v))
    pictures = []
    for sample in (unlabeled, replace(unlabeled, trajectory=known, labeled=~unlabeled.labeled)):
        torch.manual_seed(1)
        pictures.append(synthetic(model, sample).frames)
    assert torch.equal(*pictures)


@pytest.mark.extended
def test_they_teach_the_segmentation():
    model = autoencoder()
    supervision = Supervision(Coordinates(3 * SLOTS, tuple(range(2, 3 * SLOTS, 3))))
    stages = Stages(segmentation_updates=100, encoder_updates=100, synthetic=True)
    module = PredictionTraining(model, supervision, stages=stages)
    torch.manual_seed(2)
    held_out = module.prepare(synthetic(model, clips(model)))

    def loss():
        with torch.no_grad():
            return float(module._encoder_losses(held_out)["silhouettes"])

    before, optimizer = loss(), torch.optim.Adam(model.encoder.segmentation.parameters(), 3e-3)
    module.log = lambda *_, **__: None
    for index in range(12):
        optimizer.zero_grad()
        module.training_step(clips(model), index).backward()
        optimizer.step()
    assert loss() < 0.7 * before


def test_a_model_without_a_table_is_refused():
    supervision = Supervision(Coordinates(2, (0, 1)))
    with pytest.raises(InputError, match=r"stages\.synthetic: expected a TableEncoder"):
        PredictionTraining(build(configuration()), supervision, stages=Stages(synthetic=True))
