"""Training learns, resumes as if undisturbed, stops at NaN with the sample's name, and refuses foreign checkpoints."""

import csv
import json
import math
import os
import pickle
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from trainers.small import COORDINATES, configuration, losses_of_epochs

import physvision

import lightning  # isort: skip
from lightning.pytorch.callbacks import ModelCheckpoint

from physvision import cli
from physvision.control.pixels import load_policy
from physvision.core import CheckpointError, InputError, TrainingError, resources
from physvision.datasets import LabelSettings
from physvision.models import load
from physvision.trainers import SampleSettings
from physvision.trainers.commands import read_checkpoint

QUIET = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False, "logger": False}


def trainer(folder, **options):
    keep = ModelCheckpoint(dirpath=folder, save_last=True)
    return lightning.Trainer(**{**QUIET, "default_root_dir": folder, "callbacks": [keep], **options})


def weights(module):
    return torch.cat([value.flatten() for value in module.state_dict().values()])


@pytest.mark.extended
def test_lengths_are_learned_from_frames_and_labels(tmp_path, training, data):
    module = training(optimization={"physics_learning_rate": 0.1})
    trainer(tmp_path, max_epochs=40, limit_val_batches=0, enable_checkpointing=False, callbacks=[]).fit(module, data())
    # From 1 and 2 to 1.5: labels are in single precision, and one Runge-Kutta step a frame errs far below this.
    torch.testing.assert_close(
        module.model.engine.learned_values["lengths"], torch.tensor([1.5, 1.5]), rtol=0.01, atol=0
    )


# Dies as a machine does: no exception, no clean-up. A process of its own, for threads do not survive a fork.
KILLED = """
import os, signal, sys
import physvision, lightning, torch
from lightning.pytorch.callbacks import ModelCheckpoint
from trainers.small import make_data, make_training

class Killed(lightning.Callback):
    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == 13:
            os.kill(os.getpid(), signal.SIGKILL)

torch.set_num_threads(int(sys.argv[3]))
keep = [ModelCheckpoint(dirpath=sys.argv[1], save_last=True), Killed()]
trainer = lightning.Trainer(
    accelerator="cpu", enable_progress_bar=False, enable_model_summary=False, logger=False, max_epochs=4, callbacks=keep
)
trainer.fit(make_training(forecast={"horizon_schedule": {0: 2, 2: 5}}), make_data(sys.argv[2]))
"""


def search_path() -> str:
    """Where another process finds the package and what the tests share."""
    return os.pathsep.join([str(Path(__file__).parents[1]), str(Path(physvision.__file__).parents[1])])


@pytest.mark.extended
def test_a_run_that_was_killed_goes_on_as_if_it_had_not_been(tmp_path, training, data, pendulum):
    whole = training(forecast={"horizon_schedule": {0: 2, 2: 5}})
    trainer(tmp_path / "whole", max_epochs=4).fit(whole, data())
    arguments = [str(tmp_path / "killed"), pendulum, str(torch.get_num_threads())]
    environment = {**os.environ, "PYTHONPATH": search_path()}
    child = subprocess.run([sys.executable, "-c", KILLED, *arguments], env=environment, cwd=tmp_path)
    assert child.returncode == -signal.SIGKILL
    resumed = training(forecast={"horizon_schedule": {0: 2, 2: 5}})
    with torch.no_grad():
        for parameter in resumed.parameters():
            parameter.zero_()
    again = trainer(tmp_path / "killed", max_epochs=4)
    again.fit(resumed, data(), ckpt_path=tmp_path / "killed" / "last.ckpt")
    assert again.global_step == 4 * 5
    assert torch.equal(weights(resumed), weights(whole))


def test_a_value_that_is_not_a_number_stops_with_the_sample_and_keeps_the_last_checkpoint(tmp_path, training, data):
    module, source = training(), data()
    good = trainer(tmp_path, max_epochs=1)
    good.fit(module, source)
    retained = weights(module).clone()

    class Spoil(lightning.Callback):
        def on_train_batch_start(self, trainer, module, batch, batch_idx):
            if trainer.global_step == 7:
                batch.trajectory.v[3, 5, 1] = math.nan
                spoilt.append((int(batch.trial[3]), int(batch.start[3])))

    spoilt = []
    keep = [ModelCheckpoint(dirpath=tmp_path, save_last=True), Spoil()]
    with pytest.raises(TrainingError, match=r"trajectory\.v of the sample of trial") as stopped:
        trainer(tmp_path, max_epochs=3, callbacks=keep).fit(training(), data(), ckpt_path=tmp_path / "last.ckpt")
    assert "trial {} that starts at frame {} holds".format(*spoilt[0]) in str(stopped.value)
    states = read_checkpoint(tmp_path / "last.ckpt")["state_dict"]
    assert torch.equal(torch.cat([value.flatten() for value in states.values()]), retained)


