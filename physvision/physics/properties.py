"""Properties of engines: their shapes, units, ranges and meanings, from which checks, gradients and tables follow.

An engine's properties are a frozen dataclass of tensors that derives from `Properties`; each field is made by `leaf`,
which declares shape, unit, range and meaning. A leaf that is passed to a call may have one more dimension in front,
that of the worlds: then each world has a value of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.utils import _pytree as pytree

from physvision.core import DeviceError, DtypeError, InputError, ModelError, ShapeError

Range = Literal["any", "positive", "not negative", "unit interval", "poisson", "not nan"]

_EXPECTED = {
    "any": "finite values",
    "positive": "numbers above zero",
    "not negative": "numbers of at least zero",
    "unit interval": "numbers in [0, 1]",
    "poisson": "numbers above −1 and below 0.5, where a body could not change its volume",
    "not nan": "numbers, which may be infinite",
}

# True if numbers from the smallest to the largest lie in the range; false for NaN.
_IN_RANGE: dict[Range, Callable[[float, float], bool]] = {
    "any": lambda low, high: -math.inf < low and high < math.inf,
    "positive": lambda low, high: low > 0 and high < math.inf,
    "not negative": lambda low, high: low >= 0 and high < math.inf,
    "unit interval": lambda low, high: low >= 0 and high <= 1,
    "poisson": lambda low, high: low > -1 and high < 0.5,
    "not nan": lambda low, high: low <= high,
}


@dataclass(frozen=True)
class Leaf:
    """Declaration of a field of an engine's properties.

    Attributes:
        shape: Names of dimensions ("bodies", "nv" …) or sizes, without that of the worlds.
        unit: SI unit; empty for a number without unit.
        meaning: Meaning of the numbers in a few words.
        range: Range of the numbers.
    """

    shape: tuple[str | int, ...]
    unit: str
    meaning: str
    range: Range


def leaf(*shape: str | int, unit: str = "", meaning: str, range: Range = "any") -> Any:
    """Dataclass field for one kind of numbers; see `Leaf`."""
    return field(metadata={"leaf": Leaf(shape, unit, meaning, range)})


class Constraint(NamedTuple):
    """Constraint on a leaf: all of `numbers`, whose first rows are those of the leaf, lie in the range.

    Attributes:
        numbers: Numbers that are checked, the leaf itself or computed from it.
        range: Range of the numbers.
        expected: Description of valid values, for messages.
    """

    numbers: Tensor
    range: Range
    expected: str


Own = TypeVar("Own", bound="Properties")


@dataclass(frozen=True)
class Properties:
    """Base class of all engines' properties; by itself, the properties of an engine that has none."""

    _checked: ClassVar[bool] = False

    @classmethod
    @cache
    def leaves(cls) -> dict[str, Leaf]:
        """Declarations of all fields, in their order."""
        return {item.name: item.metadata["leaf"] for item in fields(cls) if "leaf" in item.metadata}

    def items(self) -> Iterator[tuple[str, Tensor]]:
        """Names and values of all leaves."""
        return ((name, getattr(self, name)) for name in self.leaves())

    def to(self: Own, *args: Any, **kwargs: Any) -> Own:
        """Properties on another device or in another dtype; arguments as in `torch.Tensor.to`."""
        return replace(self, **{name: value.to(*args, **kwargs) for name, value in self.items()})

    def repeat(self: Own, times: int, own: Properties) -> Own:
        """Properties with each world's leaves repeated, copies of one world adjacent.

        Args:
            times: Number of copies of each world.
            own: Properties of the engine; leaves that worlds share, as there, stay.
        """
        return replace(self, **{name: value.repeat_interleave(times, 0) for name, value in self.per_world(own).items()})

    def select_worlds(self: Own, worlds: Tensor, own: Properties) -> Own:
        """Properties of some worlds.

        Args:
            worlds: Numbers of the worlds.
            own: Properties of the engine; leaves that worlds share, as there, stay.
        """
        leaves = self.per_world(own)
        return replace(self, **{name: value[worlds] for name, value in leaves.items()}) if leaves else self

    def per_world(self, own: Properties) -> dict[str, Tensor]:
        """Leaves with a value for each world, where those of `own` have one for all."""
        return {name: value for name, value in self.items() if value.dim() > getattr(own, name).dim()}

    def overridden(
        self: Own,
        overrides: Properties | Mapping[str, Tensor] | None,
        *,
        batch: int | None = None,
        device: torch.device | None = None,
        constraints: Callable[[Properties, str, Tensor], Sequence[Constraint]] | None = None,
        rows: Mapping[str, Sequence[str]] | None = None,
    ) -> Own:
        """Properties with some leaves replaced, checked, and tagged as checked.

        Args:
            overrides: Whole properties, or leaves by name; None for no change. Properties that were checked before are
                not checked again.
            batch: Number of worlds; None for any.
            device: Device of the leaves; None for any.
            constraints: Function from properties, the name of a leaf and its numbers to the constraints on it; its
                range by default.
            rows: Names of the rows of each dimension, for errors.

        Raises:
            InputError: A leaf is unknown, or its type, shape, device or numbers are invalid.
        """
        if overrides is None:
            return self
        if isinstance(overrides, Properties):
            if overrides._checked and type(overrides) is type(self):
                return overrides  # pyright: ignore[reportReturnType]
            overrides = dict(overrides.items())
        leaves = self.leaves()
        checks: list[tuple[str, Constraint, bool]] = []
        for name, value in overrides.items():
            if name not in leaves:
                raise InputError(f"properties: no property {name!r}; there are {', '.join(leaves) or 'none'}")
            own = getattr(self, name)
            if value is not own:
                _check_form(name, value, own, batch, device)
                # Inside a functional transform values are not available.
                if not is_functorch_wrapped_tensor(value):
                    leaf_constraints = (constraints or type(self).constraints)(self, name, value.detach())
                    checks += [(name, constraint, value.dim() > own.dim()) for constraint in leaf_constraints]
        self.validate(checks, rows)
        return replace(self, **overrides).tagged()

    @property
    def is_reusable(self) -> bool:
        """If true, these were checked and are plain numbers, so that structs over them serve again.

        Those of inference mode are not: whether they have changed since cannot be told.
        """
        values = [value for _, value in self.items()]
        return self._checked and not any(
            value.requires_grad or is_functorch_wrapped_tensor(value) or value.is_inference() for value in values
        )

    def tagged(self: Own) -> Own:
        """These properties, tagged as checked."""
        object.__setattr__(self, "_checked", True)
        return self

    def constraints(self, name: str, value: Tensor) -> list[Constraint]:
        """Constraints on a leaf: its numbers lie in its range."""
        limits = self.leaves()[name].range
        return [Constraint(value, limits, _EXPECTED[limits])]

    def validate(
        self, constraints: Sequence[tuple[str, Constraint, bool]], rows: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Raise if a constraint is violated; if none is, that takes a single look at a device's memory.

        Args:
            constraints: Constraints, each with the leaf's name, and true if the first dimension of its numbers is the
                world's.
            rows: Names of the rows of each dimension.

        Raises:
            ModelError: A number is out of its range; the message names it, and the body or joint that it belongs to.
        """
        by_range: dict[Range, list[Tensor]] = {}
        for _, constraint, _ in constraints:
            if constraint.numbers.numel():
                by_range.setdefault(constraint.range, []).append(constraint.numbers.reshape(-1))
        # NaN is the smallest and the largest of all numbers that it is among, and out of every range.
        extremes = [torch.stack(torch.aminmax(_concatenate(numbers))) for numbers in by_range.values()]
        bounds = _concatenate(extremes).tolist() if extremes else []
        pairs = zip(bounds[::2], bounds[1::2], strict=True)
        if all(_IN_RANGE[limits](low, high) for limits, (low, high) in zip(by_range, pairs, strict=True)):
            return
        for name, constraint, per_world in constraints:
            self._raise_if_violated(name, constraint, rows or {}, int(per_world))

    def _raise_if_violated(
        self, name: str, constraint: Constraint, rows: Mapping[str, Sequence[str]], first_row: int
    ) -> None:
        flat, in_range = constraint.numbers.flatten().tolist(), _IN_RANGE[constraint.range]
        first = next((k for k, number in enumerate(flat) if not in_range(number, number)), None)
        if first is None:
            return
        index = tuple(int(k) for k in np.unravel_index(first, constraint.numbers.shape))
        names = rows.get(str(next(iter(self.leaves()[name].shape), "")))
        owner = f" of {names[index[first_row]]!r}" if names else ""
        raise ModelError(f"properties.{name}{owner}: expected {constraint.expected}, got {flat[first]:g} at {index}")

    @classmethod
    def table(cls) -> str:
        """Table of the fields in Markdown, for the docs."""
        lines = ["| leaf | shape | unit | range | meaning |", "|---|---|---|---|---|"]
        for name, item in cls.leaves().items():
            shape = "(" + ", ".join(map(str, item.shape)) + ("," if len(item.shape) == 1 else "") + ")"
            lines.append(f"| `{name}` | {shape} | {item.unit} | {_EXPECTED[item.range]} | {item.meaning} |")
        return "\n".join(lines)


Kind = TypeVar("Kind", bound=type[Properties])


def register_properties(kind: Kind) -> Kind:
    """Register a class of properties as a pytree, with its leaves as tensors and other fields as structure."""
    names = tuple(kind.leaves())
    static = tuple(item.name for item in fields(kind) if item.name not in names)
    pytree.register_pytree_node(
        kind,
        lambda whole: ([getattr(whole, name) for name in names], tuple(getattr(whole, name) for name in static)),
        lambda parts, rest: kind(**dict(zip(names, parts, strict=True)), **dict(zip(static, rest, strict=True))),
        serialized_type_name=f"{kind.__module__}.{kind.__qualname__}",
    )
    return kind


def _concatenate(numbers: Sequence[Tensor]) -> Tensor:
    """Concatenate numbers, in float64 and on one device where they differ."""
    if len({(row.dtype, row.device) for row in numbers}) > 1:
        numbers = [row.to(numbers[0].device, torch.float64) for row in numbers]
    return torch.cat(list(numbers)) if len(numbers) > 1 else numbers[0]


def _check_form(name: str, value: object, own: Tensor, batch: int | None, device: torch.device | None) -> None:
    if not isinstance(value, Tensor) or not value.is_floating_point():
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise DtypeError(f"properties.{name}: expected a floating-point tensor, got {kind}")
    if device is not None and value.device != device:
        raise DeviceError(f"properties.{name}: expected device {device} as state.q has, got {value.device}")
    base, shape = tuple(own.shape), tuple(value.shape)
    worlds = shape[0] if batch is None and len(shape) == len(base) + 1 else batch
    if shape not in (base, (worlds, *base)):
        per_world = (batch if batch is not None else "batch", *base)
        raise ShapeError(
            f"properties.{name}: expected shape {base}, or ({', '.join(map(str, per_world))}) per world, got {shape}"
        )
