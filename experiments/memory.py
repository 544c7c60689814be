"""Memory and time of the gradient of a long motion, and the effect of truncation on the gradient.

A Laikago of 18 velocities that falls on its four toes and stands, and one that tumbles without contact, steps of 1 ms,
float64, one thread. The gradient is that of a weighted sum of the final state with respect to the start. Every cell is
measured in a process of its own, forked when the kernels are loaded: the growth of its peak of memory, and the time
forward and backward. The process has run the same motion with a copy of the engine before, so that the pages of code
that it maps, which other gradients share, do not count. The first table has the bars: one state a step, growth below
0.3, 0.3, 0.7, 1.2 and 5 MB.

    python experiments/memory.py [--steps "[50, 500, 5000]"] [--batches "[1, 64]"] [--out out]
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import matplotlib as mpl
import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision import State
from physvision.core import InputError
from physvision.physics import Engine, articulated
from physvision.physics.checkpointing import (
    BinomialCheckpoints,
    Checkpoints,
    PeriodicCheckpoints,
    ReversedSteps,
    rollout_final,
)

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))  # where the standing robot is described

LAIKAGO = ROOT / "tests" / "data" / "laikago.urdf"
DOUBLE = torch.float64
BARS = {50: 0.3, 100: 0.3, 500: 0.7, 1000: 1.2, 5000: 5.0}  # steps: MB
UNDONE = 5000  # steps beyond which undoing them takes minutes
WARM_UP = 100  # steps, within which the robot lands
KEPT = 100  # steps beyond which keeping everything takes gigabytes

Way = Callable[[Engine, State, int], State]


@dataclass(frozen=True)
class Row:
    """A way to take the gradient: its name, the states kept of a motion of so many steps, and the final state."""

    name: str
    stored_mb: Callable[[int], float]
    end: Way


@dataclass(frozen=True)
class Cell:
    """Measurement of one process: growth of its peak, MB, seconds, and the gradient; None if it was refused."""

    megabytes: float
    seconds: float
    gradient: Tensor | None


def keeping(checkpoints: Checkpoints) -> Way:
    return lambda engine, state, steps: rollout_final(engine, state, steps, checkpoints=checkpoints).state


def rows() -> list[Row]:
    """All ways; those that depend on the number of steps are made of it."""
    halves = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    return [
        Row("one state a step", lambda steps: steps, lambda engine, state, steps: engine.rollout(state, steps).final),
        Row("every 50th", lambda steps: steps / 50, keeping(PeriodicCheckpoints(50))),
        Row(
            "√T",
            lambda steps: 2 * steps**0.5,
            lambda *motion: keeping(PeriodicCheckpoints(round(motion[2] ** 0.5)))(*motion),
        ),
        Row("binomial, 4 slots", lambda steps: 4, keeping(BinomialCheckpoints(4, 32))),
        Row("the end, steps undone", lambda steps: 1, keeping(ReversedSteps(32))),
        *(
            Row(
                f"truncated after {horizon}",
                lambda steps: steps,
                lambda engine, state, steps, horizon=horizon: engine.rollout(state, steps, truncate=horizon).final,
            )
            for horizon in (10, 100)
        ),
        *(
            Row(
                f"every 10th in {name}",
                lambda steps, kind=kind: steps / 10 * torch.finfo(kind).bits / 64,
                keeping(PeriodicCheckpoints(10, kind)),
            )
            for name, kind in halves.items()
        ),
    ]


def everything_kept(engine: Engine, state: State, steps: int) -> State:
    """In plain torch, where autograd keeps all that it meets: for scale alone, its joints are in Pinocchio's order."""
    import pinocchio as pin
    from torch_articulated import TorchTree  # pyright: ignore[reportMissingImports]

    tree = TorchTree(pin.buildModelFromUrdf(str(LAIKAGO), pin.JointModelFreeFlyer()))
    place, w, turn, angles = state.q.split([3, 1, 3, engine.nq - 7], 1)
    # Pinocchio tells a joint without limits by cosine and sine.
    around = [angles.cos(), angles.sin()] if tree.joints[1][0] == 2 else [angles]
    q = torch.cat([place, turn, w, torch.stack(around, -1).flatten(1)], 1)
    return State(tree.rollout(q, state.v, steps, engine.dt)[:, : engine.nq], state.v)


def scenes() -> dict[str, tuple[Engine, State]]:
    """Engines and where they start."""
    from contact import above_ground, engine  # pyright: ignore[reportMissingImports]

    standing = engine("event")
    tumbling = articulated.load(LAIKAGO, dt=1e-3, base="free", ignore=("contact", "limit"))
    return {
        "on four toes": (standing, above_ground(standing)),
        "tumbling": (tumbling, tumbling.initial_state(1, DOUBLE)),
    }


def gradient(engine: Engine, start: State, steps: int, end: Way) -> Tensor:
    """Gradient of a weighted sum of the final state with respect to the start, with slightly disturbed velocities."""
    torch.manual_seed(0)
    q, v = start.q.clone().requires_grad_(), (start.v + 0.1 * torch.randn_like(start.v)).requires_grad_()
    final = end(engine, State(q, v), steps)
    weight_q, weight_v = torch.linspace(1, 2, engine.nq, dtype=DOUBLE), torch.linspace(2, 1, engine.nv, dtype=DOUBLE)
    loss = (final.q @ weight_q + final.v @ weight_v).sum()
    return torch.cat(torch.autograd.grad(loss, (q, v)), -1)


