"""Pendulums, springs and circular motion."""

from __future__ import annotations

import numpy as np

from physvision.datasets.clips.integration import solve
from physvision.datasets.clips.motion import GRAVITY, Body, Line, Motion, pick_color

_STRING = (0.25, 0.25, 0.28)


def pendulum(random: np.random.Generator) -> Motion:
    """A bob on a string (up to 80°) or on a light rod (up to 150°), or a uniform rod that swings about its end."""
    suspension = random.choice(["string", "rod", "compound"], p=[0.5, 0.25, 0.25])
    length = float(np.exp(random.uniform(np.log(0.15), np.log(1.5))))
    amplitude = random.uniform(np.radians(8), np.radians(80 if suspension == "string" else 150))
    damping, drag = random.uniform(0, 0.12), random.uniform(0, 0.15)
    period = 2 * np.pi * np.sqrt(length / GRAVITY)

    def rate(state):
        angle, speed = state
        return np.array(
            [speed, -GRAVITY / length * np.sin(angle) - damping * speed - drag * length * abs(speed) * speed]
        )

    duration = float(np.clip(random.uniform(3.5, 7) * period, 3, 9))
    solution, _ = solve(rate, np.array([amplitude * random.choice([-1, 1]), 0.0]), duration)
    # A uniform rod's length is 3/2 of the equivalent one.
    distance = 0.75 * length if suspension == "compound" else length

    def poses(times):
        angle = solution(times)[:, 0]
        return np.stack([distance * np.sin(angle), -distance * np.cos(angle), angle - np.pi / 2], 1)[:, None]

    color = pick_color(random)
    if suspension == "compound":
        bodies, lines = (Body("rod", (1.5 * length, 0.06 * length), color),), ()
    else:
        radius = length * random.uniform(0.06, 0.13)
        bodies = (Body("disc", (2 * radius, 2 * radius), color, mark=random.choice([0, 0.25])),)
        is_rod = suspension == "rod"
        width = length * (0.018 if is_rod else 0.006)
        lines = (Line((0.0, 0.0), 0, width, (0.45, 0.4, 0.35) if is_rod else _STRING),)
    truth = {"length": length, "gravity": GRAVITY, "damping": damping, "drag": drag, "period": period}
    return Motion("pendulum", truth, {"gravity": GRAVITY}, duration, poses, bodies, lines, visible_points=((0.0, 0.0),))


def double_pendulum(random: np.random.Generator) -> Motion:
    """Two bobs on light rods, from rest."""
    l1, l2 = random.uniform(0.1, 0.3, 2)
    ratio = random.uniform(0.4, 1.6)  # mass of the lower bob by that of the upper one
    damping = random.uniform(0, 0.02)

    def rate(state):
        a, b, a_rate, b_rate = state
        c, s = np.cos(a - b), np.sin(a - b)
        matrix = np.array([[(1 + ratio) * l1, ratio * l2 * c], [l1 * c, l2]])
        forces = np.array(
            [
                -ratio * l2 * b_rate * b_rate * s - (1 + ratio) * GRAVITY * np.sin(a),
                l1 * a_rate * a_rate * s - GRAVITY * np.sin(b),
            ]
        )
        rates = np.array([a_rate, b_rate])
        return np.concatenate([rates, np.linalg.solve(matrix, forces) - damping * rates])

    duration = float(random.uniform(2, 3.5))
    start = np.array([random.uniform(0.3, 1.8), random.uniform(-0.6, 1.8), 0, 0])
    solution, _ = solve(rate, start, duration)

    def poses(times):
        a, b = solution(times)[:, :2].T
        x, y = l1 * np.sin(a), -l1 * np.cos(a)
        upper = np.stack([x, y, a], 1)
        return np.stack([upper, np.stack([x + l2 * np.sin(b), y - l2 * np.cos(b), b], 1)], 1)

    radius = 0.05 * (l1 + l2)
    upper_color, lower_color = pick_color(random), pick_color(random)
    while np.linalg.norm(np.subtract(upper_color, lower_color)) < 0.4:
        lower_color = pick_color(random)
    bodies = (Body("disc", (2 * radius,) * 2, upper_color), Body("disc", (2 * radius,) * 2, lower_color))
    lines = (Line((0.0, 0.0), 0, 0.25 * radius, _STRING), Line(0, 1, 0.25 * radius, _STRING))
    truth = {"length_1": l1, "length_2": l2, "mass_ratio": ratio, "gravity": GRAVITY, "damping": damping}
    known = {"gravity": GRAVITY}
    return Motion("double_pendulum", truth, known, duration, poses, bodies, lines, visible_points=((0.0, 0.0),))


def spring(random: np.random.Generator) -> Motion:
    """A mass on a spring, vertical or horizontal, with damping."""
    period, mass = random.uniform(0.35, 1.4), random.uniform(0.02, 0.5)
    damping = random.uniform(0.0, 0.5)
    amplitude = random.uniform(0.03, 0.12)
    stiffness = mass * ((2 * np.pi / period) ** 2 + damping**2 / 4)
    vertical = bool(random.random() < 0.6)
    decay, frequency, phase = damping / 2, 2 * np.pi / period, random.uniform(0, 2 * np.pi)
    rest = random.uniform(2.5, 4) * amplitude

    def poses(times):
        extension = rest + amplitude * np.exp(-decay * times) * np.cos(frequency * times + phase)
        zero = np.zeros_like(extension)
        return np.stack([zero, -extension, zero] if vertical else [extension, zero, zero], 1)[:, None]

    side = amplitude * random.uniform(0.5, 0.9)
    bodies = (Body("box" if random.random() < 0.7 else "disc", (side, side), pick_color(random)),)
    lines = (Line((0.0, 0.0), 0, 0.05 * side, (0.35, 0.35, 0.38), coils=9),)
    ground = () if vertical else (((-0.2 * rest, -side / 2), (rest + 3 * amplitude, -side / 2)),)
    truth = {"stiffness": stiffness, "period": period, "damping": damping, "mass": mass}
    duration = float(np.clip(random.uniform(4, 9) * period, 2.5, 7))
    return Motion("spring", truth, {"mass": mass}, duration, poses, bodies, lines, ground, visible_points=((0.0, 0.0),))


def circular(random: np.random.Generator) -> Motion:
    """A disc that moves around a circle at a constant speed, seen along the axis; the scale is known."""
    period, radius = random.uniform(0.6, 2.5), random.uniform(0.05, 0.5)
    direction, phase = random.choice([-1, 1]), random.uniform(0, 2 * np.pi)

    def poses(times):
        angle = phase + direction * 2 * np.pi * times / period
        return np.stack([radius * np.cos(angle), radius * np.sin(angle), angle], 1)[:, None]

    size = radius * random.uniform(0.12, 0.3)
    bodies = (Body("disc", (size, size), pick_color(random)),)
    truth = {"period": period, "radius": radius, "speed": 2 * np.pi * radius / period}
    duration = float(np.clip(random.uniform(2, 4) * period, 2, 6))
    return Motion("circular", truth, {}, duration, poses, bodies, from_above=True)
