"""Physics carries the signal: the weak loss of unlabeled samples reaches each encoder through the engine."""

# pyright: reportAttributeAccessIssue=false

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from lightning import Trainer

from physvision.core import InputError, State, Trajectory
from physvision.datasets import LabelSettings, Sample
from physvision.models import Forecast, Observation, build, save
from physvision.models.segmentation import targets_of
from physvision.models.segmenting_encoder import SegmentingEncoder
from physvision.models.tabletop import park_states
from physvision.trainers import (
    PredictionTraining,
    SampleSettings,
    SegmentationSupervision,
    Stages,
    Supervision,
    engine_gradient,
)
from physvision.trainers.encoder_terms import later_terms

CONFIGURATIONS = ["billiards-1", "billiards-3", "tabletop", "swing", "pendulum-camera", "pendulum"]
TRAINERS = Path(__file__).parents[2] / "trainers"


def training_of(name):
    """The training of a shipped configuration, with all slots in use, as a trained segmentation would find them."""
    torch.manual_seed(0)
    configuration = yaml.safe_load((TRAINERS / f"{name}.yaml").read_text())
    description = configuration["model"]["model"]
    encoder = description["init_args"]["encoder"]
    if encoder["class_path"].endswith("TableEncoder"):
        arguments = encoder["init_args"]
        arguments["settings"] = {**arguments.get("settings", {}), "min_confidence": 0.0}
    supervision = build(configuration["model"]["supervision"], Supervision)
    model = build(description)
    # A few pixels of an untrained network's first mistakes are as good as a trained network's.
    for layer in (getattr(model.encoder, "network", None), getattr(model.decoder, "network", None)):
        last = getattr(layer, "output_layer", None)
        if last is not None:
            torch.nn.init.normal_(last.weight, std=1e-3)
    return PredictionTraining(model, supervision), configuration["data"]


def sample_of(module, data, steps):
    """Two clips of blinking noise, one of them with labels: no label is needed for the gradient of the other."""
    scene, given = module.model.scene, data["shape"].get("frames_in", 3)
    span = given + steps
    frames = torch.rand(2, span, scene.channels, scene.size[1], scene.size[0])
    engine = module.model.engine
    q = engine.initial_state(2).q[:, None].repeat(1, span, 1)
    properties = extrinsics = None
    if data["path"].endswith("tabletop"):
        slots = engine.nq // 3
        properties = {
            "present": torch.ones(2, slots),
            "mass": torch.ones(2, slots),
            "radius": torch.full((2, slots), 4.0),
            "restitution": torch.full((2,), 0.9),
            "wall_restitution": torch.full((2,), 0.8),
            "sliding_deceleration": torch.full((2,), 5.0),
            "walls": torch.tensor([[6.0, 6.0, 58.0, 58.0]]).repeat(2, 1),
        }
        for name, value in properties.items():
            if name != "walls":
                value[1] = torch.nan
        extrinsics = module.model.decoder.camera.caster.camera.extrinsics.float().expand(2, span, 4, 4)
        q[..., 0::3] = torch.linspace(12.0, 52.0, slots)
        q[..., 1::3] = 30.0
    if data["path"].endswith("swing"):
        properties = {name: torch.full((2, 2), value) for name, value in (("length", 0.8), ("mass", 1.0))}
        properties |= {"joint_damping": torch.full((2, 2), 0.05), "half_width": torch.full((2,), 0.14)}
        for value in properties.values():
            value[1] = torch.nan
        extrinsics = module.model.decoder.camera.caster.camera.extrinsics.float().expand(2, span, 4, 4)
        q[..., 0], q[..., 1] = 0.5, -0.8
    true = Trajectory(q, torch.zeros_like(q))
    true.q[1], true.v[1] = torch.nan, torch.nan
    number = torch.zeros(2, dtype=torch.long)
    labeled = torch.tensor([True, False])
    return Sample(frames, true, given, labeled, number, number, properties=properties, extrinsics=extrinsics)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_weak_loss_reaches_the_encoder_through_the_engine(name):
    module, data = training_of(name)
    measured = engine_gradient(module, module.prepare(sample_of(module, data, 3)), 3)
    assert all(bool(torch.isfinite(value)) for value in measured.values())
    assert float(measured["engine"]) > 0
    assert 0 < float(measured["share"]) < 1.5


