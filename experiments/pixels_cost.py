"""Cost of an update of the pendulum from pixels: engine, camera, network, memory, and a second core.

python experiments/pixels_cost.py [--height 32] [--width 96] [--batch 8] [--rounds 9]
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from statistics import median

import torch
from jsonargparse import auto_cli

from physvision.control.pixels import FramePolicy, PixelCartPoleTask
from physvision.control.policies import rollout_policy

PERIODS, FEWER = 20, 5


def update(height: int, width: int, batch: int, periods: int, recompute: bool) -> Callable[[], None]:
    """An episode of so many decisions forward and backward."""
    torch.manual_seed(0)
    task, policy = PixelCartPoleTask(height, width, periods), FramePolicy(height, width, recompute=recompute)
    state, goal = task.reset(batch, torch.Generator().manual_seed(0))
    return lambda: rollout_policy(task, policy, state, goal).losses.mean().backward()


def parts(height: int, width: int, batch: int) -> dict[str, Callable[[], None]]:
    """Time the parts of a decision separately, forward and backward."""
    torch.manual_seed(0)
    task, policy = PixelCartPoleTask(height, width), FramePolicy(height, width)
    state, goal = task.reset(batch, torch.Generator().manual_seed(0))
    state.q.requires_grad_()
    control = torch.zeros(batch, task.frame_skip, 1, requires_grad=True)
    frames, memory = task.observe(state, goal).detach().requires_grad_(), policy.initial_hidden(state.q)
    return {
        "engine": lambda: task.engine.rollout(state, task.frame_skip, control).final.q.sum().backward(),
        "camera": lambda: task.observe(state, goal).sum().backward(),
        "network": lambda: policy(frames, memory)[0].sum().backward(),
    }


def cost_fractions(height: int, width: int, batch: int, rounds: int) -> None:
    """Print what parts of a decision take, and all of it in an episode: medians of rounds in turn, processor time."""
    torch.set_num_threads(1)
    whole = update(height, width, batch, PERIODS, recompute=False)
    timed = parts(height, width, batch)
    elapsed: dict[str, list[float]] = {name: [] for name in (*timed, "whole")}
    for number in range(rounds + 1):
        for name, part in (*timed.items(), ("whole", whole)):
            start = time.process_time()
            for _ in range(PERIODS if name != "whole" else 1):
                part()
            if number:  # in the first one kernels are read
                elapsed[name].append((time.process_time() - start) / PERIODS)
    of = median(elapsed["whole"])
    for name, entry in elapsed.items():
        print(f"{name:<8}{1e3 * median(entry):>8.2f} ms a decision of {batch} worlds{100 * median(entry) / of:>6.0f} %")


def cores(height: int, width: int, rounds: int) -> None:
    """Print how much sooner two threads draw one frame and its gradient: the median of ratios of wall time in pairs."""
    draw, ratios = parts(height, width, 1)["camera"], []
    for _ in range(rounds):
        elapsed = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            start = time.perf_counter()
            for _ in range(PERIODS):
                draw()
            elapsed.append(time.perf_counter() - start)
        ratios.append(elapsed[0] / elapsed[1])
    print(f"camera  {median(ratios):>8.2f} times as fast with two threads, one frame, wall time")


def growth(height: int, width: int, batch: int, recompute: bool) -> float:
    """By how many MB memory grows for each further decision of an episode."""
    torch.set_num_threads(1)
    peaks = []
    for periods in (FEWER, PERIODS):
        update(height, width, batch, periods, recompute)()
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return (peaks[1] - peaks[0]) / (PERIODS - FEWER)


def main(height: int = 32, width: int = 96, batch: int = 8, rounds: int = 9) -> None:
    """Measure the cost of an update.

    Args:
        height: Height of frames, pixels.
        width: Width of frames, pixels.
        batch: worlds in an episode.
        rounds: Rounds of timing, of which medians are printed.
    """
    print(f"frames of {width} x {height}")
    # Each in a process of its own, since what a process once took counts for ever.
    context = multiprocessing.get_context("spawn")
    for recompute in (False, True):
        with context.Pool(1) as alone:
            entry = alone.apply(growth, (height, width, batch, recompute))
        print(f"memory  {entry:>8.2f} MB a decision of {batch} worlds, {'recomputed' if recompute else 'kept'}")
    cost_fractions(height, width, batch, rounds)
    cores(height, width, rounds)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
