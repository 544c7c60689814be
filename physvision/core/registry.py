"""The parts that a configuration may name: classes and functions that were registered for that, and no others."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from torch import nn

from physvision.core.errors import InputError

Part = TypeVar("Part", bound=Callable[..., Any])

_PARTS: dict[str, Callable[..., Any]] = {}
_NAMES: dict[Callable[..., Any], str] = {}
# Where a module keeps the name of its class or function and the arguments that it was made with.
_NOTE = "_made_with"


def register(name: str) -> Callable[[Part], Part]:
    """Let configurations name a class or function, and let modules of the class be saved: `@register("mine.Eye")`.

    Args:
        name: by which a configuration names it, unlike all others. A program that loads such a configuration must
            have imported what registers the name.
    """

    def registered(part: Part) -> Part:
        if name in _PARTS:
            raise InputError(f"name: {name!r} is registered already, for {_PARTS[name]!r}")
        _PARTS[name], _NAMES[part] = part, name
        if isinstance(part, type) and issubclass(part, nn.Module):
            _remember_arguments(part, name)
        return part  # pyright: ignore[reportReturnType]

    return registered


def register_all(package: str, parts: Iterable[Callable[..., Any]]) -> None:
    """Register the public `parts` of a package under their own names."""
    for part in parts:
        register(f"{package}.{part.__name__}")(part)


def look_up(name: Any) -> Callable[..., Any]:
    """The part that was registered as `name`."""
    part = _PARTS.get(name) if isinstance(name, str) else None
    if part is None:
        text = repr(name) if len(repr(name)) < 100 else f"{repr(name)[:97]}..."
        raise InputError(
            f"names {text}, which is not registered; a configuration may only name parts of physvision, and those that "
            "the program registered by physvision.models.register before"
        )
    return part


def name_of(part: Any) -> str | None:
    """The name under which a class or function was registered; None if it was not."""
    return _NAMES.get(part) if callable(part) else None


def note_arguments(module: nn.Module, name: str, arguments: Mapping[str, Any]) -> None:
    """Remember what `module` was made with."""
    module.__dict__[_NOTE] = (name, dict(arguments))


def noted_arguments(module: Any) -> tuple[str, dict[str, Any]]:
    """The name of the class or function that made `module`, and its arguments."""
    note = getattr(module, "__dict__", {}).get(_NOTE)
    if note is None:
        raise InputError(
            f"{type(module).__name__} is not registered, so nobody could make it again; put "
            f'@register("my.{type(module).__name__}"), of physvision.models, above its class'
        )
    return note


def _remember_arguments(kind: type[nn.Module], name: str) -> None:
    """Have every module of exactly this class remember what it was made with, defaults included."""
    initialise, signature = kind.__init__, inspect.signature(kind.__init__)

    @functools.wraps(initialise)
    def initialised(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        if type(self) is kind:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            _, *arguments = bound.arguments.items()
            given = {}
            for key, value in arguments:
                more = signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD
                given |= value if more else {key: value}
            note_arguments(self, name, given)

    kind.__init__ = initialised
