"""Processor time of a frame of 640 × 480 in films of seven motions, and a picture of each.

    pip download --no-deps --dest out/wheels gymnasium
    unzip -q out/wheels/gymnasium-*.whl -d out/models
    python benchmarks/films.py out/models [--frames 10] [--out out/films]

Thirty frames a second on two cores are 67 ms of processor time a frame. `--peer` adds MuJoCo's off-screen renderer for
the humanoid, which needs MUJOCO_GL=egl or osmesa.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import cv2
import mujoco
from film_scenes import Motion, motions
from jsonargparse import auto_cli

from physvision.core import State
from physvision.rendering import film_frames

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from claims import Claim, write_claims

SIZE = (480, 640)


def measure(motion: Motion, frames: int, picture: Path) -> list[float]:
    """Processor times of frames of a motion, ms, all but the first; the middle one is written."""
    engine, trajectory = motion
    stride = max(1, trajectory.steps // frames)
    states = State(trajectory.q[0, ::stride], trajectory.v[0, ::stride])
    times, start = [], time.process_time()
    for number, frame in enumerate(film_frames(engine, states, stride * engine.dt, SIZE)):
        times.append(1e3 * (time.process_time() - start))
        if number == states.batch // 2:
            cv2.imwrite(str(picture), frame[..., ::-1])
        start = time.process_time()
    return times[1:]


def measure_mujoco(model_file: Path, frames: int) -> list[float]:
    """Processor times of frames of MuJoCo's own renderer, ms."""
    model = mujoco.MjModel.from_xml_path(str(model_file))
    data, times = mujoco.MjData(model), []
    mujoco.mj_forward(model, data)
    with mujoco.Renderer(model, *SIZE) as renderer:
        for _ in range(frames + 1):
            start = time.process_time()
            renderer.update_scene(data)
            renderer.render()
            times.append(1e3 * (time.process_time() - start))
    return times[1:]


def main(models: str, frames: int = 10, out: str = "out/films", peer: bool = False) -> None:
    """Measure all motions, print a table and write the claims."""
    Path(out).mkdir(parents=True, exist_ok=True)
    results = {name: measure(make(), frames, Path(out) / f"{name}.png") for name, make in motions(Path(models)).items()}
    if peer:
        file = Path(models) / "gymnasium" / "envs" / "mujoco" / "assets" / "humanoid.xml"
        results["humanoid, MuJoCo"] = measure_mujoco(file, frames)
    claims = []
    for name, times in results.items():
        median = statistics.median(times)
        print(f"{name:<18} {median:6.1f} ms of processor time a frame ({min(times):.1f} to {max(times):.1f})")
        claims.append(Claim(f"frame of {name}", median, "ms", (min(times), max(times))))
    print(write_claims(__file__, claims))


if __name__ == "__main__":
    auto_cli(main, as_positional=True)
