"""Recipes of generated data sets: plain values, checked before anything is made."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from importlib.metadata import version
from typing import Any, ClassVar, Literal

import numpy as np

from physvision.core import DtypeError, InputError
from physvision.core.checks import check_count, check_positive
from physvision.datasets.folder import FORMAT, SPLITS, Shard
from physvision.video.overlay import OverlayShape

Number = int | float
# Values of a frame, 16 × 16 thousand pixels in color.
_MAX_FRAME_VALUES = 3 * 2**28
# A trial is made in memory.
_MAX_TRIAL_BYTES = 2**33


@dataclass(frozen=True)
class Field:
    """Description of a value that is stored beside every frame.

    Attributes:
        shape: Shape of the value of one frame.
        unit: Unit of its entries.
        meaning: Description for readers.
        dtype: Type of its entries in the file, "float64" or "uint8".
        per_trial: If true, the value is a property of the trial, the same in all of its frames.
    """

    shape: tuple[int, ...]
    unit: str
    meaning: str
    dtype: Literal["float64", "uint8"] = "float64"
    per_trial: bool = False

    def __post_init__(self) -> None:
        for side in self.shape:
            check_count("shape", side, 0)
        if math.prod(self.shape) > _MAX_FRAME_VALUES:
            raise InputError(f"shape: expected at most {_MAX_FRAME_VALUES:,} values a frame, got {self.shape}")

    def description(self) -> dict[str, Any]:
        """Plain values for the data set's description; defaults are left out."""
        values = {**asdict(self), "shape": list(self.shape)}
        return {name: value for name, value in values.items() if value != getattr(Field, name, None)}


@dataclass(frozen=True)
class FrameFormat:
    """Size and rate of frames, and the mapping from the world to their pixels.

    Attributes:
        height: Height of a frame, pixels.
        width: Width of a frame, pixels.
        channels: Number of channels of a frame.
        fps: Frames per second.
        geometry: Mapping from a point of the world to a place in the picture, for readers.
        intrinsics: Camera matrix in kornia's convention, pixel centers at whole numbers, (3, 3); None if the data set
            stores no camera poses.
    """

    height: int
    width: int
    channels: int
    fps: float
    geometry: str
    intrinsics: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        for name, side in zip(("height", "width", "channels"), self.shape, strict=True):
            check_count(name, side)
        if math.prod(self.shape) > _MAX_FRAME_VALUES:
            raise InputError(f"frame_format: expected at most {_MAX_FRAME_VALUES:,} values a frame, got {self.shape}")
        check_positive("fps", self.fps)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of a frame."""
        return self.height, self.width, self.channels

    def description(self) -> dict[str, Any]:
        """Plain values for the data set's description."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def check_number(
    name: str, value: object, minimum: Number, maximum: Number = math.inf, exclusive: bool = False
) -> None:
    """Raise unless `value` is a finite number from `minimum` (excluded if `exclusive`) to `maximum`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DtypeError(f"{name}: expected a number, got {value!r}")
    if not math.isfinite(value) or value < minimum or value > maximum or (exclusive and value == minimum):
        bound = f"above {minimum:g}" if exclusive else f"of at least {minimum:g}"
        bound += "" if math.isinf(maximum) else f" and at most {maximum:g}"
        raise InputError(f"{name}: expected a finite number {bound}, got {value!r}")


def integer(default: int, minimum: int, maximum: int = 10_000_000) -> Any:
    """Declare a value of a recipe that is an integer from a minimum to a maximum."""
    return field(default=default, metadata={"check": partial(check_count, minimum=minimum, maximum=maximum)})


def real(default: Number, minimum: Number, maximum: Number = math.inf, exclusive: bool = False) -> Any:
    """Declare a value of a recipe that is a finite number from a minimum, perhaps excluded, to a maximum."""
    check = partial(check_number, minimum=minimum, maximum=maximum, exclusive=exclusive)
    return field(default=default, metadata={"check": check})


def span(default: tuple[Number, Number], minimum: Number, maximum: Number = math.inf, exclusive: bool = False) -> Any:
    """Declare a range of a recipe: its lowest and highest number, both from a minimum to a maximum."""
    check = partial(check_span, minimum=minimum, maximum=maximum, exclusive=exclusive)
    return field(default=default, metadata={"check": check})


def check_span(name: str, value: Any, minimum: Number, maximum: Number = math.inf, exclusive: bool = False) -> None:
    """Raise unless `value` is a pair of growing finite numbers in this range."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise DtypeError(f"{name}: expected a lowest and a highest number, got {value!r}")
    check_number(f"{name}[0]", value[0], minimum, maximum, exclusive)
    check_number(f"{name}[1]", value[1], value[0], maximum)


