"""The strict reader of training configurations: registered parts alone, outputs beneath one folder, no addresses.

A training is described by plain values: those of the configuration files, laid over each other, and those of the
command line above them. All are built by `core.serialization`, which imports nothing and calls only what is registered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import lightning
import yaml
from lightning import Callback, LightningDataModule, LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint, ModelCheckpoint
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from physvision.core import InputError, PhysvisionError
from physvision.core.memory_limit import Budget
from physvision.core.resources import find
from physvision.core.serialization import CLASS, build, build_arguments, overlay
from physvision.core.yaml_reader import parse_value, read_yaml
from physvision.trainers import library_parts  # noqa: F401  registers what of Lightning and torch may be named

Values = dict[str, Any]
# Arguments of the trainer and of its parts that are folders, and those that are names within a folder.
_FOLDERS = ("default_root_dir", "dirpath", "save_dir")
_NAMES = ("filename", "name", "version", "sub_dir", "prefix")
# Numbers and calls of Python's functions that building a model may take; `billiards.yaml` takes 163 million and 23,000.
_MAX_NUMBERS, _MAX_CALLS = 1_000_000_000, 10_000_000
# Arguments of the trainer that take addresses, or objects that nothing on the allow-list makes.
REFUSED_ARGUMENTS = {"plugins", "model_registry", "enable_autolog_hparams"}
_SECTIONS = ("seed_everything", "trainer", "model", "data", "optimizer", "lr_scheduler", "ckpt_path")


@dataclass(frozen=True)
class Training:
    """Model, data and trainer that a configuration describes.

    Attributes:
        model: LightningModule that is trained.
        datamodule: Its data; None if the model has its own.
        trainer: Lightning's trainer.
        checkpoint: Path of the checkpoint to resume or to evaluate; None for none.
    """

    model: LightningModule
    datamodule: LightningDataModule | None
    trainer: Trainer
    checkpoint: str | None


class ConfigurationFile(Callback):
    """Writes the configuration to config.yaml in the folder of the logs, so that it can be given again."""

    def __init__(self, values: Values) -> None:
        """Keep the plain values of the configuration."""
        self.values = values

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Write the file, once for all processes."""
        folder = trainer.log_dir
        if folder is not None and trainer.is_global_zero and not trainer.fast_dev_run:  # pyright: ignore
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / "config.yaml").write_text(yaml.safe_dump(self.values, sort_keys=False))


def read_arguments(arguments: Sequence[str]) -> Values:
    """Lay the configurations that the arguments name over each other, and the values of all other options over these.

    Options are paths into the configuration, such as `--trainer.max_epochs 3`; values are YAML. One that ends
    with +, such as `--trainer.callbacks+`, adds to a list.
    """
    files: list[Path] = []
    typed: list[Values] = []
    waiting = iter(arguments)
    for argument in waiting:
        option, separator, value = argument.partition("=")
        if not option.startswith("--") or len(option) < 3:
            raise InputError(f"expected an option such as --trainer.max_epochs, got {argument!r}")
        if not separator and (value := next(waiting, None)) is None:
            raise InputError(f"{option}: expected a value after it")
        if option == "--config":
            files.append(find(value, "trainers"))
            continue
        inner: Any = parse_value(value)
        for key in reversed(option.removeprefix("--").split(".")):
            inner = {key: inner}
        typed.append(inner)
    trainers = [part["trainer"] for part in typed if isinstance(part.get("trainer"), dict)]
    root = next((part["default_root_dir"] for part in reversed(trainers) if "default_root_dir" in part), None)
    values: Values = {}
    for path in files:
        layer = read_yaml(path)
        _check_outputs(layer.get("trainer"), str(path), [Path.cwd(), path.parent, *([Path(root)] if root else [])])
        values = overlay(values, layer)
    trainer = values.get("trainer")
    if root and isinstance(trainer, dict) and isinstance(trainer.get("default_root_dir"), str):
        values["trainer"] = _moved(trainer, trainer["default_root_dir"], str(root))
    return reduce(overlay, typed, values)


def _moved(value: Any, source: str, target: str) -> Any:
    """Folders of outputs beneath one folder, as of checkpoints and logs, beneath another one."""
    if isinstance(value, list):
        return [_moved(entry, source, target) for entry in value]
    if not isinstance(value, dict):
        return value
    changed = {key: _moved(entry, source, target) for key, entry in value.items()}
    for key in changed.keys() & set(_FOLDERS):
        if isinstance(changed[key], str) and _is_beneath(changed[key], Path(source)):
            changed[key] = str(Path(target, os.path.relpath(changed[key], source)))
    return changed


def _check_outputs(value: Any, source: str, roots: list[Path]) -> None:
    """Refuse outputs that a file places elsewhere than beneath the working folder or its own."""
    for entry in value if isinstance(value, list) else ():
        _check_outputs(entry, source, roots)
    for key, entry in value.items() if isinstance(value, dict) else ():
        _check_outputs(entry, source, roots)
        if not isinstance(entry, str):
            continue
        if key in _NAMES and ("://" in entry or Path(entry).is_absolute() or ".." in Path(entry).parts):
            raise InputError(f"{source}: {key}: expected a name within the folder of the outputs, got {entry!r}")
        if key in _FOLDERS and ("://" in entry or not any(_is_beneath(entry, root) for root in roots)):
            raise InputError(
                f"{source}: {key}: expected a folder beneath the working folder or that of the file, got {entry!r}; "
                "other folders are named on the command line: --trainer.default_root_dir FOLDER"
            )


