# ruff: noqa: E501
"""Closest points of pairs of shapes: gaps against searches, motion of points and normals against differences."""

# pyright: reportInvalidTypeForm=false

import numpy as np
import pytest
import torch
import warp as wp
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from physvision.kernels import precision
from physvision.physics.articulated.contact.features import pair_features

kernels = precision.load("physvision.physics.articulated.kernels", torch.float64)
closest, cores_backward, gap_pull = (
    kernels.collision.closest_points.closest_points,
    kernels.collision.closest_points_adjoint.closest_points_backward,
    kernels.collision.closest_points_adjoint.core_separation_backward,
)
vec3, mat33 = kernels.precision.vec3, kernels.precision.mat33
FORMS = {
    0: "points",
    1: "face",
    2: "point and line",
    3: "line and point",
    4: "lines",
    5: "rim",
    6: "smooth",
    7: "line, smooth",
    8: "smooth, face",
}


@wp.kernel(enable_backward=False, module="unique")
def shape_forms(
    kind: wp.array(dtype=wp.int32), turn: wp.array2d(dtype=mat33), origin: wp.array2d(dtype=vec3), size: wp.array2d(dtype=vec3),
    feature: wp.array(dtype=vec3), bar: wp.array2d(dtype=vec3), form: wp.array(dtype=wp.int32), gap: wp.array(dtype=wp.float64),
    points: wp.array2d(dtype=vec3), pulls: wp.array2d(dtype=vec3), numbers: wp.array2d(dtype=wp.float64),
):  # fmt: skip
    i = wp.tid()
    near = closest(kind[i], turn[i, 0], origin[i, 0], size[i, 0], feature[i], turn[i, 1], origin[i, 1], size[i, 1])
    form[i] = near.form
    gap[i] = near.separation
    points[i, 0] = near.first_point
    points[i, 1] = near.second_point
    points[i, 2] = near.normal
    points[i, 3] = near.first_size_derivative
    points[i, 4] = near.second_size_derivative
    points[i, 5] = near.second_radius_derivative
    pair = cores_backward(near, bar[i, 0], bar[i, 1])
    for k in range(2):
        if k == 1:
            pair = gap_pull(near, wp.float64(1.0))
        pulls[i, 4 * k + 0] = pair.first
        pulls[i, 4 * k + 1] = pair.first_rotation
        pulls[i, 4 * k + 2] = pair.second
        pulls[i, 4 * k + 3] = pair.second_rotation
        pulls[i, 8 + 2 * k] = pair.first_direction_rotation
        pulls[i, 9 + 2 * k] = pair.second_direction_rotation
        numbers[i, k] = pair.rim_radius
    numbers[i, 2] = near.first_radius
    numbers[i, 3] = near.second_radius


def evaluated(kind, turn, origin, size, feature, bar):
    """All arrays have one row a pair, then one a shape."""
    count = len(kind)
    entry = {(3, 3): mat33, (3,): vec3}
    given = [wp.array(np.asarray(kind, np.int32), dtype=wp.int32, device="cpu")]
    given += [wp.array(np.ascontiguousarray(x), dtype=entry[x.shape[2:]], device="cpu") for x in (turn, origin, size)]
    given += [wp.array(np.ascontiguousarray(x), dtype=vec3, device="cpu") for x in (feature, bar)]
    result = [
        wp.zeros(count, dtype=wp.int32, device="cpu"), wp.zeros(count, dtype=wp.float64, device="cpu"),
        *(wp.zeros((count, rows), dtype=vec3, device="cpu") for rows in (6, 12)), wp.zeros((count, 4), dtype=wp.float64, device="cpu"),
    ]  # fmt: skip
    wp.launch(shape_forms, dim=count, inputs=[*given, *result], device="cpu")
    return [item.numpy() for item in result]


def random_shape(kind, rng):
    return {
        "sphere": lambda: Sphere(rng.uniform(0.1, 0.3)),
        "capsule": lambda: Capsule(rng.uniform(0.05, 0.2), rng.uniform(0.2, 0.8)),
        "box": lambda: Box(tuple(rng.uniform(0.2, 0.8, 3))),
        "cylinder": lambda: Cylinder(rng.uniform(0.1, 0.3), rng.uniform(0.2, 0.8)),
        "ellipsoid": lambda: Ellipsoid(tuple(rng.uniform(0.1, 0.4, 3))),
        "plane": Plane,
    }[kind]()


