"""The command `physvision`: one line a subcommand, each imported only when it is called."""

from __future__ import annotations

import importlib
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

# Name: (function that it calls, what `physvision --help` says of it).
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": (
        "physvision.demo:demo",
        "make videos, predict what happens in them, find a law, and say where the reports are",
    ),
    "predict": ("physvision.prediction.command:predict", "see what moves in a video, and predict what happens next"),
    "identify": ("physvision.identification.command:run_command", "identify the motion in a video and its parameters"),
    "simulate": ("physvision.simulation:command", "simulate a mechanism from an MJCF or URDF file, and film it"),
    "control": ("physvision.control.command:COMMANDS", "swing up a pendulum or play Breakout by control, and film it"),
    "generate": (
        "physvision.datasets.commands:generate",
        "make a data set: videos of billiards, a pendulum, an elastic block or stirred dye",
    ),
    "import": ("physvision.datasets.commands:import_", "make a data set of your own video"),
    "show": ("physvision.datasets.commands:show", "draw the states of a data set over its frames"),
    "verify": ("physvision.datasets.commands:verify", "check the files of a data set for damage"),
    "repair": ("physvision.datasets.commands:repair", "make missing and damaged files of a data set again"),
    "fit": ("physvision.trainers.commands:run", "train a model, for example with --config trainers/pendulum.yaml"),
    "validate": ("physvision.trainers.commands:run", "measure a model on data that was kept for choosing settings"),
    "test": ("physvision.trainers.commands:run", "measure a model on data that was kept for the end"),
    "learn": (
        "physvision.learning.command:COMMANDS",
        "train a policy by SAC, MBPO or SHAC, for example with mbpo --config links.yaml",
    ),
    "fit-flow": ("physvision.trainers.commands:fit_flow", "train the network that sees how pixels move"),
    "fit-policy": ("physvision.trainers.commands:fit_policy", "train a pendulum to swing up by what a camera sees"),
    "export": ("physvision.models.export:export", "write a trained model as one file, as ONNX or for torch alone"),
}

# Those that Lightning's own command line reads.
TRAINING = ("fit", "validate", "test", "fit-flow", "fit-policy")
# Folders of the configurations that come with physvision, of commands that take them by name.
SHIPPED = {"generate": "datasets", "learn": "trainers"}


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    head = ["usage: physvision COMMAND [OPTION ...]", "", "Video in, physics out.", "", "commands:"]
    examples = ["physvision demo", "physvision predict my.mp4 --checkpoint pendulum --fps 20 --size 100"]
    examples += ["physvision COMMAND --help", "physvision --version"]
    return "\n".join([*head, *lines, "", "for example:", *(f"  {each}" for each in examples)])


def main(arguments: list[str] | None = None) -> int:
    """Run the command line `arguments` (those of the process by default); the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        return 0
    if arguments[0] == "--version":
        from physvision import __version__

        print(f"physvision {__version__}")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        print(f"physvision: no command {name!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    return _call(name, rest)


def _call(name: str, arguments: list[str]) -> int:
    from jsonargparse import auto_cli

    from physvision.core import InputError, PhysvisionError
    from physvision.core.yaml_reader import check_yaml

    module, function = COMMANDS[name][0].split(":")
    try:
        for path in _configurations(arguments):
            check_yaml(path)
        called = getattr(importlib.import_module(module), function)
        if name in TRAINING:
            return called(name, arguments)
        if name in SHIPPED:
            arguments = _with_recipes(arguments, SHIPPED[name])
        if name == "identify":
            return called(arguments)
        if isinstance(called, dict):
            arguments = arguments or ["--help"]
            if not arguments[0].startswith("-") and arguments[0] not in called:
                raise InputError(f"expected one of {', '.join(called)}, got {arguments[0]!r}")
        result = auto_cli(called, args=_with_switches(arguments, called), prog=f"physvision {name}")
    except PhysvisionError as error:
        print(f"physvision {name}: {_in_options(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"physvision {name}: interrupted", file=sys.stderr)
        return 130
    return result if isinstance(result, int) else 0


def _configurations(arguments: list[str]) -> list[str]:
    """The files that are given as configurations; names of those that come with physvision are left out."""
    given = [value for option, value in pairwise(arguments) if option == "--config"]
    given += [argument.removeprefix("--config=") for argument in arguments if argument.startswith("--config=")]
    return [path for path in given if Path(path).is_file()]


def _with_recipes(arguments: list[str], folder: str) -> list[str]:
    """The arguments of a command; a configuration that comes with physvision goes by its name."""
    from physvision.core.resources import find

    given = zip(["", *arguments], arguments, strict=False)
    return [str(find(_name(value, folder), folder)) if option == "--config" else value for option, value in given]


def _name(path: str, folder: str) -> str:
    """The name of a file that is not there but may come with physvision."""
    return Path(path).name if not Path(path).exists() and Path(path).parent.name == folder else path


def _with_switches(arguments: list[str], called: Callable[..., object] | dict[str, Callable[..., object]]) -> list[str]:
    """Return the arguments with a value for each boolean option: `--force` and `--no-film` need none."""
    from jsonargparse import auto_parser

    switches = _boolean_options(auto_parser(called))
    expanded = []
    for option, following in zip(arguments, [*arguments, ""][1:], strict=True):
        if option in switches and following.lower() not in ("true", "false"):
            option += "=true"
        elif option.startswith("--no-") and f"--{option[5:]}" in switches:
            option = f"--{option[5:]}=false"
        expanded.append(option)
    return expanded


def _boolean_options(parser: ArgumentParser) -> set[str]:
    """Return the boolean options of a parser and of its subcommands."""
    options: set[str] = set()
    for action in parser._actions:
        if isinstance(action.choices, dict):
            options.update(*map(_boolean_options, action.choices.values()))
        elif getattr(action, "_typehint", None) in (bool, "bool"):
            options.update(action.option_strings)
    return options


def _in_options(message: str) -> str:
    """The message with the Python arguments that it advises, as `fps=20`, written as options."""

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        if value in ("True", "False"):
            return f"--{name}" if value == "True" else f"--no-{name}"
        return f"--{name} {re.sub('[() ]', '', value)}"

    return re.sub(r"`(\w+)=([^`]+)`", option, message)


if __name__ == "__main__":
    sys.exit(main())
