"""`physvision fit | validate | test`: Lightning's command line on the configurations in trainers/."""

from __future__ import annotations

import warnings
from pathlib import Path

import yaml
from lightning.pytorch.cli import LightningCLI

from physvision.core.resources import find
from physvision.datasets.modules import DataModule
from physvision.models.checkpoints import read_checkpoint
from physvision.trainers.flow import FlowData, FlowTraining
from physvision.trainers.module import PredictionTraining

# The arguments given are those of the command line, with paths of configurations filled in.
warnings.filterwarnings("ignore", message="LightningCLI's args parameter is intended to run from within Python")


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