@pytest.mark.parametrize("name", ["billiards-3", "tabletop", "swing", "pendulum-camera"])
def test_all_losses_of_a_shipped_configuration_are_finite_and_teach_the_encoder(name):
    module, data = training_of(name)
    terms, _ = module.losses(module.prepare(sample_of(module, data, 3)), 3)
    expected = {"frames", "encoder", "physics", "physics_encoder", "loss"}
    if isinstance(module.model.encoder, SegmentingEncoder):
        expected |= {"silhouettes", "teacher", "area"}
    if name == "swing":
        expected |= {"tracks", "properties"}
    assert expected <= set(terms)
    assert all(bool(torch.isfinite(value)) for value in terms.values())
    terms["loss"].backward()
    assert all(
        value.grad is None or bool(torch.isfinite(value.grad).all()) for value in module.model.encoder.parameters()
    )
    assert data["labels"]["fraction"] <= 0.1


def test_labels_reach_no_further_than_their_samples():
    """Without unlabeled samples nothing comes through the engine from them."""
    module, data = training_of("billiards-1")
    sample = sample_of(module, data, 3)
    labeled = sample[[0]]
    assert float(engine_gradient(module, labeled, 3)["engine"]) == 0


def test_strong_losses_alone_on_unlabeled_data_are_refused(training, data, tmp_path):
    import lightning

    module = training()
    module.supervision.frame_weight = 0.0
    trainer = lightning.Trainer(accelerator="cpu", max_steps=1, logger=False, default_root_dir=tmp_path)
    with pytest.raises(InputError, match="nothing to teach"):
        trainer.fit(module, data(labels=LabelSettings(0.5)))


def test_targets_peak_at_each_object_and_the_area_prior_has_a_floor_and_a_ceiling():
    coverage = torch.zeros(1, 2, 32, 32)
    coverage[0, 0, 8:12, 10:14] = 1.0
    target = targets_of(coverage)
    assert float(target[0, 0].sum()) == 4.0
    assert float(target[0, 1].max()) == 1.0
    loss = SegmentationSupervision(radius_range=(2.0, 4.0))
    areas = [(12.6, 0.0), (40.0, 0.0), (100.0, 0.99), (6.3, 0.5)]
    for area, expected in areas:
        instances = _instances(area)
        assert float(loss.area_loss([instances])) == pytest.approx(expected, abs=0.02)


def _instances(area):
    from physvision.models.segmentation import Instances

    blank = torch.zeros(1, 1, 1, 1)
    return Instances(torch.zeros(1, 1, 2), torch.ones(1, 1), blank, torch.full((1, 1), area))


def test_parked_labels_stay_where_the_engine_leaves_them():
    module, data = training_of("tabletop")
    sample = sample_of(module, data, 3)
    sample.properties["present"][0, 3:] = 0.0
    prepared = module.prepare(sample)
    empty = park_states(sample.trajectory, sample.properties["present"] > 0.5)
    assert torch.equal(prepared.trajectory.q[0], empty.q[0])
    assert (prepared.trajectory.q[0, :, 9] < -100).all()


@pytest.mark.parametrize("taught", ["all", "labeled"])
def test_decoder_and_physics_may_learn_from_labeled_samples_alone_while_the_encoder_learns_from_all(taught):
    module, data = training_of("pendulum-camera")
    module.samples = SampleSettings(decoder_samples=taught)
    module.supervision.encoder_weight = module.supervision.physics_weight = 0.0
    module.supervision.ramp_updates = 0
    sample = sample_of(module, data, 3)
    nobody = torch.zeros(2, dtype=torch.bool)
    terms, _ = module.losses(Sample(**{**vars(sample), "labeled": nobody}), 3)
    terms["loss"].backward()

    def taught_by(part):
        return sum(float(value.grad.abs().sum()) for value in part.parameters() if value.grad is not None) > 0

    assert taught_by(module.model.decoder) == taught_by(module.model.engine) == (taught == "all")
    assert taught_by(module.model.encoder)
    assert all(value.requires_grad for value in module.model.parameters())


