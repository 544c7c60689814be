"""Coverage of `identify`'s intervals on tables of positions from an independent solver of differential equations.

Pendulum, double pendulum, spring, bounce, slide and projectile are integrated by SciPy's `solve_ivp` (DOP853,
tolerances of 1e-10), with damping and drag of several orders of magnitude, zero included. Positions have white noise or
autocorrelated errors of several frames (autoregressive of order one), of 0.1 to 1 px where the motion is 300 to 700 px
across, and are written as tables in px, mm and m, which `identify` reads as it reads those of users. Seeds are
deterministic; results are written line by line, so an interrupted run resumes where it stopped, and several processes
can share the work. A rejected table counts as a miss of all parameters that the kind determines.

    python experiments/identify_tracks.py [--tracks 200] [--first 0] [--out out/identify_tracks] [--part 1/2] \
        [--only pendulum,spring]
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
from jsonargparse import auto_cli
from result_cache import cached_results
from scipy.integrate import solve_ivp

from physvision.core import PhysvisionError
from physvision.identification import identify
from physvision.perception import Track, read_tracks

GRAVITY = 9.81
UNITS, NOISES = ("px", "mm", "m"), ("white", "lasting")
DECIMALS = {"px": 4, "mm": 4, "m": 7}
# Parameters of which a rejected table counts as a miss.
DETERMINED_PARAMETERS = {
    "pendulum": ("period", "length", "damping", "drag"),
    "double_pendulum": ("length_1", "length_2", "mass_ratio", "damping"),
    "spring": ("period", "damping", "stiffness"),
    "bounce": ("restitution",),
    "slide": ("acceleration", "speed", "friction"),
    "projectile": ("speed", "angle", "drag"),
}


@dataclass(frozen=True)
class SolvedMotion:
    """Motion from the solver, with its truth.

    Attributes:
        times: Times of the samples, s.
        positions: Positions of all objects, x to the right and y up, m, (samples, 2 · objects).
        truth: True values of the parameters, SI units.
        known: Values that a user would state, for which the clip gives no scale.
        known_with_scale: Values that a user would state besides the scale.
    """

    times: np.ndarray
    positions: np.ndarray
    truth: Mapping[str, float]
    known: tuple[str, ...]
    known_with_scale: tuple[str, ...] = ()


def log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniformly distributed."""
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def loss(random: np.random.Generator, low: float, high: float) -> float:
    """Draw a coefficient of damping, drag or friction: zero in one of four tables, else of any order of magnitude."""
    return 0.0 if random.random() < 0.25 else log_uniform(random, low, high)


def sample_times(random: np.random.Generator, duration: float, fast: bool = False) -> np.ndarray:
    """Return the times of frames that cover a duration, s."""
    fps = float(random.choice([50, 60, 120] if fast else [25, 30, 60, 120]))
    return np.arange(math.floor(duration * fps) + 1) / fps


def integrate(rate: Callable, start: list[float], times: np.ndarray) -> np.ndarray:
    """Return the states at the times, (samples, states)."""
    span = (0.0, float(times[-1]) + 1e-9)
    return solve_ivp(rate, span, start, "DOP853", times, rtol=1e-10, atol=1e-12).y.T


def pendulum(random: np.random.Generator) -> SolvedMotion:
    """A bob on a string, damped linearly and by drag."""
    length, amplitude = log_uniform(random, 0.15, 1.5), math.radians(random.uniform(10, 100))
    damping, drag = loss(random, 0.005, 0.3), loss(random, 0.005, 0.3)
    period = 2 * math.pi * math.sqrt(length / GRAVITY)
    times = sample_times(random, random.uniform(2.5, 8) * period)

    def rate(_: float, state: np.ndarray) -> list[float]:
        angle, speed = state
        pull = -GRAVITY / length * math.sin(angle)
        return [speed, pull - damping * speed - drag * length * abs(speed) * speed]

    angle = integrate(rate, [amplitude * random.choice([-1, 1]), random.uniform(-0.5, 0.5)], times)[:, 0]
    positions = length * np.stack([np.sin(angle), -np.cos(angle)], 1)
    truth = {"length": length, "gravity": GRAVITY, "period": period, "damping": damping, "drag": drag}
    return SolvedMotion(times, positions, truth, ("gravity",))


