"""Which of other packages' model files load: all MJCF files in the wheels of a folder, and why the others do not.

    pip download --no-deps --dest out/wheels gymnasium dm_control
    python benchmarks/model_files.py out/wheels [--seconds 1] [--most 300]

A file that loads is stepped from its start, what overlaps pushed apart, by 5 ms, and it is told for how long its
status was good. Where it cannot be pushed apart, as of capsules that overlap at the joint of their bodies, the shapes
that overlap at the start pass through each other instead, and that is told. Files that MuJoCo itself cannot compile are
told apart, and those in which nothing moves (scenery, and pieces of other files). A file that takes more than `most`
seconds of the clock is left, and that is told.
"""

from __future__ import annotations

import multiprocessing
import re
import tempfile
import warnings
import zipfile
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import mujoco
import torch
from jsonargparse import auto_cli

from physvision.core import InputError, UnsupportedError
from physvision.physics import articulated

DT = 5e-3


def verdict(path: Path, seconds: float) -> tuple[str, str]:
    """Whether the file loads, and how it went or why not."""
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
        start = engine.separated(engine.initial_state(1, torch.float64))
    except InputError:
        how = ", what overlaps at the start passing through"
        engine = articulated.load(path, dt=DT, overlapping="pass")
        try:
            start = engine.separated(engine.initial_state(1, torch.float64))
        except InputError:
            return "loads", f"{engine.nv} velocities, but its start cannot be freed of overlaps"
    status = engine.rollout(start, max(1, round(seconds / DT))).status
    assert status is not None
    bad = int(status.first_bad_step[0])
    return "loads", f"{engine.nv} velocities, good for {seconds if bad < 0 else bad * DT:g} s{how}"


def answer(questions: Connection, seconds: float) -> None:
    """Judge the files that come in, until there are no more."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    while (path := questions.recv()) is not None:
        questions.send(verdict(path, seconds))


class Judge:
    """A process that judges files, and another one after a file that takes it too long."""

    def __init__(self, seconds: float, most: float) -> None:
        self._seconds, self._most = seconds, most
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, other = context.Pipe()
        self._process = context.Process(target=answer, args=(other, self._seconds), daemon=True)
        self._process.start()

    def __call__(self, path: Path) -> tuple[str, str]:
        """Whether a file loads, and how it went."""
        self._line.send(path)
        if self._line.poll(self._most):
            return self._line.recv()
        self._process.kill()
        self._begin()
        return "too slow", f"{self._seconds:g} s are not simulated within {self._most:g} s"


def models(wheels: Path, folder: Path) -> list[Path]:
    """The models in all wheels, which are unpacked into a folder."""
    for each in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(each) as wheel:
            wheel.extractall(folder)
    return [each for each in sorted(folder.rglob("*.xml")) if "<worldbody" in each.read_text(errors="replace")]


def main(wheels: Path, seconds: float = 1.0, most: float = 300.0) -> int:
    """Print the table; returns how many load.

    Args:
        wheels: folder of the wheels.
        seconds: simulated of each model that loads.
        most: seconds of the clock that each may take.
    """
    judge = Judge(seconds, most)
    found: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in models(wheels, Path(folder)):
            result, why = judge(path)
            found[result] += 1
            if result == "refused":
                reasons.update(why.split(", "))
            print(f"{result:<14} {path.relative_to(folder)}  {why}", flush=True)
    print(", ".join(f"{count} {result}" for result, count in found.most_common()))
    print("refused for: " + ", ".join(f"{kind} {count}" for kind, count in reasons.most_common()))
    return found["loads"]


if __name__ == "__main__":
    auto_cli(main, as_positional=True)
