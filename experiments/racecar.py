"""Estimate friction from where a car stops: the racecar of "Efficient Differentiable Simulation …" (2021).

The car starts at 1 m/s on a road of friction μ; from its place after 1 s μ is found, the first guess being 0.002. With
its brakes on it slides all the time, x = 1 − μ g / 2, so the place 0.8 m tells μ = 0.04077 (the paper's figures, 0.21
for 0.8 m, contradict each other). With free wheels, which do not turn at the start, it slides until they roll; the
place that a hidden μ of 0.015 leads to is to be reached.

    python experiments/racecar.py [--seeds 5] [--out out]
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import matplotlib as mpl
import torch
from claims import Claim, write_claims
from evolution import evolve
from hard_replay import replay
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import State, Trajectory
from physvision.physics.articulated import scenes
from physvision.report import render_video

mpl.use("Agg")
from matplotlib import pyplot as plt

DT, STEPS, FIRST = 1e-3, 1000, 0.002
GRAVITY, MASS, WHEEL_INERTIA, WHEEL_RADIUS = 9.81, 5.89, 4.1226e-4, 0.05
PLACE, BAR = 1e-3, 10  # m; iterations
BRAKE = 1e4  # N m s/rad at every wheel: they turn by less than 1e-5 rad
LONGEST = 1.5  # largest change of log μ in an iteration
ENGINE = scenes.load("racecar", DT)


@dataclass(frozen=True)
class Variant:
    """Brakes on or off, the place to be reached, the friction that leads there, and how close μ must come."""

    name: str
    brakes: bool
    truth: float
    fraction: float

    @property
    def target(self) -> float:
        """Position of the car with the true friction after 1 s, by the closed form, m."""
        return closed_form(self.truth, self.brakes)


def closed_form(friction: float, brakes: bool) -> float:
    """Position of the car after 1 s, m: it slides, decelerated by μ g, until rims and road move alike, then rolls."""
    slowing = friction * GRAVITY
    # A quarter of the weight presses on each wheel and turns it.
    spinning = 0.0 if brakes else friction * MASS * GRAVITY / 4 * WHEEL_RADIUS**2 / WHEEL_INERTIA
    sliding = min(1.0, 1 / (slowing + spinning)) if slowing else 1.0
    return sliding - slowing * sliding**2 / 2 + (1 - sliding) * (1 - slowing * sliding)


VARIANTS = (
    Variant("(a) brakes on", True, 0.4 / GRAVITY, 0.01),
    Variant("(b) free wheels", False, 0.015, 0.05),
)


def driven(friction: Tensor, brakes: bool) -> Trajectory:
    """The motions with these frictions, (batch,)."""
    start = ENGINE.initial_state(len(friction), torch.float64)
    velocity = start.v.clone()
    velocity[:, 0] = 1.0
    properties = {"friction": friction.unsqueeze(1).expand(-1, len(ENGINE.geometry))}
    if brakes:
        damping = dict(ENGINE.properties.items())["joint_damping"].clone()
        damping[[row for row, name in enumerate(ENGINE.rows["nv"]) if "wheel" in name]] = BRAKE
        properties["joint_damping"] = damping
    return ENGINE.rollout(State(start.q, velocity), STEPS, properties=properties)


def place(friction: Tensor, brakes: bool) -> Tensor:
    """Distance that the cars have covered, (batch,), m."""
    return driven(friction, brakes).final.q[:, 0]


@dataclass(frozen=True)
class Course:
    """The friction of each rollout and where the car then was, and seconds in all."""

    friction: list[float]
    places: list[float]
    seconds: float


def estimated(variant: Variant, method: str, max_iterations: int = BAR) -> Course:
    """μ by gradients of the place: Newton's steps for a square (Gauss–Newton) or Adam, both in log μ."""
    logarithm = torch.tensor([math.log(FIRST)], dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([logarithm], lr=1.0, betas=(0.5, 0.9))
    frictions, places, began = [], [], time.perf_counter()
    for _ in range(max_iterations + 1):
        reached = place(logarithm.exp(), variant.brakes)
        (slope,) = torch.autograd.grad(reached.sum(), logarithm)
        off = reached.detach() - variant.target
        frictions.append(float(logarithm.detach().exp()))
        places.append(float(reached.detach()))
        if abs(float(off)) < PLACE / 10:
            break
        if method == "Gauss–Newton":
            with torch.no_grad():
                logarithm -= (off / slope).clamp(-LONGEST, LONGEST)
        else:
            logarithm.grad = off * slope
            adam.step()
    return Course(frictions, places, time.perf_counter() - began)


def golden_section(variant: Variant, max_iterations: int = 100) -> Course:
    """μ by comparing losses alone, between 0.0002 and 0.2."""
    fraction = (math.sqrt(5) - 1) / 2
    frictions, places, began = [], [], time.perf_counter()

    def loss(logarithm: float) -> float:
        with torch.no_grad():
            reached = float(place(torch.tensor([math.exp(logarithm)], dtype=torch.float64), variant.brakes))
        frictions.append(math.exp(logarithm))
        places.append(reached)
        return (reached - variant.target) ** 2

    low, high = math.log(FIRST / 10), math.log(FIRST * 100)
    left, right = high - fraction * (high - low), low + fraction * (high - low)
    at_left, at_right = loss(left), loss(right)
    while min(at_left, at_right) > (PLACE / 10) ** 2 and len(places) < max_iterations:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - fraction * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + fraction * (high - low)
            at_right = loss(right)
    return Course(frictions, places, time.perf_counter() - began)


def landscape(variant: Variant, points: int = 60) -> tuple[Tensor, Tensor]:
    """Frictions, and the loss at each, m²."""
    frictions = torch.logspace(-3, -0.7, points, dtype=torch.float64)
    with torch.no_grad():
        return frictions, (place(frictions, variant.brakes) - variant.target).square()


def draw(courses: dict[str, Course], points: int, file: Path) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for variant, axis in zip(VARIANTS, axes, strict=True):
        axis.loglog(*landscape(variant, points), color="0.7", label="loss")
        course = courses[variant.name]
        losses = [max((x - variant.target) ** 2, 1e-12) for x in course.places]
        axis.loglog(course.friction, losses, "o-", color="#3a7cbf", linewidth=0.8, markersize=4, label="Gauss–Newton")
        axis.axvline(variant.truth, color="#d65f4d", linestyle=":", label="true friction")
        axis.set(xlabel="friction", ylabel="squared error of the place, m²", title=variant.name)
        axis.legend(frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def describe(variant: Variant, name: str, friction: float, reached: float, count: str, seconds: float) -> None:
    error = friction / variant.truth - 1
    print(f"{variant.name:<17}{name:<16}{count:>18}{seconds:>10.2f}{friction:>12.6f}{error:>10.2%}", end="")
    print(f"{1e3 * (reached - variant.target):>12.3f}")


def main(seeds: int = 5, points: int = 60, out: Path = Path("out"), filmed: bool = True) -> bool:
    """Estimate the friction of both variants.

    Args:
        seeds: Number of searches by CMA-ES, 0 for none; seeds 0, 1, 2 …
        points: Points of the landscape.
        out: folder of the figure and the film.
        filmed: If true, write a film.

    Returns:
        Whether the bars are met: place and friction, in at most 10 iterations.
    """
    torch.set_num_threads(1)
    place(torch.tensor([FIRST], dtype=torch.float64), False)  # kernels are loaded
    print(f"{'':<17}{'':<16}{'rollouts':>18}{'seconds':>10}{'friction':>12}{'error':>10}{'place, mm':>12}")
    met, courses, claims = True, {}, []
    for variant in VARIANTS:
        for method in ("Gauss–Newton", "Adam"):
            course = estimated(variant, method)
            describe(variant, method, course.friction[-1], course.places[-1], str(len(course.places)), course.seconds)
            if method == "Gauss–Newton":
                courses[variant.name] = course
                met &= abs(course.places[-1] - variant.target) < PLACE and len(course.places) - 1 <= BAR
                met &= abs(course.friction[-1] / variant.truth - 1) < variant.fraction
        course = golden_section(variant)
        describe(
            variant, "golden section", course.friction[-1], course.places[-1], str(len(course.places)), course.seconds
        )

        def judge(logarithms: Tensor, variant: Variant = variant) -> tuple[Tensor, Tensor]:
            off = place(logarithms[:, 0].exp(), variant.brakes) - variant.target
            return off.square(), off.abs() < PLACE / 10

        # One number has no covariance to adapt: the second, without effect, is there because cma asks for two.
        start = torch.tensor([math.log(FIRST), 0.0], dtype=torch.float64)
        results = [evolve(judge, start, 1.0, seed, 2000) for seed in range(seeds)]
        if results:
            counts = [entry.evaluations for entry in results]
            friction = results[0].values[:1].exp()
            needed = len(courses[variant.name].places)
            quantity = f"rollouts until a car's friction is known, {variant.name[4:]}"
            claims.append(Claim(quantity, needed, "rollouts", None, (), median(counts), "CMA-ES, as here"))
            count = f"{median(counts):.0f} ({min(counts)} to {max(counts)})"
            with torch.no_grad():
                reached = float(place(friction, variant.brakes))
            describe(variant, "CMA-ES", float(friction), reached, count, median(entry.seconds for entry in results))
        truth = torch.tensor([variant.truth], dtype=torch.float64)
        motion = driven(truth, variant.brakes)
        again = in_mujoco(variant, motion)
        print(
            f"{'':<17}at the true friction {1e3 * (float(motion.final.q[0, 0]) - variant.target):.4f} mm from the "
            f"closed form; {1e3 * float(again.final.q[0, 0] - motion.final.q[0, 0]):.2f} mm off in MuJoCo"
        )
    print(write_claims(__file__, claims))
    print(f"place within 1 mm, friction within 1 % and 5 %, at most {BAR} iterations: {'met' if met else 'MISSED'}")
    draw(courses, points, out / "racecar.png")
    print(f"figure: {out / 'racecar.png'}")
    if filmed:
        motion = driven(torch.tensor([VARIANTS[0].truth], dtype=torch.float64), True)
        print(f"film: {render_video(ENGINE, motion, out / 'racecar.mp4')}")
    return met


def in_mujoco(variant: Variant, motion: Trajectory) -> Trajectory:
    """The motion with the true friction in MuJoCo."""

    def adapt(model) -> None:
        model.pair_friction[:, :2] = variant.truth
        if variant.brakes:
            wheels = [joint for joint in range(model.njnt) if "wheel" in model.joint(joint).name]
            model.dof_damping[model.jnt_dofadr[wheels]] = BRAKE

    return replay("racecar", motion.state(0), STEPS, DT, adapt=adapt)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
