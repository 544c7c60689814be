"""Cache results of a long run as lines of JSON, so that an interrupted run resumes where it stopped.

Where the variable `NO_CACHE` is set, as `run.py --check` does, nothing is taken from a file: a check measures anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = dict[str, Any]

NO_CACHE = "PHYSVISION_NO_CACHE"  # environment variable


def cached_results(
    path: Path, keys: Iterable[Key], compute: Callable[[Key], Result], key_of: Callable[[Result], Key]
) -> dict[Key, Result]:
    """Compute the results that the file does not hold yet, and return all that it holds.

    Several processes may share a file and compute different keys; results of all are returned.

    Args:
        path: JSON lines file, created if missing; a line is appended for every computed result.
        keys: Keys of the results to compute; those in the file are not computed again.
        compute: Function from a key to its result.
        key_of: Function from a result to its key.
    """
    if os.environ.get(NO_CACHE):
        return {key: compute(key) for key in keys}
    path.parent.mkdir(parents=True, exist_ok=True)
    done = _read(path, key_of)
    for key in keys:
        if key not in done:
            line = json.dumps(compute(key)) + "\n"
            with path.open("a") as file:
                file.write(line)
    return _read(path, key_of)


def _read(path: Path, key_of: Callable[[Result], Key]) -> dict[Key, Result]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {key_of(result): result for result in map(json.loads, lines)}
