"""What a training's configuration may name, and what is refused before anything is imported or computed."""

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from physvision import cli
from physvision.core import InputError, resources
from physvision.trainers.commands import _CLASSES, build_training
from physvision.trainers.configuration import build_from, read_arguments

# A module that leaves a file behind when it is imported, and when its function is called.
EVIL = (
    "from pathlib import Path\nPath('imported').touch()\n\n\ndef harm(*args, **kwargs):\n    Path('called').touch()\n"
)


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a module that must not be imported."""
    (tmp_path / "evilmod.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    assert "evilmod" not in sys.modules
    assert not (tmp_path / "imported").exists()
    assert not (tmp_path / "called").exists()


def layer(folder, **values):
    """Arguments that lay these values over a shipped configuration."""
    (folder / "above.yaml").write_text(yaml.safe_dump(values))
    return ["--config", "pendulum.yaml", "--config", str(folder / "above.yaml")]


PARTS = [
    {"trainer": {"callbacks": [{"class_path": "physvision.cli.sys.breakpointhook"}]}},
    {"trainer": {"callbacks": ["os.system"]}},
    {"trainer": {"callbacks": [{"class_path": "lightning.pytorch.callbacks.LambdaCallback"}]}},
    {"trainer": {"logger": {"class_path": "evilmod.Logger", "init_args": {"save_dir": "x.y"}}}},
    {"trainer": {"logger": {"class_path": "lightning.pytorch.loggers.WandbLogger"}}},
    {"trainer": {"strategy": {"class_path": "evilmod.Strategy"}}},
    {"model": {"supervision": {"class_path": "subprocess.run"}}},
    {"model": {"model": {"class_path": "physvision.core.weights.os.system", "init_args": {"command": "true"}}}},
    {"model": {"stages": {"class_path": "evilmod.Stages"}}},
    {"data": {"class_path": "os.fork"}},
    {"data": {"shape": {"class_path": "evilmod.Shape"}}},
    {"optimizer": {"class_path": "evilmod.Optimizer"}},
    {"lr_scheduler": {"class_path": "evilmod.Schedule"}},
]


@pytest.mark.parametrize("values", PARTS, ids=[str(values)[:60] for values in PARTS])
def test_foreign_code_is_refused_by_name(folder, values, capsys):
    assert cli.main(["fit", *layer(folder, **values)]) == 1
    assert "which is not registered" in capsys.readouterr().err


CALLBACK = "lightning.pytorch.callbacks."
ARGUMENTS = [
    {"callbacks": [{"class_path": f"{CALLBACK}LambdaCallback", "init_args": {"setup": "evilmod.harm"}}]},
    {"callbacks": [{"class_path": f"{CALLBACK}ModelCheckpoint", "init_args": {"setup": "evilmod.harm"}}]},
    {
        "callbacks": [
            {
                "class_path": f"{CALLBACK}StochasticWeightAveraging",
                "init_args": {"swa_lrs": 0.1, "avg_fn": "evilmod.harm"},
            }
        ]
    },
    {
        "strategy": {
            "class_path": "lightning.pytorch.strategies.DDPStrategy",
            "init_args": {"checkpoint_io": "evilmod.harm"},
        }
    },
    {"plugins": ["evilmod.harm"]},
    {"plugins": [{"class_path": "lightning.fabric.plugins.io.TorchCheckpointIO"}]},
    {"profiler": "evilmod.harm"},
    {"accelerator": "evilmod.harm"},
    {"callbacks": "evilmod.harm"},
]


@pytest.mark.parametrize("command", ["fit", "fit-policy", "fit-flow"])
@pytest.mark.parametrize("trainer", ARGUMENTS, ids=[str(values)[:60] for values in ARGUMENTS])
def test_no_argument_of_a_file_is_a_function(folder, trainer, command, capsys):
    name = {"fit": "pendulum.yaml", "fit-policy": "pendulum-pixels-small.yaml", "fit-flow": "flow.yaml"}[command]
    (folder / "above.yaml").write_text(yaml.safe_dump({"trainer": trainer}))
    assert cli.main([command, "--config", name, "--config", "above.yaml"]) == 1
    assert f"physvision {command}: " in capsys.readouterr().err


@pytest.mark.parametrize("address", ["file://{}", "http://127.0.0.1:1/x.ckpt", "{}"])
@pytest.mark.parametrize("command", ["fit", "fit-policy", "fit-flow"])
def test_no_checkpoint_is_unpickled(folder, command, address, capsys):
    (folder / "bad.ckpt").write_bytes(pickle.dumps(Bomb(folder / "called")))
    name = {"fit": "pendulum.yaml", "fit-policy": "pendulum-pixels-small.yaml", "fit-flow": "flow.yaml"}[command]
    values = {"ckpt_path": address.format(folder / "bad.ckpt")}
    for more in ({}, {"weights_only": False}):
        (folder / "above.yaml").write_text(yaml.safe_dump(values | more))
        assert cli.main([command, "--config", name, "--config", "above.yaml"]) == 1
        assert f"physvision {command}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "trainer",
    [
        {"default_root_dir": "/elsewhere"},
        {"default_root_dir": "../elsewhere"},
        {"default_root_dir": "link/within"},
        {"default_root_dir": "s3://bucket/x"},
        {"callbacks": [{"class_path": f"{CALLBACK}ModelCheckpoint", "init_args": {"filename": "../../escape"}}]},
        {"callbacks": [{"class_path": f"{CALLBACK}ModelCheckpoint", "init_args": {"dirpath": "/elsewhere"}}]},
        {"logger": {"class_path": "lightning.pytorch.loggers.CSVLogger", "init_args": {"save_dir": "o", "name": "/x"}}},
        {
            "logger": {
                "class_path": "lightning.pytorch.loggers.CSVLogger",
                "init_args": {"save_dir": "o", "version": "../x"},
            }
        },
    ],
)
def test_outputs_stay_beneath_one_folder(folder, trainer, tmp_path_factory, capsys):
    (folder / "link").symlink_to(tmp_path_factory.mktemp("other"))
    assert cli.main(["fit", *layer(folder, trainer=trainer)]) == 1
    assert "the folder of the outputs" in (text := capsys.readouterr().err) or "the working folder" in text


def test_a_folder_that_the_user_typed_may_lie_anywhere(folder, tmp_path_factory):
    elsewhere = str(tmp_path_factory.mktemp("other"))
    trainer = {
        "callbacks": [{"class_path": f"{CALLBACK}ModelCheckpoint", "init_args": {"dirpath": f"{elsewhere}/points"}}]
    }
    given = layer(folder, trainer=trainer)
    assert read_arguments([*given, "--trainer.default_root_dir", elsewhere])["trainer"]["default_root_dir"] == elsewhere
    with pytest.raises(InputError, match="dirpath: expected a folder beneath the working folder"):
        read_arguments(given)


def test_folders_beneath_that_of_the_configuration_move_with_it(tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("other")
    files = ["--config", "trainers/tabletop.yaml"]
    moved = read_arguments([*files, "--trainer.default_root_dir", str(elsewhere)])["trainer"]
    assert moved["default_root_dir"] == str(elsewhere)
    assert moved["logger"][0]["init_args"] == {"save_dir": str(elsewhere), "name": "csv"}
    points = moved["callbacks"][1]["init_args"]
    assert points["dirpath"] == str(elsewhere / "checkpoints")
    unchanged = read_arguments([*files, "--trainer.callbacks", "[]"])["trainer"]
    assert unchanged["logger"][0]["init_args"]["save_dir"] == "out/tabletop"


def test_what_lightning_and_torch_have_is_allowed_with_these_arguments(folder):
    schedule = {"class_path": "torch.optim.lr_scheduler.StepLR", "init_args": {"step_size": 3}}
    values = {
        "trainer": {
            "logger": [{"class_path": "CSVLogger", "init_args": {"save_dir": "out/a.b"}}],
            "callbacks": [{"class_path": "physvision.trainers.PredictionFigure"}, f"{CALLBACK}Timer", "ModelSummary"],
            "strategy": "auto",
            "max_time": {"hours": 2},
            "accelerator": "cpu",
        },
        "optimizer": {"class_path": "torch.optim.SGD", "init_args": {"lr": 1e-2, "momentum": 0.9}},
        "lr_scheduler": schedule,
        "data": {"path": "somewhere"},
    }
    built = build_from(read_arguments(layer(folder, **values)), *_CLASSES["fit"])
    names = {type(callback).__name__ for callback in built.trainer.callbacks}  # pyright: ignore
    assert {"PredictionFigure", "Timer", "ModelSummary"} <= names
    optimization: Any = built.model.configure_optimizers()
    assert type(optimization["optimizer"]).__name__ == "SGD"
    assert optimization["optimizer"].param_groups[0]["momentum"] == 0.9
    assert optimization["lr_scheduler"].step_size == 3


def test_a_part_of_the_configuration_in_another_file_is_refused(folder):
    with pytest.raises(InputError, match=r"trainer: expected options and their values, got 'more\.yaml'"):
        build_from({"trainer": "more.yaml"}, *_CLASSES["fit"])
    with pytest.raises(InputError, match=r"unknown key 'trainr'"):
        build_from({"trainr": {}}, *_CLASSES["fit"])


def test_configurations_are_laid_over_each_other(tmp_path):
    parts = {
        "a": "model: {model: {init_args: {engine: {class_path: A, init_args: {x: 1, y: 2}}, other: 3}}, rate: 1}",
        "b": "model: {model: {init_args: {engine: {init_args: {y: 5}}}}}",
        "c": "model: {model: {init_args: {engine: {class_path: B, init_args: {z: 1}}}}, rate: 2}",
    }
    for name, text in parts.items():
        (tmp_path / f"{name}.yaml").write_text(text)

    def merged(*names, more=()):
        arguments = [option for name in names for option in ("--config", str(tmp_path / f"{name}.yaml"))]
        return read_arguments([*arguments, *more])

    assert merged("a", "b")["model"] == {
        "model": {"init_args": {"engine": {"class_path": "A", "init_args": {"x": 1, "y": 5}}, "other": 3}},
        "rate": 1,
    }
    second = merged(
        "a", "c", more=["--model.model.init_args.other=[4]", "--trainer.max_epochs", "2", "--model.rate", "1e-3"]
    )
    assert second["model"]["model"]["init_args"] == {"engine": {"class_path": "B", "init_args": {"z": 1}}, "other": [4]}
    assert second["model"]["rate"] == 1e-3
    assert second["trainer"] == {"max_epochs": 2}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a: !!python/object/apply:os.system [true]", "not YAML of plain values"),
        ("- 1", "expected options and their values, got list"),
    ],
)
def test_what_is_no_configuration_is_refused(tmp_path, text, match):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(InputError, match=match):
        read_arguments(["--config", str(tmp_path / "bad.yaml")])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--trainer.max_epochs"], "expected a value after it"),
        (["pendulum.yaml"], "expected an option"),
        (["--trainer.max_epochs", "many"], r"trainer\.max_epochs: expected int"),
        (["--trainer.max_epoch", "3"], "unknown key 'max_epoch'"),
        (["--model.optimization.learning_rate", "fast"], r"model\.optimization\.learning_rate: expected a number"),
        (["--data.batch_size", "-3"], "batch_size"),
        (["--data", "3"], "data: expected options and their values"),
        (["--seed_everything", "-1"], "seed_everything: cannot be built"),
    ],
)
def test_options_that_do_not_fit_are_named(folder, arguments, match):
    with pytest.raises(InputError, match=match):
        build_from(read_arguments(["--config", "pendulum.yaml", *arguments]), *_CLASSES["fit"])


def test_a_network_that_no_machine_holds_is_refused_before_it_is_built(folder):
    width = "--model.model.init_args.decoder.init_args.network.init_args.width"
    with pytest.raises(InputError, match="more than 1,000,000,000 numbers"):
        build_training(["--config", "billiards-3.yaml", width, "32"])


def test_a_configuration_is_shown_as_it_is_merged(folder, capsys):
    """What is printed is a configuration again, and nothing runs."""
    given = [*layer(folder, trainer={"max_epochs": 7}), "--model.optimization.learning_rate", "2e-3"]
    assert cli.main(["fit", "--print_config", *given]) == 0
    (folder / "whole.yaml").write_text(shown := capsys.readouterr().out)
    assert shown.startswith("seed_everything:")
    whole = read_arguments(["--config", "whole.yaml"])
    assert whole == read_arguments(given)
    assert (whole["trainer"]["max_epochs"], whole["model"]["optimization"]["learning_rate"]) == (7, 2e-3)
    assert not (folder / "out").exists()


def test_a_key_with_a_plus_adds_to_a_list(folder):
    """In a file and on the command line, where each adds one."""
    name = "physvision.trainers.EngineGradientShare"
    plain = read_arguments(["--config", "pendulum.yaml"])["trainer"]["callbacks"]
    file = layer(folder, trainer={"callbacks+": {"class_path": name}})
    given = [*file, "--trainer.callbacks+", name, "--trainer.callbacks+=LearningRateMonitor"]
    trainer = read_arguments(given)["trainer"]
    assert trainer["callbacks"] == [*plain, {"class_path": name}, name, "LearningRateMonitor"]
    assert "callbacks+" not in trainer
    built = build_training([*given, "--trainer.logger", "true"]).trainer
    names = [type(callback).__name__ for callback in built.callbacks]  # pyright: ignore[reportAttributeAccessIssue]
    assert names.count("EngineGradientShare") == 2
    assert read_arguments(["--trainer.callbacks+", name]) == {"trainer": {"callbacks": [name]}}


def test_classes_that_options_take_are_explained(folder, capsys):
    for option in (["--model.model.help", "PredictiveAutoencoder"], ["--model.model.help=PredictiveAutoencoder"]):
        with pytest.raises(SystemExit) as end:
            cli.main(["fit", "--config", "pendulum.yaml", *option])
        assert end.value.code == 0
        assert "--model.model.consistency" in capsys.readouterr().out


def test_an_unknown_configuration_is_answered_with_configurations_alone(folder, capsys):
    assert cli.main(["fit", "--config", "nonsense.yaml"]) == 1
    text = capsys.readouterr().err
    assert "billiards-3.yaml" in text
    assert "README" not in text


def test_values_of_a_dataclass_are_asked_for_as_such(folder, capsys):
    coordinates = {"class_path": "physvision.core.Coordinates", "init_args": {"size": 6, "angles": [0, 1, 2]}}
    assert cli.main(["fit", *layer(folder, model={"supervision": {"coordinates": coordinates}})]) == 1
    text = capsys.readouterr().err
    assert "model.supervision.coordinates: names 'physvision.core.Coordinates'" in text
    assert "give its values directly: {size: …, angles: …}" in text
    assert "--import" not in text


def test_a_wrong_name_of_the_package_is_answered_with_the_nearest(folder, capsys):
    wrong = {"class_path": "physvision.models.PredictiveAutoEncoder"}
    assert cli.main(["fit", *layer(folder, model={"model": wrong})]) == 1
    text = capsys.readouterr().err
    assert "model.model: names 'physvision.models.PredictiveAutoEncoder', which is not registered" in text
    assert "did you mean physvision.models.PredictiveAutoencoder?" in text
    assert "--import" not in text


# Command, configurations below, and options without which it is not whole.
BELOW = {
    **{f"billiards{part}": ["billiards-3"] for part in ("", "-encoder", "-mlp")},
    "swing-encoder": ["swing"],
    "tabletop-encoder": ["tabletop"],
}
COMMAND = {
    "flow": "fit-flow",
    "tabletop-flow": "fit-flow",
    "pendulum-pixels": "fit-policy",
    "pendulum-pixels-small": "fit-policy",
}
NAMES = sorted(path.stem for path in resources.folder("trainers").glob("*.yaml"))
NAMES = [name for name in NAMES if name not in ("ant", "compliant-ant", "links")]


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_configuration_is_built(folder, name):
    command = COMMAND.get(name, "fit")
    layers = [part for entry in (*BELOW.get(name, ()), name) for part in ("--config", f"trainers/{entry}.yaml")]
    # The whole VGG-11 takes ten seconds to draw.
    network = "--model.model.init_args.encoder.init_args.network.init_args."
    smaller = [f"{network}width", "0.125", f"{network}pool", "1"] if name == "billiards" else []
    built = build_from(read_arguments([*layers, "--trainer.accelerator", "cpu", *smaller]), *_CLASSES[command])
    assert isinstance(built.model, _CLASSES[command][0])
    assert str(built.trainer.default_root_dir) == f"out/{name}"
    assert (built.datamodule is None) == (command == "fit-policy")


def test_overlay_alone_says_what_is_missing():
    """A configuration that only changes another one is not a whole training."""
    with pytest.raises(InputError, match=r"model\.supervision: missing key 'coordinates'"):
        build_training(["--config", "billiards-mlp.yaml"])


@pytest.mark.parametrize("name", ["batches", "batch_size"])
def test_counts_of_flow_data_are_positive(folder, name, capsys):
    assert cli.main(["fit-flow", "--config", "flow.yaml", f"--data.init_args.{name}", "-1"]) == 1
    assert f"{name}: expected" in capsys.readouterr().err


@pytest.mark.parametrize(
    "values",
    [
        {"schedule": {"class_path": "evilmod.Schedule"}},
        {"schedule": "evilmod.harm"},
        {"sac": {"class_path": "evilmod.Settings", "init_args": {}}},
        {"env": "evilmod.harm"},
        {"length": "evilmod.harm"},
    ],
    ids=str,
)
def test_a_configuration_of_learn_imports_nothing(folder, values, capsys):
    (folder / "run.yaml").write_text(yaml.safe_dump(values))
    assert cli.main(["learn", "sac", "--config", "run.yaml", "--out", "run"]) == 1
    assert "physvision learn: " in capsys.readouterr().err
