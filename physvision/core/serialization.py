"""Plain values, as JSON and YAML hold them, made into what annotations ask for, and back; nothing is imported or run.

A configuration describes a part, a class or a function that is registered, by its name and arguments:

    {"class_path": "physvision.models.StatePerceptron", "init_args": {"coordinates": {"size": 2}, "hidden": 64}}

An argument is a number, a text, a list, another part, the name of a registered function, or, where a dataclass is
asked for, its fields. Names are looked up in the registry and nowhere else; any other text is just text.
"""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor, nn

from physvision.core.errors import InputError
from physvision.core.registry import look_up, name_of, note_arguments, noted_arguments

CLASS, ARGUMENTS = "class_path", "init_args"
# No configuration that means well is larger; one that is costs time and memory before it can be refused.
_DEEPEST, _MOST_VALUES, _LONGEST = 40, 100_000, 1_000

Wanted = TypeVar("Wanted")


def check_size(configuration: Any, name: str = "configuration") -> None:
    """Refuse plain values that are nested too deeply or too many, without following them far."""
    waiting, values = [(configuration, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        values += 1
        if depth > _DEEPEST or values > _MOST_VALUES:
            raise InputError(f"{name}: more than {_DEEPEST} levels or {_MOST_VALUES:,} values; nothing needs so many")
        if isinstance(value, list | tuple | dict):
            if len(value) > _LONGEST:
                raise InputError(f"{name}: a list of {len(value):,} values; expected at most {_LONGEST:,}")
            inside = [*value.keys(), *value.values()] if isinstance(value, dict) else value
            waiting += [(each, depth + 1) for each in inside]


def build(configuration: Any, wanted: type[Wanted] | Any = object, name: str = "") -> Wanted:
    """The part that plain values describe, which must be a `wanted`.

    Raises:
        InputError: they name what is not registered, or do not make sense.
    """
    check_size(configuration)
    return _made(configuration, wanted, name)


def of_fields(kind: type[Wanted], values: Any, name: str) -> Wanted:
    """The dataclass `kind` of plain values of its fields, all of which must have the types that it asks for."""
    check_size(values, name)
    return _dataclass(values, kind, name)


def _made(value: Any, hint: Any, name: str) -> Any:
    """`value` as `hint` asks for it; `name` is where it stands, for messages."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _alternative(value, arguments, name)
    if isinstance(value, Mapping) and CLASS in value:
        return _part(value, origin or hint, name)
    if hint in (Any, object, inspect.Parameter.empty) or isinstance(hint, TypeVar):
        return _anything(value, name)
    if origin is Literal:
        return _checked(value, value in arguments, f"one of {', '.join(map(repr, arguments))}", name)
    if hint is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(_checked(value, number, "a number", name))
    if hint in (int, bool, str, type(None)):
        return _checked(value, type(value) is hint, hint.__name__, name)
    if hint is Callable or origin is Callable:
        return look_up(_checked(value, isinstance(value, str), "the name of a registered function", name))
    kind = origin or hint
    if not isinstance(kind, type):
        return _anything(value, name)
    return _of_type(value, kind, arguments, name)


def _of_type(value: Any, kind: type, arguments: tuple[Any, ...], name: str) -> Any:
    if issubclass(kind, tuple | list | Sequence) and not issubclass(kind, str):
        return _sequence(value, kind, arguments, name)
    if issubclass(kind, Mapping):
        inner = arguments[1] if len(arguments) == 2 else Any
        _checked(value, isinstance(value, Mapping), "a mapping", name)
        return {key: _made(each, inner, f"{name}.{key}") for key, each in value.items()}
    if is_dataclass(kind):
        return _dataclass(value, kind, name)
    if kind is np.ndarray:
        return np.asarray(_numbers(value, name), float)
    # Annotations of shapes say what kind of array they hold.
    if getattr(kind, "array_type", kind) is Tensor:
        return _tensor(value, name)
    if kind in (Path, os.PathLike):
        return Path(_checked(value, isinstance(value, str), "a path", name))
    return _checked(value, isinstance(value, kind), f"a part, {{{CLASS}: …, {ARGUMENTS}: …}}", name)


def _checked(value: Any, good: bool, expected: str, name: str) -> Any:
    if not good:
        raise InputError(f"{name or 'configuration'}: expected {expected}, got {_brief(value)}")
    return value


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def _anything(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _made(each, Any, f"{name}.{key}") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_made(each, Any, f"{name}[{index}]") for index, each in enumerate(value)]
    return value


def _alternative(value: Any, hints: tuple[Any, ...], name: str) -> Any:
    """The first of `hints` that `value` fits; of numbers that of the very same type."""
    if type(value) in hints:
        return value
    faults = []
    for hint in hints:
        try:
            return _made(value, hint, name)
        except InputError as error:
            faults.append((hint is type(None), error))
    # The message of what could have been meant.
    raise min(faults, key=lambda fault: fault[0])[1]


def _sequence(value: Any, kind: type, hints: tuple[Any, ...], name: str) -> Any:
    _checked(value, isinstance(value, list | tuple), "a list", name)
    if kind is tuple and hints and hints[-1] is not Ellipsis:
        _checked(value, len(value) == len(hints), f"{len(hints)} values", name)
        each = hints
    else:
        each = [hints[0] if hints else Any] * len(value)
    made = [_made(part, hint, f"{name}[{k}]") for k, (part, hint) in enumerate(zip(value, each, strict=True))]
    return tuple(made) if kind is tuple else made


def _numbers(value: Any, name: str) -> Any:
    if isinstance(value, list | tuple):
        return [_numbers(each, name) for each in value]
    return _made(value, bool | int | float, name)


def _tensor(value: Any, name: str) -> Tensor:
    kind = None
    if isinstance(value, Mapping):
        _checked(value, set(value) == {"values", "dtype"}, "values and dtype", name)
        kind = getattr(torch, _made(value["dtype"], Literal["float32", "float64", "int64", "bool"], name))
        value = value["values"]
    try:
        return torch.tensor(_numbers(value, name), dtype=kind)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{name}: makes no tensor ({error})") from error


def _dataclass(value: Any, kind: type[Wanted], name: str) -> Wanted:
    _checked(value, isinstance(value, Mapping), f"the fields of a {kind.__name__}", name)
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind) if field.init}  # pyright: ignore[reportArgumentType]
    needed = {key for key, field in known.items() if field.default is MISSING and field.default_factory is MISSING}
    return kind(**_arguments(value, {key: hints[key] for key in known}, needed, name))


def _arguments(values: Mapping[str, Any], hints: Mapping[str, Any], needed: set[str], name: str) -> dict[str, Any]:
    unknown, missing = [key for key in values if key not in hints], sorted(needed - set(values))
    if unknown or missing:
        wrong = f"there is no {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
        raise InputError(f"{name or 'configuration'}: {wrong}; expected {', '.join(hints) or 'nothing'}")
    return {key: _made(value, hints[key], f"{name}.{key}" if name else key) for key, value in values.items()}


def _part(value: Mapping[str, Any], wanted: Any, name: str) -> Any:
    """What a registered class or function makes of its arguments."""
    _checked(value, set(value) <= {CLASS, ARGUMENTS}, f"{CLASS} and {ARGUMENTS} alone", name)
    given = value.get(ARGUMENTS) or {}
    _checked(given, isinstance(given, Mapping), "arguments by name", f"{name}.{ARGUMENTS}".strip("."))
    part = look_up(value[CLASS])
    own = isinstance(part, type) and not is_dataclass(part)
    hints = get_type_hints(part.__init__ if own else part)
    parameters = dict(inspect.signature(part).parameters)
    named = {key: hints.get(key, Any) for key, each in parameters.items() if each.kind is not each.VAR_KEYWORD}
    if len(named) < len(parameters):
        named |= {key: Any for key in given if key not in named}
    needed = {key for key, each in parameters.items() if each.default is each.empty and key in hints}
    arguments = _arguments(given, named, needed & set(named), name)
    made = part(**arguments)
    if isinstance(wanted, type) and wanted is not object and not isinstance(made, wanted):
        raise InputError(f"{name or 'configuration'}: expected a {wanted.__name__}, {value[CLASS]} makes another thing")
    if isinstance(made, nn.Module) and not isinstance(part, type):
        note_arguments(made, value[CLASS], arguments)
    return made


def configuration_of(part: Any) -> dict[str, Any]:
    """The plain values from which `build` makes a part like this one.

    Raises:
        InputError: its class is not registered, or an argument that it was made with cannot be written down.
    """
    name, arguments = noted_arguments(part)
    # A module that was exchanged after it was given is described as it is now.
    current = {
        key: getattr(part, key, None) if isinstance(value, nn.Module) else value for key, value in arguments.items()
    }
    arguments = {key: value if current[key] is None else current[key] for key, value in arguments.items()}
    numbers: dict[int, int] = {}
    return {CLASS: name, ARGUMENTS: {key: _plain(value, f"{name}.{key}", numbers) for key, value in arguments.items()}}


def _plain(value: Any, name: str, numbers: dict[int, int]) -> Any:
    """`value` as plain values; `numbers` are those of what was met in lists, where others may refer to it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Tensor):
        return {"values": value.detach().cpu().tolist(), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(each, f"{name}.{key}", numbers) for key, each in value.items()}
    if isinstance(value, list | tuple | range):
        listed = []
        for index, each in enumerate(value):
            listed.append(_plain(each, f"{name}[{index}]", numbers))
            numbers[id(each)] = index
        return listed
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_dataclass(value, name, numbers)
    if isinstance(value, nn.Module):
        return configuration_of(value)
    if (known := name_of(value)) is not None:
        return known
    raise InputError(
        f"{name}: a {type(value).__name__} cannot be written down; register it by physvision.models.register"
    )


def _plain_dataclass(value: Any, name: str, numbers: dict[int, int]) -> Any:
    # What is compared by identity, as a body that a joint holds, is referred to by its number among those before.
    if type(value).__eq__ is object.__eq__ and id(value) in numbers:
        return numbers[id(value)]
    inside = {
        field.name: _plain(getattr(value, field.name), f"{name}.{field.name}", numbers)
        for field in fields(value)
        if field.init
    }
    for kind in type(value).__mro__:
        # A class that is made otherwise than of its fields is written down as the one that it derives from.
        known = name_of(kind)
        if known is not None and set(inspect.signature(kind).parameters) <= set(inside):
            return {CLASS: known, ARGUMENTS: inside}
    return inside
