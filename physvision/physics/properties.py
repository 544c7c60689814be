"""What an engine's numbers are, said once: checks, the order of gradients and the tables of the pages follow from it.

An engine's properties are a frozen dataclass of tensors that derives from `Properties`; each field is made by `leaf`,
which says shape, unit, range and meaning. A leaf given in a call may have one dimension more than its own shape in
front, which is the world's: then each world has a value of its own.
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

Range = Literal["any", "positive", "not negative", "share", "poisson", "not nan"]

_WANTED = {
    "any": "finite values",
    "positive": "numbers above zero",
    "not negative": "numbers of at least zero",
    "share": "numbers in [0, 1]",
    "poisson": "numbers above −1 and below 0.5, where a body could not change its volume",
    "not nan": "numbers, which may be infinite",
}

# Whether numbers from the smallest to the greatest lie in the range; never where one is not a number.
_WITHIN: dict[Range, Callable[[float, float], bool]] = {
    "any": lambda low, high: -math.inf < low and high < math.inf,
    "positive": lambda low, high: low > 0 and high < math.inf,
    "not negative": lambda low, high: low >= 0 and high < math.inf,
    "share": lambda low, high: low >= 0 and high <= 1,
    "poisson": lambda low, high: low > -1 and high < 0.5,
    "not nan": lambda low, high: low <= high,
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


class Claim(NamedTuple):
    """What must hold for a leaf: all of `numbers`, whose first rows are those of the leaf, lie in the range."""

    numbers: Tensor
    range: Range
    wanted: str


Own = TypeVar("Own", bound="Properties")


@dataclass(frozen=True)
class Properties:
    """The base of all engines' properties; by itself, those of an engine that has none."""

    _checked: ClassVar[bool] = False

    @classmethod
    @cache
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
        return replace(self, **{name: value.repeat_interleave(times, 0) for name, value in self.per_world(own).items()})

    def chosen(self: Own, worlds: Tensor, own: Properties) -> Own:
        """The leaves of the worlds of these numbers; those that worlds share, as in `own`, stay."""
        apart = self.per_world(own)
        return replace(self, **{name: value[worlds] for name, value in apart.items()}) if apart else self

    def per_world(self, own: Properties) -> dict[str, Tensor]:
        """The leaves that hold a value for each world, where those of `own` hold one for all."""
        return {name: value for name, value in self.items() if value.dim() > getattr(own, name).dim()}

    def overridden(
        self: Own,
        given: Properties | Mapping[str, Tensor] | None,
        *,
        batch: int | None = None,
        device: torch.device | None = None,
        claims: Callable[[Properties, str, Tensor], Sequence[Claim]] | None = None,
        rows: Mapping[str, Sequence[str]] | None = None,
    ) -> Own:
        """These properties with the given leaves in their place, checked, and marked as checked.

        Args:
            given: whole properties, or leaves by name; None for no change. What was checked before is not checked
                again.
            batch: number of worlds; any if not given.
            device: where the leaves must lie; anywhere if not given.
            claims: what must hold for these properties, a leaf's name and its numbers; its range by default.
            rows: names of the rows of each dimension, for errors.

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
        made: list[tuple[str, Claim, bool]] = []
        for name, value in given.items():
            if name not in leaves:
                raise InputError(f"properties: no leaf {name!r}; there are {', '.join(leaves) or 'none'}")
            own = getattr(self, name)
            if value is not own:
                _check_form(name, value, own, batch, device)
                # Inside a functional transform there are no numbers to look at.
                if not is_functorch_wrapped_tensor(value):
                    found = (claims or type(self).claims)(self, name, value.detach())
                    made += [(name, claim, value.dim() > own.dim()) for claim in found]
        self.hold(made, rows)
        return replace(self, **given).marked()

    @property
    def kept(self) -> bool:
        """Whether these were checked and are plain numbers, so that what was made of them serves again."""
        values = [value for _, value in self.items()]
        return self._checked and not any(value.requires_grad or is_functorch_wrapped_tensor(value) for value in values)

    def marked(self: Own) -> Own:
        """These properties, marked as checked."""
        object.__setattr__(self, "_checked", True)
        return self

    def claims(self, name: str, value: Tensor) -> list[Claim]:
        """That the numbers of a leaf lie in its range."""
        wanted = self.leaves()[name].range
        return [Claim(value, wanted, _WANTED[wanted])]

    def hold(self, claims: Sequence[tuple[str, Claim, bool]], rows: Mapping[str, Sequence[str]] | None = None) -> None:
        """Raise where a claim fails; where all hold, that is one look at a device's memory.

        Args:
            claims: each with the leaf's name, and whether its numbers' first dimension is the world's.
            rows: names of the rows of each dimension.

        Raises:
            ModelError: names the first number that is out of its range, and the body or joint that it belongs to.
        """
        together: dict[Range, list[Tensor]] = {}
        for _, claim, _ in claims:
            if claim.numbers.numel():
                together.setdefault(claim.range, []).append(claim.numbers.reshape(-1))
        # Not a number is the least and the greatest of all that it is among, and out of every range.
        extremes = [torch.stack(torch.aminmax(_joined(numbers))) for numbers in together.values()]
        bounds = _joined(extremes).tolist() if extremes else []
        pairs = zip(bounds[::2], bounds[1::2], strict=True)
        if all(_WITHIN[range](low, high) for range, (low, high) in zip(together, pairs, strict=True)):
            return
        for name, claim, per_world in claims:
            self._refuse(name, claim, rows or {}, int(per_world))

    def _refuse(self, name: str, claim: Claim, rows: Mapping[str, Sequence[str]], first_row: int) -> None:
        flat = claim.numbers.flatten().tolist()
        first = next((place for place, number in enumerate(flat) if not _WITHIN[claim.range](number, number)), None)
        if first is None:
            return
        where = tuple(int(index) for index in np.unravel_index(first, claim.numbers.shape))
        listed = rows.get(str(next(iter(self.leaves()[name].shape), "")))
        whose = f" of {listed[where[first_row]]!r}" if listed else ""
        raise ModelError(f"properties.{name}{whose}: expected {claim.wanted}, got {flat[first]:g} at {where}")

    @classmethod
    def table(cls) -> str:
        """The fields as the pages show them, a table in Markdown."""
        lines = ["| leaf | shape | unit | range | meaning |", "|---|---|---|---|---|"]
        for name, each in cls.leaves().items():
            shape = "(" + ", ".join(map(str, each.shape)) + ("," if len(each.shape) == 1 else "") + ")"
            lines.append(f"| `{name}` | {shape} | {each.unit} | {_WANTED[each.range]} | {each.meaning} |")
        return "\n".join(lines)


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


def _joined(numbers: Sequence[Tensor]) -> Tensor:
    """All of them in one row; in float64 and on one device where they differ."""
    if len({(each.dtype, each.device) for each in numbers}) > 1:
        numbers = [each.to(numbers[0].device, torch.float64) for each in numbers]
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
        each = (batch if batch is not None else "batch", *base)
        raise ShapeError(
            f"properties.{name}: expected shape {base}, or ({', '.join(map(str, each))}) for one a world, got {shape}"
        )
