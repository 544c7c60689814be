"""`physvision fit | validate | test`: Lightning's command line on the configurations in trainers/."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import yaml
from lightning.pytorch import callbacks, loggers, profilers, strategies
from lightning.pytorch.cli import LightningCLI

from physvision.core import InputError
from physvision.core.registry import look_up
from physvision.core.resources import find
from physvision.core.yaml_reader import check_yaml
from physvision.datasets.modules import DataModule
from physvision.models.checkpoints import read_checkpoint
from physvision.trainers.flow import FlowTraining
from physvision.trainers.module import PredictionTraining
from physvision.trainers.pixels import PendulumTraining

# The arguments given are those of the command line, with the configurations merged.
warnings.filterwarnings("ignore", message="LightningCLI's args parameter is intended to run from within Python")

_LIGHTNING = {
    f"{module.__name__}.{name}" for module in (callbacks, loggers, profilers, strategies) for name in module.__all__
}
# What of the trainer is made of a class, and so could name any.
_CLASSES = ("callbacks", "logger", "plugins", "profiler", "strategy")
_MODEL = "--model.model."


class CommandLine(LightningCLI):
    """Lightning's, which looks at a checkpoint before it is loaded."""

    def _parse_ckpt_path(self) -> None:
        """Refuse a bad checkpoint before Lightning opens it; what it says of options is not taken over."""
        path = self.config[self.config["subcommand"]].get("ckpt_path") if "subcommand" in self.config else None
        if path:
            read_checkpoint(path)


def run(command: str, arguments: list[str]) -> int:
    """Run `physvision COMMAND ARGUMENTS`; the exit status."""
    CommandLine(PredictionTraining, DataModule, args=[command, *_merged(arguments)], **_OPTIONS)
    return 0


def build_training(arguments: list[str]) -> CommandLine:
    """Build `model`, `datamodule` and `trainer` of `physvision fit ARGUMENTS` without running it."""
    return CommandLine(PredictionTraining, DataModule, args=_merged(arguments), run=False, **_OPTIONS)


def fit_flow(command: str, arguments: list[str]) -> int:
    """Run `physvision fit-flow ARGUMENTS`; the exit status."""
    LightningCLI(FlowTraining, subclass_mode_data=True, args=["fit", *_merged(arguments)], **_OPTIONS)
    return 0


def fit_policy(command: str, arguments: list[str]) -> int:
    """Run `physvision fit-policy ARGUMENTS`; the exit status."""
    CommandLine(PendulumTraining, args=["fit", *_merged(arguments)], **_OPTIONS)
    return 0


_OPTIONS: dict[str, Any] = {"save_config_kwargs": {"overwrite": True}, "parser_kwargs": {"parser_mode": "yaml"}}


def _merged(arguments: list[str]) -> list[str]:
    """The arguments with all configurations laid over each other, looked up among those that come with physvision.

    The model, which `PredictionTraining` builds of plain values, is changed here by arguments like
    `--model.model.init_args.max_speed 50`, for nobody else knows its inside.
    """
    whole: dict[str, Any] = {}
    others, waiting = [], iter(arguments)
    for argument in waiting:
        name, separator, value = argument.partition("=")
        if name != "--config" and not name.startswith(_MODEL):
            others.append(argument)
            continue
        value = value if separator else next(waiting, "")
        if name == "--config":
            whole = _over(whole, _read(_configuration(value)))
        else:
            inner = yaml.safe_load(value)
            for key in reversed(name.removeprefix("--").split(".")):
                inner = {key: inner}
            whole = _over(whole, inner)
    check_names(whole)
    return ["--config", yaml.safe_dump(whole, sort_keys=False), *others] if whole else others


def _read(path: Path) -> dict[str, Any]:
    check_yaml(path)
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML of plain values ({' '.join(str(error).split())})") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected options and their values, got {type(values).__name__}")
    return values


def _configuration(name: str) -> Path:
    path = Path(name)
    if not path.exists() and path.parent.name == "trainers":
        name = path.name
    return find(name, "trainers")


def _over(below: Any, above: Any) -> Any:
    """Values laid over others; a part of another class forgets the arguments of the one that it replaces."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    if "class_path" in above and above["class_path"] != below.get("class_path"):
        return above
    return {**below, **{key: _over(below.get(key), value) for key, value in above.items()}}


def check_names(configuration: dict[str, Any]) -> None:
    """Refuse a training's configuration that names code other than registered parts and what Lightning has to offer.

    Raises:
        InputError: with the name that is not allowed.
    """
    for part in ("trainer", "model", "data"):
        values = configuration.get(part, {})
        if not isinstance(values, dict):
            raise InputError(f"{part}: expected options and their values, got {values!r}")
        # The model's inside is plain values to everybody but the registry, which knows no other names.
        _check_names({key: value for key, value in values.items() if (part, key) != ("model", "model")}, False)


def _check_names(value: Any, is_class: bool) -> None:
    if isinstance(value, dict):
        for key, entry in value.items():
            _check_names(entry, is_class=key == "class_path" or key in _CLASSES)
    elif isinstance(value, list):
        for entry in value:
            _check_names(entry, is_class)
    elif is_class and isinstance(value, str) and not value.isidentifier() and value not in _LIGHTNING:
        look_up(value)
