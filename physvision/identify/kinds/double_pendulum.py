"""Two bobs, the second hanging from the first."""

from __future__ import annotations

import math

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import Seen, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identify import starts
from physvision.identify.model import Case, Knowns, Model, Parameters, UnsuitableError
from physvision.identify.view import TILT
from physvision.physics import articulated

_DEPTH = 0.01  # of the outer arm's plane in front of the inner one's, of the camera's distance
_AROUND = 7  # samples that tell how fast an arm turns
_POINT = 1e-3  # inertia of a bob about itself, of its mass times the square of its arm: none to speak of


def propose(case: Case) -> list[Model]:
    """Bobs on light arms, and arms that have an inertia of their own."""
    if len(case.tracks) != 2:
        raise UnsuitableError("a double pendulum needs two things that move")
    both = np.concatenate([case.seen(k).numpy() for k in range(2)], 1)
    there = np.flatnonzero(np.isfinite(both).all(1))
    if len(there) < 20:
        raise UnsuitableError("both were seen together fewer than twenty times")
    times, places = case.times.numpy()[there], both[there]
    fits = [(k, *starts.circle(places[:, 2 * k : 2 * k + 2])) for k in range(2)]
    off = [
        float(np.std(np.linalg.norm(places[:, 2 * k : 2 * k + 2] - center, axis=1)) / radius)
        for k, center, radius in fits
    ]
    inner = int(np.argmin(off))
    if off[inner] > 0.05:
        raise UnsuitableError("neither of the two stays on a circle")
    _, pivot, arc = fits[inner]
    near, far = (places[:, 2 * k : 2 * k + 2] for k in (inner, 1 - inner))
    arms = np.linalg.norm(far - near, axis=1)
    if float(np.std(arms)) > 0.08 * float(arms.mean()):
        raise UnsuitableError("the two do not keep their distance")
    one, two = (np.unwrap(np.arctan2(*away.T)) for away in (near - pivot, far - near))
    few = min(5, len(times))
    speed = [float(np.polyfit(times[:few] - times[0], angle[:few], 1)[0]) for angle in (one, two)]
    where = {"arcs": [arc, float(arms.mean())], "pivot": pivot.tolist(), "angles": [float(one[0]), float(two[0])]}
    turning = _turning(times, np.stack([one, two], 1), case.dt)
    ends = int(there[0]), int(there[-1]) + 1
    return [_model(case, where, speed, inner, compound, turning, *ends) for compound in (False, True)]


def _turning(times: np.ndarray, angles: np.ndarray, dt: float) -> torch.Tensor:
    """In the middle of each step, how fast both arms turn and the cosine between them, (steps, 3)."""
    middles = times[0] + dt * (np.arange(math.ceil((times[-1] - times[0]) / dt)) + 0.5)
    rows = []
    for middle in middles:
        near = np.argsort(np.abs(times - middle))[:_AROUND]
        powers = np.vander(times[near] - middle, 3, increasing=True)
        (one, two), (spin, other), _ = np.linalg.lstsq(powers, angles[near], rcond=None)[0]
        rows.append([spin, other, math.cos(one - two)])
    return torch.tensor(rows, dtype=torch.float64)