def double_pendulum(random: np.random.Generator) -> SolvedMotion:
    """Two bobs on light rods, each slowed by a force proportional to its mass and velocity."""
    l1, l2 = random.uniform(0.1, 0.4, 2)
    ratio, damping = log_uniform(random, 0.3, 2), loss(random, 0.003, 0.1)
    times = sample_times(random, random.uniform(2, 4), fast=True)

    def rate(_: float, state: np.ndarray) -> np.ndarray:
        # Lagrange's equations of both angles, divided by the upper mass; the force on each bob is -damping · m · v.
        a, b, a_rate, b_rate = state
        sin, cos = math.sin(a - b), math.cos(a - b)
        mass = np.array([[(1 + ratio) * l1**2, ratio * l1 * l2 * cos], [ratio * l1 * l2 * cos, ratio * l2**2]])
        force = np.array([
            -ratio * l1 * l2 * sin * b_rate**2 - (1 + ratio) * GRAVITY * l1 * math.sin(a),
            ratio * l1 * l2 * sin * a_rate**2 - ratio * GRAVITY * l2 * math.sin(b),
        ])  # fmt: skip
        rates = np.array([a_rate, b_rate])
        return np.concatenate([rates, np.linalg.solve(mass, force) - damping * rates])

    start = [random.uniform(0.3, 1.8), random.uniform(-0.6, 1.8), *random.uniform(-0.5, 0.5, 2)]
    a, b = integrate(rate, start, times)[:, :2].T
    upper = l1 * np.stack([np.sin(a), -np.cos(a)], 1)
    positions = np.concatenate([upper, upper + l2 * np.stack([np.sin(b), -np.cos(b)], 1)], 1)
    truth = {"length_1": l1, "length_2": l2, "mass_ratio": ratio, "gravity": GRAVITY, "damping": damping}
    return SolvedMotion(times, positions, truth, ("gravity",))


def spring(random: np.random.Generator) -> SolvedMotion:
    """A mass on a spring in any direction, damped linearly."""
    period, mass, damping = random.uniform(0.35, 2), log_uniform(random, 0.02, 1), loss(random, 0.005, 1)
    stiffness = mass * ((2 * math.pi / period) ** 2 + damping**2 / 4)
    amplitude, direction = random.uniform(0.02, 0.2), random.choice([0, math.pi / 2]) + random.normal(0, 0.02)
    times = sample_times(random, random.uniform(2.5, 9) * period)

    def rate(_: float, state: np.ndarray) -> list[float]:
        return [state[1], -stiffness / mass * state[0] - damping * state[1]]

    extension = integrate(rate, [amplitude, random.normal(0, amplitude / period)], times)[:, 0]
    positions = extension[:, None] * np.array([math.cos(direction), math.sin(direction)])
    truth = {"stiffness": stiffness, "period": period, "damping": damping, "mass": mass}
    return SolvedMotion(times, positions, truth, ("mass",), ("mass",))


def bounce(random: np.random.Generator) -> SolvedMotion:
    """A solid sphere that bounces on a floor with Coulomb friction, from the free flights between its impacts."""
    restitution, height = random.uniform(0.5, 0.95), random.uniform(0.4, 1.5)
    friction, radius = random.uniform(0, 0.4), 0.03
    sideways = random.uniform(-0.5, 0.5) * height
    fall = math.sqrt(2 * height / GRAVITY)
    flights = fall * np.array([1.0, *(2 * restitution ** np.arange(1, int(random.integers(2, 6)) + 1))])
    flights = flights[flights > 0.18]
    times = sample_times(random, max(flights.sum() - 0.25 * flights[-1], fall + 0.2), fast=True)
    state, spin, start = np.array([0.0, height, sideways, 0.0]), random.uniform(-3, 3), 0.0
    positions = np.zeros((len(times), 2))

    def rate(_: float, state: np.ndarray) -> list[float]:
        return [state[2], state[3], 0.0, -GRAVITY]

    def ground(_: float, state: np.ndarray) -> float:
        return state[1]

    ground.terminal, ground.direction = True, -1  # pyright: ignore[reportFunctionMemberAccess]
    while start <= times[-1]:
        flight = solve_ivp(
            rate, (start, times[-1] + 1), state, "DOP853", events=ground, dense_output=True, rtol=1e-10, atol=1e-12
        )
        during = (times >= start) & (times <= flight.t[-1])
        positions[during] = flight.sol(times[during])[:2].T
        start, (x, _, vx, vy) = float(flight.t[-1]), flight.y[:, -1]
        # Friction stops the sliding of the point of contact, unless that takes more than Coulomb's impulse.
        normal, sliding = -(1 + restitution) * vy, vx + radius * spin
        tangential = -np.sign(sliding) * min(abs(sliding) / 3.5, friction * normal)
        spin += tangential / (0.4 * radius)
        state = np.array([x, 0.0, vx + tangential, -restitution * vy])
    truth = {"restitution": restitution, "gravity": GRAVITY}
    return SolvedMotion(times, positions, truth, ("gravity",))


