"""`physvision fit | validate | test | fit-flow | fit-policy`: train and evaluate by the configurations in trainers/."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml
from jsonargparse import ArgumentParser
from lightning import LightningDataModule, LightningModule, Trainer
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from physvision.core import InputError
from physvision.datasets.modules import DataModule
from physvision.models.checkpoints import read_checkpoint
from physvision.options import take_option
from physvision.trainers.configuration import REFUSED_ARGUMENTS, Training, build_from, read_arguments
from physvision.trainers.flow import FlowTraining
from physvision.trainers.module import PredictionTraining
from physvision.trainers.pixels import PendulumTraining

_PRINT = "--print_config"
# Classes of the sections `model` and `data` of each command; without one, `data` names a registered class.
_CLASSES: dict[str, tuple[type[LightningModule], type[LightningDataModule] | None]] = {
    "fit": (PredictionTraining, DataModule),
    "validate": (PredictionTraining, DataModule),
    "test": (PredictionTraining, DataModule),
    "fit-flow": (FlowTraining, None),
    "fit-policy": (PendulumTraining, None),
}


def run(command: str, arguments: list[str], plugins: Sequence[str] = ()) -> int:
    """Run `physvision COMMAND ARGUMENTS`; the exit status.

    Args:
        command: Name of the command.
        arguments: Its options, without those of plug-ins.
        plugins: Modules that were imported by `--import`.
    """
    if not arguments or {"-h", "--help"} & set(arguments):
        build_parser(command).print_help()
        return 0
    for place, argument in enumerate(arguments):
        if argument.partition("=")[0].endswith(".help"):
            build_parser(command).parse_args(arguments[place : place + 2 - ("=" in argument)])  # prints and exits
    values = read_arguments([argument for argument in arguments if argument != _PRINT])
    if _PRINT in arguments:
        print(yaml.safe_dump(values, sort_keys=False), end="")
        return 0
    if (path := values.get("ckpt_path")) is not None:
        read_checkpoint(str(path))
    logging.getLogger("lightning.pytorch.utilities.rank_zero").addFilter(_is_no_advert)
    training = build_from(values, *_CLASSES[command])
    method = "fit" if command.startswith("fit") else command
    act: Callable[..., object] = getattr(training.trainer, method)
    try:
        act(training.model, datamodule=training.datamodule, ckpt_path=training.checkpoint)
    except MisconfigurationException as error:
        raise InputError(f"trainer: {error}") from error
    if method == "fit" and training.trainer.is_global_zero:
        print("\n".join(_next_steps(command, training, [*arguments, *(f"--import={name}" for name in plugins)])))
    return 0


def _next_steps(command: str, training: Training, options: list[str]) -> list[str]:
    """Lines that name the checkpoint of a training and the commands that take it; none without a checkpoint."""
    callback = training.trainer.checkpoint_callback
    path = getattr(callback, "last_model_path", "") or getattr(callback, "best_model_path", "")
    if not path:
        return []
    folder = Path.cwd()
    path = str(Path(path).relative_to(folder) if Path(path).is_relative_to(folder) else path)
    options, _ = take_option(options, "--ckpt_path", "a path")
    plugins = [option for option in options if option.startswith("--import=")]
    again = ["physvision", command, *options, "--ckpt_path", path]
    lines = {"to go on with more epochs or updates": again}
    if command == "fit":
        export = ["physvision", "export", path, "--out", "model.safetensors", *plugins]
        lines = {"to evaluate it": ["physvision", "test", *again[2:]], "to export it": export} | lines
        if getattr(training.model.model, "scene", None) is not None:
            lines["to predict a clip"] = ["physvision", "predict", "CLIP", "--checkpoint", path, *plugins]
    return [f"Checkpoint: {path}", *(f"  {aim}: {shlex.join(words)}" for aim, words in lines.items())]


def _is_no_advert(record: logging.LogRecord) -> bool:
    """If true, a message of Lightning does not recommend a service of its makers."""
    return "Tip: For seamless" not in record.getMessage()


def build_training(arguments: list[str]) -> Training:
    """Build `model`, `datamodule` and `trainer` of `physvision fit ARGUMENTS` without running it."""
    return build_from(read_arguments(arguments), *_CLASSES["fit"])


def build_parser(command: str) -> ArgumentParser:
    """Build a parser with the options of a command, which prints them; `read_arguments` reads a command line.

    Args:
        command: Name of the command.
    """
    model, data = _CLASSES[command]
    summary = (model.__doc__ or "").partition("\n")[0]
    parser = ArgumentParser(prog=f"physvision {command}", description=summary)
    parser.usage = "%(prog)s --config FILE [--config FILE ...] [--OPTION VALUE ...]"
    parser.add_argument("--config", help="configuration file, a path or a name in trainers/; later ones lie above")
    parser.add_argument(
        _PRINT, action="store_true", default=None, help="print the configuration, all layers merged, and run nothing"
    )
    parser.add_argument("--ckpt_path", help="checkpoint to resume or to evaluate")
    parser.add_argument("--seed_everything", type=bool | int, default=True, help="seed of all random numbers")
    parser.add_class_arguments(Trainer, "trainer", skip={*REFUSED_ARGUMENTS}, fail_untyped=False)
    parser.add_class_arguments(model, "model", fail_untyped=False)
    if data is not None:
        parser.add_class_arguments(data, "data", fail_untyped=False)
    return parser
