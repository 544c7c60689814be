"""Gradients through contact by events on random scenes of all pairs of shapes, against central differences.

    python benchmarks/contact_gradients_random.py [--scenes 500] [--first 0] [--record FILE.jsonl]
    python benchmarks/contact_gradients_random.py --kinds "[collision]" --shapes "[box]" --record boxes.jsonl

Spheres, capsules, boxes, cylinders, ellipsoids and hulls that collide, fall on a plane or on each other, piles of four
to six bodies, and robots and arms, 20 to 200 steps of 10 ms with and without friction and restitution. Of each scene
the derivative of a random sum of the final state is taken along a random unit direction of each input and property.
It is comparable if the differences at 1e-4, 1e-5 and 1e-6 agree to 1e-6, relative to the derivative or to one where
that is smaller, and every pair of shapes has the same sequence of contact modes (numbers of points that stick and that
slide) in the motions on both sides as in the scene's own; when within the grid of steps a mode changes does not matter,
for an event has its own time. Differences are central, of fourth order: in a pile, which is sensitive to its start,
those of second order differ from the derivative at 1e-4 by more than the tolerance, since the motion is curved. How
many are comparable by these is counted, too. Derivatives that are not comparable are counted by the reason: a motion
that fails, other modes, or differences that disagree alone. Those of the last two reasons are compared with differences
at 1e-7 and 1e-8 instead, where the motions on both sides have the modes of the scene's own, and counted as confirmed
within 1e-5.
Scenes in which flat sides lie on each other are counted apart (`flat_contact`): three or more contacts of one pair of
shapes within a micrometer. Lines are added to the record; scenes that are in it already are not compared again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jsonargparse import auto_cli

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from contact_gradients import LEAVES, Scene, arm, collision, direction, free, placed, robot
from result_cache import cached_results

from physvision import State
from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Placed, Plane, Shape, Sphere
from physvision.physics import articulated

DOUBLE = torch.float64
STEPS = (1e-4, 1e-5, 1e-6)  # of the differences
SHIFTS = (2.0, 1.0, -1.0, -2.0)  # in steps
SECOND_ORDER = np.array([0.0, 0.5, -0.5, 0.0])  # weights of the ends at these shifts
FOURTH_ORDER = np.array([-1.0, 8.0, -8.0, 1.0]) / 12
FINE_STEPS = (1e-7, 1e-8)  # where those disagree
AGREEMENT = 1e-6
BAR = 1e-5
FLAT_DISTANCE = 1e-6  # m
SLIDING = 1 - 1e-6  # share of the largest friction above which a contact slides
OBSTACLES = ("failure", "modes", "differences")
SHAPES = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "hull")
Random = np.random.Generator


def shape_of(kind: str, rng: Random) -> Shape:
    """Return a shape of about 0.2 m."""
    a, b, c = (float(x) for x in rng.uniform(0.1, 0.2, 3))
    match kind:
        case "sphere":
            return Sphere(a)
        case "capsule":
            return Capsule(a / 2, 2 * b)
        case "box":
            return Box((2 * a, 2 * b, 2 * c))
        case "cylinder":
            return Cylinder(a, 2 * b)
        case "ellipsoid":
            return Ellipsoid((a, b, c))
    points = rng.normal(size=(10, 3))
    points *= np.array([a, b, c]) / np.linalg.norm(points, axis=1, keepdims=True)
    return Hull(tuple((float(x), float(y), float(z)) for x, y, z in points))


def random_shape(rng: Random, shapes: Sequence[str] = SHAPES) -> Shape:
    """Return a shape of any of these kinds."""
    return shape_of(str(rng.choice(shapes)), rng)


def drop(rng: Random, shapes: Sequence[str]) -> tuple:
    """Return a body that falls on a plane, or on a shape that stands still."""
    support = str(rng.choice(("plane", *shapes)))
    static = Plane()
    height = float(rng.uniform(0.3, 0.6))
    if support != "plane":
        static = shape_of(support, rng)
        height += 0.35
    body = free("body", random_shape(rng, shapes), rng)
    return [body], [Placed(static)], (0, 0, -10), *placed(rng, [[*rng.normal(size=2) * 0.05, height]])


def pile(rng: Random, shapes: Sequence[str]) -> tuple:
    """Return four to six bodies that fall on a plane and on each other."""
    count = int(rng.integers(4, 7))
    places = [[0.15 * rng.normal(), 0.15 * rng.normal(), 0.35 + 0.55 * k] for k in range(count)]
    bodies = [free(f"{k}", random_shape(rng, shapes), rng) for k in range(count)]
    return bodies, [Placed(Plane())], (0, 0, -10), *placed(rng, places, 0.5)


KINDS: dict[str, Callable[[Random, Sequence[str]], tuple]] = {
    "collision": lambda rng, shapes: collision(rng, partial(random_shape, shapes=shapes)),
    "drop": drop,
    "pile": pile,
    "robot": lambda rng, _shapes: robot(rng),
    "arm": lambda rng, _shapes: arm(rng),
}


def scene(seed: int, kinds: Sequence[str] = (), shapes: Sequence[str] = SHAPES) -> Scene:
    """Return the scene of a seed, drawn again while shapes overlap at the start."""
    rng = np.random.default_rng([seed, 39])
    kinds = kinds or list(KINDS)
    kind = kinds[seed % len(kinds)]
    while True:
        bodies, scenery, gravity, q, v = KINDS[kind](rng, shapes)
        friction = float(rng.choice([0.0, rng.uniform(0.1, 0.4), rng.uniform(0.4, 1.0)]))
        restitution = float(rng.choice([0.0, rng.uniform(0.2, 0.9)]))
        settings = articulated.ContactSettings(friction=friction, restitution=restitution)
        engine = articulated.tree(bodies, static_shapes=scenery, gravity=gravity, contact=settings)
        start = State(torch.tensor([q], dtype=DOUBLE), torch.tensor([v], dtype=DOUBLE))
        separation = engine.contacts(start, max_separation=0.0).separation
        if separation.numel() == 0 or float(separation.min()) > -1e-9:
            return Scene(kind, engine, start, int(rng.integers(20, 201)))


Values = dict[str, torch.Tensor]
ModeSequences = dict[int, bytes]  # by pair of shapes


def mode_sequences(counts: np.ndarray) -> ModeSequences:
    """Return the successive numbers of points in each mode of every pair that touches, from (steps, pairs, modes)."""
    result = {}
    for pair in np.flatnonzero(counts.any((0, 2))):
        rows = counts[:, pair].astype(np.int8)
        changes = np.flatnonzero((rows[1:] != rows[:-1]).any(1)) + 1
        result[int(pair)] = rows[[0, *changes]].tobytes()
    return result


@dataclass
class Motions:
    """Motions of a scene from given inputs and properties, each of which is (worlds, …)."""

    scene: Scene

    def values(self, rng: torch.Generator) -> Values:
        """Return the inputs and properties of the scene's own motion."""
        start, engine = self.scene.start, self.scene.engine
        control = 0.3 * torch.randn(1, self.scene.steps, engine.nu, generator=rng, dtype=DOUBLE)
        values = {"q": start.q, "v": start.v, "u": control}
        return values | {name: getattr(engine.properties, name)[None] for name in LEAVES}

    def rollout(self, values: Values):
        """Return the motion from these inputs and properties."""
        leaves = {name: values[name] for name in LEAVES}
        return self.scene.engine.rollout(State(values["q"], values["v"]), self.scene.steps, values["u"], leaves)

    def modes(self, values: Values, path) -> tuple[list[ModeSequences], bool]:
        """Return each world's contact modes, and whether flat sides touch in any."""
        engine, steps, shapes = self.scene.engine, self.scene.steps, len(self.scene.engine.geometry)
        sequences, is_flat = [], False
        # One world after the other: a large list of contacts takes a lot of memory.
        for world in range(path.q.shape[0]):
            state = State(path.q[world, :-1], path.v[world, :-1])
            own = {name: value[world] for name, value in values.items()}
            leaves = {name: own[name].expand(steps, *own[name].shape) for name in LEAVES}
            listed = engine.contacts(state, own["u"], leaves, max_separation=1e9)
            normal = (listed.impulse * listed.normal).sum(-1)
            along = (listed.impulse - normal[..., None] * listed.normal).norm(dim=-1)
            friction = leaves["friction"]
            bound = 0.5 * (friction.gather(1, listed.first) + friction.gather(1, listed.second)) * normal
            modes = (normal > 0).long() + ((normal > 0) & (along >= SLIDING * bound)).long()
            # The list is sorted by separation, so that modes are counted for each pair of shapes.
            pair = (listed.first * shapes + listed.second).clamp(min=0)
            counts = torch.zeros(steps, 3 * shapes**2, dtype=torch.long)
            counts.scatter_add_(1, 3 * pair + modes, (modes > 0).long())
            near = (listed.separation < FLAT_DISTANCE) & (normal > 0)
            touching = torch.zeros(steps, shapes**2, dtype=torch.long).scatter_add_(1, pair, near.long())
            sequences.append(mode_sequences(counts.reshape(steps, shapes**2, 3).numpy()))
            is_flat = is_flat or bool((touching >= 3).any())
        return sequences, is_flat