def slide(random: np.random.Generator) -> SolvedMotion:
    """A block that friction brings to a stop on level ground, or that slides down a slope."""
    if random.random() < 0.5:
        slope, friction, speed = 0.0, random.uniform(0.08, 0.5), random.uniform(0.4, 2.5)
    else:
        slope, speed = math.radians(random.uniform(10, 40)), random.uniform(0, 0.5)
        friction = random.uniform(0.0, 0.8) * math.tan(slope)
    acceleration = GRAVITY * (math.sin(slope) - friction * math.cos(slope))

    def rate(_: float, state: np.ndarray) -> list[float]:
        return [state[1], acceleration]

    def stop(_: float, state: np.ndarray) -> float:
        return state[1] if acceleration < 0 else 1.0

    stop.terminal, stop.direction = True, -1  # pyright: ignore[reportFunctionMemberAccess]
    length = random.uniform(0.3, 1.5)
    down = (math.sqrt(speed**2 + 2 * acceleration * length) - speed) / acceleration if acceleration > 0 else 0.0
    duration = down or speed / -acceleration + random.uniform(0.1, 0.5)
    times = sample_times(random, duration, fast=True)
    path = solve_ivp(rate, (0, duration), [0.0, speed], "DOP853", events=stop, dense_output=True, rtol=1e-10)
    distance = path.sol(np.minimum(times, path.t[-1]))[0]
    side = random.choice([-1, 1])
    positions = distance[:, None] * np.array([side * math.cos(slope), -math.sin(slope)])
    truth = {"acceleration": abs(acceleration), "speed": speed, "friction": friction, "angle": slope}
    return SolvedMotion(times, positions, {**truth, "gravity": GRAVITY}, ("gravity", "scale"), ("gravity",))


def projectile(random: np.random.Generator) -> SolvedMotion:
    """A ball in flight with quadratic drag, first observed at its release or within a frame after it."""
    speed, angle, drag = random.uniform(2, 10), math.radians(random.uniform(15, 80)), loss(random, 0.003, 0.1)
    duration = 2 * speed * math.sin(angle) / GRAVITY * random.uniform(0.8, 1.1)
    times = sample_times(random, duration, fast=True)

    def rate(_: float, state: np.ndarray) -> np.ndarray:
        velocity = state[2:]
        return np.concatenate([velocity, -drag * np.linalg.norm(velocity) * velocity - [0.0, GRAVITY]])

    late = random.uniform(0, times[1]) if random.random() < 0.5 else 1e-9
    start = [0.0, 0.0, random.choice([-1, 1]) * speed * math.cos(angle), speed * math.sin(angle)]
    positions = integrate(rate, start, np.concatenate([[0.0], times + late]))[1:, :2]
    truth = {"speed": speed, "angle": angle, "drag": drag, "gravity": GRAVITY}
    return SolvedMotion(times, positions, truth, ("gravity",))


KINDS: Mapping[str, Callable[[np.random.Generator], SolvedMotion]] = {
    make.__name__: make for make in (pendulum, double_pendulum, spring, bounce, slide, projectile)
}


def noise(random: np.random.Generator, shape: tuple[int, int], form: str) -> np.ndarray:
    """Return noise with a standard deviation of one: white, or with autocorrelated errors of 3 to 12 frames."""
    white = random.normal(size=shape)
    if form == "white":
        return white
    decay = math.exp(-1 / random.uniform(3, 12))
    autocorrelated = random.normal(size=shape)
    for index in range(1, shape[0]):
        autocorrelated[index] = decay * autocorrelated[index - 1] + math.sqrt(1 - decay**2) * autocorrelated[index]
    return 0.95 * autocorrelated + math.sqrt(1 - 0.95**2) * white


