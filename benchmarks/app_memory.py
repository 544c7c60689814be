"""Largest memory of the application's worker on a long clip: frames for the page, tracks, and the fit of a pendulum.

    python benchmarks/app_memory.py [--seconds 300] [--width 1920] [--height 1080]

The clip is drawn first: a disc that swings in front of a noisy wall, filmed for five minutes in 1080p. The worker's
process is the one of `physvision open`, and its memory is what Linux counts as its largest resident set (VmHWM).
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from jsonargparse import auto_cli

from physvision import video

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from claims import Claim, write_claims

FPS, MAX_BYTES = 30, 2 * 2**30


def swing(seconds: float, width: int, height: int) -> Iterator[np.ndarray]:
    """Yield frames of a damped pendulum of one meter."""
    generator = np.random.default_rng(0)
    wall = cv2.GaussianBlur(generator.integers(0, 256, (height, width, 3), np.uint8), (0, 0), 4)
    length = 0.6 * height
    for number in range(int(seconds * FPS)):
        time = number / FPS
        angle = 0.5 * math.exp(-0.002 * time) * math.cos(math.sqrt(9.81) * time)
        frame = wall.copy()
        x, y = width / 2 + length * math.sin(angle), 0.15 * height + length * math.cos(angle)
        center = (round(16 * x), round(16 * y))
        cv2.circle(frame, center, round(16 * 0.04 * height), (30, 60, 190), -1, cv2.LINE_AA, 4)
        yield frame


def run_jobs(jobs: list[dict[str, Any]]) -> tuple[dict[str, int], int]:
    """Run jobs in one worker; return its largest memory after each kind of job, bytes, and at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "physvision.app.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for job in jobs:
        process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    kinds, after = {job["id"]: job["kind"] for job in jobs}, {}
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "failed":
            raise SystemExit(f"{kinds[event['id']]}: {event['message']}")
        if event["event"] == "ready":
            after["imports"] = _largest_memory(process.pid)
        if event["event"] == "done":
            after[kinds[event["id"]]] = _largest_memory(process.pid)
            print(f"{kinds[event['id']]}: {after[kinds[event['id']]] / 2**20:.0f} MB", flush=True)
            if len(after) == len(jobs) + 1:
                break
    process.stdin.close()
    process.wait()
    return after, max(after.values())


def _largest_memory(pid: int) -> int:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return 1024 * int(line.split()[1])


def main(seconds: float = 300.0, width: int = 1920, height: int = 1080) -> None:
    """Draw the clip, run the worker on it, and write the claim."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clip = folder / "clip.mp4"
        with video.VideoWriter(clip, FPS) as writer:
            for frame in swing(seconds, width, height):
                writer.add(frame)
        (folder / "a").mkdir()
        job = {"analysis": "a", "name": "a", "clip": str(clip), "files": str(folder / "a" / "files")}
        jobs = [
            {**job, "id": 1, "kind": "frames", "folder": str(folder / "a" / "frames")},
            {**job, "id": 2, "kind": "track", "request": "{}"},
            {**job, "id": 3, "kind": "identify", "request": '{"motion": "pendulum"}'},
        ]
        _, largest = run_jobs(jobs)
    print(f"largest memory: {largest / 2**30:.2f} GB for {seconds:g} s of {width} × {height}")
    claim = Claim(f"worker's memory, {seconds:g} s of {height}p", largest, "bytes", reference=MAX_BYTES)
    print(write_claims(__file__, [claim]))


if __name__ == "__main__":
    auto_cli(main)