def held(field: str) -> float:
    """MB that this process holds (VmRSS), or held at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def _measure(engine: Engine, start: State, steps: int, end: Way, result: Connection) -> None:
    try:
        twin = deepcopy(engine)  # has workspaces of its own, and maps the code of contact
        gradient(twin, start, min(steps, WARM_UP), end)
        gradient(engine, start, 2, end)
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before, began = held("VmRSS"), time.thread_time()
        results = gradient(engine, start, steps, end)
        result.send((held("VmHWM") - before, time.thread_time() - began, results.numpy()))
    except InputError:
        result.send((0.0, 0.0, None))
    os._exit(0)


def cell(engine: Engine, start: State, steps: int, end: Way) -> Cell:
    """Measured in a process of its own."""
    fork = multiprocessing.get_context("fork")
    receive, send = fork.Pipe(duplex=False)
    process = fork.Process(target=_measure, args=(engine, start, steps, end, send))
    process.start()
    megabytes, seconds, result = receive.recv()
    process.join()
    return Cell(megabytes, seconds, None if result is None else torch.as_tensor(result))


def bars(engine: Engine, start: State) -> bool:
    """Print the growth of one world's memory beside what it may be."""
    print(f"{'growth, MB, one world, one state a step':<44}" + "".join(f"{steps:>9}" for steps in BARS))
    extended = [cell(engine, start, steps, rows()[0].end).megabytes for steps in BARS]
    met = all(entry <= bar for entry, bar in zip(extended, BARS.values(), strict=True))
    print(f"{'':<44}" + "".join(f"{entry:>9.2f}" for entry in extended))
    print(f"{'bar: ' + ('met' if met else 'MISSED'):<44}" + "".join(f"{bar:>9}" for bar in BARS.values()) + "\n")
    return met


def slower(run: Cell | None, whole: Cell | None) -> str:
    return "" if run is None or whole is None else f"{run.seconds / whole.seconds:.1f}"


def error(run: Cell | None, whole: Cell | None) -> str:
    if run is None or whole is None or run.gradient is None or whole.gradient is None:
        return ""
    return f"{float((run.gradient - whole.gradient).abs().max() / whole.gradient.abs().max()):.1e}"


def table(name: str, engine: Engine, start: State, counts: list[int]) -> dict[str, list[Cell | None]]:
    """Measure and print all rows."""
    print(f"{name}, batch {start.batch}; bytes a step at {counts[-1]} steps; time and error against one state a step")
    print(
        f"  {'':<24}{'bytes':>8}"
        + "".join(f"{f'MB, {steps}':>12}" for steps in counts)
        + "".join(f"{f'time, {steps}':>12}" for steps in counts)
        + "".join(f"{f'error, {steps}':>13}" for steps in counts)
    )
    results: dict[str, list[Cell | None]] = {}
    for row in rows():
        undone = row.name.startswith("the end")
        cells = [None if undone and steps > UNDONE else cell(engine, start, steps, row.end) for steps in counts]
        results[row.name] = cells = [None if entry is None or entry.gradient is None else entry for entry in cells]
        memory = "".join(f"{'refused' if entry is None else f'{entry.megabytes:.2f}':>12}" for entry in cells)
        plain = results[rows()[0].name]
        times = "".join(f"{slower(entry, whole):>12}" for entry, whole in zip(cells, plain, strict=True))
        errors = "".join(f"{error(entry, whole):>13}" for entry, whole in zip(cells, plain, strict=True))
        bytes_a_step = row.stored_mb(counts[-1]) / counts[-1] * 8 * start.batch * (engine.nq + engine.nv)
        print(f"  {row.name:<24}{bytes_a_step:>8.1f}{memory}{times}{errors}", flush=True)
    if name == "tumbling" and start.batch == 1:
        whole = dict(zip(counts, results[rows()[0].name], strict=True))
        for steps in (count for count in counts if count <= KEPT):
            item = cell(engine, start, steps, everything_kept)
            size = f"{item.megabytes * 2**20 / steps:.0f} bytes a step, {item.megabytes:.1f} MB, "
            print(f"  everything kept, in torch, {steps} steps: {size}time {slower(item, whole[steps])}", flush=True)
    print()
    return results


def draw(rows: dict[str, list[Cell | None]], counts: list[int], title: str, path: Path) -> None:
    """Peak of memory and time over the number of steps."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for name, cells in rows.items():
        observed = [(steps, entry) for steps, entry in zip(counts, cells, strict=True) if entry is not None]
        if observed:
            numbers = [steps for steps, _ in observed]
            left.loglog(numbers, [max(entry.megabytes, 0.01) for _, entry in observed], "o-", label=name)
            right.loglog(numbers, [entry.seconds for _, entry in observed], "o-", label=name)
    for axes, label in ((left, "growth of memory, MB"), (right, "forward and backward, s")):
        axes.set(xlabel="steps", ylabel=label)
        axes.grid(alpha=0.3)
    left.legend(fontsize=8)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(steps: list[int] | None = None, batches: list[int] | None = None, out: Path = Path("out")) -> bool:
    """Print the tables and draw that of the first batch; whether the bars were met.

    Args:
        steps: numbers of steps.
        batches: numbers of worlds.
        out: folder of the pictures.
    """
    torch.set_num_threads(1)
    counts, batches = steps or [50, 500, 5000], batches or [1, 64]
    out.mkdir(parents=True, exist_ok=True)
    result = scenes()
    for engine, start in result.values():
        for row in rows():  # so that what is loaded once belongs to no cell
            if not row.name.startswith("the end"):
                gradient(engine, start, 2, row.end)
    met = bars(*result["on four toes"])
    for name, (engine, start) in result.items():
        for batch in batches:
            cells = table(name, engine, start.repeat(batch), counts)
            if batch == batches[0]:
                path = out / f"memory_{name.replace(' ', '_')}.png"
                draw(cells, counts, f"a Laikago {name}, batch {batch}", path)
                print(f"drawn: {path}\n", flush=True)
    return met


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
