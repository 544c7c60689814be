"""Claims that a script measures, written as one JSON file for each run and commit."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Claim:
    """One measured value, beside the value of a paper or a peer.

    Attributes:
        name: Short description of the quantity, unique within the script.
        value: Measured value: the median if there are several.
        unit: Unit of the value; empty for a ratio.
        spread: Smallest and largest value over rounds or seeds; None for a single value.
        seeds: Random seeds of the measurement.
        reference: Value of the paper or the peer; None without one.
        source: Name of the paper or the peer, with its version.
    """

    name: str
    value: float
    unit: str = ""
    spread: tuple[float, float] | None = None
    seeds: tuple[int, ...] = ()
    reference: float | None = None
    source: str = ""


def write_claims(script: str | Path, claims: Sequence[Claim]) -> Path:
    """Write claims to the folder `history` beside the script, as NAME/DATE-COMMIT.json.

    Args:
        script: Path of the script, `__file__`.
        claims: Measured values.
    """
    script = Path(script).resolve()
    now = datetime.datetime.now(datetime.UTC)
    commit = _commit(script.parent)
    run = {
        "script": script.stem,
        "command": shlex.join(["python", *sys.argv]),
        "commit": commit,
        "date": now.isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "claims": [asdict(claim) for claim in claims],
    }
    path = script.parent / "history" / script.stem / f"{now:%Y-%m-%d}-{commit}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    return path


def _commit(folder: Path) -> str:
    """Short hash of the commit that is checked out, with `-dirty` if tracked files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else "unknown"
