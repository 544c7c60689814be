"""Separation of random pairs of convex shapes against an oracle (`convex_oracle`).

    python benchmarks/convex_pairs.py [--pairs 100000] [--first 0] [--record out/convex_pairs.jsonl]

Hulls, boxes, cylinders, capsules, ellipsoids and planes, each kind of pair equally often. Half of the poses are random.
The others are nearly degenerate: parallel faces and edges, exactly or up to 1e-12 to 1e-3 rad, corners above corners,
plates and needles, and shapes that touch or nearly do, from 1e-12 m to 1 cm apart or penetrating. The package's
separation is the least of all rows of the pair that `engine.contacts` lists. A line of JSON is added to the record for
each batch; batches that are in it already are not compared again.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jsonargparse import auto_cli
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "experiments")]
from convex_oracle import Posed, penetration, separation, separation_along, share_a_point
from result_cache import cached_results

from physvision import State
from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Placed, Plane, Shape
from physvision.physics import articulated

TOLERANCE = 1e-7  # m, of a separation; shapes are about 0.5 m
FAR = 0.05  # m, beyond which bounding spheres may be compared instead
LP_TOLERANCE = 1e-5  # m, of what linear programming takes for equal
BATCH = 50  # poses of two shapes
DOUBLE = torch.float64
Random = np.random.Generator


def random_shape(kind: str, rng: Random) -> Shape:
    """Return a shape of about 0.3 m; one in five is a plate or a needle."""
    size = rng.uniform(0.1, 0.5, 3)
    if rng.random() < 0.2:
        size = size * rng.permutation([0.05, 1.0, rng.choice([0.05, 1.0])])
    a, b, c = (float(x) for x in size)
    match kind:
        case "box":
            return Box((a, b, c))
        case "cylinder":
            return Cylinder(a / 2, b)
        case "capsule":
            return Capsule(a / 2, b)
        case "ellipsoid":
            return Ellipsoid((a / 2, b / 2, c / 2))
        case "plane":
            return Plane()
    points = rng.normal(size=(int(rng.integers(5, 16)), 3)) * size / 2
    if rng.random() < 0.3:  # prisms, which have parallel faces
        points = np.concatenate([points * [1, 1, 0] + [0, 0, c / 2], points * [1, 1, 0] - [0, 0, c / 2]])
    points = points[ConvexHull(points).vertices]
    return Hull(tuple((float(x), float(y), float(z)) for x, y, z in points))


KINDS = [
    pair
    for pair in combinations_with_replacement(("hull", "box", "cylinder", "capsule", "ellipsoid", "plane"), 2)
    if pair != ("plane", "plane")
]


def pose(first: Shape, second: Shape, rng: Random) -> tuple[Posed, Posed]:
    """Return both shapes near each other; half of the poses are nearly degenerate."""
    rotations = Rotation.random(2, rng)
    special = rng.random() < 0.5
    if special:
        quarters = Rotation.from_euler("xyz", rng.integers(0, 4, 3) * np.pi / 2)
        spin = Rotation.from_rotvec([0, 0, rng.choice([0.0, 0.3, np.pi / 4])])
        tilt = Rotation.from_rotvec(rng.normal(size=3) * rng.choice([0.0, 1e-12, 1e-9, 1e-6, 1e-3]))
        rotations = Rotation.concatenate([rotations[1] * tilt * spin * quarters, rotations[1]])
    turn = rotations.as_matrix()
    offset = rng.normal(size=3) * 0.3
    if special and rng.random() < 0.5:
        offset = turn[1] @ (np.eye(3)[rng.integers(3)] * rng.uniform(0.05, 0.4))
    a, b = Posed(first, turn[0], offset), Posed(second, turn[1], np.zeros(3))
    corners = (a.corners, b.corners)
    if special and corners[0] is not None and corners[1] is not None and rng.random() < 0.3:
        corner = [points[rng.integers(len(points))] for points in corners]
        a = Posed(first, turn[0], offset + corner[1] - corner[0])
    if rng.random() < 0.6 and not isinstance(second, Plane):
        normal = a.origin / max(np.linalg.norm(a.origin), 1e-9)
        for _ in range(2):  # along the direction in which they are farthest apart, of some
            some = normal + 0.3 * rng.normal(size=(30, 3))
            some = np.vstack([normal, b.rotation.T, -b.rotation.T, some])
            some = some / np.linalg.norm(some, axis=1, keepdims=True)
            values = separation_along(a, b, some)
            normal = some[values.argmax()]
            target = rng.choice([-1, 1]) * 10 ** rng.uniform(-12, -2)
            a = Posed(first, turn[0], a.origin + (target - values.max()) * normal)
    elif isinstance(second, Plane):
        target = rng.choice([-1, 1]) * 10 ** rng.uniform(-12, -1)
        value = separation(a, b, rng)
        a = Posed(first, turn[0], a.origin + (target - value) * turn[1, :, 2])
    return a, b


def measured(pairs: list[tuple[Posed, Posed]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the package's separations of poses of the same two shapes, m, and its normals."""
    free = [
        articulated.Body(name, None, [articulated.Joint("free")], 1.0, (0, 0, 0), (0.01,) * 3, shapes=[Placed(shape)])
        for name, shape in zip("ab", (pairs[0][0].shape, pairs[0][1].shape), strict=True)
        if not isinstance(shape, Plane)
    ]
    static = [Placed(Plane())] if len(free) == 1 else []
    engine = articulated.tree(free, static_shapes=static, gravity=(0, 0, 0), contact="event")
    rows = []
    for a, b in pairs:
        turn = [posed.rotation for posed in (a, b)]
        place = [posed.origin for posed in (a, b)]
        if static:  # the plane of the world is z = 0
            turn, place = [turn[1].T @ turn[0]], [turn[1].T @ (place[0] - place[1])]
        quaternions = Rotation.from_matrix(np.array(turn[: len(free)])).as_quat()[:, [3, 0, 1, 2]]
        rows.append(np.hstack([np.array(place[: len(free)]), quaternions]).ravel())
    state = State(torch.tensor(np.array(rows)), torch.zeros(len(rows), engine.nv, dtype=DOUBLE))
    listed = engine.contacts(state, max_separation=1e3)
    value = torch.where(listed.present, listed.separation, torch.inf)
    row = value.argmin(1)
    swapped = (listed.first.gather(1, row[:, None]) < listed.second.gather(1, row[:, None]))[:, 0]
    normal = listed.normal[torch.arange(len(rows)), row]
    # Rows of the geometry: a static shape comes first, otherwise the first shape.
    first_is_a = ~swapped if static else swapped
    return value.amin(1).numpy(), torch.where(first_is_a[:, None], normal, -normal).numpy()


