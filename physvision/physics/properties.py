"""What an engine's numbers are, said once: checks, the order of gradients and the tables of the pages follow from it.

An engine's properties are a frozen dataclass of tensors that derives from `Properties`; each field is made by `leaf`,
which says shape, unit, range and meaning. A leaf given in a call may have one dimension more than its own shape in
front, which is the world's: then each world has a value of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.utils import _pytree as pytree

from physvision.core import DeviceError, DtypeError, InputError, ModelError, ShapeError

Range = Literal["any", "positive", "not negative", "share", "not nan"]

_WANTED = {
    "any": "finite values",
    "positive": "numbers above zero",
    "not negative": "numbers of at least zero",
    "share": "numbers in [0, 1]",
    "not nan": "numbers, which may be infinite",
}


@dataclass(frozen=True)
class Leaf:
    """One field of an engine's properties.

    Attributes:
        shape: names of dimensions ("bodies", "nv" …) or sizes, without the world's.
        unit: SI; empty for a number without unit.
        meaning: in a few words.
        range: which numbers make sense.
    """

    shape: tuple[str | int, ...]
    unit: str
    meaning: str
    range: Range


def leaf(*shape: str | int, unit: str = "", meaning: str, range: Range = "any") -> Any:
    """A dataclass field that holds one kind of numbers; see `Leaf`."""
    return field(metadata={"leaf": Leaf(shape, unit, meaning, range)})


Own = TypeVar("Own", bound="Properties")


@dataclass(frozen=True)
class Properties:
    """The base of all engines' properties; by itself, those of an engine that has none."""

    _checked: ClassVar[bool] = False

    @classmethod
    def leaves(cls) -> dict[str, Leaf]:
        """What each field is, in the order of the fields."""
        return {each.name: each.metadata["leaf"] for each in fields(cls) if "leaf" in each.metadata}

    def items(self) -> Iterator[tuple[str, Tensor]]:
        """Names and values."""
        return ((name, getattr(self, name)) for name in self.leaves())

    def to(self: Own, *args: Any, **kwargs: Any) -> Own:
        """The same numbers on another device or in another dtype; arguments as in `torch.Tensor.to`."""
        return replace(self, **{name: value.to(*args, **kwargs) for name, value in self.items()})

    def repeat(self: Own, times: int, own: Properties) -> Own:
        """Each world's leaves `times` times next to each other; those that worlds share, as in `own`, stay."""
        repeated = {
            name: value.repeat_interleave(times, 0)
            for name, value in self.items()
            if value.dim() > getattr(own, name).dim()
        }
        return replace(self, **repeated)

    def overridden(
        self: Own,
        given: Properties | Mapping[str, Tensor] | None,
        *,
        batch: int | None = None,
        device: torch.device | None = None,
        check: Callable[[Properties, str, Tensor], None] | None = None,
    ) -> Own:
        """These properties with the given leaves in their place, checked, and marked as checked.

        Args:
            given: whole properties, or leaves by name; None for no change. What was checked before is not checked
                again.
            batch: number of worlds; any if not given.
            device: where the leaves must lie; anywhere if not given.
            check: called with these properties, a leaf's name and its numbers, raises where they make no sense;
                `check_range` by default.

        Raises:
            InputError: a leaf is unknown, or its type, shape, device or numbers make no sense.
        """
        if given is None:
            return self
        if isinstance(given, Properties):
            if given._checked and type(given) is type(self):
                return given  # pyright: ignore[reportReturnType]
            given = dict(given.items())
        leaves = self.leaves()
        for name, value in given.items():
            if name not in leaves:
                raise InputError(f"properties: no leaf {name!r}; there are {', '.join(leaves) or 'none'}")
            own = getattr(self, name)
            if value is not own:
                _check_form(name, value, own, batch, device)
                # Inside a functional transform there are no numbers to look at.
                if not is_functorch_wrapped_tensor(value):
                    (check or type(self).check_range)(self, name, value.detach())
        return replace(self, **given).marked()

    def marked(self: Own) -> Own:
        """These properties, marked as checked."""
        object.__setattr__(self, "_checked", True)
        return self

    def check_range(self, name: str, value: Tensor, rows: Mapping[str, Sequence[str]] | None = None) -> None:
        """Raise where numbers of a leaf are out of its range; `rows` names the rows of each dimension."""
        wanted = self.leaves()[name].range
        bad = torch.isnan(value) if wanted == "not nan" else ~torch.isfinite(value)
        if wanted == "positive":
            bad = bad | (value <= 0)
        elif wanted == "not negative":
            bad = bad | (value < 0)
        elif wanted == "share":
            bad = bad | (value < 0) | (value > 1)
        refuse(self, name, bad, value, _WANTED[wanted], rows, per_world=value.dim() > getattr(self, name).dim())


def refuse(
    own: Properties,
    name: str,
    bad: Tensor,
    value: Tensor,
    wanted: str,
    rows: Mapping[str, Sequence[str]] | None,
    *,
    per_world: bool,
) -> None:
    """Raise where values of the leaf `name` are bad, naming the first of them and the body or joint it belongs to."""
    if not bool(bad.any()):
        return
    where = tuple(torch.nonzero(bad)[0].tolist())
    listed = (rows or {}).get(str(own.leaves()[name].shape[0]))
    whose = f" of {listed[where[int(per_world)]]!r}" if listed else ""
    raise ModelError(f"properties.{name}{whose}: expected {wanted}, got {value[where].item():g} at {where}")


Kind = TypeVar("Kind", bound=type[Properties])


def register_properties(kind: Kind) -> Kind:
    """Make a pytree of a class of properties: its leaves are tensors, what else it holds goes with the structure."""
    names = tuple(kind.leaves())
    others = tuple(each.name for each in fields(kind) if each.name not in names)
    pytree.register_pytree_node(
        kind,
        lambda whole: ([getattr(whole, name) for name in names], tuple(getattr(whole, name) for name in others)),
        lambda parts, rest: kind(**dict(zip(names, parts, strict=True)), **dict(zip(others, rest, strict=True))),
        serialized_type_name=f"{kind.__module__}.{kind.__qualname__}",
    )
    return kind


def _check_form(name: str, value: object, own: Tensor, batch: int | None, device: torch.device | None) -> None:
    if not isinstance(value, Tensor) or not value.is_floating_point():
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise DtypeError(f"properties.{name}: expected a floating-point tensor, got {kind}")
    if device is not None and value.device != device:
        raise DeviceError(f"properties.{name}: expected device {device} as state.q has, got {value.device}")
    base, shape = tuple(own.shape), tuple(value.shape)
    worlds = shape[0] if batch is None and len(shape) == len(base) + 1 else batch
    if shape not in (base, (worlds, *base)):
        each = (batch if batch is not None else "batch", *base)
        raise ShapeError(
            f"properties.{name}: expected shape {base}, or ({', '.join(map(str, each))}) for one a world, got {shape}"
        )
