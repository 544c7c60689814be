"""Results of a long run, kept one a line of JSON, so that a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = dict[str, Any]


def cached_results(
    path: Path, wanted: Iterable[Key], work: Callable[[Key], Result], key: Callable[[Result], Key]
) -> dict[Key, Result]:
    """All results that a file holds, once it has those that are wanted.

    Several processes may share a file, each with a part of the work: all results are returned.

    Args:
        path: the file, which is made where there is none; a line is added as soon as a result is known.
        wanted: what results are wanted of; what the file holds is not worked out again.
        work: makes the result of one.
        key: what a result is of.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    done = _read(path, key)
    for each in wanted:
        if each not in done:
            line = json.dumps(work(each)) + "\n"
            with path.open("a") as file:
                file.write(line)
    return _read(path, key)


def _read(path: Path, key: Callable[[Result], Key]) -> dict[Key, Result]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {key(result): result for result in map(json.loads, lines)}
