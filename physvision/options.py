"""Options of commands: from the signatures of functions, the command line, and configurations that are read strictly.

A configuration file never reaches the parser of the command line, which would import what a file names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from physvision.core.errors import InputError
from physvision.core.resources import find
from physvision.core.yaml_reader import read_yaml

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

# A function; or a function and its first argument, whose docstring describes the command. If that is a class, its
# fields are options too.
Command = Callable[..., Any] | tuple[Callable[..., Any], Any]
_CONFIG = "--config"


def run_function(program: str, command: Command, arguments: list[str]) -> Any:
    """Call a command with the options that `arguments` give, required ones by position."""
    return _run(command, function_parser(program, command), *_split(arguments, ""))


def function_parser(program: str, command: Command) -> ArgumentParser:
    """Build the parser of a command's options, required ones by position."""
    return _build_parser(program, command, _describe(_unpack(command)[0]), as_positional=True)


def run_subcommand(program: str, commands: dict[str, Command], arguments: list[str], folder: str) -> Any:
    """Call the subcommand that the first argument names with the options that follow it.

    Args:
        program: Name of the program in its help.
        commands: Subcommands by name.
        arguments: Name of the subcommand and its options.
        folder: Folder of shipped configurations that can be named without a path; "" for none.
    """
    from jsonargparse import ArgumentParser

    name, *rest = arguments
    if name in ("-h", "--help"):
        parser = ArgumentParser(prog=program)
        subcommands = parser.add_subcommands()
        for entry, command in commands.items():
            subcommands.add_subcommand(entry, ArgumentParser(), help=_summary(command))
        parser.parse_args(["--help"])
    if name not in commands:
        raise InputError(f"expected one of {', '.join(commands)}, got {name!r}")
    return _run(commands[name], subcommand_parser(f"{program} {name}", commands[name]), *_split(rest, folder))


def subcommand_parser(program: str, command: Command) -> ArgumentParser:
    """Build the parser of a subcommand's options, the fields of its settings among them."""
    return _build_parser(program, command, _summary(command), as_positional=False)


def _build_parser(program: str, command: Command, description: str, as_positional: bool) -> ArgumentParser:
    from jsonargparse import ArgumentParser

    function, given, kind = _unpack(command)
    parser = ArgumentParser(prog=program, description=description)
    parser.add_argument(_CONFIG, type=str, help="path of a configuration file; other options lie above its values")
    parser.add_function_arguments(
        function, as_group=False, as_positional=as_positional, skip={len(given)} if given else None
    )
    if kind is not None:
        parser.add_class_arguments(kind, as_group=False, as_positional=as_positional)
    return parser


def _run(command: Command, parser: ArgumentParser, options: list[str], values: dict[str, Any]) -> Any:
    """Call a command with its options, which lie above the values of configurations."""
    function, given, kind = _unpack(command)
    parsed = _parse(parser, options, _defaults(function, kind, values, len(given)))
    if kind is not None:
        given = [kind(**{field.name: parsed.pop(field.name) for field in fields(kind)})]  # pyright: ignore
    return function(*given, **parsed)


def _unpack(command: Command) -> tuple[Callable[..., Any], list[Any], type | None]:
    """Return a command's function, the first argument if it is given, and that argument if it is a class."""
    function, *given = command if isinstance(command, tuple) else (command,)
    return function, given, given[0] if given and isinstance(given[0], type) else None


def _summary(command: Command) -> str:
    described = command[1] if isinstance(command, tuple) else command
    return (described.__doc__ or "").partition("\n")[0]


def _describe(function: Callable[..., Any]) -> str:
    """Return a function's docstring without the sections on arguments and errors, which are those of options."""
    return re.split(r"\n\s*(?:Args|Returns|Raises):", function.__doc__ or "")[0].strip()


def take_option(arguments: list[str], option: str, value_name: str) -> tuple[list[str], list[str]]:
    """Return the arguments without an option that may stand several times, and its values.

    Raises:
        InputError: The last one has no value.
    """
    rest: list[str] = []
    values: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        name, separator, value = argument.partition("=")
        if name != option:
            rest.append(argument)
            continue
        if not separator and (value := next(waiting, "")) == "":
            raise InputError(f"{option}: expected {value_name} after it")
        values.append(value)
    return rest, values


def _split(arguments: list[str], folder: str) -> tuple[list[str], dict[str, Any]]:
    """Return the arguments without configurations, and the values of these, the later above the earlier."""
    from physvision.core.serialization import overlay

    options, paths = take_option(arguments, _CONFIG, "a path")
    values: dict[str, Any] = {}
    for path in paths:
        values = overlay(values, read_yaml(find(path, folder) if folder else path))
    return options, values


def _defaults(function: Callable[..., Any], kind: Any, values: dict[str, Any], skip: int = 0) -> dict[str, Any]:
    """Check the values of configurations against the annotations, and return them as defaults of the parser.

    Raises:
        InputError: A value does not fit, or an option is unknown.
    """
    if not values:
        return {}
    from physvision.core.serialization import build_arguments

    names = {field.name for field in fields(kind)} if kind is not None else set()
    own = {key: value for key, value in values.items() if key in names}
    built = build_arguments(kind, own, "", complete=False) if kind is not None else {}
    rest = {key: value for key, value in values.items() if key not in names}
    built |= build_arguments(function, rest, "", complete=False, skip=skip)
    return _flat(values, built)


def _flat(values: dict[str, Any], built: Any, prefix: str = "") -> dict[str, Any]:
    """Plain values by dotted name, where the parser has an option for each field of a dataclass."""
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        entry = built[key] if isinstance(built, dict) else getattr(built, key)
        if is_dataclass(entry):
            defaults |= _flat(value, entry, f"{prefix}{key}.")
        else:
            defaults[f"{prefix}{key}"] = value
    return defaults


def _parse(parser: ArgumentParser, arguments: list[str], defaults: dict[str, Any]) -> dict[str, Any]:
    for action in parser._actions:
        # Options of whole groups would read files, and import what these name.
        if type(action).__name__ == "_ActionConfigLoad" and any(
            argument.partition("=")[0] in action.option_strings for argument in arguments
        ):
            option = action.option_strings[0]
            raise InputError(f"{option}: expected its values one by one, {option}.NAME VALUE, or {_CONFIG} FILE")
    parser.set_defaults(defaults)
    # Before jsonargparse 4.49 this method had another name.
    instantiate = getattr(parser, "instantiate", None) or parser.instantiate_classes
    parsed = dict(vars(instantiate(parser.parse_args(_with_switches(arguments, parser)))))
    del parsed["config"]
    return parsed


def _with_switches(arguments: list[str], parser: ArgumentParser) -> list[str]:
    """Return the arguments with a value for each boolean option: `--force` and `--no-film` need none."""
    switches = {
        option
        for action in parser._actions
        if getattr(action, "_typehint", None) in (bool, "bool")
        for option in action.option_strings
    }
    expanded = []
    for option, following in zip(arguments, [*arguments, ""][1:], strict=True):
        if option in switches and following.lower() not in ("true", "false"):
            option += "=true"
        elif option.startswith("--no-") and f"--{option[5:]}" in switches:
            option = f"--{option[5:]}=false"
        expanded.append(option)
    return expanded