class Result(NamedTuple):
    """Comparison of one derivative; the error is relative to the derivative, or to one where that is smaller.

    Attributes:
        name: Input or property.
        obstacle: Reason why it is not comparable; empty if it is.
        error: Error of the gradient.
        has_wrong_sign: If true, gradient and differences have different signs.
        agrees_in_second_order: If true, it is comparable by differences of second order, too.
        fine_error: Error against the nearer of the differences at 1e-7 and 1e-8; infinite if they are not computed.
    """

    name: str
    obstacle: str
    error: float
    has_wrong_sign: bool
    agrees_in_second_order: bool
    fine_error: float = float("inf")

    @property
    def is_comparable(self) -> bool:
        """If true, nothing prevents the comparison."""
        return not self.obstacle

    @property
    def is_confirmed(self) -> bool:
        """If true, the gradient is within the bar of the differences, at smaller steps if it is not comparable."""
        return (self.error if self.is_comparable else self.fine_error) <= BAR


@dataclass
class Comparison:
    """Comparison of a scene's derivatives.

    Attributes:
        is_flat: If true, flat sides lie on each other at some time.
        is_clean: If true, the status names nothing without derivative.
        results: Derivatives along each input and property.
    """

    is_flat: bool
    is_clean: bool
    results: list[Result] = field(default_factory=list)


