"""Clips in the look of shipped checkpoints by a simulator and a drawer that portion no code with the package.

Discs move in straight lines under a constant deceleration, in small steps whose impacts are found by bisection. Rods
hang from one another: Lagrange's equations in the angles against the vertical, by Runge and Kutta's method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SIZE, RADIUS, FPS = 64, 3.2, 30.0  # px, px, frames a second
COLORS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
_STEP = 0.2  # px that the fastest disc moves in a step


@dataclass(frozen=True)
class Discs:
    """Physics of discs on a table.

    Attributes:
        speed: Smallest and largest speed at the start, px a frame.
        margin: Distance of the walls from the left, upper, right and lower border of the picture, px.
        masses: Masses of the discs.
        restitution: Coefficient of restitution of all impacts.
        deceleration: Deceleration of moving discs, px/s².
        bend: Acceleration across the direction of motion, px/s²; no table has it.
    """

    speed: tuple[float, float] = (0.3, 1.5)
    margin: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    masses: tuple[float, ...] = (1.0, 1.0, 1.0)
    restitution: float = 1.0
    deceleration: float = 0.0
    bend: float = 0.0


def discs(physics: Discs, frames: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions, px, and velocities, px/s, of all discs in all frames: (frames, discs, 2) each."""
    random = np.random.default_rng(seed)
    low = np.array(physics.margin[:2]) + RADIUS
    high = SIZE - np.array(physics.margin[2:]) - RADIUS
    count = len(physics.masses)
    while True:
        x = random.uniform(low + 0.5, high - 0.5, (count, 2))
        apart = np.linalg.norm(x[:, None] - x[None], axis=-1) + 1e3 * np.eye(count)
        if apart.min() > 2 * RADIUS + 1:
            break
    angle = random.uniform(0, 2 * np.pi, count)
    v = random.uniform(*physics.speed, count)[:, None] * FPS * np.stack([np.cos(angle), np.sin(angle)], 1)
    path, rates = [], []
    for _ in range(frames):
        path.append(x)
        rates.append(v)
        steps = int(np.ceil(np.linalg.norm(v, axis=1).sum() / FPS / _STEP)) + 1
        for _ in range(steps):
            x, v = _advance(physics, x, v, 1 / FPS / steps, low, high)
    return np.array(path), np.array(rates)


