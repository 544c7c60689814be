"""Gradients of scenes that come to rest, against differences at four sizes of step.

    python benchmarks/plane_resting.py [--scenes 150]

One to four circles, boxes and pentagons fall on a floor, restitution up to 0.3, and rock, slide and roll for 30 to 59
steps. The derivative of a random sum of their last positions along a random direction of their start is compared with
differences; where no two of these agree to 0.2 % there is nothing to compare with, and the scene is counted apart.
"""

from __future__ import annotations

import math
from itertools import combinations
from random import Random

import torch
from jsonargparse import auto_cli

from physvision.core import State
from physvision.physics import rigid2d

MOVES = (3e-5, 3e-6, 3e-7, 3e-8)


def scene(seed: int) -> tuple[rigid2d.World, int]:
    """Return a scene and the number of its steps."""
    generator = Random(seed)
    count, dt = generator.randint(1, 4), generator.choice([1 / 30, 1 / 60])

    def surface() -> dict[str, float]:
        return {"restitution": 0.3 * generator.random(), "friction": 0.8 * generator.random()}

    bodies: list[rigid2d.Body] = [rigid2d.Rectangle((40, 1), (0, -0.5), static=True, name="floor", **surface())]
    for i in range(count):
        # Some stand alone, some above another.
        alone = generator.random() < 0.7
        place = (1.5 * i - 2 + generator.uniform(-0.2, 0.2), 0.7 + generator.uniform(0, 0.3))
        if not alone and i % 2 == 1:
            place = (bodies[-1].center[0] + generator.uniform(-0.1, 0.1), 2.1)
        size = generator.uniform(0.25, 0.5)
        velocity, spin = (generator.uniform(-1, 1), generator.uniform(-1, 0)), generator.uniform(-2, 2)
        mass, kind, angle = generator.uniform(0.5, 2), generator.randrange(3), generator.uniform(-1, 1)
        around = [2 * math.pi * (k + generator.uniform(0.0, 0.6)) / 5 for k in range(5)]
        loose = surface()
        if kind == 0:
            body: rigid2d.Body = rigid2d.Circle(size, place, **loose)
        elif kind == 1:
            body = rigid2d.Rectangle((1.4 * size, size), place, angle=angle, **loose)
        else:
            body = rigid2d.Polygon([(size * math.cos(turn), size * math.sin(turn)) for turn in around], place, **loose)
        body.velocity, body.spin, body.mass, body.name = velocity, spin, mass, f"{i}"
        bodies.append(body)
    return rigid2d.World(bodies, gravity=(0, -9.81), dt=dt), generator.randint(30, 59)


def error(seed: int) -> float | None:
    """Return the gradient's error against the nearest confirmed difference; None if none is confirmed."""
    world, steps = scene(seed)
    state, generator = world.initial_state(1, torch.float64), torch.Generator().manual_seed(seed)
    dq, dv, weights = torch.randn(3, 1, world.nq, generator=generator, dtype=torch.float64)
    moves = torch.tensor([sign * move for move in MOVES for sign in (1, -1)], dtype=torch.float64).unsqueeze(1)
    ends = world.rollout(State(state.q + moves * dq, state.v + moves * dv), steps).final.q @ weights[0]
    differences = ((ends[::2] - ends[1::2]) / (2 * moves[::2, 0])).tolist()
    change = torch.zeros((), dtype=torch.float64, requires_grad=True)
    end = world.rollout(State(state.q + change * dq, state.v + change * dv), steps).final.q[0] @ weights[0]
    gradient = float(torch.autograd.grad(end, change)[0])
    confirmed = [x for x, y in combinations(differences, 2) if abs(x - y) <= 2e-3 * max(abs(x), 1e-2)]
    return min((abs(gradient - x) / max(abs(x), 1e-2) for x in confirmed), default=None)


def main(scenes: int = 150, first: int = 0) -> None:
    """Compare gradients with differences, and print the seeds of wrong ones.

    Args:
        scenes: Number of scenes.
        first: Seed of the first scene.
    """
    torch.set_num_threads(1)
    errors = {seed: error(seed) for seed in range(first, first + scenes)}
    compared = {seed: relative_error for seed, relative_error in errors.items() if relative_error is not None}
    wrong = [seed for seed, relative_error in compared.items() if relative_error > 0.01]
    print(f"{len(compared)} scenes compared, {len(errors) - len(compared)} without a converged difference")
    quantiles = torch.tensor(list(compared.values())).quantile(torch.tensor([0.5, 0.9, 0.99]))
    print(f"errors, median / 90 % / 99 %: {' / '.join(f'{float(x):.1e}' for x in quantiles)}")
    print(f"wrong by over 1 %: {len(wrong)} {wrong}")


if __name__ == "__main__":
    auto_cli(main)