def compare_slopes(
    name: str, gradient: float, ends_at: Callable[[Sequence[float]], tuple[np.ndarray, np.ndarray]]
) -> Result:
    """Compare a derivative with the central differences at some steps."""
    ends, has_same_modes = ends_at(STEPS)
    slopes, plain_slopes = (ends @ weights / np.array(STEPS) for weights in (FOURTH_ORDER, SECOND_ORDER))
    size = max(1.0, abs(slopes[1]))
    obstacle, fine_error = "", float("inf")
    if np.isnan(slopes).any():
        obstacle = "failure"
    elif not has_same_modes.all():
        obstacle = "modes"
    elif np.ptp(slopes) > AGREEMENT * size:
        obstacle = "differences"
    if obstacle in ("modes", "differences"):
        ends, has_same_modes = ends_at(FINE_STEPS)
        fine = ends @ SECOND_ORDER / np.array(FINE_STEPS)
        errors = np.abs(gradient - fine) / np.maximum(1.0, np.abs(fine))
        fine_error = float(np.nanmin(np.where(has_same_modes, errors, np.inf)))
    error = float(np.min(np.abs(gradient - slopes[1:]))) / size
    has_wrong_sign = gradient * slopes[1] < 0 and min(abs(gradient), abs(slopes[1])) > BAR
    agrees = not obstacle and bool(np.ptp(plain_slopes) <= AGREEMENT * size)
    return Result(name, obstacle, error, bool(has_wrong_sign), agrees, fine_error)


def compare(of: Scene, seed: int) -> Comparison | None:
    """Compare the derivatives of a scene; None if its own motion fails."""
    rng = torch.Generator().manual_seed(seed)
    motions = Motions(of)
    values = motions.values(rng)
    weights = torch.randn(2, of.engine.nq, generator=rng, dtype=DOUBLE)
    along = {name: direction(name, value, rng) for name, value in values.items()}
    along = {name: value / value.norm().clamp(min=1.0) for name, value in along.items()}

    def final(path) -> torch.Tensor:
        return path.q[:, -1] @ weights[0] + path.v[:, -1] @ weights[1, : of.engine.nv]

    variables = {name: value.clone().requires_grad_() for name, value in values.items()}
    path = motions.rollout(variables)
    status = path.status
    assert status is not None
    if not bool(status.converged.all()):
        return None
    gradients = dict(zip(values, torch.autograd.grad(final(path).sum(), list(variables.values())), strict=True))
    own, is_flat = motions.modes(values, path)
    is_clean = int(status.first_grazing_step) < 0 and int(status.fallback_steps) == 0
    result = Comparison(is_flat, is_clean and int(status.regularized_impacts) == 0)
    for name in values:

        def ends_at(steps: Sequence[float], name: str = name) -> tuple[np.ndarray, np.ndarray]:
            """Return the ends of shifted motions, NaN after failures, and whether all have the motion's own modes."""
            shifts = torch.tensor([shift * h for h in steps for shift in SHIFTS], dtype=DOUBLE)
            moved = {key: value.expand(len(shifts), *value.shape[1:]).clone() for key, value in values.items()}
            moved[name] += shifts.reshape(-1, *[1] * (along[name].dim() - 1)) * along[name]
            sides = motions.rollout(moved)
            ends = torch.where(sides.status.converged, final(sides), torch.nan).reshape(-1, len(SHIFTS))
            same = np.array([modes == own[0] for modes in motions.modes(moved, sides)[0]]).reshape(-1, len(SHIFTS))
            return ends.numpy(), np.asarray(same.all(1))

        gradient = float((gradients[name] * along[name]).sum())
        result.results.append(compare_slopes(name, gradient, ends_at))
    return result


