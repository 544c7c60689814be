"""Build objects from configurations in JSON or YAML, and write configurations of objects; nothing is imported.

A configuration describes an object by the name of a registered class or function and its arguments:

    {"class_path": "physvision.models.StatePerceptron", "init_args": {"coordinates": {"size": 2}, "hidden": 64}}

An argument is a number, a string, a list, another such description, the name of a registered function, or a mapping of
the fields of a dataclass, as annotations demand. Names are looked up in the registry and nowhere else.
"""

from __future__ import annotations

import inspect
import math
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor, nn

from physvision.core.errors import InputError
from physvision.core.registry import is_registered, look_up, name_of, note_arguments, noted_arguments, reads_files

CLASS, ARGUMENTS = "class_path", "init_args"
# Limits far above every honest configuration, so that a hostile one is rejected before it costs time and memory.
MAX_DEPTH, _MAX_VALUES, _MAX_LIST_LENGTH = 40, 100_000, 1_000

Target = TypeVar("Target")


def check_size(configuration: Any, name: str = "configuration") -> None:
    """Raise an error for a configuration that is nested too deeply, holds too many values, or NaN."""
    stack, values = [(configuration, 0)], 0
    while stack:
        value, depth = stack.pop()
        values += 1
        if depth > MAX_DEPTH or values > _MAX_VALUES:
            raise InputError(f"{name}: expected at most {MAX_DEPTH} levels and {_MAX_VALUES:,} values")
        if isinstance(value, float) and math.isnan(value):
            raise InputError(f"{name}: expected numbers, got NaN")
        if isinstance(value, list | tuple | dict):
            if len(value) > _MAX_LIST_LENGTH:
                raise InputError(f"{name}: a list of {len(value):,} values; expected at most {_MAX_LIST_LENGTH:,}")
            children = [*value.keys(), *value.values()] if isinstance(value, dict) else value
            stack += [(child, depth + 1) for child in children]


def build(configuration: Any, target: type[Target] | Any = object, name: str = "") -> Target:
    """Build the object that a configuration describes, which must be an instance of `target`.

    Raises:
        InputError: The configuration names something that is not registered, or does not fit the annotations.
    """
    check_size(configuration)
    return _build_value(configuration, target, name)


def build_arguments(
    function: Callable[..., Any], values: Any, name: str, *, complete: bool = True, skip: int = 0
) -> dict[str, Any]:
    """Build the arguments of a function or class from a mapping of plain values.

    Args:
        function: Function or class that the program chose.
        values: Mapping of its arguments to plain values.
        name: Name of the mapping in messages.
        complete: If true, arguments without a default must be given.
        skip: Number of first arguments that the mapping must not give.
    """
    check_size(values, name)
    _checked(values, isinstance(values, Mapping), "options and their values", name)
    return _call_arguments(function, values, name, complete, skip)


def overlay(below: Any, above: Any) -> Any:
    """Lay plain values over others; a part of another class forgets the arguments of the one that it replaces.

    A key that ends with + adds to the list below it; lists are replaced otherwise.
    """
    if not isinstance(above, dict):
        return above
    is_other = not isinstance(below, dict) or (CLASS in above and above[CLASS] != below.get(CLASS))
    merged = {} if is_other else dict(below)
    for key, value in above.items():
        name = key.removesuffix("+") if isinstance(key, str) else key
        merged[name] = overlay(merged.get(key), value) if name == key else [*_listed(merged.get(name)), *_listed(value)]
    return merged


def _listed(value: Any) -> list[Any]:
    """A list as it is, no value as an empty list, and any other value as a list of it."""
    return value if isinstance(value, list) else [] if value is None else [value]


def build_dataclass(kind: type[Target], values: Any, name: str) -> Target:
    """Build a dataclass from a mapping of its fields, all of which must have the annotated types."""
    check_size(values, name)
    return _dataclass(values, kind, name)


