"""What a generated data set follows from: a recipe of plain values, checked before anything is made."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import ClassVar

import numpy as np

from physvision.core import DtypeError, InputError
from physvision.video.overlay import Mark

Number = int | float
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Field:
    """A value that is kept for every frame.

    Attributes:
        shape: of the value of one frame.
        unit: of its entries.
        meaning: for people.
    """

    shape: tuple[int, ...]
    unit: str
    meaning: str


@dataclass(frozen=True)
class FrameFormat:
    """Size and rate of the frames, and how their pixels lie in the world.

    Attributes:
        height, width, channels: of a frame.
        fps: frames a second.
        geometry: how a place in the world becomes a place in the picture, for people.
    """

    height: int
    width: int
    channels: int
    fps: float
    geometry: str

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one frame."""
        return self.height, self.width, self.channels


@dataclass(frozen=True)
class Recipe(ABC):
    """Everything that decides what is in a data set. Recipes are equal if and only if their data sets are.

    Attributes:
        trials: number of trials; a tenth each is for validation and test.
        frames: number of frames of a trial.
        seed: of all random choices. Trial k of a split is the same whatever the number of trials.
    """

    trials: int
    frames: int
    seed: int

    name: ClassVar[str]
    # Packages whose version can change the data.
    packages: ClassVar[tuple[str, ...]] = ("numpy", "physvision", "pyarrow")

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise where a value makes no sense; recipes add their own checks."""
        self.require_whole("trials", 1)
        self.require_whole("frames", 1)
        self.require_whole("seed", 0)

    @property
    @abstractmethod
    def frame_format(self) -> FrameFormat:
        """Size and rate of the frames."""

    @property
    @abstractmethod
    def fields(self) -> dict[str, Field]:
        """What is kept for every frame beside its picture; always among it the state `q` and `v`."""

    @abstractmethod
    def trial(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """One trial: uint8 `frames` (frames, height, width, channels) and each field in float64 (frames, …)."""

    @abstractmethod
    def marks(self, values: Mapping[str, np.ndarray]) -> list[Mark]:
        """What draws the state over a frame: `values` are its fields, the marks lie in its pixels."""

    def splits(self) -> dict[str, int]:
        """Number of trials of each split."""
        tenth = self.trials // 10
        return {"train": self.trials - 2 * tenth, "valid": tenth, "test": tenth}

    def make(self, split: str, number: int) -> dict[str, np.ndarray]:
        """Trial `number` of `split`."""
        key = (SPLITS.index(split), number)
        return self.trial(np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key)))

    def values(self) -> dict:
        """The recipe as plain values."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def versions(self) -> dict[str, str]:
        """Versions of the packages that can change the data."""
        return {package: version(package) for package in sorted(self.packages)}

    def require_whole(self, name: str, least: int) -> None:
        """Raise unless the value `name` is a whole number of at least `least`."""
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{name}: expected a whole number of at least {least}, got {value!r}")

    def require_number(self, name: str, least: Number, most: Number = math.inf, above: bool = False) -> None:
        """Raise unless the value `name` is a finite number of `least` (or `above` it) to `most`."""
        check_number(name, getattr(self, name), least, most, above)

    def require_range(self, name: str, least: Number, above: bool = False) -> None:
        """Raise unless the value `name` is a pair of finite numbers, the first at most the second."""
        value = getattr(self, name)
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise DtypeError(f"{name}: expected a lowest and a highest number, got {value!r}")
        check_number(f"{name}[0]", value[0], least, math.inf, above)
        check_number(f"{name}[1]", value[1], value[0], math.inf)


def check_number(name: str, value: object, least: Number, most: Number = math.inf, above: bool = False) -> None:
    """Raise unless `value` is a finite number of `least` (or `above` it) to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DtypeError(f"{name}: expected a number, got {value!r}")
    if not math.isfinite(value) or value < least or value > most or (above and value == least):
        bound = f"above {least:g}" if above else f"of at least {least:g}"
        bound += "" if math.isinf(most) else f" and at most {most:g}"
        raise InputError(f"{name}: expected a finite number {bound}, got {value!r}")


def _plain(value):
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    # 1 and 1.0 are the same recipe.
    return int(value) if isinstance(value, float) and value.is_integer() else value
