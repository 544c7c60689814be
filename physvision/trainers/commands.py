"""`physvision fit | validate | test | predict`: Lightning's command line on the configurations in trainers/."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning.pytorch.cli import LightningCLI

from physvision.core import CheckpointError
from physvision.core.resources import find
from physvision.datasets.modules import DataModule
from physvision.models.checkpoints import build, check_same, save
from physvision.perception.flow import PyramidFlow
from physvision.perception.flow_files import save_flow
from physvision.trainers.flow import FlowData, FlowTraining
from physvision.trainers.module import PredictionTraining


class CommandLine(LightningCLI):
    """Lightning's, which keeps the model's configuration in checkpoints and looks at one before it is loaded."""

    def instantiate_classes(self) -> None:
        """Build everything, and tell the module what it was built from."""
        super().instantiate_classes()
        plain = yaml.safe_load(self._parser(self.config["subcommand"]).dump(self.config[self.config["subcommand"]]))
        self.model.configuration = plain["model"]["model"]

    def _parse_ckpt_path(self) -> None:
        """Refuse a bad checkpoint before Lightning opens it; what it says of options is not taken over."""
        path = self.config[self.config["subcommand"]].get("ckpt_path")
        if path:
            read_checkpoint(path)


def run(command: str, arguments: list[str]) -> int:
    """Run `physvision COMMAND ARGUMENTS`; the exit status."""
    CommandLine(
        PredictionTraining,
        DataModule,
        args=[command, *_found(arguments)],
        save_config_kwargs={"overwrite": True},
        parser_kwargs={"parser_mode": "yaml"},
    )
    return 0


def fit_flow(command: str, arguments: list[str]) -> int:
    """Run `physvision fit-flow ARGUMENTS`; the exit status."""
    LightningCLI(
        FlowTraining,
        FlowData,
        args=["fit", *_found(arguments)],
        save_config_kwargs={"overwrite": True},
        parser_kwargs={"parser_mode": "yaml"},
    )
    return 0


def _found(arguments: list[str]) -> list[str]:
    """The arguments with configurations looked up among those that come with physvision."""
    found, after = [], False
    for argument in arguments:
        if argument.startswith("--config="):
            argument = f"--config={_configuration(argument.removeprefix('--config='))}"
        found.append(str(_configuration(argument)) if after else argument)
        after = argument == "--config"
    return found


def _configuration(name: str) -> Path:
    path = Path(name)
    if not path.exists() and path.parent.name == "trainers":
        name = path.name
    return find(name, "trainers")


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """A training checkpoint: tensors and plain values; whatever else it holds is refused.

    Raises:
        CheckpointError: it is missing, damaged, or holds objects that would have to be unpickled.
    """
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path}: refused, for it is damaged or holds more than tensors and plain values; loading it could run "
            f"foreign code ({str(error).splitlines()[0]})"
        ) from error
    except (OSError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path}: cannot be read; it is damaged or cut short ({error})") from error
    if not isinstance(checkpoint, dict) or "state_dict" not in checkpoint:
        raise CheckpointError(f"{path}: is no checkpoint of a training")
    return checkpoint


def export(checkpoint: str, out: str, small: bool = True) -> None:
    """Make a model file, which `physvision.models.load` reads, of a training checkpoint.

    Args:
        checkpoint: of `physvision fit` or `fit-flow`.
        out: NAME.safetensors.
        small: keep large tensors in half precision.
    """
    read = read_checkpoint(checkpoint)
    if "flow" in read:
        print(save_flow(out, _flow_of(checkpoint, read)))
        return
    if "configuration" not in read:
        raise CheckpointError(f"{checkpoint}: does not say how its model is built; it is not one of `physvision fit`")
    configuration = json.loads(read["configuration"])
    model = build(configuration)
    weights = {
        name.removeprefix("model."): value for name, value in read["state_dict"].items() if name.startswith("model.")
    }
    check_same(checkpoint, model.state_dict(), weights)
    model.load_state_dict(weights)
    print(save(out, model, configuration, small=small))


def _flow_of(checkpoint: str, read: dict[str, Any]) -> PyramidFlow:
    network = PyramidFlow(**read["flow"])
    weights = {name.removeprefix("network."): value for name, value in read["state_dict"].items()}
    check_same(checkpoint, network.state_dict(), weights)
    network.load_state_dict(weights)
    return network
