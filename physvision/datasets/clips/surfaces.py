"""Motions on surfaces: sliding, rolling and collisions."""

from __future__ import annotations

import numpy as np

from physvision.datasets.clips.integration import solve
from physvision.datasets.clips.motion import GRAVITY, Body, Motion, pick_color


def slide(random: np.random.Generator) -> Motion:
    """A block that slides on the flat until it rests, or down a slope; gravity and the scale are known."""
    friction = random.uniform(0.1, 0.5)
    if random.random() < 0.5:
        slope, acceleration = 0.0, -friction * GRAVITY
        stop = random.uniform(0.5, 1.3)
        speed = -acceleration * stop
        duration = float(stop * random.uniform(0.85, 1.3))
    else:
        slope = np.arctan(friction) + np.radians(random.uniform(5, 18))
        acceleration = GRAVITY * (np.sin(slope) - friction * np.cos(slope))
        speed, stop = random.uniform(0, 0.4), np.inf
        duration = float(np.sqrt(2 * random.uniform(0.5, 1.5) / acceleration))

    def along(times):
        times = np.minimum(times, stop)
        return speed * times + acceleration * times**2 / 2

    length = float(along(np.array([duration]))[0])
    side = length * random.uniform(0.05, 0.1)
    poses, ground = _downhill(along, slope, side / 2, length, int(random.choice([-1, 1])), 0.0)
    truth = {"friction": friction, "acceleration": abs(acceleration), "gravity": GRAVITY, "angle": slope}
    bodies = (Body("box", (1.3 * side, side), pick_color(random)),)
    return Motion("slide", truth, {"gravity": GRAVITY}, duration, poses, bodies, surfaces=(ground,))


def roll(random: np.random.Generator) -> Motion:
    """A ball, a cylinder or a hoop that rolls down a slope from rest; the scale is known."""
    slope, inertia = np.radians(random.uniform(4, 25)), random.choice([0.4, 0.5, 1.0])
    acceleration = GRAVITY * np.sin(slope) / (1 + inertia)
    length = random.uniform(0.5, 1.5)
    duration = float(np.sqrt(2 * length / acceleration))
    radius = length * random.uniform(0.025, 0.06)

    def along(times):
        return acceleration * times**2 / 2

    poses, ground = _downhill(along, slope, radius, length, int(random.choice([-1, 1])), 1 / radius)
    truth = {"acceleration": acceleration, "angle": slope, "gravity": GRAVITY}
    bodies = (Body("disc", (2 * radius, 2 * radius), pick_color(random), mark=0.25),)
    return Motion("roll", truth, {}, duration, poses, bodies, surfaces=(ground,))


def collision(random: np.random.Generator) -> Motion:
    """Two smooth discs on a table, seen from above, with a little friction."""
    ratio, restitution = np.exp(random.uniform(np.log(0.4), np.log(2.5))), random.uniform(0.4, 1.0)
    friction = random.uniform(0, 0.03)
    radii = 0.05 * np.array([1.0, np.clip(ratio, 0.6, 1.6) ** 0.5])
    contact_distance = radii.sum()
    speed, start_distance = random.uniform(0.5, 1.2), random.uniform(0.35, 0.5)
    offset = random.uniform(-0.6, 0.6) * contact_distance
    second_velocity = np.zeros(2) if random.random() < 0.5 else random.uniform(-0.25, 0.1, 2) * speed
    impact_time = (start_distance - contact_distance) / (speed - second_velocity[0])
    first_position = [-start_distance, offset + second_velocity[1] * impact_time]
    start = np.concatenate([first_position, [0, 0], [speed, 0], second_velocity])

    def rate(state):
        v = state[4:].reshape(2, 2)
        speeds = np.linalg.norm(v, axis=1, keepdims=True)
        deceleration = -friction * GRAVITY * v / np.maximum(speeds, 1e-3)
        return np.concatenate([state[4:], deceleration.ravel()])

    def gap(state):
        return float(np.linalg.norm(state[2:4] - state[:2]) - contact_distance)

    def collide(state):
        normal = (state[2:4] - state[:2]) / contact_distance
        approach_speed = (state[4:6] - state[6:8]) @ normal
        impulse = (1 + restitution) * approach_speed / (1 + 1 / ratio)  # by the first mass; ratio is second by first
        return np.concatenate([state[:4], state[4:6] - impulse * normal, state[6:8] + impulse / ratio * normal])

    duration = float(impact_time + random.uniform(0.5, 0.9))
    solution, _ = solve(rate, start, duration, gap, collide)
    spins = random.uniform(-3, 3, 2)

    def poses(times):
        positions = solution(times)[:, :4].reshape(-1, 2, 2)
        return np.concatenate([positions, (times[:, None] * spins)[..., None]], 2)

    color = pick_color(random)
    second_color = color if random.random() < 0.4 else pick_color(random)
    bodies = tuple(
        Body("disc", (2 * r, 2 * r), c, mark=0.2) for r, c in zip(radii.tolist(), (color, second_color), strict=True)
    )
    truth = {"mass_ratio": float(ratio), "restitution": restitution, "friction": friction}
    return Motion("collision", truth, {}, duration, poses, bodies, from_above=True)


def _downhill(along, slope: float, height: float, length: float, side: int, rolling: float):
    """Poses of a body that moves down a slope, and the ground below it.

    Args:
        along: Function from times to the distance along the slope, m.
        slope: Angle of the slope, rad.
        height: Height of the body's center above the slope, m.
        length: Length of the slope, m.
        side: Direction of the way down: 1 to the right, −1 to the left.
        rolling: Rotation of the body for each meter, rad; 0 if it slides.
    """
    direction = np.array([side * np.cos(slope), -np.sin(slope)])
    normal = np.array([side * np.sin(slope), np.cos(slope)])

    def poses(times):
        distance = along(times)
        positions = distance[:, None] * direction + height * normal
        return np.concatenate([positions, (-side * (slope + rolling * distance))[:, None]], 1)[:, None]

    ends = [tuple((fraction * length * direction).tolist()) for fraction in (-0.3, 1.3)]
    return poses, (ends[0], ends[1])
