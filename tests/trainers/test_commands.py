"""What a training's configuration may name, and what is refused before anything is imported or computed."""

import pytest
import yaml

from physvision import cli
from physvision.core import InputError
from physvision.trainers.commands import _merged, check_names


@pytest.mark.parametrize(
    "configuration",
    [
        {"trainer": {"callbacks": [{"class_path": "physvision.cli.sys.breakpointhook"}]}},
        {"trainer": {"callbacks": ["os.system"]}},
        {"trainer": {"logger": {"class_path": "evil.Logger", "init_args": {"save_dir": "x.y"}}}},
        {"trainer": {"plugins": "evil.Plugin"}},
        {"model": {"supervision": {"class_path": "subprocess.run"}}},
        {"data": {"class_path": "os.fork"}},
    ],
)
def test_foreign_code_is_refused_by_name(configuration, tmp_path, capsys):
    with pytest.raises(InputError, match=r"names '.*', which is not registered"):
        check_names(configuration)
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(configuration))
    assert cli.main(["fit", "--config", str(path)]) == 1
    assert "which is not registered" in capsys.readouterr().err


def test_a_model_may_name_registered_parts_alone(tmp_path, capsys):
    path = tmp_path / "bad.yaml"
    part = {"class_path": "physvision.core.weights.os.system", "init_args": {"command": "true"}}
    path.write_text(yaml.safe_dump({"model": {"model": part, "supervision": {"coordinates": {"size": 1}}}}))
    assert cli.main(["fit", "--config", str(path), "--data.path", "x"]) == 1
    assert "names 'physvision.core.weights.os.system', which is not registered" in capsys.readouterr().err


def test_what_lightning_has_and_names_in_lists_are_allowed():
    loggers = [{"class_path": "lightning.pytorch.loggers.CSVLogger", "init_args": {"save_dir": "out/a.b"}}]
    callbacks = [{"class_path": "physvision.trainers.PredictionFigure"}, "lightning.pytorch.callbacks.Timer"]
    check_names({"trainer": {"logger": loggers, "callbacks": callbacks, "strategy": "ddp"}, "model": {}})
    check_names({"trainer": {"logger": False, "default_root_dir": "out/some.where"}})


def test_a_part_of_the_configuration_in_another_file_is_refused():
    with pytest.raises(InputError, match=r"trainer: expected options and their values, got 'more\.yaml'"):
        check_names({"trainer": "more.yaml"})


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
        option, text, *rest = _merged([*arguments, *more])
        assert option == "--config"
        return yaml.safe_load(text)["model"], rest

    first, _ = merged("a", "b")
    assert first == {
        "model": {"init_args": {"engine": {"class_path": "A", "init_args": {"x": 1, "y": 5}}, "other": 3}},
        "rate": 1,
    }
    second, others = merged("a", "c", more=["--model.model.init_args.other=[4]", "--trainer.max_epochs", "2"])
    assert second["model"]["init_args"] == {"engine": {"class_path": "B", "init_args": {"z": 1}}, "other": [4]}
    assert second["rate"] == 2
    assert others == ["--trainer.max_epochs", "2"]


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
        _merged(["--config", str(tmp_path / "bad.yaml")])