@dataclass(frozen=True)
class Recipe(ABC):
    """Values that decide what a data set contains. Recipes are equal if and only if their data sets are.

    Attributes:
        name: Name of the recipe, a class attribute.
        trials: Number of trials; a tenth each is for validation and test.
        frames: Number of frames of a trial.
        seed: Seed of all random choices. Trial k of a split is the same whatever the number of trials.
    """

    trials: int = integer(100, 1)
    frames: int = integer(100, 1)
    seed: int = integer(0, 0, maximum=2**64)

    name: ClassVar[str]
    # Packages whose version can change the data.
    packages: ClassVar[tuple[str, ...]] = ("numpy", "physvision", "pyarrow")

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise if a value is out of its declared range; recipes add checks of several values."""
        if not isinstance(getattr(self, "name", None), str):
            raise InputError(f"{type(self).__name__}: expected a class attribute `name`, a str")
        for entry in fields(self):
            entry.metadata.get("check", lambda name, value: None)(entry.name, getattr(self, entry.name))
        if self.frames * math.prod(self.frame_format.shape) > _MAX_TRIAL_BYTES:
            raise InputError(
                f"frames: expected trials of at most {_MAX_TRIAL_BYTES:,} bytes, got {self.frames} frames of "
                f"{self.frame_format.shape}; make more and shorter trials"
            )

    @property
    @abstractmethod
    def frame_format(self) -> FrameFormat:
        """Size and rate of the frames."""

    @property
    @abstractmethod
    def fields(self) -> dict[str, Field]:
        """Values stored beside every frame, among them the state `q` and `v` and the properties of the trial."""

    @abstractmethod
    def trial(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Make the arrays of one trial.

        Args:
            random: Random generator of this trial.

        Returns:
            Uint8 `frames` (frames, height, width, channels) and each field: (frames, …), or its shape if per trial.
        """

    def marks(self, values: Mapping[str, np.ndarray]) -> list[OverlayShape]:
        """Marks that draw the state over a frame, in pixels; `values` are the fields of that frame. None by default."""
        return []

    def splits(self) -> dict[str, int]:
        """Number of trials of each split."""
        tenth = self.trials // 10
        return {"train": self.trials - 2 * tenth, "valid": tenth, "test": tenth}

    def make(self, split: str, number: int) -> dict[str, np.ndarray]:
        """Make trial `number` of `split`; properties of the trial are repeated for every frame."""
        key = (SPLITS.index(split), number)
        values = self.trial(np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key)))
        for name, stored in self.fields.items():
            if stored.per_trial:
                values[name] = np.broadcast_to(np.asarray(values[name], stored.dtype), (self.frames, *stored.shape))
        return values

    def values(self) -> dict:
        """Plain values of the recipe."""
        return {entry.name: _plain(getattr(self, entry.name)) for entry in fields(self)}

    def versions(self) -> dict[str, str]:
        """Versions of the packages that can change the data."""
        return {package: version(package) for package in sorted(self.packages)}


def describe_folder(
    name: str,
    recipe: dict[str, Any],
    versions: Mapping[str, str],
    frame_format: FrameFormat,
    fields: Mapping[str, Field],
    shards: Iterable[Shard],
) -> dict[str, Any]:
    """Describe a data set for its folder: its recipe, the versions of packages that can change it, and its contents."""
    return {
        "format": FORMAT,
        "name": name,
        "recipe": recipe,
        "versions": dict(versions),
        "frame_format": frame_format.description(),
        "fields": {name: stored.description() for name, stored in fields.items()},
        "shards": [asdict(shard) for shard in shards],
    }


def _plain(value):
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    # 1 and 1.0 are the same recipe.
    return int(value) if isinstance(value, float) and value.is_integer() else value