def _is_beneath(path: str, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def build_from(
    values: Values, model: Callable[..., LightningModule], data: Callable[..., LightningDataModule] | None
) -> Training:
    """Build a training of the values of its configuration.

    Args:
        values: Plain values, see `read_arguments`.
        model: Class of the model, whose arguments the section `model` holds.
        data: Class of the data, likewise; None if the section `data` names a registered class, or is missing.

    Raises:
        InputError: The values name what is not allowed, or do not fit the annotations.
    """
    for key in values:
        if key not in _SECTIONS:
            raise InputError(f"configuration: unknown key {key!r}; expected {', '.join(_SECTIONS)}")
    checkpoint = build(values.get("ckpt_path"), str | None, "ckpt_path")
    seed = build(values.get("seed_everything", True), bool | int, "seed_everything")
    if seed is not False:
        number = None if seed is True else seed
        _build(lambda given: lightning.seed_everything(given, workers=True), number, "seed_everything")
    settings = _build(_trainer_arguments, values.get("trainer") or {}, "trainer")
    with Budget(_MAX_NUMBERS, _MAX_CALLS):
        module = _build(lambda part: model(**build_arguments(model, part, "model")), values.get("model") or {}, "model")
    source, given = None, values.get("data")
    if data is not None and not (isinstance(given, dict) and CLASS in given):
        kind = data
        source = _build(lambda part: kind(**build_arguments(kind, part, "data")), given or {}, "data")
    elif given is not None:
        source = _build(lambda part: build(part, LightningDataModule, "data"), given, "data")
    _use_optimizer(module, values)
    return Training(module, source, _trainer(settings, values), checkpoint)


def _trainer_arguments(trainer: Any) -> Values:
    """Build the arguments of Lightning's Trainer, all but those that name addresses or plugins."""
    values = _with_classes(trainer)
    if refused := REFUSED_ARGUMENTS & set(values):
        raise InputError(f"trainer: {min(refused)!r} may not be given in a configuration")
    return build_arguments(Trainer, values, "trainer")


def _with_classes(trainer: Any) -> Any:
    """Write bare names of callbacks and loggers as classes without arguments, with their package."""
    if not isinstance(trainer, dict):
        raise InputError(f"trainer: expected options and their values, got {trainer!r}")

    def full(part: Any, package: str) -> Any:
        if isinstance(part, list):
            return [full(entry, package) for entry in part]
        part = {CLASS: part} if isinstance(part, str) else part
        name = part.get(CLASS) if isinstance(part, dict) else None
        return {**part, CLASS: f"{package}.{name}"} if isinstance(name, str) and "." not in name else part

    packages = {"callbacks": "lightning.pytorch.callbacks", "logger": "lightning.pytorch.loggers"}
    return {key: full(value, packages[key]) if key in packages else value for key, value in trainer.items()}


def _build(make: Callable[[Any], Any], values: Any, name: str) -> Any:
    try:
        return make(values)
    except PhysvisionError:
        raise
    except Exception as error:  # whatever a part makes of arguments that make no sense
        raise InputError(f"{name}: cannot be built ({type(error).__name__}: {error})") from error


def _trainer(arguments: Values, values: Values) -> Trainer:
    callbacks = arguments.get("callbacks")
    callbacks = callbacks if isinstance(callbacks, list) else [callbacks] if callbacks else []
    is_saved = arguments.get("enable_checkpointing") is not False and not arguments.get("barebones")
    if is_saved and not any(isinstance(callback, Checkpoint) for callback in callbacks):
        # The state after the last epoch.
        folder = Path(arguments.get("default_root_dir") or ".") / "checkpoints"
        callbacks = [*callbacks, ModelCheckpoint(folder, filename="last", save_on_train_epoch_end=True)]
    arguments["callbacks"] = [*callbacks, ConfigurationFile(values)]
    # Fits of motions differentiate in evaluation, too, for which inference mode has no tensors.
    arguments.setdefault("inference_mode", False)
    return _build(lambda given: Trainer(**given), arguments, "trainer")


def _use_optimizer(module: LightningModule, values: Values) -> None:
    """Train all parameters by the optimizer that the configuration names, in the place of the module's own."""
    optimizer: Any = build(values.get("optimizer"), object, "optimizer")
    schedule: Any = build(values.get("lr_scheduler"), object, "lr_scheduler")
    if optimizer is None and schedule is None:
        return
    if not _is_partial(optimizer, Optimizer) or (schedule is not None and not _is_partial(schedule, LRScheduler)):
        raise InputError(
            "optimizer, lr_scheduler: expected one of torch.optim and of torch.optim.lr_scheduler, by class_path"
        )

    def configure_optimizers(optimizer: Any = optimizer) -> Any:
        instance = optimizer([value for value in module.parameters() if value.requires_grad])
        return instance if schedule is None else {"optimizer": instance, "lr_scheduler": schedule(instance)}

    module.configure_optimizers = configure_optimizers


def _is_partial(value: Any, kind: type) -> bool:
    return isinstance(value, partial) and isinstance(value.func, type) and issubclass(value.func, kind)
