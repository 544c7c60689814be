"""A box that tips over an edge that sticks: a pendulum upside down, against its equation of motion."""

import math
from itertools import pairwise

import pytest
import torch
from scipy.integrate import solve_ivp

from physvision import State
from physvision.core import Box, Placed, Plane
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64
MASS, DEEP, HIGH, G = 2.0, 0.3, 0.5, 10.0
MOMENT = MASS / 12 * (DEEP**2 + HIGH**2)
REACH = math.hypot(DEEP, HIGH) / 2
LEAN = math.atan2(DEEP, HIGH)  # at which the center is above the edge


def tipped(dt: float, turn: float, total: float) -> tuple[float, float, float]:
    """How far the box has turned, how fast it turns, and how far its edge has moved."""
    box = Body(
        "box", None, [Joint("free")], mass=MASS, inertia=(0.05, MOMENT, 0.05), shapes=[Placed(Box((DEEP, 0.4, HIGH)))]
    )
    engine = tree(
        [box], dt=dt, gravity=(0, 0, -G), static_shapes=[Placed(Plane())], contact=ContactSettings(friction=1.5)
    )
    start = engine.initial_state(1, DOUBLE)
    q = start.q.clone()
    # Turned by `turn` about the edge at x = 0, y, which lies on the ground; the center is at an angle from upright.
    angle = turn - LEAN
    q[0, 0], q[0, 2] = REACH * math.sin(angle), REACH * math.cos(angle)
    q[0, 3], q[0, 5] = math.cos(turn / 2), math.sin(turn / 2)
    path = engine.rollout(State(q, start.v), round(total / dt))
    assert path.status is not None
    assert path.status.converged.all()
    end = path.final
    result = 2 * math.atan2(float(end.q[0, 5]), float(end.q[0, 3]))
    edge = float(end.q[0, 0]) - REACH * math.sin(result - LEAN)
    return result, float(end.v[0, 4]), edge


def exact(turn: float, total: float) -> tuple[float, float]:
    """(I + m r²) φ'' = m g r sin φ about the edge."""
    rate = MASS * G * REACH / (MOMENT + MASS * REACH**2)
    solved = solve_ivp(
        lambda _, x: (x[1], rate * math.sin(x[0])), (0, total), (turn - LEAN, 0.0), rtol=1e-12, atol=1e-12
    )
    return solved.y[0, -1] + LEAN, solved.y[1, -1]


@pytest.mark.parametrize("beyond", [0.05, -0.05])
def test_a_box_tips_over_or_falls_back(beyond):
    """Left to itself a little beyond, or before, the angle at which its center is above its edge.

    A quarter of the step has a sixteenth of the error: second order.
    """
    turn, total = LEAN + beyond, 0.4
    target = exact(turn, total)
    assert (target[0] - turn) * beyond > 0
    errors = []
    for dt in (4e-3, 1e-3, 2.5e-4):
        result = tipped(dt, turn, total)
        errors.append(max(abs(result[0] - target[0]), abs(result[1] - target[1])))
        assert abs(result[2]) < dt**2  # the edge stays where it is
    assert errors[-1] < 1e-5
    for coarse_steps, fine in pairwise(errors):
        assert 12.0 < coarse_steps / fine < 18.0


def test_a_box_that_leans_less_is_set_down_flat():
    """It falls back on its face, and rests there."""
    result, rate, _ = tipped(2e-3, 0.2, 3.0)
    assert result == pytest.approx(0.0, abs=1e-4)
    assert rate == pytest.approx(0.0, abs=1e-6)