def make_table(kind: str, seed: int, folder: Path) -> tuple[list[Track], dict[str, float], SolvedMotion, str, str]:
    """Write the positions of a motion as a table, and read it: tracks, known values, motion, unit and noise."""
    unit, form = list(product(UNITS, NOISES))[seed % 6]
    random = np.random.default_rng([seed, list(KINDS).index(kind)])
    motion = KINDS[kind](random)
    positions = motion.positions
    extent = max(
        float(np.linalg.norm(np.ptp(part, axis=0))) for part in np.split(positions, positions.shape[1] // 2, 1)
    )
    scale = random.uniform(300, 700) / extent  # pixels per meter of the picture that was measured
    positions = positions + log_uniform(random, 0.1, 1) / scale * noise(random, positions.shape, form)
    known = {name: motion.truth.get(name, scale) for name in motion.known}
    if unit == "px":
        # Without gravity, the scale is known.
        if known.get("gravity") and "scale" not in known and random.random() < 0.5:
            known = {name: value for name, value in known.items() if name != "gravity"} | {"scale": scale}
        table = positions.reshape(len(positions), -1, 2) * [scale, -scale] + random.uniform(100, 500, 2)
    else:
        names = motion.known_with_scale or (motion.known if random.random() < 0.5 else ())
        known = {name: motion.truth[name] for name in names}
        table = positions.reshape(len(positions), -1, 2) * {"mm": 1e3, "m": 1.0}[unit]
    columns = [motion.times[:, None], table.reshape(len(table), -1)]
    header = ",".join(["t", *(f"{axis}_{index}" for index in range(table.shape[1]) for axis in "xy")])
    path, formats = folder / "table.csv", ["%.6f"] + [f"%.{DECIMALS[unit]}f"] * (2 * table.shape[1])
    np.savetxt(path, np.concatenate(columns, 1), formats, ",", header=header, comments="")
    return read_tracks(path, unit), known, motion, unit, form


def identify_table(kind: str, seed: int) -> dict:
    """Identify one table: its parameters beside the truth, or the reason of its rejection."""
    with tempfile.TemporaryDirectory() as folder:
        tracks, known, motion, unit, form = make_table(kind, seed, Path(folder))
    began = time.process_time()
    record: dict = {"kind": kind, "seed": seed, "unit": unit, "noise": form, "parameters": {}, "unidentifiable": []}
    try:
        result = identify(tracks, kind, known)
    except PhysvisionError as error:
        return {**record, "rejected": str(error)[:200]}
    record |= {"seconds": time.process_time() - began, "warnings": list(result.warnings)}
    for name, entry in result.parameters.items():
        truth = motion.truth.get(name)
        if truth is None or name in known:
            continue
        if entry.value is None or entry.interval_68 is None or entry.interval_95 is None:
            record["unidentifiable"].append(name)
            continue
        record["parameters"][name] = {
            "value": float(entry.value), "truth": float(truth), "interval_95": list(entry.interval_95),
            "in_68": bool(entry.interval_68[0] <= truth <= entry.interval_68[1]),
            "in_95": bool(entry.interval_95[0] <= truth <= entry.interval_95[1]),
        }  # fmt: skip
    return record


def show(results: list[dict]) -> None:
    """Print the coverage of each parameter of each kind, and pooled over kinds, units and noises."""
    print(f"{'':<30}{'tables':>7}{'rejected':>9}{'estimates':>10}{'in 68 %':>9}{'in 95 %':>9}{'half-width':>12}")
    for kind in KINDS:
        group = [record for record in results if record["kind"] == kind]
        names = dict.fromkeys(name for record in group for name in record["parameters"])
        for name in names:
            show_row(f"{kind} {name}", group, (name,))
        show_row(f"{kind}", group, tuple(names))
    for key, values in (("noise", NOISES), ("unit", UNITS)):
        for value in values:
            show_row(value, [record for record in results if record[key] == value])
    show_row("all", results)


def show_row(label: str, records: list[dict], names: tuple[str, ...] | None = None) -> None:
    """Print the coverage of some parameters over some tables; half-widths are relative to the truth, in percent."""
    inside_68, inside_95, widths = [], [], []
    for record in records:
        if "rejected" in record:
            misses = [name for name in DETERMINED_PARAMETERS[record["kind"]] if names is None or name in names]
            inside_68 += [False] * len(misses)
            inside_95 += [False] * len(misses)
        for name, entry in record["parameters"].items():
            if names is None or name in names:
                inside_68.append(entry["in_68"])
                inside_95.append(entry["in_95"])
                low, high = entry["interval_95"]
                widths.append((high - low) / 2 / max(abs(entry["truth"]), 1e-12))
    if not inside_95:
        return
    rejected = sum("rejected" in record for record in records)
    print(f"{label:<30}{len(records):>7}{rejected:>9}{len(inside_95):>10}{100 * np.mean(inside_68):>9.0f}", end="")
    print(f"{100 * np.mean(inside_95):>9.0f}{100 * np.median(widths) if widths else np.nan:>11.3g}%")


def main(
    tracks: int = 200,
    out: Path = Path("out/identify_tracks"),
    first: int = 0,
    part: str = "1/1",
    only: str | None = None,
) -> None:
    """Identify tables of positions, and print their coverage.

    Args:
        tracks: Number of tables of each kind.
        out: Folder of the results, which are resumed.
        first: Seed of the first table of each kind.
        part: Part of the tables that this process identifies, as index/count; "0/1" only prints what is there.
        only: Kinds of motion, separated by commas; all if not given.
    """
    torch.set_num_threads(1)
    names = list(KINDS) if only is None else only.split(",")
    selection = [(name, first + number) for number in range(tracks) for name in names]
    index, count = (int(number) for number in part.split("/"))
    keys = selection[index - 1 :: count] if index else []
    results = cached_results(
        out / "tables.jsonl", keys, lambda key: identify_table(*key), lambda record: (record["kind"], record["seed"])
    )
    show([results[key] for key in selection if key in results])


if __name__ == "__main__":
    auto_cli(main)
