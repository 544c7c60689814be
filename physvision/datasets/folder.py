"""Folder of a data set: its description, shards and checksums; never a half-written file.

`dataset.json` comes first and follows from the recipe alone, then shard after shard. Each is written beside its place,
flushed to the disk and renamed. Its checksum is recorded before, so that a file under its final name always has one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from physvision.core import DataError, FileError, InputError
from physvision.core.checks import check_count
from physvision.core.files import atomic_path, read_content, read_text, remove_stale_partials
from physvision.core.serialization import build_dataclass

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
FORMAT = "physvision data set 1"
DESCRIPTION = "dataset.json"
CHECKSUMS = "checksums.sha256"
_MIN_SHARDS, _SHARD_BYTES = 32, 2**27
_SHARD_NAME = re.compile(r"[a-z]{1,20}-[0-9]{1,20}\.arrow")
# Limits far above every data set, so that a description that is none is refused before it costs time and memory.
_MAX_SHARDS, _MAX_COUNT, _MAX_BYTES = 10_000_000, 10**9, 2**30


@dataclass(frozen=True)
class Shard:
    """File that holds some trials of a split.

    Attributes:
        file: Name of the file in the folder.
        split: "train", "valid" or "test".
        first: Number of its first trial in the split.
        trials: Number of trials in the file.
        frames: Number of frames of each trial.
    """

    file: str
    split: Split
    first: int
    trials: int
    frames: int

    def __post_init__(self) -> None:
        if not _SHARD_NAME.fullmatch(self.file):
            raise InputError(f"file: expected the name of a file such as train-00000.arrow, got {self.file[:100]!r}")
        for name, minimum in (("first", 0), ("trials", 1), ("frames", 1)):
            check_count(name, getattr(self, name), minimum, _MAX_COUNT)


@dataclass(frozen=True)
class Description:
    """Parts of the description of a data set; those of its shards are checked one by one.

    Attributes:
        format: Name and version of the format.
        name: Name of the generator, or "video".
        recipe: Values that the data set was made from.
        versions: Versions of packages that can change it.
        frame_format: Fields of a `FrameFormat`.
        fields: Those of a `Field`, by name.
        shards: Those of a `Shard` each.
    """

    format: str
    name: str
    recipe: dict[str, Any]
    versions: dict[str, str]
    frame_format: dict[str, Any]
    fields: dict[str, dict[str, Any]]
    shards: list[dict[str, Any]]


def divide(splits: dict[str, int], frames: int, frame_bytes: int) -> list[Shard]:
    """Divide trials of `frames` frames each into shards of at most 128 MiB, uncompressed.

    A small data set is cut finer, so that every core has something to make and every rank something to read.
    """
    size = max(1, min(_SHARD_BYTES // (frames * frame_bytes), -(-sum(splits.values()) // _MIN_SHARDS)))
    return [
        Shard(f"{split}-{first // size:05d}.arrow", split, first, min(size, splits[split] - first), frames)
        for split in SPLITS
        if split in splits
        for first in range(0, splits[split], size)
    ]


class DataFolder:
    """Folder of a data set on the disk."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the folder at `path`; nothing is read or written yet."""
        self.path = Path(path)

    def description(self) -> dict:
        """Description of the data set, from its JSON file."""
        file = self.path / DESCRIPTION
        try:
            data = read_content(file, _MAX_BYTES)
        except FileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise FileError(f"{self.path}: holds no data set (there is no {DESCRIPTION})") from None
            raise
        if self.checksums().get(DESCRIPTION, _digest(data)) != _digest(data):
            raise DataError(
                f"{file}: is damaged (its checksum differs); run again what made this data set, and it is made again"
            )
        try:
            description = json.loads(data)
            if not isinstance(description, dict) or description.get("format") != FORMAT:
                version = description.get("format") if isinstance(description, dict) else description
                raise DataError(f"{file}: expected the format {FORMAT!r}, got {str(version)[:100]!r}")
            shards = description.get("shards")
            # As many as a data set of a petabyte has; the limit of lists in configurations is far lower.
            if not isinstance(shards, list) or len(shards) > _MAX_SHARDS:
                raise DataError(f"{file}: expected a list of at most {_MAX_SHARDS:,} shards")
            build_dataclass(Description, description | {"shards": []}, "")
            for number, entry in enumerate(shards):
                build_dataclass(Shard, entry, f"shards[{number}]")
        except (ValueError, RecursionError) as error:
            raise DataError(f"{file}: cannot be read as a description of a data set ({error})") from error
        return description

    def shards(self) -> list[Shard]:
        """All shards that the data set has, written or not."""
        return [Shard(**entry) for entry in self.description()["shards"]]

    def checksums(self) -> dict[str, str]:
        """SHA-256 checksums of the files written so far, by name."""
        file = self.path / CHECKSUMS
        try:
            lines = read_text(file, _MAX_BYTES).splitlines()
            return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
        except (OSError, ValueError) as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return {}
            raise DataError(
                f"{file}: cannot be read as checksums ({error}); remove it, and what made this data set makes it again"
            ) from error

    @contextmanager
    def prepared(self, description: dict) -> Iterator[None]:
        """Make, describe and lock the folder against a second writer; a folder that holds anything else is refused."""
        if self.path.exists() and not self.path.is_dir():
            raise FileError(f"{self.path}: expected a folder, there is a file of this name")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise FileError(f"{self.path}: the folder cannot be made or opened ({error.strerror})") from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise DataError(f"{self.path}: another process is writing this data set") from None
            self._describe(description)
            yield
        finally:
            os.close(lock)

    def _describe(self, description: dict) -> None:
        data = (json.dumps(description, indent=1) + "\n").encode()
        remove_stale_partials(self.path)
        names = {entry.name for entry in self.path.iterdir()}
        ours = self.checksums().get(DESCRIPTION) == _digest(data)
        if not ours and DESCRIPTION in names:
            self._check_same(description)
        elif not ours:
            # A first run that was killed leaves the checksum of a description that it did not come to write.
            leftovers = {CHECKSUMS} if set(self.checksums()) <= {DESCRIPTION} else set()
            foreign = sorted(names - leftovers)
            if foreign:
                raise DataError(
                    f"{self.path}: holds other files ({', '.join(foreign[:3])}{' …' if len(foreign) > 3 else ''}) and "
                    "no data set; nothing was written. Choose an empty folder"
                )
            (self.path / CHECKSUMS).unlink(missing_ok=True)
        if not ours or DESCRIPTION not in names or (self.path / DESCRIPTION).read_bytes() != data:
            self._commit(DESCRIPTION, data)

    def _check_same(self, description: dict) -> None:
        existing = self.description()
        if existing == json.loads(json.dumps(description)):
            return
        differences = []
        for part in ("recipe", "versions"):
            theirs, ours = existing.get(part, {}), description.get(part, {})
            differences += [
                f"{key} {theirs.get(key, 'none')!r} there, {ours.get(key, 'none')!r} here"
                for key in sorted(set(theirs) | set(ours))
                if theirs.get(key) != ours.get(key)
            ]
        if existing.get("name") != description["name"]:
            differences.insert(0, f"a data set of {existing.get('name')}")
        raise DataError(
            f"{self.path}: holds a data set of another recipe ({'; '.join(differences) or 'of another layout'}); "
            "nothing was written. Choose another folder, or give the recipe and versions of this one"
        )

    def commit(self, shard: Shard, data: bytes) -> None:
        """Write a shard. One that is made again must have the recorded checksum."""
        if self.checksums().get(shard.file, _digest(data)) != _digest(data):
            raise DataError(
                f"{self.path / shard.file}: was made again with other content than recorded in {CHECKSUMS}; "
                "the machine or a library differs from the one that made it. Nothing was overwritten"
            )
        self._commit(shard.file, data)

    def _commit(self, name: str, data: bytes) -> None:
        checksums = self.checksums() | {name: _digest(data)}
        self._write(CHECKSUMS, "".join(f"{checksums[file]}  {file}\n" for file in sorted(checksums)).encode())
        self._write(name, data)

    def _write(self, name: str, data: bytes) -> None:
        try:
            with atomic_path(self.path / name) as hidden:
                hidden.write_bytes(data)
        except OSError as error:
            raise FileError(
                f"{self.path / name}: cannot be written ({error.strerror}); what is complete is kept. "
                "Make room and run the same command again to go on"
            ) from error

    def fault(self, shard: Shard) -> str | None:
        """Description of a fault of a shard's file; None if the file is whole."""
        file = self.path / shard.file
        recorded = self.checksums().get(shard.file)
        if recorded is None or not file.is_file():
            return "missing"
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        return None if digest == recorded else "damaged (its checksum differs)"

    def check(self, shard: Shard) -> None:
        """Raise, naming the shard, unless its file is whole."""
        fault = self.fault(shard)
        if fault is not None:
            folder = shlex.quote(str(self.path))
            raise DataError(
                f"{self.path / shard.file}: the shard is {fault}; make it again with: physvision repair {folder}"
            )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