def test_a_label_that_is_missing_is_no_fault_and_a_network_that_burst_is_named(tmp_path, training, data):
    trainer(tmp_path, max_epochs=1, limit_train_batches=2).fit(training(), data(labels=LabelSettings(0.1)))
    module = training()
    with torch.no_grad():
        module.model.decoder.network[0].weight[0, 0] = math.nan
    with pytest.raises(TrainingError, match="the loss is not finite, first in the sample of trial"):
        trainer(tmp_path, max_epochs=1).fit(module, data())


def test_horizons_grow_with_the_epochs(training, data):
    module, source = training(forecast={"horizon_schedule": {0: 1, 2: 4}}), data()
    source.setup("fit")
    batch = next(iter(source.train_dataloader()))
    assert module.steps_of(batch) == 1
    assert training().steps_of(batch) == 5
    with pytest.raises(InputError, match="from epoch 0 on"):
        training(forecast={"horizon_schedule": {1: 3}})
    with pytest.raises(InputError, match="9 steps are more than the horizon of 5 frames"):
        training(forecast={"horizon_schedule": {0: 9}}).steps_of(batch)


def test_the_encoder_learns_from_every_window_of_a_labeled_sample(training, data):
    source = data(batch_size=4)
    source.setup("fit")
    batch = next(iter(source.train_dataloader()))
    for encoded, count in (("first", 1), ("all", 6)):
        module = training(samples=SampleSettings(encoder_windows=encoded))
        result = module._predict(batch, 2)[0].states
        assert result.q.shape == (4, count, 2)
        state = module.model.observe(batch.frames[:, count - 1 : count + 2] / 255.0).state
        torch.testing.assert_close(result.q[:, -1], state.q)
        torch.testing.assert_close(result.v[:, -1], state.v, rtol=1e-4, atol=1e-5)


def test_gradients_are_clipped_group_by_group(training):
    module = training(optimization={"max_grad_norm": 2.0, "max_physics_grad_norm": 0.5})
    groups, limits = module.parameter_groups(), {"encoder": 2.0, "networks": 2.0, "physics": 0.5}
    assert sum(map(len, groups.values())) == len(list(module.model.parameters()))
    for parameter in module.model.parameters():
        parameter.grad = torch.full_like(parameter, 3.0)
    module.log, optimizer = lambda *_: None, torch.optim.SGD(module.parameters())
    module.configure_gradient_clipping(optimizer)
    for name, limit in limits.items():
        norm = torch.nn.utils.get_total_norm([p.grad for p in groups[name]])
        assert float(norm) == pytest.approx(limit, rel=1e-4), name
    groups["physics"][0].grad.fill_(math.inf)
    module.configure_gradient_clipping(optimizer)
    assert groups["physics"][0].grad is None
    assert groups["networks"][0].grad is not None


def test_mixed_precision_leaves_physical_parameters_and_states_in_single(tmp_path, training, data):
    module, observed = training(), []
    simulate = module.model.engine.engine._simulate
    module.model.engine.engine._simulate = lambda state, *rest: (
        observed.append(state.q.dtype),
        simulate(state, *rest),
    )[1]
    trainer(tmp_path, max_epochs=1, limit_train_batches=2, precision="bf16-mixed").fit(module, data())
    assert set(observed) == {torch.float32}
    assert all(parameter.dtype == torch.float32 for parameter in module.parameters())


def test_a_checkpoint_of_another_architecture_is_refused_by_its_first_difference(tmp_path, training, data):
    trainer(tmp_path, max_epochs=1, limit_train_batches=1).fit(training(), data())
    with pytest.raises(CheckpointError, match=r"pixels.0.weight has shape \(16, 144\), the model's \(24, 144\)"):
        trainer(tmp_path, max_epochs=2).fit(training(hidden=24), data(), ckpt_path=tmp_path / "last.ckpt")


