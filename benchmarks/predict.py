"""Speed and memory of `physvision predict` on a long video, as a process of its own.

    python benchmarks/predict.py [--checkpoints pendulum billiards-3] [--frames 20000] [--options --device cuda]

The video is made of held-out trials, joined. What is printed is of the whole command, its start included:
frames a second by the clock and of processor time, and the most memory that it held. `--film false` is the same
without prediction.mp4.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from physvision import demo, video
from physvision.models import load, shipped

TRIAL_SECONDS = 10


def frames(name: str, count: int) -> Iterator[np.ndarray]:
    """`count` frames of the kind that the checkpoint `name` was made for."""
    fps = round(load(name).scene.fps)
    recipe = demo.CLIPS[name][0](fps)
    length = TRIAL_SECONDS * fps
    for trial in range(-(-count // length)):
        yield from recipe.make("test", trial)["frames"][: count - trial * length]


def measure(path: Path, name: str, *options: str) -> tuple[float, float, float]:
    """Seconds by the clock and of processor time, and MB, of the command."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "physvision.cli", "predict", str(path), "--checkpoint", name, "--out", folder]
        began = time.perf_counter()
        with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            error = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(error.decode())
        return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(checkpoints: list[str], count: int, options: list[str]) -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {count} frames; start included")
    print(f"{'checkpoint':<14}{'film':<7}{'frames/s':>10}{'frames/s of processor time':>28}{'MB':>8}")
    for name in checkpoints:
        with tempfile.TemporaryDirectory() as folder:
            fps = load(name).scene.fps
            path = video.write(Path(folder) / "long.mp4", frames(name, count), fps)
            for film in ("true", "false"):
                clock, processor, memory = measure(path, name, "--film", film, *options)
                print(f"{name:<14}{film:<7}{count / clock:>10.0f}{count / processor:>28.0f}{memory:>8.0f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", nargs="+", default=shipped())
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[])
    given = parser.parse_args()
    main(given.checkpoints, given.frames, given.options)
