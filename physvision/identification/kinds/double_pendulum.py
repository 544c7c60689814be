"""Double pendulum: two bobs, the second hanging from the first."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from physvision.core import State
from physvision.estimation import SampledState, Setup, Unknown
from physvision.estimation.unknowns import Values
from physvision.identification.initial_guesses import (
    Samples,
    fit_circle,
    informative_duration,
    local_derivatives,
    robust_lstsq,
)
from physvision.identification.kind_settings import DoublePendulumSettings
from physvision.identification.model import Evidence, KnownTensors, MotionModel, ParameterValues, UnsuitableError
from physvision.physics import articulated

_UNITS = {
    "length_1": "m", "length_2": "m", "mass_ratio": "", "swing_length_1": "m", "swing_length_2": "m",
    "gravity": "m/s²", "damping": "1/s", "damping_1": "1/s", "damping_2": "1/s",
}  # fmt: skip
_BOUNDS = {
    "damping_1": (0.0, 1.0), "damping_2": (0.0, 1.0), "swing_length_1": (0.0, math.inf),
    "swing_length_2": (0.0, math.inf),
}  # fmt: skip


def candidate_models(evidence: Evidence) -> list[MotionModel]:
    """Return the model of bobs on massless arms with air damping; relaxations add joint friction and masses of arms."""
    guess = _guess(evidence)

    def model(joint_friction: bool, swing_ratios: list[float] | None = None) -> MotionModel:
        return _model(evidence, guess, joint_friction, swing_ratios)

    # Friction in the hinges is never negative, so it would take over a part of the air's where there is none.
    general_model = model(True, [1.0, 1.0])
    relaxations = [replace(part, relaxations=[general_model]) for part in (model(True), model(False, [1.0, 1.0]))]
    models = [replace(model(False), relaxations=relaxations)]
    # Accelerations determine the swing length of the outer arm, but hardly that of the inner one.
    if abs(guess.swing_ratios[1] - 1) > evidence.settings.double_pendulum.min_swing_offset:
        models.append(model(True, guess.swing_ratios))
    return models


@dataclass(frozen=True)
class _Guess:
    """Initial guess of a double pendulum.

    Attributes:
        window: First sample, and one past the last.
        inner: Track of the inner bob.
        pivot: Position of the pivot, pixels.
        arm_lengths: Lengths of the arms, pixels.
        angles: Initial angles of the arms, rad.
        rates: Initial rates of the arms, rad/s.
        arm_rates: Rates of both arms and the cosine between them in the middle of each step, (steps, 3).
        gravity: Gravity, px/s².
        mass_ratio: Mass of the outer bob over that of the inner one.
        swing_ratios: Swing length of each arm over its length.
        horizon: Duration of the first fit, s.
    """

    window: tuple[int, int]
    inner: int
    pivot: list[float]
    arm_lengths: list[float]
    angles: list[float]
    rates: list[float]
    arm_rates: torch.Tensor
    gravity: float
    mass_ratio: float
    swing_ratios: list[float]
    horizon: float


def _guess(evidence: Evidence) -> _Guess:
    settings, dt = evidence.settings.double_pendulum, evidence.dt
    indices, times, positions = evidence.samples(settings.min_samples)
    bobs = [positions[:, 2 * k : 2 * k + 2] for k in range(2)]
    circles = [fit_circle(bob) for bob in bobs]
    pairs = zip(bobs, circles, strict=True)
    errors = [float(np.std(np.linalg.norm(bob - center, axis=1)) / radius) for bob, (center, radius) in pairs]
    inner = int(np.argmin(errors))
    if errors[inner] > settings.max_circle_error:
        raise UnsuitableError("neither of the two objects stays on a circle")
    pivot, inner_length = circles[inner]
    lengths = np.linalg.norm(bobs[1 - inner] - bobs[inner], axis=1)
    if float(np.std(lengths)) > settings.max_length_change * float(lengths.mean()):
        raise UnsuitableError("the two objects do not keep their distance")
    arms = (bobs[inner] - pivot, bobs[1 - inner] - bobs[inner])
    angles = np.stack([np.unwrap(np.arctan2(*arm.T)) for arm in arms], 1)
    outer_length, count = float(lengths.mean()), min(5, len(times))
    rates = [float(np.polyfit(times[:count] - times[0], angle[:count], 1)[0]) for angle in angles.T]
    omega, mass_ratio, swing_ratios = estimate_dynamics(times, angles[:, 0], angles[:, 1], outer_length / inner_length)
    return _Guess(
        (int(indices[0]), int(indices[-1]) + 1), inner, pivot.tolist(), [inner_length, outer_length],
        angles[0].tolist(), rates, _arm_rates(times, angles, dt, settings.rate_samples), omega * inner_length,
        mass_ratio, swing_ratios, informative_duration(times, positions),
    )  # fmt: skip


def estimate_dynamics(
    times: Samples, inner_angle: Samples, outer_angle: Samples, rho: float
) -> tuple[float, float, list[float]]:
    """Estimate gravity over the length of the inner arm, 1/s², the mass ratio and the swing ratios, from accelerations.

    With point masses 1 and r at fractions e and f of their arms, ρ the outer arm over the inner one l, ω = gravity / l,
    B = r / (e² + r) and h = (e + r) / (e² + r), the equations of motion are linear in B f, f, h ω and ω: with
    d = a − b, a″ + B f ρ (b″ cos d + b′² sin d) + h ω sin a = 0 and a″ cos d − a′² sin d + f ρ b″ + ω sin b = 0.

    Args:
        times: Times of the samples, s.
        inner_angle: Angle a of the inner arm from straight down, rad.
        outer_angle: Angle b of the outer arm from straight down, rad.
        rho: Length of the outer arm over that of the inner one.
    """
    a, a_rate, a_acceleration = local_derivatives(times, inner_angle)
    b, b_rate, b_acceleration = local_derivatives(times, outer_angle)
    cos, sin = np.cos(a - b), np.sin(a - b)
    inner_basis = np.stack([rho * (cos * b_acceleration + sin * b_rate**2), np.sin(a)], 1)
    outer_basis = np.stack([rho * b_acceleration, np.sin(b)], 1)
    coupling, restoring = robust_lstsq(inner_basis, -a_acceleration[:, None])[:, 0]
    outer_ratio, omega = robust_lstsq(outer_basis, -(cos * a_acceleration - sin * a_rate**2)[:, None])[:, 0]
    omega = max(float(omega), 1.0)
    outer_ratio = min(max(float(outer_ratio), 0.2), 2.0)
    mass_fraction, h = min(max(coupling / outer_ratio, 0.02), 0.9), max(restoring / omega, 0.0)
    h = max(h, mass_fraction + 0.05)
    inertia = (1 - mass_fraction) / (h - mass_fraction) ** 2  # e² + r
    return omega, mass_fraction * inertia, [min(max((h - mass_fraction) * inertia, 0.2), 2.0), outer_ratio]


def _arm_rates(times: np.ndarray, angles: np.ndarray, dt: float, samples: int) -> torch.Tensor:
    """Return the rates of both arms and the cosine between them in the middle of each step, (steps, 3)."""
    rows = []
    for middle in times[0] + dt * (np.arange(math.ceil((times[-1] - times[0]) / dt)) + 0.5):
        window = np.argsort(np.abs(times - middle))[:samples]
        powers = np.vander(times[window] - middle, 3, increasing=True)
        angle, rate, _ = np.linalg.lstsq(powers, angles[window], rcond=None)[0]
        rows.append([*rate, math.cos(angle[0] - angle[1])])
    return torch.tensor(rows, dtype=torch.float64)


def _model(evidence: Evidence, guess: _Guess, joint_friction: bool, swing_ratios: list[float] | None) -> MotionModel:
    """Return the model of light arms; with `swing_ratios`, of arms with masses; with `joint_friction`, of such joints.

    The motion of two hinged bodies in a plane depends on four parameters, one of them gravity: a mass at the outer
    hinge acts in the same way on either arm, so that not all masses and moments of inertia matter. Point masses r of
    the outer and 1 of the inner arm, each at its arm's swing length, have just these four.
    """
    settings, dt = evidence.settings.double_pendulum, evidence.dt
    substeps = max(1, math.ceil(dt * settings.steps_per_second))
    engine = articulated.chain([1.0, 1.0], dt=dt, substeps=substeps, integrator="runge_kutta_4")
    unknowns = _unknowns(evidence, guess, settings)
    if joint_friction:
        unknowns.append(Unknown("joint_damping", [1e-4, 1e-4], low=0.0, unit="1/s"))
    if swing_ratios is not None:
        unknowns.append(Unknown("swing_ratios", swing_ratios, low=0.0))

    def observe(sampled: SampledState) -> torch.Tensor:
        values, q = sampled.values, sampled.state.q
        angles = torch.stack([q[:, 0], q[:, 0] + q[:, 1]], 1) - values["roll"][:, None]
        arms = values["arm_lengths"][..., None] * torch.stack([angles.sin(), angles.cos()], 2)
        inner_along, inner_across, outer_along = values["center_shifts"][..., None].unbind(1)
        inner = values["pivot"] + (1 + inner_along) * arms[:, 0] + inner_across * arms[:, 1]
        depth = 1 + values["depth_offset"][:, None]
        outer = values["pivot"] + values["outer_shift"] + depth * (arms[:, 0] + (1 + outer_along) * arms[:, 1])
        return torch.cat([inner, outer] if guess.inner == 0 else [outer, inner], 1)

    starts: dict[str, object] = {
        "gravity": guess.gravity * torch.tensor([1.0, 1.0, 1.0, 0.7, 1.4], dtype=torch.float64),
        "mass_ratio": guess.mass_ratio * torch.tensor([1.0, 0.5, 2.0, 1.0, 1.0], dtype=torch.float64),
    }
    return MotionModel(
        "double_pendulum", engine, unknowns, partial(_setup, guess.arm_rates, settings.point_inertia), observe,
        _parameters, _UNITS, *guess.window, starts, horizon=guess.horizon, scale=_scale, bounds=_BOUNDS,
        meanings={"mass_ratio": "outer over inner", "length_1": "inner", "length_2": "outer"},
    )  # fmt: skip


def _unknowns(evidence: Evidence, guess: _Guess, settings: DoublePendulumSettings) -> list[Unknown]:
    inner_length = guess.arm_lengths[0]
    return [
        Unknown("gravity", guess.gravity, low=0.0, unit="px/s²"),
        Unknown("mass_ratio", guess.mass_ratio, low=0.0),
        Unknown("arm_lengths", guess.arm_lengths, low=0.0, unit="px"),
        Unknown("pivot", guess.pivot, scale=0.01 * inner_length, unit="px"),
        evidence.view.roll_unknown(),
        Unknown("angles", guess.angles, scale=0.3, unit="rad"),
        Unknown("angular_velocities", guess.rates, scale=1.0, unit="rad/s"),
        Unknown("air_damping", 0.01, low=0.0, unit="1/s"),
        # The outer arm swings in front of the inner one, so it appears larger and shifted.
        Unknown("depth_offset", 0.0, scale=0.01, std=settings.depth_std),
        Unknown("outer_shift", [0.0, 0.0], scale=0.01 * inner_length, std=settings.depth_std * inner_length, unit="px"),
        # Arms shift the observed centers of their bobs: the inner bob along either arm, and the outer one along its.
        Unknown("center_shifts", [0.0, 0.0, 0.0], scale=0.01, std=settings.shift_std),
    ]


def _setup(arm_rates: torch.Tensor, point_inertia: float, values: Values) -> Setup:
    """Return the chain's properties, in pixels, with an inner mass of one, and the air's torques as controls.

    Air pulls at each bob with a force against its velocity, proportional to that and to its mass. It is weak, and the
    tracks determine the arms' rates well, so it is a given torque. With bobs at s₁, s₂ of their arms and the outer
    hinge at a₁ it is, about each bob's own hinge,

        −c (m₁ s₁² ω₁ + m₂ a₁ (a₁ ω₁ + s₂ ω₂ cos)),   −c m₂ s₂ (s₂ ω₂ + a₁ ω₁ cos)
    """
    arm_lengths, ratio = values["arm_lengths"], values["mass_ratio"]
    zero = torch.zeros_like(ratio)
    mass = torch.stack([torch.ones_like(ratio), ratio], 1)
    swing = arm_lengths * values["swing_ratios"] if "swing_ratios" in values else arm_lengths
    inertia = (mass * swing**2 * point_inertia)[..., None, None] * torch.eye(3, dtype=arm_lengths.dtype)
    centers = torch.stack([torch.stack([zero, zero, -arm], 1) for arm in swing.unbind(1)], 1)
    hinges = torch.stack([torch.zeros_like(centers[:, 0]), torch.stack([zero, zero, -arm_lengths[:, 0]], 1)], 1)
    leaves = {"mass": mass, "center_of_mass": centers, "inertia": inertia, "position": hinges}
    leaves["gravity"] = torch.stack([zero, zero, -values["gravity"]], 1)
    if "joint_damping" in values:
        leaves["joint_damping"] = values["joint_damping"] * mass * swing**2
    # Joint coordinates are relative to the parent arm.
    q, v = (torch.cat([arm[:, :1], arm.diff(dim=1)], 1) for arm in (values["angles"], values["angular_velocities"]))
    inner_rate, outer_rate, cosine = arm_rates.to(arm_lengths).unbind(1)
    (inner_swing, outer_swing), hinge = (arm[:, None] for arm in swing.unbind(1)), arm_lengths[:, :1]
    outer = ratio[:, None] * outer_swing * (outer_swing * outer_rate + hinge * inner_rate * cosine)
    inner = (inner_swing**2 + ratio[:, None] * hinge**2) * inner_rate
    inner = inner + ratio[:, None] * hinge * outer_swing * outer_rate * cosine
    # The outer hinge's torque acts on the inner arm as well.
    torques = -values["air_damping"][:, None, None] * torch.stack([inner + outer, outer], 2)
    return Setup(State(q, v), leaves, torques)


def _scale(values: Values, known_values: KnownTensors) -> torch.Tensor | None:
    """Return the scale, pixels a meter, known or by gravity."""
    if "scale" in known_values:
        return known_values["scale"]
    return values["gravity"] / known_values["gravity"] if "gravity" in known_values else None


def _parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
    """Return lengths by gravity or a scale, the mass ratio, and the damping by air and by each joint.

    For arms with masses: the length of the simple pendulum that swings as each does alone, the inner one with what it
    carries at the outer hinge, and the ratio of the point masses that would move like them.
    """
    scale = _scale(values, known_values)
    parameters: ParameterValues = {"mass_ratio": values["mass_ratio"], "damping": values["air_damping"]}
    if "scale" in known_values:
        parameters["gravity"] = values["gravity"] / known_values["scale"]
    for index in range(2):
        arm_length = values["arm_lengths"][:, index]
        parameters[f"length_{index + 1}"] = "needs gravity or scale" if scale is None else arm_length / scale
        if "swing_ratios" in values:
            swing = arm_length * values["swing_ratios"][:, index]
            parameters[f"swing_length_{index + 1}"] = "needs gravity or scale" if scale is None else swing / scale
        parameters[f"damping_{index + 1}"] = "only the air is observed to slow it"
        if "joint_damping" in values:
            parameters[f"damping_{index + 1}"] = values["joint_damping"][:, index]
    return parameters