def _build_value(value: Any, hint: Any, name: str) -> Any:
    """Build `value` as the annotation `hint` demands; `name` is its path in messages."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _alternative(value, arguments, name)
    if isinstance(value, Mapping) and CLASS in value:
        return _build_registered(value, origin or hint, name)
    if hint in (Any, object, inspect.Parameter.empty) or isinstance(hint, TypeVar):
        return _build_untyped(value, name)
    if origin is Literal:
        return _checked(value, value in arguments, f"one of {', '.join(map(repr, arguments))}", name)
    if hint is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(_checked(value, number, "a number", name))
    if hint in (int, bool, str, type(None)):
        return _checked(value, type(value) is hint, hint.__name__, name)
    if hint is Callable or origin is Callable:
        return look_up(_checked(value, isinstance(value, str), "the name of a registered function", name), name)
    kind = origin or hint
    if not isinstance(kind, type):
        return _build_untyped(value, name)
    return _of_type(value, kind, arguments, name)


def _of_type(value: Any, kind: type, arguments: tuple[Any, ...], name: str) -> Any:
    if kind is Iterable or (issubclass(kind, tuple | list | Sequence) and not issubclass(kind, str)):
        return _sequence(value, kind, arguments, name)
    if issubclass(kind, Mapping):
        keys, inner = arguments if len(arguments) == 2 else (Any, Any)
        _checked(value, isinstance(value, Mapping), "a mapping", name)
        # JSON has no keys but strings.
        names = [int(key) if keys is int and str(key).isdecimal() else _build_value(key, keys, name) for key in value]
        pairs = zip(names, value.values(), strict=True)
        return {key: _build_value(entry, inner, f"{name}.{key}") for key, entry in pairs}
    if is_dataclass(kind):
        return _dataclass(value, kind, name)
    if kind is np.ndarray:
        return np.asarray(_numbers(value, name), float)
    # Annotations of shapes say what kind of array they hold.
    if getattr(kind, "array_type", kind) is Tensor:
        return _tensor(value, name)
    if kind in (Path, os.PathLike):
        return Path(_checked(value, isinstance(value, str), "a path", name))
    # The annotation says which class it is, so that its arguments are enough.
    if isinstance(value, Mapping) and (registered := name_of(kind)) is not None:
        return _build_registered({CLASS: registered, ARGUMENTS: value}, kind, name)
    return _checked(value, isinstance(value, kind), f"an object, {{{CLASS}: …, {ARGUMENTS}: …}}", name)


def _checked(value: Any, valid: bool, expected: str, name: str) -> Any:
    if not valid:
        raise InputError(f"{name or 'configuration'}: expected {expected}, got {_shorten(value)}")
    return value


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def _build_untyped(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _build_value(entry, Any, f"{name}.{key}") for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_build_value(entry, Any, f"{name}[{index}]") for index, entry in enumerate(value)]
    return value


def _alternative(value: Any, hints: tuple[Any, ...], name: str) -> Any:
    """Build `value` as the first of `hints` that it fits; an exact type match comes first."""
    if type(value) in hints:
        return value
    faults = []
    for hint in hints:
        try:
            return _build_value(value, hint, name)
        except InputError as error:
            faults.append((hint is type(None), error))
    # The error of an alternative other than None says most.
    raise min(faults, key=lambda fault: fault[0])[1]


def _sequence(value: Any, kind: type, hints: tuple[Any, ...], name: str) -> Any:
    _checked(value, isinstance(value, list | tuple), "a list", name)
    if kind is tuple and hints and hints[-1] is not Ellipsis:
        _checked(value, len(value) == len(hints), f"{len(hints)} values", name)
        entry_hints = hints
    else:
        entry_hints = [hints[0] if hints else Any] * len(value)
    pairs = zip(value, entry_hints, strict=True)
    entries = [_build_value(entry, hint, f"{name}[{k}]") for k, (entry, hint) in enumerate(pairs)]
    return tuple(entries) if kind is tuple else entries


def _numbers(value: Any, name: str) -> Any:
    if isinstance(value, list | tuple):
        return [_numbers(entry, name) for entry in value]
    return _build_value(value, bool | int | float, name)


def _tensor(value: Any, name: str) -> Tensor:
    kind = None
    if isinstance(value, Mapping):
        _checked(value, set(value) == {"values", "dtype"}, "values and dtype", name)
        kind = getattr(torch, _build_value(value["dtype"], Literal["float32", "float64", "int64", "bool"], name))
        value = value["values"]
    try:
        return torch.tensor(_numbers(value, name), dtype=kind)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{name}: expected numbers of a tensor ({error})") from error


def _dataclass(value: Any, kind: type[Target], name: str) -> Target:
    _checked(value, isinstance(value, Mapping), f"the fields of a {kind.__name__}", name)
    hints = get_type_hints(kind)
    init_fields = [field for field in fields(kind) if field.init]  # pyright: ignore[reportArgumentType]
    required = {field.name for field in init_fields if field.default is MISSING and field.default_factory is MISSING}
    return kind(**_arguments(value, {field.name: hints[field.name] for field in init_fields}, required, name))


def _arguments(values: Mapping[str, Any], hints: Mapping[str, Any], required: set[str], name: str) -> dict[str, Any]:
    unknown, missing = [key for key in values if key not in hints], sorted(required - set(values))
    if unknown or missing:
        fault = f"unknown key {unknown[0]!r}" if unknown else f"missing key {missing[0]!r}"
        raise InputError(f"{name or 'configuration'}: {fault}; expected {', '.join(hints) or 'nothing'}")
    return {key: _build_value(value, hints[key], f"{name}.{key}" if name else key) for key, value in values.items()}


def _build_registered(value: Mapping[str, Any], target: Any, name: str) -> Any:
    """Call a registered class or function with its arguments."""
    _checked(value, set(value) <= {CLASS, ARGUMENTS}, f"{CLASS} and {ARGUMENTS} alone", name)
    values = value.get(ARGUMENTS) or {}
    _checked(values, isinstance(values, Mapping), "arguments by name", f"{name}.{ARGUMENTS}".strip("."))
    is_unnamed = isinstance(target, type) and is_dataclass(target) and name_of(target) is None
    if is_unnamed and not is_registered(value[CLASS]):
        keys = ", ".join(f"{field.name}: …" for field in fields(target) if field.init)
        text = f"names {_shorten(value[CLASS])}, which is not registered; give its values directly: {{{keys}}}"
        raise InputError(f"{name or 'configuration'}: {text}")
    factory = look_up(value[CLASS], name)
    arguments = _call_arguments(factory, values, name, complete=True)
    result = factory(**arguments)
    if isinstance(target, type) and target not in (object, Any) and not isinstance(result, target):
        raise InputError(
            f"{name or 'configuration'}: expected a {target.__name__}, {value[CLASS]} makes a {type(result).__name__}"
        )
    if isinstance(result, nn.Module) and not isinstance(factory, type) and not reads_files(factory):
        note_arguments(result, value[CLASS], arguments)
    return result


def _call_arguments(
    factory: Callable[..., Any], values: Mapping[str, Any], name: str, complete: bool, skip: int = 0
) -> dict[str, Any]:
    """Build the arguments of a class or function as its annotations demand."""
    has_init = isinstance(factory, type) and not is_dataclass(factory)
    hints = get_type_hints(factory.__init__ if has_init else factory)
    parameters = dict(list(inspect.signature(factory).parameters.items())[skip:])
    accepted = {key: hints.get(key, Any) for key, entry in parameters.items() if entry.kind is not entry.VAR_KEYWORD}
    if len(accepted) < len(parameters):
        accepted |= {key: Any for key in values if key not in accepted}
    required = {key for key in accepted if key in hints and parameters[key].default is inspect.Parameter.empty}
    return _arguments(values, accepted, required if complete else set(), name)


def configuration_of(instance: Any) -> dict[str, Any]:
    """Write the configuration from which `build` makes an equal object.

    Raises:
        InputError: The class is not registered, or a constructor argument cannot be represented.
    """
    name, arguments = noted_arguments(instance)
    # A module that was replaced after construction is described as it is now.
    modules = {key: getattr(instance, key, None) for key, value in arguments.items() if isinstance(value, nn.Module)}
    arguments = arguments | {key: module for key, module in modules.items() if module is not None}
    numbers: dict[int, int] = {}
    values = {key: _to_plain(value, f"{name}.{key}", numbers) for key, value in arguments.items()}
    return {CLASS: name, ARGUMENTS: values}


def _to_plain(value: Any, name: str, numbers: dict[int, int]) -> Any:
    """Convert `value` to plain values; `numbers` holds the indices of objects in lists, for references to them."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Tensor):
        return {"values": value.detach().cpu().tolist(), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _to_plain(entry, f"{name}.{key}", numbers) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        entries = []
        for index, entry in enumerate(value):
            entries.append(_to_plain(entry, f"{name}[{index}]", numbers))
            numbers[id(entry)] = index
        return entries
    if is_dataclass(value) and not isinstance(value, type):
        return _dataclass_to_plain(value, name, numbers)
    if isinstance(value, nn.Module):
        return configuration_of(value)
    if (registered := name_of(value)) is not None:
        return registered
    raise InputError(f"{name}: a {type(value).__name__} has no configuration; see physvision.models.register")


def _dataclass_to_plain(value: Any, name: str, numbers: dict[int, int]) -> Any:
    # Objects that are compared by identity, such as the bodies of a joint, are referred to by their index in the list.
    if type(value).__eq__ is object.__eq__ and id(value) in numbers:
        return numbers[id(value)]
    names = [field.name for field in fields(value) if field.init]
    values = {key: _to_plain(getattr(value, key), f"{name}.{key}", numbers) for key in names}
    for kind in type(value).__mro__:
        # A class whose constructor does not take its fields is written as the base class that does.
        registered = name_of(kind)
        if registered is not None and set(inspect.signature(kind).parameters) <= set(values):
            return {CLASS: registered, ARGUMENTS: values}
    return values