class Comparison(NamedTuple):
    """Separation of a pair by the oracle and by the package, and what is wrong with it, if anything."""

    kind: tuple[str, str]
    exact: float
    value: float
    fault: str


def judge(a: Posed, b: Posed, exact: float, value: float) -> str:
    """Return the kind of error of a separation, or an empty string."""
    if not np.isfinite(value):
        return "not finite"
    if exact > FAR:
        # Bounding spheres are a lower bound.
        return "phantom contact" if value <= 0 else "too far" if value > exact + TOLERANCE else ""
    if abs(value - exact) <= TOLERANCE:
        return ""
    if exact > 0:
        return "phantom contact" if value < -TOLERANCE else "distance"
    if value > TOLERANCE:
        return "missed contact"
    return "deeper than the least penetration" if value < exact else "shallower than the least penetration"


def compare(first: int, number: int) -> Iterator[Comparison]:
    """Compare a batch of random poses of the same two shapes."""
    rng = np.random.default_rng([first, number])
    kind = KINDS[number % len(KINDS)]
    shapes = random_shape(kind[0], rng), random_shape(kind[1], rng)
    posed = [pose(*shapes, rng) for _ in range(BATCH)]
    values, normals = measured(posed)
    for (a, b), value, normal in zip(posed, values.tolist(), normals, strict=True):
        exact = separation(a, b, rng)
        if a.is_polytope and b.is_polytope and abs(exact) > LP_TOLERANCE and share_a_point(a, b) != (exact <= 0):
            raise AssertionError(f"quadratic and linear programming disagree: {a} {b} {exact}")
        if exact == 0:
            exact = -penetration(a, b, rng)
        if exact < 0 and not (a.is_polytope and b.is_polytope) and not isinstance(b.shape, Plane):
            # The search among directions of round shapes ends early at times; any direction is a bound.
            exact = max(exact, float(separation_along(a, b, normal)))
        yield Comparison(kind, exact, value, judge(a, b, exact, value))


def row(first: int, number: int) -> dict[str, Any]:
    """Compare a batch, and return its counts and the errors of each kind of fault."""
    results = list(compare(first, number))
    faults: dict[str, list[float]] = defaultdict(list)
    for result in results:
        if result.fault:
            faults[result.fault].append(abs(result.value - result.exact))
    penetrating = sum(result.exact <= 0 for result in results)
    return {"batch": [first, number], "count": len(results), "penetrating": penetrating, "faults": faults}


def main(pairs: int = 100_000, first: int = 0, record: Path = Path("out/convex_pairs.jsonl")) -> None:
    """Print the number of pairs of each kind, and of each kind of error.

    Args:
        pairs: Number of random pairs.
        first: Seed of the batches.
        record: File to which rows are added.
    """
    torch.set_num_threads(1)
    batches = [(first, number) for number in range(-(-pairs // BATCH))]
    rows = cached_results(record, batches, lambda batch: row(*batch), lambda entry: tuple(entry["batch"]))
    counts: dict[tuple[str, str], list[int]] = {kind: [0, 0, 0] for kind in KINDS}
    faults: dict[tuple[tuple[str, str], str], list[float]] = defaultdict(list)
    for (_, number), entry in rows.items():
        kind = KINDS[number % len(KINDS)]
        wrong = sum(len(errors) for errors in entry["faults"].values())
        for index, count in enumerate((entry["count"], entry["penetrating"], wrong)):
            counts[kind][index] += count
        for fault, errors in entry["faults"].items():
            faults[kind, fault] += errors
    print(f"{'pair':<22} {'compared':>9} {'penetrate':>10} {'wrong':>7}")
    for kind, (count, penetrating, wrong) in counts.items():
        print(f"{' and '.join(kind):<22} {count:>9} {penetrating:>10} {wrong:>7}")
    totals = np.array(list(counts.values())).sum(0)
    print(f"{'all':<22} {totals[0]:>9} {totals[1]:>10} {totals[2]:>7}")
    for (kind, fault), errors in sorted(faults.items()):
        print(f"{' and '.join(kind)}: {fault}, {len(errors)}, worst {max(errors):.1e} m")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
