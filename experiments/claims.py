"""Claims that a script measures, as one JSON file for each run.

A script calls `write_claims`, which writes to `out/claims`. `experiments/run.py NAME` runs the script and keeps the
file in the folder `history` beside it, from which docs/results.md is made.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = "PHYSVISION_CLAIMS"  # environment variable of the folder that files are written to


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
    """Write the claims of a run as FOLDER/NAME/DATE-COMMIT.json.

    The folder is `out/claims` in the current directory, or that of the environment variable PHYSVISION_CLAIMS.

    Args:
        script: Path of the script, `__file__`.
        claims: Measured values.
    """
    script = Path(script).resolve()
    now = datetime.datetime.now(datetime.UTC)
    commit = _commit(script.parent)
    inside = script.is_relative_to(ROOT)
    run = {
        "script": script.relative_to(ROOT).as_posix() if inside else script.name,
        "command": shlex.join(["python", *_from_root(sys.argv)]),
        "commit": commit,
        "date": now.isoformat(timespec="seconds"),
        "seconds": round(_processor_seconds()),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "claims": [asdict(claim) for claim in claims],
    }
    folder = Path(os.environ.get(FOLDER) or "out/claims")
    path = folder / script.stem / f"{now:%Y-%m-%d}-{commit}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _from_root(arguments: list[str]) -> list[str]:
    """Arguments of a script, the path of the script relative to the root of the repository."""
    script = Path(arguments[0]).resolve()
    return [script.relative_to(ROOT).as_posix() if script.is_relative_to(ROOT) else arguments[0], *arguments[1:]]


def _processor_seconds() -> float:
    """Processor time of this process and of its children that have ended, s."""
    usages = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _commit(folder: Path) -> str:
    """Short hash of the commit that is checked out, with `-dirty` if tracked files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else "unknown"