def line(seed: int, kinds: Sequence[str] = (), shapes: Sequence[str] = SHAPES) -> dict:
    """Return the comparison of a scene as a line of the record."""
    of = scene(seed, kinds, shapes)
    comparison = compare(of, seed)
    entry = {"scene": seed, "kind": of.kind, "steps": of.steps, "failed": comparison is None}
    if comparison is not None:
        results = [result._asdict() for result in comparison.results]
        entry |= {"flat": comparison.is_flat, "clean": comparison.is_clean, "results": results}
    return entry


def print_table(lines: list[dict]) -> float:
    """Print the shares of comparable and of right derivatives by kind; returns the latter of all but flat contact."""
    # By kind: scenes, those with flat contact, derivatives of the others, comparable, within the bar, comparable in
    # second order, wrong sign, those that are not comparable by the reason, and those of the last two reasons that
    # smaller steps confirm.
    counts = {kind: np.zeros(11, int) for kind in (*KINDS, "flat contact")}
    errors = []
    for entry in lines:
        if entry["failed"]:
            continue
        counts[entry["kind"]][:2] += [1, entry["flat"]]
        count = counts["flat contact" if entry["flat"] else entry["kind"]]
        for result in (Result(**result) for result in entry["results"]):
            is_wrong = result.is_comparable and result.error > BAR
            count[2:] += [
                1,
                result.is_comparable,
                result.is_comparable and not is_wrong,
                result.agrees_in_second_order,
                result.is_comparable and result.has_wrong_sign and entry["clean"],
                *(result.obstacle == obstacle for obstacle in OBSTACLES),
                not result.is_comparable and result.is_confirmed,
            ]
            errors += [result.error] * (result.is_comparable and not entry["flat"])
            if is_wrong:
                kind = f"{entry['kind']}{', flat' * entry['flat']}{', named' * (not entry['clean'])}"
                print(f"seed {entry['scene']}, {kind}, {entry['steps']} steps: {result.name} off by {result.error:.1e}")
            if not result.is_confirmed and not is_wrong and not entry["flat"]:
                print(f"seed {entry['scene']}, {entry['kind']}: {result.name} is not confirmed ({result.obstacle})")
    heads = ("scenes", "flat", "derivatives", "comparable", "within 1e-5", "2nd order", "wrong sign", *OBSTACLES)
    print(f"{'':<14}" + "".join(f"{head:>12}" for head in (*heads, "confirmed")))
    counts["all but flat"] = np.sum([counts[kind] for kind in KINDS], axis=0)
    for kind, (number, flat, derivatives, comparable, within, plain, *others) in counts.items():
        columns = f"{comparable / max(derivatives, 1):>12.1%}{within / max(comparable, 1):>12.2%}"
        columns += f"{plain / max(derivatives, 1):>12.1%}"
        columns += "".join(f"{count:>12}" for count in others)
        print(f"{kind:<14}{number:>12}{flat:>12}{derivatives:>12}{columns}")
    print(f"median error {np.median(errors):.1e}; {sum(entry['failed'] for entry in lines)} motions failed")
    return float(counts["all but flat"][4] / counts["all but flat"][3])


def main(
    scenes: int = 500,
    first: int = 0,
    record: Path = Path("out/contact_gradients_random.jsonl"),
    kinds: Sequence[str] = (),
    shapes: Sequence[str] = SHAPES,
) -> float:
    """Compare scenes that the record does not have yet, and print the table; returns the share within 1e-5.

    Args:
        scenes: Number of random scenes.
        first: Seed of the first scene.
        record: Path of the file to which lines are added; one for each choice of kinds and shapes.
        kinds: Kinds of scenes; all if none is given.
        shapes: Kinds of shapes of collisions, drops and piles.
    """
    torch.set_num_threads(1)
    compute = partial(line, kinds=kinds, shapes=shapes)
    lines = cached_results(record, range(first, first + scenes), compute, lambda entry: entry["scene"])
    return print_table(list(lines.values()))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