def rows(first_shape, second_shape, turn, origin, rng):
    """All features of a pair of shapes as arrays for `evaluated`."""
    result = pair_features(first_shape, second_shape) or []
    orders = [[1, 0] if row[1] else [0, 1] for row in result]
    sizes = np.array([first_shape.sizes, second_shape.sizes])
    return (
        [row[0] for row in result], np.array([turn[o] for o in orders]), np.array([origin[o] for o in orders]),
        np.array([sizes[o] for o in orders]), np.array([row[2] for row in result]), rng.normal(size=(len(result), 2, 3)),
    )  # fmt: skip


PAIRS = [
    ("sphere", "plane"), ("capsule", "plane"), ("box", "plane"), ("cylinder", "plane"), ("sphere", "sphere"),
    ("sphere", "capsule"), ("capsule", "capsule"), ("sphere", "box"),
    ("ellipsoid", "plane"), ("sphere", "ellipsoid"),
    ("sphere", "cylinder"), ("capsule", "cylinder"),
]  # fmt: skip


@pytest.mark.parametrize(("first_shape", "second_shape"), PAIRS)
def test_points_and_normals_move_as_their_adjoints_say(first_shape, second_shape):
    """Shifts and turns of both shapes, and their sizes, against central differences; every form that the pair has."""
    rng, observed, h = np.random.default_rng(0), set(), 1e-6
    for trial in range({("capsule", "cylinder"): 60, ("capsule", "capsule"): 40}.get((first_shape, second_shape), 12)):
        shapes = random_shape(first_shape, rng), random_shape(second_shape, rng)
        spread = [0.35, 0.1][trial % 2]  # the nearer may have a core inside a cylinder
        turn, origin = Rotation.random(2, rng).as_matrix(), np.array([rng.normal(size=3) * spread, [0, 0, 0]])
        if first_shape == second_shape == "capsule" and trial % 2:  # beside each other
            turn[1] = turn[0] @ Rotation.from_rotvec(0.05 * rng.normal(size=3)).as_matrix()
        base = rows(*shapes, turn, origin, rng)
        form, gap, points, pulls, numbers = evaluated(*base)
        shift, twist = rng.normal(size=(2, len(form), 2, 3))
        grow = rng.normal(size=(len(form), 2, 3)) * base[3]

        def ends(sign, base=base, shift=shift, twist=twist, grow=grow):
            kind, turn, origin, size, feature, bar = base
            moved = Rotation.from_rotvec((sign * h * twist).reshape(-1, 3)).as_matrix().reshape(turn.shape) @ turn
            return evaluated(kind, moved, origin + sign * h * shift, size + sign * h * grow, feature, bar)

        up, down = ends(1), ends(-1)
        # Edges that do not face each other, and pairs that are far behind one another, have no closest points.
        good = (up[0] == form) & (down[0] == form) & (np.abs(gap) < 0.9) & (up[1] < 0.9) & (down[1] < 0.9)
        good &= (np.abs(up[2] - down[2]).max((1, 2)) < 1e-3) & (np.abs(numbers[:, 2] + numbers[:, 3] + gap) > 0.02)
        bar = base[5]
        slopes = (up[2] - down[2])[:, [0, 2]] / (2 * h)
        for k, slope in enumerate([(slopes * bar).sum((1, 2)), (up[1] - down[1]) / (2 * h)]):
            expected = np.zeros(len(form))
            for side in range(2):
                pull, turned = pulls[:, 4 * k + 2 * side], pulls[:, 4 * k + 2 * side + 1]
                whole = np.cross(points[:, side] - base[2][:, side], pull) + turned
                expected += (pull * shift[:, side]).sum(1) + (whole * twist[:, side]).sum(1)
                local = np.einsum("nij,ni->nj", base[1][:, side], pull)
                expected += (local * points[:, 3 + side] * grow[:, side]).sum(1)
                # As the radii of an ellipsoid grow, its normals turn.
                tilt, normal = (
                    np.einsum("nij,ni->nj", base[1][:, side], x) for x in (pulls[:, 8 + 2 * k + side], points[:, 2])
                )
                sizes = np.where(base[3][:, side] > 0, base[3][:, side], 1.0)
                expected -= (tilt * normal / sizes * grow[:, side]).sum(1)
                if k == 1:
                    expected -= np.where(numbers[:, 2 + side] > 0, grow[:, side, 0], 0.0)
            expected += numbers[:, k] * grow[:, 0, 0]
            expected += (points[:, 5] * pulls[:, 4 * k + 2]).sum(1) * grow[:, 1, 0]
            np.testing.assert_allclose(slope[good], expected[good], rtol=2e-5, atol=2e-6)
        observed |= {FORMS[entry] for entry in form[good]}
    target = {
        ("cylinder", "plane"): {"rim"}, ("sphere", "sphere"): {"points"}, ("sphere", "capsule"): {"points", "point and line"},
        ("capsule", "capsule"): {"points", "point and line", "line and point", "lines"},
        ("sphere", "cylinder"): {"point and line", "face", "smooth"},
        ("capsule", "cylinder"): {"point and line", "face", "smooth", "lines", "line, smooth"},
        ("ellipsoid", "plane"): {"smooth, face"}, ("sphere", "ellipsoid"): {"smooth"},
        ("sphere", "box"): {"points", "point and line", "face"},
    }  # fmt: skip
    assert observed >= target.get((first_shape, second_shape), {"face"})