class Bomb:
    """Whoever unpickles this makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_checkpoints_that_are_cut_short_or_hostile_are_refused(tmp_path, training, data):
    trainer(tmp_path, max_epochs=1, limit_train_batches=1).fit(training(), data())
    path = tmp_path / "last.ckpt"
    whole = path.read_bytes()
    for length in (0, 10, 5000, len(whole) - 100):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="damaged or"):
            read_checkpoint(path)
    torch.save({"state_dict": {"weight": Bomb(tmp_path / "harm")}}, path)
    with pytest.raises(CheckpointError, match="could run foreign code"):
        read_checkpoint(path)
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "harm")))
    with pytest.raises(CheckpointError, match="could run foreign code"):
        read_checkpoint(path)
    assert not (tmp_path / "harm").exists()


TWO = """
import json, os, sys
import torch
from trainers.small import losses_of_epochs
torch.set_num_threads(1)

if __name__ == "__main__":
    losses = losses_of_epochs(sys.argv[1], sys.argv[2], int(sys.argv[3]), processes=2)
    if os.environ.get("RANK", "0") == "0":
        print("CURVE", json.dumps(losses))
"""


@pytest.mark.extended
def test_two_processes_learn_what_one_does_from_the_same_batch(tmp_path, pendulum):
    """All samples in one batch, so that both see the same whatever their order."""
    script = tmp_path / "two.py"
    script.write_text(TWO)
    samples = 10 * (23 - 8 + 1)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(script)]
    arguments = [str(tmp_path), pendulum, str(samples)]
    environment = {**os.environ, "PYTHONPATH": search_path(), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*torchrun, *arguments], capture_output=True, text=True, timeout=200, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("CURVE")]
    assert lines, done.stderr[-3000:]
    pair = torch.tensor(json.loads(lines[0].removeprefix("CURVE ")))
    alone = torch.tensor(losses_of_epochs(str(tmp_path), pendulum, samples, processes=1))
    # Sums in another order differ by single precision's rounding, which eight updates multiply by some ten.
    torch.testing.assert_close(pair, alone, rtol=1e-4, atol=1e-6)
    assert alone[-1] < alone[0]


CONFIGURATIONS = sorted(path.name for path in resources.folder("trainers").glob("*.yaml"))


@pytest.fixture(scope="module")
def data_folders(tmp_path_factory):
    """What the configurations learn from, small."""
    folder = tmp_path_factory.mktemp("data") / "pendulum"
    arguments = ["--trials", "10", "--frames", "14", "--samples", "1", "--workers", "1"]
    assert cli.main(["generate", "pendulum", "--out", str(folder), *arguments]) == 0
    return {"pendulum": folder}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("pendulum.yaml", "pendulum_mlp.yaml") else pytest.mark.extended)
        for name in CONFIGURATIONS
        if name.startswith("pendulum") and "pixels" not in name
    ],
)
def test_every_configuration_trains(tmp_path, monkeypatch, data_folders, name):
    monkeypatch.chdir(tmp_path)
    arguments = ["--config", f"trainers/{name}", "--data.path", str(data_folders["pendulum"]), "--data.batch_size", "4"]
    brief = ["--trainer.limit_train_batches", "1", "--trainer.limit_val_batches", "1", "--trainer.max_epochs", "1"]
    fixed = ["--trainer.accelerator", "cpu"]
    assert cli.main(["fit", *arguments, *brief, *fixed]) == 0
    folder = tmp_path / "out" / name.removesuffix(".yaml")
    assert (folder / "prediction.png").stat().st_size > 10_000
    checkpoint = folder / "checkpoints" / "last.ckpt"
    assert cli.main(["export", str(checkpoint), "--out", "mine.safetensors"]) == 0
    assert load("mine.safetensors").engine.nq == 3
    assert (tmp_path / "mine.safetensors").stat().st_size < 12e6


@pytest.mark.extended
@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if "pixels" in name])
def test_every_configuration_of_a_policy_trains(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    brief = ["--trainer.max_epochs", "1", "--model.updates", "1", "--model.batch", "1", "--trainer.accelerator", "cpu"]
    assert cli.main(["fit-policy", "--config", name, *brief]) == 0
    folder = tmp_path / "out" / name.removesuffix(".yaml")
    retained = read_checkpoint(folder / "checkpoints" / "last.ckpt")
    assert retained["global_step"] == 1
    written = load_policy(folder / "policy.safetensors").state_dict()
    assert torch.equal(written["output.weight"], retained["state_dict"]["policy.output.weight"])
    # The outputs are zero at first, so one update changes the last layer alone.
    assert bool(retained["state_dict"]["policy.output.weight"].any())


def test_a_training_keeps_its_last_state_and_names_what_follows(tmp_path, monkeypatch, pendulum, capsys):
    """No configuration needs a callback for that; what is printed can be typed."""
    monkeypatch.chdir(tmp_path)
    model = {
        "model": configuration(),
        "supervision": {"coordinates": COORDINATES},
        "forecast": {"eval_steps": [0, 5]},
        "optimization": {"warmup_updates": 0},
    }
    trainer = {"default_root_dir": "out/mine", "max_epochs": 1, "limit_train_batches": 2, "accelerator": "cpu"}
    values = {
        "trainer": {**trainer, "logger": False, "enable_progress_bar": False, "enable_model_summary": False},
        "model": model,
        "data": {"path": pendulum, "batch_size": 8, "shape": {"horizon": 5}},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    given = ["fit", "--config", "mine.yaml"]
    assert cli.main(given) == 0
    last = "out/mine/checkpoints/last.ckpt"
    head, *lines = capsys.readouterr().out.splitlines()[-4:]
    assert head == f"Checkpoint: {last}"
    assert read_checkpoint(Path(last))["global_step"] == 2
    commands = {aim.strip(): shlex.split(command)[1:] for aim, command in (line.split(": ", 1) for line in lines)}
    assert cli.main([*commands["to go on with more epochs or updates"], "--trainer.max_epochs", "2"]) == 0
    assert read_checkpoint(Path(last))["global_step"] == 4
    assert cli.main(commands["to evaluate it"]) == 0
    assert cli.main(commands["to export it"]) == 0
    assert load("model.safetensors").engine.nq == 2
    capsys.readouterr()
    # Another training beside it replaces nothing, and none is named where none is written.
    assert cli.main(given) == 0
    assert "Checkpoint: out/mine/checkpoints/last-v1.ckpt" in capsys.readouterr().out
    assert read_checkpoint(Path(last))["global_step"] == 4
    assert cli.main([*given, "--trainer.enable_checkpointing", "false"]) == 0
    assert "Checkpoint:" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["validate", "test"])
def test_a_model_that_fits_motions_is_evaluated_by_command(command, tmp_path, monkeypatch, data_folders):
    """Lengths are learned, and predictions start on the motion closest to all positions: both differentiate."""
    monkeypatch.chdir(tmp_path)
    given = ["--config", "pendulum.yaml", "--data.path", str(data_folders["pendulum"]), "--trainer.logger", "false"]
    batches = ["--trainer.limit_val_batches", "1", "--trainer.limit_test_batches", "1"]
    assert cli.main([command, *given, *batches, "--data.batch_size", "2"]) == 0


def test_the_first_row_of_a_log_has_the_share_of_the_engine(tmp_path, monkeypatch, data_folders):
    """In a training of fewer updates than lie between two measurements."""
    monkeypatch.chdir(tmp_path)
    given = ["--config", "pendulum.yaml", "--data.path", str(data_folders["pendulum"]), "--data.batch_size", "4"]
    given += ["--data.labels.fraction", "0.2", "--trainer.callbacks+", "physvision.trainers.EngineGradientShare"]
    limits = ["--trainer.max_steps", "3", "--trainer.log_every_n_steps", "2", "--trainer.limit_val_batches", "0"]
    assert cli.main(["fit", *given, *limits]) == 0
    rows = list(csv.DictReader(next(tmp_path.glob("out/pendulum/csv/*/metrics.csv")).open()))
    assert 0 < float(rows[0]["gradient/share"]) < 1


def test_the_command_line_refuses_a_bad_checkpoint_and_an_unknown_configuration(
    tmp_path, monkeypatch, data_folders, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.ckpt").write_bytes(pickle.dumps(Bomb(tmp_path / "harm")))
    arguments = ["--config", "pendulum.yaml", "--data.path", str(data_folders["pendulum"]), "--ckpt_path", "bad.ckpt"]
    assert cli.main(["test", *arguments]) == 1
    assert "could run foreign code" in capsys.readouterr().err
    assert not (tmp_path / "harm").exists()
    assert cli.main(["fit", "--config", "nothing.yaml"]) == 1
    assert "neither a file nor one of the trainers" in capsys.readouterr().err
