"""CMA-ES, which asks for no gradients: what the experiments with robots compare theirs with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Evolved:
    """Result of a search: last and best values, evaluations, seconds, and whether the target was reached.

    Attributes:
        course: the least loss so far after each generation.
    """

    values: Tensor
    evaluations: int
    seconds: float
    reached: bool
    course: list[float]


def evolve(
    judge: Callable[[Tensor], tuple[Tensor, Tensor]],
    start: Tensor,
    spread: float,
    seed: int,
    max_evaluations: int,
    downhill: Callable[[Tensor], Tensor] | None = None,
) -> Evolved:
    """Search with CMA-ES until some candidate is good enough.

    Args:
        judge: from candidates (population, unknowns) to their losses and whether each is good enough.
        start: mean at first, (unknowns,).
        spread: standard deviation at first, σ₀.
        seed: Seed of the search.
        max_evaluations: Evaluations after which the search gives up.
        downhill: a direction in which the loss of a candidate falls, (unknowns,), which costs an evaluation. With it
            each generation has one member that is the last one's best, moved by a standard deviation that way.
    """
    import cma

    options = {"seed": seed + 1, "verbose": -9, "tolfun": 0, "tolx": 0, "tolfunhist": 0, "tolflatfitness": 1000}
    if len(start) > 3000:
        options["CMA_diagonal"] = True
    search = cma.CMAEvolutionStrategy(start.tolist(), spread, options)
    began, evaluations = time.perf_counter(), 0
    best, course = start, [float("inf")]
    while evaluations < max_evaluations and not search.stop():
        proposals = search.ask()
        candidates = torch.tensor(np.array(proposals), dtype=torch.float64)
        with torch.no_grad():
            losses, good = judge(candidates)
        evaluations += len(proposals)
        if bool(good.any()):
            result = candidates[int(torch.nonzero(good)[0])]
            course.append(min(course[-1], float(losses.min())))
            return Evolved(result, evaluations, time.perf_counter() - began, True, course[1:])
        losses = losses.nan_to_num(nan=1e6)
        if float(losses.min()) < course[-1]:
            best = candidates[int(losses.argmin())]
        course.append(min(course[-1], float(losses.min())))
        search.tell(proposals, losses.tolist())
        if downhill is not None:
            parent = candidates[int(losses.argmin())]
            way = downhill(parent)
            evaluations += 1
            moved = parent + search.sigma * len(start) ** 0.5 * way / (way.norm() + 1e-12)
            search.inject([moved.tolist()])
    return Evolved(best, evaluations, time.perf_counter() - began, False, course[1:])
