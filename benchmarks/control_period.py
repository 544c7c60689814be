"""Overhead of a call of the engine beside its steps, when a policy acts after every few of them.

    python benchmarks/control_period.py [--rounds 7]

The quadruped of `quadruped_policy.py`, one world, one thread, float32: microseconds of processor time of a rollout as
long as a control period, without gradients and with a backward pass; what its steps take in one long rollout; and the
difference, which is Python's. The bar is 50 microseconds around the launch.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from jsonargparse import auto_cli
from quadruped_policy import quadruped

from physvision import State

CALLS, LONG = 100, 500
BAR = 50.0


def shortest_time(work: Callable[[], object], calls: int, rounds: int) -> float:
    """Microseconds of processor time of one call, the least of the rounds."""
    work()
    times = []
    for _ in range(rounds):
        began = time.thread_time()
        for _ in range(calls):
            work()
        times.append((time.thread_time() - began) / calls)
    return min(times) * 1e6


def main(rounds: int = 7) -> None:
    """Print the table of times.

    Args:
        rounds: Number of rounds of timing.
    """
    torch.set_num_threads(1)
    engine = quadruped()
    high = engine.initial_state(dtype=torch.float32)
    start = State(high.q + torch.tensor([0, 0, 0.335] + [0.0] * 12), high.v)
    start = engine.rollout(start, 200).final
    followed = State(start.q.clone().requires_grad_(), start.v)

    def forward(steps: int) -> None:
        with torch.no_grad():
            engine.rollout(start, steps, torch.zeros(1, steps, engine.nu))

    def forward_backward(steps: int) -> None:
        engine.rollout(followed, steps, torch.zeros(1, steps, engine.nu)).final.q.sum().backward()

    print(f"{'':12}{'steps':>6}{'a call':>9}{'its steps':>11}{'the rest':>10}")
    for name, work in (("forward", forward), ("with backward", forward_backward)):
        a_step = shortest_time(lambda work=work: work(LONG), 1, rounds) / LONG
        for steps in (1, 10):
            call = shortest_time(lambda work=work, steps=steps: work(steps), CALLS, rounds)
            rest = call - steps * a_step
            verdict = f"   bar {BAR:.0f}: {'met' if rest <= BAR else 'MISSED'}"
            print(f"{name:<14}{steps:>4}{call:>9.0f}{steps * a_step:>11.0f}{rest:>10.0f}{verdict}")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
