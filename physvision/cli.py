"""Command line `physvision`: a table of subcommands, whose modules are imported when they are called."""

from __future__ import annotations

import difflib
import importlib
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

# A function; or a function and its first argument, whose docstring describes the command. If that is a class, its
# fields are options too.
Command = Callable[..., Any] | tuple[Callable[..., Any], Any]

# Name: (function, as module of physvision:name, and line of `physvision --help`).
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo:demo", "predict the motion in sample videos, identify a pendulum, and write reports"),
    "predict": ("prediction.command:predict", "estimate states in a video with a checkpoint, and predict the motion"),
    "identify": ("identification.command:run_command", "identify the motion in a video and its physical parameters"),
    "simulate": ("simulation:command", "simulate a mechanism from an MJCF or URDF file, and render a video"),
    "control": ("control.command:COMMANDS", "swing up a pendulum or play Breakout by control, and render a video"),
    "generate": ("datasets.commands:generate", "generate a data set of synthetic videos with their true states"),
    "import": ("datasets.commands:import_", "convert your own video to a data set"),
    "show": ("datasets.showing:show", "draw the states of a data set over its frames"),
    "verify": ("datasets.commands:verify", "check the files of a data set for damage"),
    "repair": ("datasets.registry:repair", "generate missing and damaged files of a data set again"),
    "fit": ("trainers.commands:run", "train a model, for example with --config trainers/pendulum.yaml"),
    "validate": ("trainers.commands:run", "evaluate a model on the validation set"),
    "test": ("trainers.commands:run", "evaluate a model on the test set"),
    "learn": ("learning.command:COMMANDS", "train a policy by SAC, MBPO or SHAC, such as mbpo --config links.yaml"),
    "fit-flow": ("trainers.commands:fit_flow", "train the optical-flow network"),
    "fit-policy": ("trainers.commands:fit_policy", "train a policy that swings up a pendulum from camera frames"),
    "export": ("models.export:export", "export a trained model to ONNX or to a torch program"),
}

# Commands whose options Lightning's command line parses.
TRAINING = ("fit", "validate", "test", "fit-flow", "fit-policy")
# Folders of the shipped configurations that a command takes by name.
SHIPPED = {"generate": "datasets", "learn": "trainers"}


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    head = ["usage: physvision COMMAND [OPTION ...]", "", "Video in, physics out.", "", "commands:"]
    examples = ["physvision demo", "physvision predict my.mp4 --checkpoint pendulum --fps 20 --size 100"]
    examples += ["physvision COMMAND --help", "physvision --version"]
    return "\n".join([*head, *lines, "", "for example:", *(f"  {example}" for example in examples)])


def main(arguments: list[str] | None = None) -> int:
    """Run a command line, that of the process by default, and return the exit status."""
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
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(COMMANDS)}"
        print(f"physvision: there is no command {name!r}; {hint}", file=sys.stderr)
        return 2
    return _call(name, rest)


def _call(name: str, arguments: list[str]) -> int:
    from jsonargparse import auto_cli, auto_parser

    from physvision.core import PhysvisionError
    from physvision.core.yaml_reader import check_yaml

    module, function = COMMANDS[name][0].split(":")
    try:
        for path in _configurations(arguments):
            check_yaml(path)
        if name == "identify" and arguments and not {"-h", "--help"} & set(arguments):
            print("physvision identify: loading", file=sys.stderr, flush=True)  # imports and tracking take a while
        called = getattr(importlib.import_module(f"physvision.{module}"), function)
        if name in TRAINING:
            return called(name, arguments)
        if name in SHIPPED:
            arguments = _with_recipes(arguments, SHIPPED[name])
        if name == "identify":
            return called(arguments)
        if isinstance(called, dict):
            result = _run_subcommand(f"physvision {name}", called, arguments or ["--help"])
        else:
            arguments = _with_switches(arguments, auto_parser(called))
            result = auto_cli(called, args=arguments, prog=f"physvision {name}")
    except PhysvisionError as error:
        print(f"physvision {name}: {_in_options(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"physvision {name}: interrupted", file=sys.stderr)
        return 130
    if isinstance(result, Path):
        print(result)
    return result if isinstance(result, int) else 0


def _run_subcommand(program: str, commands: dict[str, Command], arguments: list[str]) -> Any:
    """Call the subcommand that the first argument names with the options that follow it."""
    from jsonargparse import ArgumentParser

    from physvision.core import InputError

    if not arguments[0].startswith("-") and arguments[0] not in commands:
        raise InputError(f"expected one of {', '.join(commands)}, got {arguments[0]!r}")
    parser = ArgumentParser(prog=program)
    subcommands = parser.add_subcommands()
    for name, command in commands.items():
        function, *given = command if isinstance(command, tuple) else (command,)
        described: Any = given[0] if given else function
        summary = (described.__doc__ or "").partition("\n")[0]
        options = ArgumentParser(description=summary)
        options.add_argument("--config", action="config", help="path of a configuration file")
        options.add_function_arguments(function, as_group=False, skip={len(given)})
        if isinstance(described, type):
            options.add_class_arguments(described, as_group=False)
        subcommands.add_subcommand(name, options, help=summary)
    # Before jsonargparse 4.49 this method had another name.
    instantiate = getattr(parser, "instantiate", None) or parser.instantiate_classes
    parsed: Any = instantiate(parser.parse_args(_with_switches(arguments, parser)))
    command, values = commands[parsed.subcommand], dict(vars(parsed[parsed.subcommand]))
    del values["config"]
    function, *given = command if isinstance(command, tuple) else (command,)
    if given and isinstance(given[0], type):
        given = [given[0](**{field.name: values.pop(field.name) for field in fields(given[0])})]
    return function(*given, **values)


def _configurations(arguments: list[str]) -> list[str]:
    """Return the configuration files among the arguments, without names of shipped ones."""
    paths = [value for option, value in pairwise(arguments) if option == "--config"]
    paths += [argument.removeprefix("--config=") for argument in arguments if argument.startswith("--config=")]
    return [path for path in paths if Path(path).is_file()]


def _with_recipes(arguments: list[str], folder: str) -> list[str]:
    """Return the arguments with the names of shipped configurations replaced by their paths."""
    from physvision.core.resources import find

    pairs = zip(["", *arguments], arguments, strict=False)
    return [str(find(_name(value, folder), folder)) if option == "--config" else value for option, value in pairs]


def _name(path: str, folder: str) -> str:
    """Return the bare name of a missing file in a folder of shipped configurations, other paths as they are."""
    return Path(path).name if not Path(path).exists() and Path(path).parent.name == folder else path


def _with_switches(arguments: list[str], parser: ArgumentParser) -> list[str]:
    """Return the arguments with a value for each boolean option: `--force` and `--no-film` need none."""
    switches = _boolean_options(parser)
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
    """Rewrite Python arguments in a message, such as `fps=20`, as command-line options."""

    def option(match: re.Match[str]) -> str:
        name, value = match.groups()
        if value in ("True", "False"):
            return f"--{name}" if value == "True" else f"--no-{name}"
        return f"--{name} {re.sub('[() ]', '', value)}"

    return re.sub(r"`(\w+)=([^`]+)`", option, message)


if __name__ == "__main__":
    sys.exit(main())
