"""Shapes that come near within a step, though they were far from each other when it began."""

import torch
from physics.articulated.free_bodies import STILL, free, state, world

from physvision.core import Sphere

RATIO = 0.05  # of the masses of two balls, the second one over the first
GAPS = [0.02 * 6**k for k in range(5)]  # m
SPEED = 100.0  # m/s
RADIUS = 50.0  # m; no ball passes another within half a step


def test_a_chain_of_lighter_balls_passes_on_a_speed_that_doubles_at_each_impact():
    masses = [RATIO**k for k in range(len(GAPS) + 1)]
    positions = [sum(GAPS[:k]) + 2 * RADIUS * k for k in range(len(masses))]
    speeds, time = [SPEED], 0.0
    for gap in GAPS:
        time += gap / speeds[-1]
        speeds.append(speeds[-1] * 2 / (1 + RATIO))
    ends = [speed * (1 - RATIO) / (1 + RATIO) for speed in speeds[:-1]] + speeds[-1:]
    balls = [free(f"{k}", Sphere(RADIUS), mass, (mass, mass, mass)) for k, mass in enumerate(masses)]
    engine = world(balls, dt=1.01 * time, restitution=1.0)
    start = state(*(((x, 0.0, 0.0), (SPEED if x == 0 else 0.0, 0.0, 0.0), STILL) for x in positions))
    end = engine.step(start)
    torch.testing.assert_close(end.v.reshape(-1, 6)[:, 0], torch.tensor(ends, dtype=torch.float64), rtol=1e-9, atol=0)
