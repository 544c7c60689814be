"""Registry of the classes and functions that a configuration may name; it can name no others."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from torch import nn

from physvision.core.errors import InputError

Part = TypeVar("Part", bound=Callable[..., Any])

_PARTS: dict[str, Callable[..., Any]] = {}
_NAMES: dict[Callable[..., Any], str] = {}
_FILE_READERS: set[Callable[..., Any]] = set()
# Attribute in which a module keeps its registered name and its constructor arguments.
_NOTE = "_constructor"


def register(name: str, *, reads_files: bool = False) -> Callable[[Part], Part]:
    """Register a class or function for configurations and checkpoints: `@register("mine.Eye")`.

    Args:
        name: Unique name in configurations. A program that loads such a configuration must import the module that
            registers it first.
        reads_files: If true, it is a function that makes modules from files: a checkpoint describes these by their own
            class and arguments, so that it needs the files no more.
    """

    def decorator(part: Part) -> Part:
        if name in _PARTS:
            raise InputError(f"name: {name!r} is registered already, for {_PARTS[name]!r}")
        _PARTS[name], _NAMES[part] = part, name
        if reads_files:
            _FILE_READERS.add(part)
        if isinstance(part, type) and issubclass(part, nn.Module):
            _remember_arguments(part, name)
        return part  # pyright: ignore[reportReturnType]

    return decorator


def register_all(package: str, parts: Iterable[Callable[..., Any]]) -> None:
    """Register public classes and functions of a package under their own names."""
    for part in parts:
        register(f"{package}.{part.__name__}")(part)


def look_up(name: Any, place: str = "") -> Callable[..., Any]:
    """Return the class or function that is registered as `name`.

    Args:
        name: Name in a configuration.
        place: Key of the configuration that holds it, for the message.
    """
    part = _PARTS.get(name) if isinstance(name, str) else None
    if part is None:
        text = repr(name) if len(repr(name)) < 100 else f"{repr(name)[:97]}..."
        known = "a configuration may name classes and functions of physvision"
        if str(name).startswith("physvision."):
            near = difflib.get_close_matches(str(name)[:100], _PARTS, 1, cutoff=0.9)
            known += f"; did you mean {near[0]}?" if near else " that its reference lists"
        else:
            known += (
                ", and those that the program has registered with physvision.models.register: import your module "
                "first, on the command line by --import MODULE"
            )
            others = [entry for entry in _PARTS if entry.split(".")[0] not in ("physvision", "lightning", "torch")]
            known += f"; registered so far: {', '.join(sorted(others))}" if others else ""
        raise InputError(f"{place}{': ' if place else ''}names {text}, which is not registered; {known}")
    return part


def is_registered(name: Any) -> bool:
    """Return whether a class or function is registered as `name`."""
    return isinstance(name, str) and name in _PARTS


def name_of(part: Any) -> str | None:
    """Return the registered name of a class or function, or None."""
    return _NAMES.get(part) if callable(part) else None


def reads_files(part: Callable[..., Any]) -> bool:
    """Return whether a registered function makes modules from files."""
    return part in _FILE_READERS


def note_arguments(module: nn.Module, name: str, arguments: Mapping[str, Any]) -> None:
    """Record the constructor and arguments of `module`."""
    module.__dict__[_NOTE] = (name, dict(arguments))


def noted_arguments(module: Any) -> tuple[str, dict[str, Any]]:
    """Return the registered name of the constructor of `module`, and its arguments."""
    note = getattr(module, "__dict__", {}).get(_NOTE)
    if note is None:
        raise InputError(
            f"{type(module).__name__} is not registered, so it could not be built again; put "
            f'@register("my.{type(module).__name__}"), of physvision.models, above its class'
        )
    return note


def _remember_arguments(kind: type[nn.Module], name: str) -> None:
    """Make modules of exactly this class record their constructor arguments, defaults included."""
    init, signature = kind.__init__, inspect.signature(kind.__init__)

    @functools.wraps(init)
    def recording_init(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if type(self) is kind:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            _, *arguments = bound.arguments.items()
            keywords = {}
            for key, value in arguments:
                is_mapping = signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD
                keywords |= value if is_mapping else {key: value}
            note_arguments(self, name, keywords)

    kind.__init__ = recording_init
