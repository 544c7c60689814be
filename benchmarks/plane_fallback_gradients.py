"""Gradients in piles, where steps fall back, against differences at six sizes of step.

    python benchmarks/plane_fallback_gradients.py [--piles 100] [--steps 1]

A pile of 10 to 40 circles, boxes and polygons falls for up to two seconds. From there the derivative of a random sum of
the positions after so many steps, along a random direction of its state, is compared with differences at each size; and
with the nearest difference that another size confirms to 0.2 %, where differences to either side agree as well: a
contact that just touches has a corner there. A pile without such a difference is not compared.
"""

from __future__ import annotations

from itertools import combinations
from random import Random

import rigid2d_scenes as scenes
import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import State

MOVES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
QUANTILES = (0.5, 0.75, 0.9, 0.99)


def compare(seed: int, steps: int) -> tuple[float, list[float], float | None]:
    """Return the fraction of fallback steps, the gradient's error against each difference, and a confirmed one's."""
    world = scenes.pile(10 + seed % 31, seed)
    fallen = world.rollout(world.initial_state(1, torch.float64), Random(seed).randrange(10, 120)).final
    generator = torch.Generator().manual_seed(seed)
    dq, dv, weights = torch.randn(3, 1, world.nq, generator=generator, dtype=torch.float64)
    moves = torch.tensor([sign * move for move in MOVES for sign in (1, -1)] + [0.0], dtype=torch.float64).unsqueeze(1)
    ends = world.rollout(State(fallen.q + moves * dq, fallen.v + moves * dv), steps).final.q @ weights[0]
    sizes = moves[:-1:2, 0]
    ahead, behind = ((ends[:-1:2] - ends[-1]) / sizes).tolist(), ((ends[-1] - ends[1::2]) / sizes).tolist()
    differences = [(a + b) / 2 for a, b in zip(ahead, behind, strict=True)]
    change = torch.zeros((), dtype=torch.float64, requires_grad=True)
    trajectory = world.rollout(State(fallen.q + change * dq, fallen.v + change * dv), steps)
    gradient = float(torch.autograd.grad(trajectory.final.q[0] @ weights[0], change)[0])

    def relative_error(difference: float) -> float:
        return abs(gradient - difference) / max(abs(difference), 1e-2)

    smooth = [(a + b) / 2 for a, b in zip(ahead, behind, strict=True) if abs(a - b) <= 2e-3 * max(abs(a), 1e-2)]
    confirmed = [relative_error(x) for x, y in combinations(smooth, 2) if abs(x - y) <= 2e-3 * max(abs(x), 1e-2)]
    assert trajectory.status is not None
    fallback = float(trajectory.status.fallback_steps[0]) / steps
    return fallback, [relative_error(x) for x in differences], min(confirmed, default=None)


def quantiles(errors: list[float]) -> str:
    if not errors:
        return "none"
    values: Tensor = torch.tensor(errors, dtype=torch.float64).quantile(torch.tensor(QUANTILES, dtype=torch.float64))
    return " / ".join(f"{float(value):.1e}" for value in values)


def main(piles: int = 100, steps: int = 1, first: int = 0) -> None:
    """Compare gradients with differences, and print quantiles of the errors.

    Args:
        piles: Number of piles.
        steps: Number of steps that gradients span.
        first: Seed of the first pile.
    """
    torch.set_num_threads(1)
    results = [compare(seed, steps) for seed in range(first, first + piles)]
    fraction = sum(fallback for fallback, _, _ in results) / len(results)
    print(f"{piles} piles, {steps} steps each: {fraction:.1%} of the steps are fallback steps")
    print(f"errors, {' / '.join(f'{q:.0%}' for q in QUANTILES)}, against differences of size")
    for i, move in enumerate(MOVES):
        print(f"  {move:.0e}     {quantiles([errors[i] for _, errors, _ in results])}")
    for name, fell_back in (("fallback", True), ("exact", False)):
        mine = [error for fallback, _, error in results if (fallback > 0) == fell_back]
        confirmed_errors = [error for error in mine if error is not None]
        wrong = sum(error > 0.01 for error in confirmed_errors)
        text = f"{len(confirmed_errors)} of {len(mine)} with a confirmed difference: {quantiles(confirmed_errors)}"
        print(f"{name}: {text}; {wrong} off by over 1 %")


if __name__ == "__main__":
    auto_cli(main)
