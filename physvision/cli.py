"""Command line `physvision`: a table of subcommands, whose modules are imported when they are called."""

from __future__ import annotations

import argparse
import difflib
import importlib
import re
import sys
from pathlib import Path

# Name: (function, as module of physvision:name, and line of `physvision --help`).
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo:demo", "predict the motion in sample videos, identify a pendulum, and write reports"),
    "predict": ("prediction.command:COMMAND", "estimate states in a video with a checkpoint, and predict the motion"),
    "identify": ("identification.command:run_command", "identify the motion in a video and its physical parameters"),
    "open": ("app.command:run_command", "open a page in the browser: drop a clip, and find its physics"),
    "simulate": ("simulation:command", "simulate a mechanism from an MJCF or URDF file, and render a video"),
    "view": ("viewer.command:view", "look at a mechanism in the browser, pull it and steer it"),
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
    "fit-flow": ("trainers.commands:run", "train the optical-flow network"),
    "fit-policy": ("trainers.commands:run", "train a policy that swings up a pendulum from camera frames"),
    "export": ("models.export:export", "export a trained model to ONNX or to a torch program"),
    "models": ("model_list:list_models", "list the pretrained models with their size, task and accuracy"),
    "doctor": ("doctor:doctor", "describe this installation for an issue, and test it for two seconds"),
}

# Commands whose options Lightning's command line parses.
TRAINING = ("fit", "validate", "test", "fit-flow", "fit-policy")
# Commands that parse their own arguments.
PARSING = ("identify", "open")
# Folders of the shipped configurations that a command takes by name.
SHIPPED = {"generate": "datasets", "learn": "trainers"}


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    head = ["usage: physvision COMMAND [OPTION ...]", "", "Video in, physics out.", "", "commands:"]
    examples = ["physvision demo", "physvision predict my.mp4 --checkpoint pendulum --fps 20 --size 100"]
    examples += ["physvision COMMAND --help", "physvision --version"]
    lines += [
        "",
        "every command:",
        f"  {'--import MODULE':<{width}}  import your own module first, for what it registers",
    ]
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
    if name == "open" and not any(argument.startswith("--import") for argument in rest):
        from physvision.app.command import run_command

        return run_command(rest)  # its process imports no torch, so that the page appears at once
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(COMMANDS)}"
        print(f"physvision: there is no command {name!r}; {hint}", file=sys.stderr)
        return 2
    return _call(name, rest)


def build_parsers(name: str) -> list[argparse.ArgumentParser]:
    """Build the parser of a command, or those of its subcommands.

    Args:
        name: Name of the command, one of `COMMANDS`.
    """
    from physvision.options import function_parser, subcommand_parser

    place, function = COMMANDS[name][0].split(":")
    module, program = importlib.import_module(f"physvision.{place}"), f"physvision {name}"
    if name in TRAINING:
        return [module.build_parser(name)]
    if name in PARSING:
        return [module.build_parser()]
    called = getattr(module, function)
    if isinstance(called, dict):
        return [subcommand_parser(f"{program} {entry}", command) for entry, command in called.items()]
    return [function_parser(program, called)]


def _call(name: str, arguments: list[str]) -> int:
    from physvision.core import PhysvisionError
    from physvision.options import run_function, run_subcommand
    from physvision.plugins import load_plugins, split_imports

    module, function = COMMANDS[name][0].split(":")
    try:
        arguments, plugins = split_imports(arguments)
        load_plugins(plugins)
        if name == "identify" and arguments and not {"-h", "--help"} & set(arguments):
            print("physvision identify: loading", file=sys.stderr, flush=True)  # imports and tracking take a while
        called = getattr(importlib.import_module(f"physvision.{module}"), function)
        if name in TRAINING:
            return called(name, arguments, plugins)
        if name in PARSING:
            return called(arguments)
        if isinstance(called, dict):
            result = run_subcommand(f"physvision {name}", called, arguments or ["--help"], SHIPPED.get(name, ""))
        else:
            result = run_function(f"physvision {name}", called, arguments)
    except PhysvisionError as error:
        print(f"physvision {name}: {_in_options(str(error))}", file=sys.stderr)
        return 1
    except OSError as error:  # a full disk, a name that no file can have, a folder that may not be written to
        reason = f"{_shorten(error.filename)}: {error.strerror}" if error.filename is not None else str(error)
        print(f"physvision {name}: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"physvision {name}: interrupted", file=sys.stderr)
        return 130
    if isinstance(result, Path):
        print(result)
    return result if isinstance(result, int) else 0


def _shorten(name: object) -> str:
    text = str(name)
    return text if len(text) < 200 else f"{text[:200]}…"


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
