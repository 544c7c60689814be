"""A run that goes on from any of its checkpoints ends as one that was not interrupted; a full disk leaves no ruins."""

import resource

import pytest
import torch

import physvision  # noqa: F401  makes lightning importable beside a torch without CUDA

import lightning  # isort: skip
from lightning.pytorch.callbacks import ModelCheckpoint

from physvision.core import TrainingError
from physvision.core.resources import find
from physvision.perception.flow import PyramidFlow
from physvision.trainers import (
    CurriculumSettings,
    FlowData,
    FlowTraining,
    ObservationSettings,
    PendulumTraining,
    SampleSettings,
)
from physvision.trainers.commands import read_checkpoint

QUIET = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False, "logger": False}


def trainer(folder, **options):
    keep = ModelCheckpoint(dirpath=folder, filename="{step}", every_n_train_steps=1, save_top_k=-1)
    return lightning.Trainer(**{**QUIET, "default_root_dir": folder, "callbacks": [keep], **options})


def with_dropout(module):
    module.model.encoder.pixels.append(torch.nn.Dropout(0.5))
    return module


def weights(module):
    return torch.cat([value.flatten() for value in module.state_dict().values()])


@pytest.mark.parametrize(
    ("length", "steps", "workers"),
    [
        ({"max_epochs": 2}, (2, 5, 6), 0),
        ({"max_epochs": 2, "limit_train_batches": 3}, (2,), 2),
        ({"max_steps": 8}, (2, 6), 0),
    ],
)
def test_any_checkpoint_leads_to_the_same_end(tmp_path, training, data, length, steps, workers):
    """In the middle of an epoch, at its last batch and after it; dropout included."""
    whole = with_dropout(training(samples=SampleSettings(symmetries=("mirror",))))
    first = trainer(tmp_path, limit_val_batches=1, **length)
    first.fit(whole, data(workers=workers))
    for step in steps:
        resumed = with_dropout(training(samples=SampleSettings(symmetries=("mirror",))))
        torch.manual_seed(step)  # the chances of this process are not those of the first
        with torch.no_grad():
            for parameter in resumed.parameters():
                parameter.zero_()
        again = trainer(tmp_path / "again", limit_val_batches=1, **length)
        again.fit(resumed, data(workers=workers), ckpt_path=tmp_path / f"step={step}.ckpt")
        assert again.global_step == first.global_step
        assert torch.equal(weights(resumed), weights(whole)), step


def flow():
    """A training of a flow network on synthetic pairs, three updates an epoch."""
    torch.manual_seed(3)
    return FlowTraining(PyramidFlow(1, 4)), FlowData(batches=3, batch_size=2, validation_batches=1)


def pendulum(kind="frames", **curriculum):
    """A training of a policy, two updates an epoch."""
    settings = CurriculumSettings(settling_updates=4, **curriculum)
    return PendulumTraining(ObservationSettings(kind), batch=2, updates=2, curriculum=settings), None


@pytest.mark.parametrize(
    ("make", "options", "epochs", "steps"),
    [
        (flow, {}, 2, (1, 3, 4)),
        (pendulum, {"kind": "state", "initial_progress": 0.5, "updates": 4}, 1, (1,)),
        pytest.param(pendulum, {"initial_progress": 1.0, "pixel_noise": 0.1}, 1, (1,), marks=pytest.mark.extended),
        (pendulum, {"kind": "state", "initial_progress": 1.0}, 2, (2, 3)),
    ],
    ids=["flow", "widening starts", "noise", "falling rate"],
)
def test_any_checkpoint_of_flow_and_policies_leads_to_the_same_end(tmp_path, make, options, epochs, steps):
    """In the middle of an epoch, at its last update, and in the next one."""
    whole, data = make(**options)
    trainer(tmp_path, max_epochs=epochs).fit(whole, data)
    for step in steps:
        resumed, data = make(**options)
        torch.manual_seed(step)  # the chances of this process are not those of the first
        with torch.no_grad():
            for parameter in resumed.parameters():
                parameter.zero_()
        trainer(tmp_path / "again", max_epochs=epochs).fit(resumed, data, ckpt_path=tmp_path / f"step={step}.ckpt")
        expected = whole.state_dict()
        for name, value in resumed.state_dict().items():
            assert name == "spent" or torch.equal(value, expected[name]), (step, name)


def test_training_of_flow_goes_on_with_more_epochs(tmp_path):
    """The learning rate is that of the longer run."""
    rates = {}
    for name, epochs, checkpoint in (("short", 1, None), ("long", 2, None), ("resumed", 2, "short/step=3.ckpt")):
        module, data = flow()
        path = None if checkpoint is None else tmp_path / checkpoint
        trainer(tmp_path / name, max_epochs=epochs).fit(module, data, ckpt_path=path)
        states = [read_checkpoint(tmp_path / name / f"step={step}.ckpt") for step in (4, 5, 6) if epochs == 2]
        rates[name] = [state["optimizer_states"][0]["param_groups"][0]["lr"] for state in states]
    assert rates["resumed"] == rates["long"]
    assert len(set(rates["long"])) == 3


def test_a_full_disk_leaves_the_last_checkpoint_and_no_part_of_another(tmp_path, training, data):
    trainer(tmp_path, max_epochs=1).fit(training(), data())
    before = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    retained = read_checkpoint(tmp_path / "step=5.ckpt")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, old[1]))
        with pytest.raises(
            TrainingError, match=r"step=6\.ckpt: the checkpoint cannot be written .*; the previous one is"
        ):
            trainer(tmp_path, max_epochs=2).fit(training(), data(), ckpt_path=tmp_path / "step=5.ckpt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == before
    assert retained["global_step"] == 5


@pytest.mark.extended
def test_a_pendulum_goes_on_learning_where_it_was_stopped(tmp_path):
    """Weights, and how far its starts have widened; the process that goes on has other chances."""
    from physvision import cli

    config = tmp_path / "small.yaml"
    config.write_text(find("pendulum-pixels-small.yaml", "trainers").read_text().replace("out/", f"{tmp_path}/"))
    small = ["--model.updates", "1", "--model.batch", "2", "--model.curriculum", "{updates: 7, initial_progress: 0.1}"]
    retained = tmp_path / "pendulum-pixels-small" / "checkpoints" / "last.ckpt"

    def fitted(epochs, *more):
        given = ["fit-policy", "--config", str(config), "--trainer.max_epochs", epochs, *small, *more]
        assert cli.main(given) == 0
        return read_checkpoint(retained)["state_dict"]

    whole = fitted("2")
    retained.unlink()
    first = fitted("1")
    assert not torch.equal(first["policy.output.weight"], whole["policy.output.weight"])
    resumed = fitted("2", "--ckpt_path", str(retained))
    assert resumed.keys() == whole.keys()
    for name in set(whole) - {"spent"}:
        assert torch.equal(resumed[name], whole[name]), name
    assert float(resumed["progress"]) > float(first["progress"]) > 0
    # One that was stopped after its last update has its policy to save.
    policy = tmp_path / "pendulum-pixels-small" / "policy.safetensors"
    saved = policy.read_bytes()
    policy.unlink()
    fitted("2", "--ckpt_path", str(retained))
    assert policy.read_bytes() == saved
