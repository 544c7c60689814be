"""Two bobs, the second hanging from the first."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification import starts
from physvision.identification.model import Case, Knowns, Model, Parameters, UnsuitableError
from physvision.identification.view import TILT
from physvision.physics import articulated

_DEPTH = 0.01  # of the outer arm's plane in front of the inner one's, of the camera's distance
_PULL = 0.005  # of an arm's length, by which it shifts along itself the middle of what is seen at its ends
_AROUND = 7  # samples that tell how fast an arm turns
_LIGHT = 0.25  # share of its length by which an arm's mass may seem to be off its end without being worth a search
_POINT = 1e-7  # inertia of a bob about itself, of its mass times the square of its arm: none; lengths would be shorter
_SOME = (0.0, math.inf)
_UNITS = {
    "length_1": "m", "length_2": "m", "mass_ratio": "", "swing_length_1": "m", "swing_length_2": "m",
    "gravity": "m/s²", "damping": "1/s", "damping_1": "1/s", "damping_2": "1/s",
}  # fmt: skip


def propose(case: Case) -> list[Model]:
    """Bobs on light arms, slowed by air; and from where that leads, hinges that rub, arms with masses of their own."""
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
    omega, ratio, reach = law(times, one, two, float(arms.mean()) / arc)
    where = {"arcs": [arc, float(arms.mean())], "pivot": pivot.tolist(), "angles": [float(one[0]), float(two[0])]}
    where["turning"] = _turning(times, np.stack([one, two], 1), case.dt)
    where |= {"weight": omega * arc, "ratio": ratio, "horizon": starts.informative(times, places)}
    window = int(there[0]), int(there[-1]) + 1

    def model(hinges: bool, reach: list[float] | None = None) -> Model:
        return _model(case, where, speed, inner, window, hinges, reach)

    # Friction in the hinges, which is never below zero, would take a part of the air's where there is none.
    whole = model(True, [1.0, 1.0])
    wider = [replace(model(True), wider=[whole]), replace(model(False, [1.0, 1.0]), wider=[whole])]
    models = [replace(model(False), wider=wider)]
    # Of the inner arm alone accelerations say too little.
    if abs(reach[1] - 1) > _LIGHT:
        models.append(model(True, reach))
    return models


def law(times: np.ndarray, one: np.ndarray, two: np.ndarray, rho: float) -> tuple[float, float, list[float]]:
    """Gravity over the inner arc, 1/s², the ratio of masses, and how far down its arm each is, from accelerations.

    With point masses 1 and r at shares e and f of their arms, ρ the outer arm over the inner one, ω = gravity / arc and
    B = r / (e² + r), h = (e + r) / (e² + r), the equations of motion are linear in B f, f, h ω and ω: with
    d = a − b, a″ + B f ρ (b″ cos d + b′² sin d) + h ω sin a = 0 and a″ cos d − a′² sin d + f ρ b″ + ω sin b = 0.
    """
    (a, u, du), (b, w, dw) = (starts.derivatives(times, angle) for angle in (one, two))
    cos, sin = np.cos(a - b), np.sin(a - b)
    inner = np.stack([rho * (cos * dw + sin * w**2), np.sin(a)], 1)
    outer = np.stack([rho * dw, np.sin(b)], 1)
    coupled, pull = starts.closest(inner, -du[:, None])[:, 0]
    reach, omega = starts.closest(outer, -(cos * du - sin * u**2)[:, None])[:, 0]
    omega = max(float(omega), 1.0)
    reach = min(max(float(reach), 0.2), 2.0)
    share, ratio = min(max(coupled / reach, 0.02), 0.9), max(pull / omega, 0.0)
    ratio = max(ratio, share + 0.05)
    whole = (1 - share) / (ratio - share) ** 2  # e² + r
    return omega, share * whole, [min(max((ratio - share) * whole, 0.2), 2.0), reach]


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
    window: tuple[int, int],
    hinges: bool,
    reach: list[float] | None,
) -> Model:
    """Light arms; or, with shares of them from which to search, arms that have masses of their own; hinges may rub.

    Two bodies in a plane, hinged to each other, move by four numbers alone: gravity, and of three masses and moments
    whatever is left when the mass at the outer hinge may count with either arm. Point masses r of the outer and 1 of
    the inner arm, each as far down its arm as that arm's own swing asks for, have just these four.
    """
    dt, arc = case.dt, where["arcs"][0]
    engine = articulated.chain([1.0, 1.0], dt=dt, substeps=max(1, math.ceil(dt * 200)), integrator="runge_kutta_4")
    unknowns = [
        Unknown("weight", where["weight"], low=0.0, unit="px/s²"),
        Unknown("ratio", where["ratio"], low=0.0),
        Unknown("arcs", where["arcs"], low=0.0, unit="px"),
        Unknown("pivot", where["pivot"], scale=0.01 * arc, unit="px"),
        Unknown("tilt", 0.0, scale=TILT, std=TILT, unit="rad"),
        Unknown("angles", where["angles"], scale=0.3, unit="rad"),
        Unknown("spins", speed, scale=1.0, unit="rad/s"),
        Unknown("air", 0.01, low=0.0, unit="1/s"),
        # The outer arm swings in front of the inner one: nearer to the camera, or further, and seen from one side.
        Unknown("depth", 0.0, scale=0.01, std=_DEPTH),
        Unknown("aside", [0.0, 0.0], scale=0.01 * arc, std=_DEPTH * arc, unit="px"),
        # A bob and the arms that hold it are hard to tell apart: of the inner bob along either arm, then of the outer.
        Unknown("pulls", [0.0, 0.0, 0.0], scale=0.01, std=_PULL),
    ]
    if hinges:
        unknowns.append(Unknown("damping", [1e-4, 1e-4], low=0.0, unit="1/s"))
    if reach is not None:
        unknowns.append(Unknown("reach", reach, low=0.0))
    weights = where["weight"] * torch.tensor([1.0, 1.0, 1.0, 0.7, 1.4], dtype=torch.float64)
    ratios = where["ratio"] * torch.tensor([1.0, 0.5, 2.0, 1.0, 1.0], dtype=torch.float64)

    def setup(values: Values) -> Setup:
        return _two_arms(values, where["turning"])

    def places(seen: SampledState) -> torch.Tensor:
        values, q = seen.values, seen.state.q
        turned = torch.stack([q[:, 0], q[:, 0] + q[:, 1]], 1) + values["tilt"][:, None]
        arms = values["arcs"][..., None] * torch.stack([turned.sin(), turned.cos()], 2)
        inward, across, outward = values["pulls"][..., None].unbind(1)
        near = values["pivot"] + (1 + inward) * arms[:, 0] + across * arms[:, 1]
        depth = 1 + values["depth"][:, None]
        far = values["pivot"] + values["aside"] + depth * (arms[:, 0] + (1 + outward) * arms[:, 1])
        return torch.cat([near, far] if inner == 0 else [far, near], 1)

    return Model(
        "double_pendulum", engine, unknowns, setup, places, parameters,
        _UNITS, *window, {"weight": weights, "ratio": ratios}, horizon=where["horizon"], scale=scale,
        spans={"damping_1": (0.0, 1.0), "damping_2": (0.0, 1.0), "swing_length_1": _SOME, "swing_length_2": _SOME},
    )  # fmt: skip


def _two_arms(values: Values, turning: torch.Tensor) -> Setup:
    """The chain's leaves: masses at the ends of arms, or somewhere along them, in pixels; the inner mass is one.

    Air pulls at each bob with a force against its velocity, in proportion to its mass and to that. It is weak, and how
    the arms turn is well known from the tracks, so that it is a given torque. With bobs at s₁, s₂ of their arms and the
    outer hinge at a₁ it is, about each bob's own hinge,

        −c (m₁ s₁² ω₁ + m₂ a₁ (a₁ ω₁ + s₂ ω₂ cos)),   −c m₂ s₂ (s₂ ω₂ + a₁ ω₁ cos)
    """
    arcs, ratio = values["arcs"], values["ratio"]
    one, none = torch.ones_like(ratio), torch.zeros_like(ratio)
    mass = torch.stack([one, ratio], 1)
    swing = arcs * values["reach"] if "reach" in values else arcs
    inertia = (mass * swing**2 * _POINT)[..., None, None] * torch.eye(3, dtype=arcs.dtype)
    ends = torch.stack([torch.stack([none, none, -arm], 1) for arm in swing.unbind(1)], 1)
    hinges = torch.stack([torch.zeros_like(ends[:, 0]), torch.stack([none, none, -arcs[:, 0]], 1)], 1)
    leaves = {
        "mass": mass,
        "center_of_mass": ends,
        "inertia": inertia,
        "position": hinges,
        "gravity": torch.stack([none, none, -values["weight"]], 1),
    }
    if "damping" in values:
        leaves["joint_damping"] = values["damping"] * mass * swing**2
    q = torch.stack([values["angles"][:, 0], values["angles"][:, 1] - values["angles"][:, 0]], 1)
    v = torch.stack([values["spins"][:, 0], values["spins"][:, 1] - values["spins"][:, 0]], 1)
    spin, other, cosine = turning.to(arcs).unbind(1)
    (first, second), hinge = (arm[:, None] for arm in swing.unbind(1)), arcs[:, :1]
    outer = ratio[:, None] * second * (second * other + hinge * spin * cosine)
    inner = (first**2 + ratio[:, None] * hinge**2) * spin + ratio[:, None] * hinge * second * other * cosine
    # The outer hinge's torque acts on the inner arm as well.
    pull = -values["air"][:, None, None] * torch.stack([inner + outer, outer], 2)
    return Setup(State(q, v), leaves, pull)


def scale(values: Values, known: Knowns) -> torch.Tensor | None:
    """Pixels a metre: told, or by gravity."""
    if "scale" in known:
        return known["scale"]
    return values["weight"] / known["gravity"] if "gravity" in known else None


def parameters(values: Values, known: Knowns) -> Parameters:
    """Lengths by gravity or by a scale; the damping by air, and that of each joint.

    Of arms with masses of their own: the length of the simple pendulum that swings as each does alone, the inner one
    with what it carries at the outer hinge, and the ratio of the point masses that would move like them.
    """
    pixels = scale(values, known)
    found: Parameters = {"mass_ratio": values["ratio"], "damping": values["air"]}
    if "scale" in known:
        found["gravity"] = values["weight"] / known["scale"]
    for number in range(2):
        lacking = "needs gravity or scale"
        found[f"length_{number + 1}"] = lacking if pixels is None else values["arcs"][:, number] / pixels
        if "reach" in values:
            swing = values["arcs"][:, number] * values["reach"][:, number]
            found[f"swing_length_{number + 1}"] = lacking if pixels is None else swing / pixels
        rubs = f"damping_{number + 1}"
        found[rubs] = values["damping"][:, number] if "damping" in values else "nothing but the air is seen to slow it"
    return found
