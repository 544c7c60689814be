"""Which of other packages' model files load: all MJCF files in the wheels of a folder, and why the others do not.

    pip download --no-deps --dest out/wheels gymnasium dm_control
    python benchmarks/model_files.py out/wheels [--seconds 1] [--max_seconds 300] [--record model_files.jsonl]

A file that loads is stepped from its start, what overlaps pushed apart, by 5 ms, and it is told for how long its
status was good. Where it cannot be pushed apart, as of capsules that overlap at the joint of their bodies, the shapes
that overlap at the start pass through each other instead, and that is told. Files that MuJoCo itself cannot compile are
told apart, and those in which nothing moves (scenery, and pieces of other files). A file that takes more than `most`
seconds of processor time is left, and told is how far it got. Files in the record are not judged again.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import multiprocessing
import re
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import mujoco
import torch
from jsonargparse import auto_cli

from physvision import State
from physvision.core import InputError, UnsupportedError
from physvision.physics import articulated

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where the cache is
from result_cache import cached_results

DT = 5e-3
PIECE = 20  # steps between two looks at the clock


def motion(engine: articulated.Articulation, start: State, seconds: float, max_seconds: float) -> str:
    """For how long the status was good of a motion of so many seconds, which may take so many of processor time."""
    state, steps, done, began, penetration = start, max(1, round(seconds / DT)), 0, time.process_time(), 0.0
    while done < steps:
        piece = engine.rollout(state, min(PIECE, steps - done))
        assert piece.status is not None
        bad, penetration = int(piece.status.first_failed_step[0]), max(penetration, float(piece.status.penetration[0]))
        if bad >= 0:
            return f"good for {(done + bad) * DT:g} s"
        done, state = done + piece.steps, piece.final
        if time.process_time() - began > max_seconds:
            return f"good for {done * DT:g} s until its time of {max_seconds:g} s was spent"
    took = (time.process_time() - began) / steps
    return f"good for {seconds:g} s, {1e3 * took:.3g} ms a step, overlaps of {1e3 * penetration:.2g} mm at most"


def verdict(path: Path, seconds: float, max_seconds: float) -> tuple[str, str]:
    """Outcome of loading and rolling out a file, with the reason of a failure."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return "not compiled", "by MuJoCo, as it stands"
    try:
        engine = articulated.load(path, dt=DT)
    except UnsupportedError as error:
        kinds = re.search(r"ignore=\((.*),\)", str(error))
        return "refused", kinds[1].replace("'", "") if kinds else "other"
    if model.nv == 0:
        return "loads", "nothing moves"
    how = ""
    try:
        start = engine.resolve_penetration(engine.initial_state(1, torch.float64))
    except InputError:
        how = ", what overlaps at the start passing through"
        engine = articulated.load(path, dt=DT, initial_penetration="exclude")
        try:
            start = engine.resolve_penetration(engine.initial_state(1, torch.float64))
        except InputError:
            return "loads", f"{engine.nv} velocities, but its start cannot be freed of overlaps"
    return "loads", f"{engine.nv} velocities, {motion(engine, start, seconds, max_seconds)}{how}"


class Judge:
    """A process that judges files, and another one after a file on which it hangs."""

    def __init__(self, seconds: float, max_seconds: float) -> None:
        self._seconds, self._max_seconds = seconds, max_seconds
        self._begin()

    def _begin(self) -> None:
        self._process = multiprocessing.get_context("spawn").Pool(1)

    def __call__(self, path: Path) -> tuple[str, str]:
        """Load and roll out a file, and return the outcome."""
        answer = self._process.apply_async(verdict, (path, self._seconds, self._max_seconds))
        try:
            return answer.get(10 * self._max_seconds)
        except multiprocessing.TimeoutError:
            self._process.terminate()
            self._begin()
            return "too slow", f"no answer within {10 * self._max_seconds:g} s of the clock"


def models(wheels: Path, folder: Path) -> list[Path]:
    """The models in all wheels, which are unpacked into a folder."""
    for path in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(folder)
    return [path for path in sorted(folder.rglob("*.xml")) if "<worldbody" in path.read_text(errors="replace")]


def main(wheels: Path, seconds: float = 1.0, max_seconds: float = 300.0, record: Path | None = None) -> int:
    """Print the table; returns how many load.

    Args:
        wheels: folder of the wheels.
        seconds: simulated of each model that loads.
        max_seconds: seconds of processor time that the motion of each may take.
        record: a file that verdicts are added to; none is kept if not given.
    """
    judge = Judge(seconds, max_seconds)
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder)

        def evaluate(file: str) -> dict[str, str]:
            result, why = judge(unpacked / file)
            print(f"{result:<14} {file}  {why}", flush=True)
            return {"file": file, "result": result, "why": why}

        files = [str(path.relative_to(unpacked)) for path in models(wheels, unpacked)]
        lines = cached_results(record or unpacked / "verdicts", files, evaluate, lambda line: line["file"])
    results = Counter(lines[file]["result"] for file in files)
    refused = (lines[file]["why"] for file in files if lines[file]["result"] == "refused")
    reasons = Counter(kind for why in refused for kind in why.split(", "))
    good = sum(f"good for {seconds:g} s, " in lines[file]["why"] for file in files)
    still = sum(lines[file]["why"] == "nothing moves" for file in files)
    print(", ".join(f"{count} {result}" for result, count in results.most_common()))
    print(f"of those that load nothing moves in {still}, and {good} are good for {seconds:g} s")
    print("refused for: " + ", ".join(f"{kind} {count}" for kind, count in reasons.most_common()))
    return results["loads"]


if __name__ == "__main__":
    auto_cli(main, as_positional=True)