def _model(
    case: Case,
    where: dict,
    speed: list[float],
    inner: int,
    compound: bool,
    turning: torch.Tensor,
    first: int,
    last: int,
) -> Model:
    dt, arc = case.dt, where["arcs"][0]
    engine = articulated.chain([1.0, 1.0], dt=dt, substeps=max(1, math.ceil(dt * 200)), integrator="runge_kutta_4")
    unknowns = [
        Unknown("weight", 30 * arc, low=0.0, unit="px/s²"),
        Unknown("ratio", 1.0, low=0.0),
        Unknown("arcs", where["arcs"], low=0.0, unit="px"),
        Unknown("pivot", where["pivot"], scale=0.01 * arc, unit="px"),
        Unknown("tilt", 0.0, scale=TILT, deviation=TILT, unit="rad"),
        Unknown("angles", where["angles"], scale=0.3, unit="rad"),
        Unknown("spins", speed, scale=1.0, unit="rad/s"),
        Unknown("damping", [0.01, 0.01], low=0.0, span=(0.0, 1.0), unit="1/s"),
        Unknown("air", 0.01, low=0.0, span=(0.0, 1.0), unit="1/s"),
        # The outer arm swings in front of the inner one: nearer to the camera, or further, and seen from one side.
        Unknown("depth", 0.0, scale=0.01, deviation=_DEPTH),
        Unknown("aside", [0.0, 0.0], scale=0.01 * arc, deviation=_DEPTH * arc, unit="px"),
    ]
    if compound:
        unknowns.append(Unknown("inertia", [0.05, 0.05], low=0.0, high=0.6))
    weights = arc * torch.tensor([12.0, 25.0, 50.0, 100.0], dtype=torch.float64).repeat_interleave(2)
    ratios = torch.tensor([0.25, 1.0], dtype=torch.float64).repeat(4)

    def setup(values: Values) -> Setup:
        return _two_arms(values, turning)

    def places(seen: Seen) -> torch.Tensor:
        values, q = seen.values, seen.state.q
        turned = torch.stack([q[:, 0], q[:, 0] + q[:, 1]], 1) + values["tilt"][:, None]
        arms = values["arcs"][..., None] * torch.stack([turned.sin(), turned.cos()], 2)
        near = values["pivot"] + arms[:, 0]
        hinge, depth = near - values["pivot"], values["depth"][:, None]
        far = values["pivot"] + values["aside"] + (1 + depth) * (hinge + arms[:, 1])
        return torch.cat([near, far] if inner == 0 else [far, near], 1)

    return Model(
        "double_pendulum", engine, unknowns, setup, places, parameters,
        {"length_1": "m", "length_2": "m", "mass_ratio": "", "gravity": "m/s²", "damping": "1/s", "damping_1": "1/s",
         "damping_2": "1/s"},
        first, last, {"weight": weights, "ratio": ratios}, horizon=max(0.25, 6 * dt), scale=scale,
        variant="compound" if compound else "", spans=dict.fromkeys(("damping_1", "damping_2"), (0.0, 1.0)),
    )  # fmt: skip


def _two_arms(values: Values, turning: torch.Tensor) -> Setup:
    """The chain's leaves: masses at the ends of arms, in pixels; the inner bob's mass is one.

    Air pulls at each bob with a force against its velocity, in proportion to its mass and to that. It is weak, and how
    the arms turn is well known from the tracks, so that it is a given torque:

        −c (m₁ a₁² ω₁ + m₂ a₁ (a₁ ω₁ + a₂ ω₂ cos)),   −c m₂ a₂ (a₂ ω₂ + a₁ ω₁ cos)   about each bob's own hinge
    """
    arcs, ratio = values["arcs"], values["ratio"]
    one, none = torch.ones_like(ratio), torch.zeros_like(ratio)
    mass = torch.stack([one, ratio], 1)
    share = values["inertia"] if "inertia" in values else torch.full_like(arcs, _POINT)
    inertia = (mass * arcs**2 * share)[..., None, None] * torch.eye(3, dtype=arcs.dtype)
    ends = torch.stack([torch.stack([none, none, -arc], 1) for arc in arcs.unbind(1)], 1)
    hinges = torch.stack([torch.zeros_like(ends[:, 0]), ends[:, 0]], 1)
    leaves = {
        "mass": mass,
        "center_of_mass": ends,
        "inertia": inertia,
        "position": hinges,
        "gravity": torch.stack([none, none, -values["weight"]], 1),
        "joint_damping": values["damping"] * mass * arcs**2,
    }
    q = torch.stack([values["angles"][:, 0], values["angles"][:, 1] - values["angles"][:, 0]], 1)
    v = torch.stack([values["spins"][:, 0], values["spins"][:, 1] - values["spins"][:, 0]], 1)
    spin, other, cosine = turning.to(arcs).unbind(1)
    first, second = (arc[:, None] for arc in arcs.unbind(1))
    outer = ratio[:, None] * second * (second * other + first * spin * cosine)
    inner = (1 + ratio[:, None]) * first**2 * spin + ratio[:, None] * first * second * other * cosine
    # The outer hinge's torque acts on the inner arm as well.
    pull = -values["air"][:, None, None] * torch.stack([inner + outer, outer], 2)
    return Setup(State(q, v), leaves, pull)


def scale(values: Values, known: Knowns) -> torch.Tensor | None:
    """Pixels a metre: told, or by gravity."""
    if "scale" in known:
        return known["scale"]
    return values["weight"] / known["gravity"] if "gravity" in known else None


def parameters(values: Values, known: Knowns) -> Parameters:
    """Lengths by gravity or by a scale; the damping by air, and that of each joint."""
    pixels = scale(values, known)
    found: Parameters = {"mass_ratio": values["ratio"], "damping": values["air"]}
    if "scale" in known:
        found["gravity"] = values["weight"] / known["scale"]
    for number in range(2):
        lacking = "needs gravity or scale"
        found[f"length_{number + 1}"] = lacking if pixels is None else values["arcs"][:, number] / pixels
        found[f"damping_{number + 1}"] = values["damping"][:, number]
    return found