def _drift(physics: Discs, x: np.ndarray, v: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    speed = np.linalg.norm(v, axis=1, keepdims=True)
    direction = v / np.maximum(speed, 1e-12)
    slower = np.maximum(speed - physics.deceleration * step, 0.0)
    across = np.stack([-direction[:, 1], direction[:, 0]], 1)
    later = direction * slower + physics.bend * step * across * (speed > 1e-9)
    return x + 0.5 * step * (v + later), later


def _gaps(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Distances of all contacts: left, right, top, bottom of each disc, then of pairs."""
    first, second = np.triu_indices(len(x), 1)
    pairs = np.linalg.norm(x[first] - x[second], axis=1) - 2 * RADIUS
    return np.concatenate([(x - low).ravel(), (high - x).ravel(), pairs])


def _advance(physics: Discs, x, v, step, low, high):
    for _ in range(50):
        later, rate = _drift(physics, x, v, step)
        hits = np.flatnonzero((_gaps(later, low, high) < 0) & (_closing(x, v) > 0))
        if not len(hits):
            return later, rate
        begin, end = 0.0, step
        for _ in range(40):
            middle = 0.5 * (begin + end)
            is_before = (_gaps(_drift(physics, x, v, middle)[0], low, high)[hits] >= 0).all()
            begin, end = (middle, end) if is_before else (begin, middle)
        x, v = _drift(physics, x, v, end)
        contact = hits[_gaps(x, low, high)[hits].argmin()]
        v = _impact(physics, x, v, contact)
        step -= end
    raise RuntimeError("discs: more than 50 impacts in a step")


def _closing(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Speeds of approach of all contacts."""
    first, second = np.triu_indices(len(x), 1)
    normal = x[second] - x[first]
    normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return np.concatenate([-v.ravel(), v.ravel(), ((v[first] - v[second]) * normal).sum(1)])


def _impact(physics: Discs, x: np.ndarray, v: np.ndarray, contact: int) -> np.ndarray:
    v, count = v.copy(), x.size
    if contact < 2 * count:
        disc, axis = divmod(contact % count, 2)
        v[disc, axis] *= -physics.restitution
        return v
    first, second = (index[contact - 2 * count] for index in np.triu_indices(len(x), 1))
    normal = (x[second] - x[first]) / np.linalg.norm(x[second] - x[first])
    masses = np.array(physics.masses)
    reduced = 1 / (1 / masses[first] + 1 / masses[second])
    impulse = (1 + physics.restitution) * reduced * ((v[first] - v[second]) @ normal)
    v[first] -= impulse / masses[first] * normal
    v[second] += impulse / masses[second] * normal
    return v


def draw_discs(positions: np.ndarray, samples: int = 8) -> np.ndarray:
    """Frames (frames, rows, columns, 3) of discs in front of black, each pixel the mean of samples²."""
    reach = int(np.ceil(RADIUS)) + 2
    grid = (np.arange(2 * reach * samples) + 0.5) / samples - reach
    canvas = np.zeros((len(positions), SIZE + 4 * reach, SIZE + 4 * reach, 3))
    for frame, positions_now in zip(canvas, positions, strict=True):
        for place, color in zip(positions_now, COLORS, strict=False):
            column, row = np.floor(place).astype(int)
            x, y = place - (column, row)
            inside = (grid[:, None] - y) ** 2 + (grid[None] - x) ** 2 < RADIUS**2
            portion = inside.reshape(2 * reach, samples, 2 * reach, samples).mean((1, 3))[..., None]
            patch = frame[row + reach : row + 3 * reach, column + reach : column + 3 * reach]
            patch[:] = patch * (1 - portion) + portion * color
    frames = canvas[:, 2 * reach : -2 * reach, 2 * reach : -2 * reach]
    return np.rint(255 * frames).astype(np.uint8)


@dataclass(frozen=True)
class Rods:
    """Physics of rods that hang from one another.

    Attributes:
        gravity: Gravity, m/s².
        masses: Masses of the rods, kg.
        lengths: Lengths of the rods, m.
        damping: Damping of each hinge, N m s/rad.
        levels: Brightness of each rod.
        welded: If true, the last rod is fixed to the one before.
    """

    gravity: float = 9.81
    masses: tuple[float, ...] = (1.0, 1.0, 1.0)
    lengths: tuple[float, ...] = (3.0, 3.0, 3.0)
    damping: float = 0.0
    levels: tuple[float, ...] = (1.0, 0.7, 0.4)
    welded: bool = False


ROD_FPS, ROD_SIZE, _ROD_RADIUS, _DISTANCE, _FOCAL = 20.0, 100, 0.35, 37.4, 181.818182
_ROD_STEPS = 12  # a frame


def rods(physics: Rods, frames: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Angles of the hinges, rad, and their rates, (frames, rods) each; at zero the rods hang down."""
    random = np.random.default_rng(seed)
    count = len(physics.lengths)
    q = random.uniform(-np.pi / 2, np.pi / 2, count)
    v = random.uniform(-1, 1, count)
    lengths, masses = np.array(physics.lengths), np.array(physics.masses)
    if physics.welded:
        q, v, count = q[:-1], v[:-1], count - 1
        lengths = np.append(lengths[:-2], lengths[-2:].sum())
        masses = np.append(masses[:-2], masses[-2:].sum())
    state, step = np.stack([q.cumsum(), v.cumsum()]), 1 / ROD_FPS / _ROD_STEPS
    path = []
    for _ in range(frames):
        path.append(np.diff(state, axis=1, prepend=0.0))
        for _ in range(_ROD_STEPS):
            first = _rate(physics, lengths, masses, state)
            second = _rate(physics, lengths, masses, state + 0.5 * step * first)
            third = _rate(physics, lengths, masses, state + 0.5 * step * second)
            fourth = _rate(physics, lengths, masses, state + step * third)
            state = state + step / 6 * (first + 2 * second + 2 * third + fourth)
    motion = np.array(path)
    if physics.welded:
        motion = np.concatenate([motion, np.zeros_like(motion[..., :1])], -1)
    return motion[:, 0], motion[:, 1]


def _rate(physics: Rods, lengths: np.ndarray, masses: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Rates of the angles a against the vertical and of their rates w.

    With m_j the mass of rod j and c_ij = Σ_k m_k (portion of rod i) (portion of rod j) of the place of rod k, where a
    rod's portion is 1 above k, ½ at k and 0 below:
    Σ_j c_ij l_i l_j (ẇ_j cos(a_i − a_j) + w_j² sin(a_i − a_j)) + I_i ẇ_i = −g l_i sin a_i Σ_k m_k portion_i + torques.
    """
    a, w = state
    portion = np.triu(np.ones((len(a), len(a))), 1) + 0.5 * np.eye(len(a))  # [rod, of the place of rod k]
    coupling = (portion * masses) @ portion.T * np.outer(lengths, lengths)
    apart = a[:, None] - a[None]
    matrix = coupling * np.cos(apart) + np.diag(masses * lengths**2 / 12)
    hinge = -physics.damping * np.diff(w, prepend=0.0)
    torque = hinge - np.append(hinge[1:], 0.0)
    force = torque - (coupling * np.sin(apart)) @ w**2 - physics.gravity * lengths * np.sin(a) * (portion @ masses)
    return np.stack([w, np.linalg.solve(matrix, force)])


def draw_rods(physics: Rods, angles: np.ndarray, samples: int = 4) -> np.ndarray:
    """Gray frames (frames, rows, columns, 1) of round rods; where two overlap, the nearer axis is in front."""
    grid = ((np.arange(ROD_SIZE * samples) + 0.5) / samples - ROD_SIZE / 2) * _DISTANCE / _FOCAL
    x, z = np.meshgrid(grid, -grid)
    frames = []
    for row in angles.cumsum(1):
        end, nearest, level = np.zeros(2), np.full(x.shape, _ROD_RADIUS), np.zeros(x.shape)
        for angle, length, brightness in zip(row, physics.lengths, physics.levels, strict=False):
            along = -np.array([np.sin(angle), np.cos(angle)])
            reach = np.clip((x - end[0]) * along[0] + (z - end[1]) * along[1], 0, length)
            distance = np.hypot(x - end[0] - reach * along[0], z - end[1] - reach * along[1])
            level = np.where(distance < nearest, brightness, level)
            nearest, end = np.minimum(nearest, distance), end + length * along
        frames.append(level.reshape(ROD_SIZE, samples, ROD_SIZE, samples).mean((1, 3)))
    return np.rint(255 * np.array(frames)).astype(np.uint8)[..., None]