def distance(first_shape, second_shape, turn, origin):
    """By a search over both cores, which are convex."""

    def core(shape):
        bound = {Sphere: [0, 0, 0], Capsule: [0, 0, shape.sizes[2] / 2], Box: np.array(shape.sizes) / 2}[type(shape)]
        return np.asarray(bound, float), 0.0 if isinstance(shape, Box) else shape.sizes[0]

    (half_a, radius_a), (half_b, radius_b) = core(first_shape), core(second_shape)

    def separation(x):
        return np.sum((origin[0] + turn[0] @ x[:3] - origin[1] - turn[1] @ x[3:]) ** 2)

    bounds = [(-half, half) for half in (*half_a, *half_b)]
    result = min(
        minimize(separation, np.zeros(6), bounds=bounds, method=m, tol=1e-15).fun for m in ("L-BFGS-B", "SLSQP")
    )
    return np.sqrt(result) - radius_a - radius_b


@pytest.mark.parametrize(("first_shape", "second_shape"), PAIRS[9:])
def test_gaps_to_round_shapes_are_distances(first_shape, second_shape):
    """By a search for the normal across which two planes that hold the shapes are farthest apart."""
    rng = np.random.default_rng(3)
    counts = [0, 0]
    for _ in range(16):
        shapes = random_shape(first_shape, rng), random_shape(second_shape, rng)
        turn, origin = Rotation.random(2, rng).as_matrix(), np.array([rng.normal(size=3) * 0.45, [0, 0, 0]])
        gap = evaluated(*rows(*shapes, turn, origin, rng))[1].min()

        def minimum(normal, shapes=shapes, turn=turn, origin=origin):
            normal, offset = normal / np.linalg.norm(normal), 0.0
            for k, shape in enumerate(shapes):
                local, size = turn[k].T @ normal, np.array(shape.sizes)
                if isinstance(shape, Ellipsoid):
                    offset += np.linalg.norm(size * local)
                elif isinstance(shape, Box):
                    offset += np.abs(local) @ size / 2
                else:
                    round_part = np.linalg.norm(local[:2]) if isinstance(shape, Cylinder) else 1.0
                    offset += size[0] * round_part + abs(local[2]) * size[2] / 2
            return normal @ (origin[0] - origin[1]) - offset

        starts = [origin[0], *(rng.normal(size=3) + 3 * origin[0] for _ in range(4))]
        # What a capsule holds has an edge where its axis turns: a search without slopes goes on from there.
        results = [minimize(lambda n: -minimum(n), n, method="BFGS").x for n in starts]
        options = {"xatol": 1e-12, "fatol": 1e-14, "maxiter": 4000}
        expected = max(-minimize(lambda n: -minimum(n), n, method="Nelder-Mead", options=options).fun for n in results)
        if expected > -0.02:
            counts[int(expected < 0)] += 1
            assert gap == pytest.approx(expected, abs=1e-7)
    assert counts[0] > 4


@pytest.mark.parametrize(("first_shape", "second_shape"), PAIRS[4:8])
def test_gaps_are_distances(first_shape, second_shape):
    """Of shapes whose cores are apart."""
    rng = np.random.default_rng(1)
    checked = 0
    for _ in range(25):
        shapes = random_shape(first_shape, rng), random_shape(second_shape, rng)
        turn, origin = Rotation.random(2, rng).as_matrix(), np.array([rng.normal(size=3) * 0.5, [0, 0, 0]])
        gap = evaluated(*rows(*shapes, turn, origin, rng))[1].min()
        expected = distance(*shapes, turn, origin)
        if -0.05 < expected < 0.9:
            checked += 1
            assert gap == pytest.approx(expected, abs=1e-5)
    assert checked > 10