def test_what_is_seen_later_teaches_the_motion_of_unlabeled_samples(monkeypatch):
    module, data = training_of("tabletop")
    sample = module.prepare(sample_of(module, data, 3))
    # The first sample has labels; that of the second is copied for its state.
    q, values = sample.trajectory.q[[0, 0], 0], {name: value[[0, 0]] for name, value in sample.properties.items()}
    v = torch.tensor([0.0, 30.0, 0.0]).repeat(2, 5).requires_grad_()
    path = module.model.simulate(State(q, v), 3, None, values)
    at = path.q[1:, -1].detach().clone()
    # The first ball is seen 1 px to the right, the second one too far away to be the same one; slots are reversed.
    at[0, 0] += 1.0
    at[0, 4] += 20.0
    at = at.unflatten(1, (-1, 3)).flip(1).flatten(1)[:, None]
    present = {"present": torch.ones(1, 5)}
    still, known = torch.zeros_like(at), torch.ones_like(at)
    observed = Observation(
        at, still, torch.ones(1, 1, 5), properties=present, position_std=known, velocity_std=known, property_std={}
    )
    encoder = module.model.encoder

    def encode(frames, context, looks):
        assert torch.equal(frames, sample.frames[1:, 3:])
        assert torch.equal(context.extrinsics, sample.extrinsics[1:, 3:])
        assert not encoder.training
        assert not looks
        return observed, None

    monkeypatch.setattr(encoder, "encode", encode)
    forecast = Forecast(
        path, (), torch.zeros(2, 0, 3, 64, 64), replace(observed, properties={"present": torch.ones(2, 5)})
    )
    loss = later_terms(module.model, forecast, sample, module.supervision, 1.0)["later"]
    loss = loss / module.supervision.later_weight
    # Four scales of 0.25 px: 2 · 4 − 1 in one of 15 coordinates of one of two samples.
    assert float(loss.detach()) == pytest.approx(7.0 / 15 / 2)
    loss.backward()
    assert encoder.training
    # To the right, and only the first ball; nothing else moves along x.
    gradient = v.grad.unflatten(1, (5, 3))
    assert float(gradient[1, 0, 0]) < 0.0
    gradient[1, 0] = 0.0
    assert float(gradient.abs().max()) == 0.0


@pytest.mark.parametrize("part", ["segmentation", "network"])
def test_the_first_updates_train_a_part_of_the_encoder_alone_and_on_labeled_samples(part):
    module, data = training_of("tabletop")
    module.stages = Stages(segmentation_updates=int(part == "segmentation"), encoder_updates=1)
    module.log = lambda *_, **__: None
    sample = sample_of(module, data, 3)
    torch.manual_seed(1)
    loss = module.training_step(sample, 0)
    changed = replace(sample, frames=torch.cat([sample.frames[:1], torch.rand_like(sample.frames[1:])]))
    torch.manual_seed(1)
    assert float(module.training_step(changed, 0).detach()) == float(loss.detach())
    loss.backward()
    assert all(value.grad is None for value in module.model.decoder.parameters())
    for name in ("segmentation", "network"):
        gradients = [value.grad for value in getattr(module.model.encoder, name).parameters()]
        learns = any(gradient is not None and float(gradient.norm()) > 0 for gradient in gradients)
        assert learns == (name == part)
    module.stages = Stages()
    module.training_step(sample, 0).backward()
    assert any(value.grad is not None for value in module.model.decoder.parameters())


def test_training_starts_from_the_weights_of_another_run(tmp_path):
    first, second = training_of("tabletop")[0], training_of("tabletop")[0]
    for value in first.parameters():
        value.data += 0.01
    second.stages = Stages(weights=str(save(tmp_path / "first.safetensors", first.model)))
    second.trainer = Trainer(logger=False, enable_checkpointing=False)
    second.setup("test")
    assert not all(map(torch.equal, second.model.parameters(), first.model.parameters()))
    second.setup("fit")
    assert all(map(torch.equal, second.model.parameters(), first.model.parameters()))
    assert all(
        map(torch.equal, second.segmentation.teacher.parameters(), second.model.encoder.segmentation.parameters())
    )
