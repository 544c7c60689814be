"""Load: the memory of large inputs, and their processor time beside that of a tenth of them.

    python benchmarks/load.py [--only "[predict, identify]"] [--fraction 0.1]

Each case runs in processes of its own, at a tenth of its size and at its size, each time after a small run that loads
libraries and kernels. A case is good if it holds less than 2 GB and takes at most twice the processor time that linear
growth from the tenth foretells. The clips are two seconds of a pendulum before a wall, again and again. Two processes
that fill one empty cache of kernels, and loaders of data that fork or spawn after use, are in
tests/kernels/test_processes.py.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import av
import cv2
import numpy as np
import rigid2d_scenes
import torch
from jsonargparse import auto_cli

from physvision import State, cli, video
from physvision.core import Box, Placed, Plane, Shape, Sphere
from physvision.physics import articulated, rigid2d
from physvision.physics.articulated import Body, Joint

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from claims import Claim, write_claims

MAX_BYTES, MAX_GROWTH = 2e9, 2.0
FPS, PERIOD = 30, 2.0  # frames a second, s
ENCODING = video.Encoding("libx264", "yuv420p", {"preset": "ultrafast", "crf": "18"})


def write_clip(folder: Path, seconds: int, width: int, height: int) -> None:
    """Write a clip of a pendulum, whose packets of one period are repeated, to SECONDS.mp4."""
    generator, period = np.random.default_rng(0), folder / "period.mp4"
    if not period.exists():
        wall = cv2.GaussianBlur(generator.integers(0, 256, (height, width, 3), np.uint8), (0, 0), 4)
        with video.VideoWriter(period, FPS, encoding=ENCODING) as writer:
            for number in range(round(PERIOD * FPS)):
                angle = 0.2 * math.cos(2 * math.pi * number / (PERIOD * FPS))
                x, y = width / 2 + 0.6 * height * math.sin(angle), height * (0.15 + 0.6 * math.cos(angle))
                center = round(16 * x), round(16 * y)
                writer.add(cv2.circle(wall.copy(), center, round(0.64 * height), (30, 60, 190), -1, cv2.LINE_AA, 4))
    with av.open(str(period)) as source, av.open(str(folder / f"{seconds}.mp4"), "w") as target:
        packets = [packet for packet in source.demux(video=0) if packet.dts is not None]
        stream, base = target.add_stream_from_template(source.streams.video[0]), packets[0].time_base
        length, times = round(PERIOD / base), [(packet.pts, packet.dts) for packet in packets]
        for turn in range(max(1, round(seconds / PERIOD))):
            for packet, (pts, dts) in zip(packets, times, strict=True):
                packet.pts, packet.dts, packet.stream = pts + turn * length, dts + turn * length, stream
                target.mux(packet)


def run_command(line: str) -> None:
    """Run a command without its output."""
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        status = cli.main(line.split())
    if status:
        raise RuntimeError(f"{line}: status {status}")


def predict(seconds: int, folder: Path) -> Callable[[], object]:
    """`physvision predict` on a clip of 3840 × 2160."""
    options = "--checkpoint pendulum --fps 20 --crop 840,0,2160,2160 --size 100 --force"
    return lambda: run_command(f"predict {folder}/{seconds}.mp4 {options} --out {folder}/report")


def identify(seconds: int, folder: Path) -> Callable[[], object]:
    """`physvision identify` on a clip of 1920 × 1080."""
    return lambda: run_command(f"identify {folder}/{seconds}.mp4 --motion pendulum --out {folder}/report")


def roll(engine: articulated.Articulation | rigid2d.World, state: State, steps: int, differentiate: bool) -> None:
    """Simulate, and differentiate the end by the start."""
    state = State(state.q.requires_grad_(differentiate), state.v)
    path = engine.rollout(state, steps)
    assert path.status is not None
    if not path.status.converged.all():
        raise RuntimeError("a world failed")
    if differentiate:
        path.final.q.sum().backward()


def chain(links: int, batch: int, steps: int) -> Callable[[], object]:
    """A chain of hinges, which is differentiated."""

    def run() -> None:
        engine = articulated.chain([1.0] * links, [1.0] * links, dt=2e-3)
        q = torch.full((batch, links), 0.1 / links, dtype=torch.float64)
        roll(engine, State(q, torch.zeros_like(q)), steps, True)

    return run


def hinges(count: int, _: Path) -> Callable[[], object]:
    """Chains of ten hinges from an MJCF file."""
    link = '<body pos="0 0 .1"><joint axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 .1" contype="0"/>'
    text = "<mujoco><worldbody>" + (10 * link + 10 * "</body>") * max(1, count // 10) + "</worldbody></mujoco>"

    def run() -> None:
        engine = articulated.load(text, ignore=("contact",))
        roll(engine, engine.initial_state(1, torch.float64), 100, True)

    return run


def plane(make: Callable[[int], rigid2d.World], count: int, batch: int, steps: int) -> Callable[[], object]:
    """A world in the plane."""

    def run() -> None:
        world = make(count)
        roll(world, world.initial_state(batch, torch.float64), steps, False)

    return run


def spatial_pile(shape: Shape) -> Callable[[int, Path], Callable[[], object]]:
    """Bodies in layers that fall on a ground and on each other, for a hundred steps."""

    def make(count: int, _: Path) -> Callable[[], object]:
        def run() -> None:
            random, side = np.random.default_rng(0), math.ceil(count ** (1 / 3))
            bodies, q = [], []
            for number in range(count):
                bodies.append(Body(f"{number}", None, [Joint("free")], inertia=(0.004,) * 3, shapes=[Placed(shape)]))
                place = 0.25 * np.array([number % side, number // side % side, number // side**2]) + (0, 0, 0.12)
                q += [*(place + random.uniform(0, 0.02, 3)).tolist(), 1.0, 0.0, 0.0, 0.0]
            engine = articulated.tree(
                bodies,
                dt=2e-3,
                gravity=(0, 0, -9.81),
                static_shapes=[Placed(Plane())],
                contact=articulated.ContactSettings(),
            )
            state = State(torch.tensor([q]).double(), torch.zeros(1, 6 * count).double())
            roll(engine, state, 100, False)

        return run

    return make


@dataclass(frozen=True)
class Case:
    """A large input and what is done with it.

    Attributes:
        size: Its size.
        make: Function from a size and a folder to what is measured.
        clip: Width and height of the clip that lies in the folder, px.
    """

    size: int
    make: Callable[[int, Path], Callable[[], object]]
    clip: tuple[int, int] | None = None

    @property
    def small(self) -> int:
        """Size of the run before, which loads libraries and kernels."""
        return max(2, self.size // 100)


CASES = {
    "predict, s of 4K": Case(600, predict, (3840, 2160)),
    "identify, s of 1080p": Case(300, identify, (1920, 1080)),
    "pile in the plane, bodies": Case(500, lambda n, _: plane(lambda k: rigid2d_scenes.pile(k, 3), n, 1, 100)),
    "pile of boxes, bodies": Case(500, spatial_pile(Box((0.2, 0.2, 0.2)))),
    "pile of spheres, bodies": Case(500, spatial_pile(Sphere(0.1))),
    "double pendulum, steps": Case(1_000_000, lambda n, _: chain(2, 1, n)),
    "pile in the plane, steps": Case(1_000_000, lambda n, _: plane(lambda _: rigid2d_scenes.pile(3, 3), 3, 1, n)),
    "double pendulums, worlds": Case(100_000, lambda n, _: chain(2, n, 100)),
    "piles in the plane, worlds": Case(100_000, lambda n, _: plane(lambda _: rigid2d_scenes.pile(3, 3), 3, n, 10)),
    "chain, joints": Case(300, lambda n, _: chain(n, 1, 100)),
    "MJCF file, joints": Case(300, hinges),
    "chain in the plane, joints": Case(300, lambda n, _: plane(rigid2d_scenes.struck_chain, n, 1, 100)),
}


def measure(name: str, size: int, folder: Path, connection: Connection) -> None:
    """Send the processor time and the largest memory of a case, s and bytes."""
    torch.set_num_threads(1)
    case = CASES[name]
    case.make(case.small, folder)()
    run = case.make(size, folder)
    began = time.process_time()
    run()
    took = time.process_time() - began
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    kilobytes = max(int(line.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    connection.send((took, 1024 * kilobytes))


def cost(name: str, size: int, folder: Path) -> tuple[float, float]:
    """Processor time and largest memory of a case in a process of its own, s and bytes."""
    case = CASES[name]
    for seconds in {case.small, size} if case.clip else ():
        write_clip(folder, seconds, *case.clip or ())
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(name, size, folder, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        raise RuntimeError(f"{name}: the process of size {size} ended without a result") from None
    finally:
        process.join()


def main(only: list[str] | None = None, fraction: float = 1.0) -> None:
    """Measure all cases, print a table, and write the figures as claims.

    Args:
        only: First words of the cases to measure; all if not given.
        fraction: Fraction of each case's size that is measured, beside a tenth of that.
    """
    claims = []
    print(f"{'case':<28}{'size':>10}{'tenth, s':>10}{'whole, s':>10}{'growth':>8}{'MB':>7}", flush=True)
    for name, case in CASES.items():
        if only and not any(name.startswith(word) for word in only):
            continue
        size = round(fraction * case.size)
        with tempfile.TemporaryDirectory() as folder:
            (tenth, _), (whole, memory) = (cost(name, part, Path(folder)) for part in (size // 10, size))
        growth = whole / (10 * tenth)
        good = growth <= MAX_GROWTH and memory <= MAX_BYTES
        print(f"{name:<28}{size:>10}{tenth:>10.2f}{whole:>10.2f}{growth:>8.2f}{memory / 1e6:>7.0f}", end="", flush=True)
        print("" if good else "  MISSED", flush=True)
        claims.append(Claim(f"{name}: memory of {size}", memory, "bytes", reference=MAX_BYTES))
        claims.append(Claim(f"{name}: time over that of linear growth, {size}", growth, reference=MAX_GROWTH))
    write_claims(__file__, claims)


if __name__ == "__main__":
    auto_cli(main)
