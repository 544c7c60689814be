# ruff: noqa: E501
"""The general pair of convex shapes: gaps against independent searches, motion of points and normals by differences."""

# pyright: reportCallIssue=false, reportInvalidTypeForm=false

from itertools import product

import numpy as np
import pytest
import torch
import warp as wp
from scipy.optimize import linprog, minimize
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Sphere
from physvision.kernels import precision
from physvision.physics.articulated.contact.polytopes import polytope_arrays

pytestmark = pytest.mark.extended
kernels = precision.load("physvision.physics.articulated.kernels", torch.float64, "convex_pairs")
convex, solid, Hulls = (
    kernels.collision.convex.convex_primitive,
    kernels.collision.support_shapes.make_convex_shape,
    kernels.structs.HullModel,
)
flat_corners, flat_point = kernels.collision.manifold.manifold_corners, kernels.collision.manifold.manifold_point
place_on_second = kernels.collision.manifold.point_on_second
cores_backward, gap_pull = (
    kernels.collision.closest_points_adjoint.closest_points_backward,
    kernels.collision.closest_points_adjoint.core_separation_backward,
)
vec3, mat33 = kernels.precision.vec3, kernels.precision.mat33
APART = 1.0  # m, of slots without a point


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 1})
def shape_forms(
    kind: wp.array(dtype=wp.int32), bound: wp.array(dtype=wp.float64), first_vertex: wp.array(dtype=wp.int32), first_face: wp.array(dtype=wp.int32),
    vertex: wp.array(dtype=vec3), neighbor_start: wp.array(dtype=wp.int32), neighbor: wp.array(dtype=wp.int32), normals: wp.array(dtype=vec3), loop_start: wp.array(dtype=wp.int32), loop: wp.array(dtype=wp.int32),
    shape: wp.array2d(dtype=wp.int32), turn: wp.array2d(dtype=mat33), origin: wp.array2d(dtype=vec3), size: wp.array2d(dtype=vec3),
    slot: wp.array(dtype=wp.int32), bar: wp.array2d(dtype=vec3), form: wp.array2d(dtype=wp.int32), gap: wp.array(dtype=wp.float64),
    points: wp.array2d(dtype=vec3), pulls: wp.array2d(dtype=vec3), radius: wp.array2d(dtype=wp.float64),
):  # fmt: skip
    i = wp.tid()
    j = shape[i, 0]
    k = shape[i, 1]
    a = solid(
        kind[j],
        turn[i, 0],
        origin[i, 0],
        size[i, 0],
        bound[j],
        first_vertex[j],
        first_vertex[j + 1] - first_vertex[j],
        first_face[j],
        first_face[j + 1] - first_face[j],
    )
    b = solid(
        kind[k],
        turn[i, 1],
        origin[i, 1],
        size[i, 1],
        bound[k],
        first_vertex[k],
        first_vertex[k + 1] - first_vertex[k],
        first_face[k],
        first_face[k + 1] - first_face[k],
    )
    hulls = Hulls()
    hulls.vertex = vertex
    hulls.neighbor_start = neighbor_start
    hulls.neighbor = neighbor
    hulls.face_normal = normals
    hulls.loop_start = loop_start
    hulls.loop = loop
    near = convex(a, b, hulls)
    if slot[i] > 0:
        numbers = flat_corners(a, b, hulls, near.normal, near.separation, place_on_second(near))
        near = flat_point(a, b, hulls, near.normal, numbers[slot[i] - 1])
    form[i, 0] = near.form
    form[i, 1] = near.is_swapped
    gap[i] = near.separation
    points[i, 0] = near.first_point
    points[i, 1] = near.second_point
    points[i, 2] = near.normal
    points[i, 3] = near.first_size_derivative
    points[i, 4] = near.second_size_derivative
    points[i, 5] = near.first_radius_derivative
    points[i, 6] = near.second_radius_derivative
    radius[i, 0] = near.first_radius
    radius[i, 1] = near.second_radius
    pair = cores_backward(near, bar[i, 0], bar[i, 1])
    for part in range(2):
        if part == 1:
            pair = gap_pull(near, wp.float64(1.0))
        pulls[i, 8 * part + 0] = pair.first
        pulls[i, 8 * part + 1] = pair.first_rotation
        pulls[i, 8 * part + 2] = pair.first_direction_rotation
        pulls[i, 8 * part + 3] = pair.first_direction
        pulls[i, 8 * part + 4] = pair.second
        pulls[i, 8 * part + 5] = pair.second_rotation
        pulls[i, 8 * part + 6] = pair.second_direction_rotation
        pulls[i, 8 * part + 7] = pair.second_direction


class Found:
    """What the kernel tells of pairs (shapes by number), one row each; the shapes may be given as their table."""

    def __init__(self, shapes, pairs, turn, origin, size, slot=0, bar=None):
        count, result = len(pairs), shapes if isinstance(shapes, dict) else polytope_arrays(shapes)
        entry = {(3, 3): mat33, (3,): vec3}

        def given(value, dtype):
            return wp.array(np.ascontiguousarray(value), dtype=dtype, device="cpu")

        tables = [
            given(result["shapes.kind"], wp.int32), given(result["shapes.bounding_radius"], wp.float64), given(result["shapes.first_vertex"], wp.int32),
            given(result["shapes.first_face"], wp.int32), given(result["hulls.vertex"], vec3),
            given(result["hulls.neighbor_start"], wp.int32), given(result["hulls.neighbor"], wp.int32), given(result["hulls.face_normal"], vec3),
            given(result["hulls.loop_start"], wp.int32), given(result["hulls.loop"], wp.int32), given(np.asarray(pairs, np.int32), wp.int32),
        ]  # fmt: skip
        bar = np.zeros((count, 2, 3)) if bar is None else bar
        positions = [given(item, entry[item.shape[2:]]) for item in (turn, origin, size)]
        positions += [given(np.broadcast_to(np.int32(slot), count), wp.int32), given(bar, vec3)]
        out = [
            wp.zeros((count, 2), dtype=wp.int32, device="cpu"), wp.zeros(count, dtype=wp.float64, device="cpu"),
            *(wp.zeros((count, rows), dtype=vec3, device="cpu") for rows in (7, 16)), wp.zeros((count, 2), dtype=wp.float64, device="cpu"),
        ]  # fmt: skip
        wp.launch(shape_forms, dim=count, inputs=[*tables, *positions, *out], device="cpu")
        self.form, self.gap, points, self.pulls, self.radius = [item.numpy() for item in out]
        self.first, self.second, self.normal, *_ = np.moveaxis(points, 1, 0)
        self.fraction, self.rim = points[:, 3:5], points[:, 5:7]


def random_hull(rng, corners=9):
    points = rng.normal(size=(corners, 3)) * rng.uniform(0.1, 0.25, 3)
    return Hull(tuple(map(tuple, points[ConvexHull(points).vertices].tolist())))


def random_shape(kind, rng):
    return {
        "sphere": lambda: Sphere(rng.uniform(0.1, 0.3)),
        "capsule": lambda: Capsule(rng.uniform(0.05, 0.2), rng.uniform(0.2, 0.8)),
        "box": lambda: Box(tuple(rng.uniform(0.2, 0.8, 3))),
        "cylinder": lambda: Cylinder(rng.uniform(0.1, 0.3), rng.uniform(0.2, 0.8)),
        "ellipsoid": lambda: Ellipsoid(tuple(rng.uniform(0.1, 0.4, 3))),
        "hull": lambda: random_hull(rng),
        "pebble": lambda: random_hull(rng, 200),
    }[kind]()


def offset(shape, turn, origin, normals):
    """How far a shape reaches along normals, (count,); it shares nothing with the kernels."""
    local, offset = normals @ turn, normals @ origin
    match shape:
        case Sphere():
            return offset + shape.radius * np.linalg.norm(local, axis=-1)
        case Capsule():
            return offset + shape.radius * np.linalg.norm(local, axis=-1) + shape.length / 2 * np.abs(local[..., 2])
        case Box():
            return offset + np.abs(local) @ np.array(shape.size) / 2
        case Cylinder():
            return (
                offset
                + shape.radius * np.hypot(local[..., 0], local[..., 1])
                + shape.length / 2 * np.abs(local[..., 2])
            )
        case Ellipsoid():
            return offset + np.linalg.norm(local * np.array(shape.radii), axis=-1)
        case Hull():
            return offset + (local @ np.array(shape.vertices).T).max(-1)


def separation(first_shape, second_shape, turn, origin, normals):
    return -offset(first_shape, turn[0], origin[0], -normals) - offset(second_shape, turn[1], origin[1], normals)


def farthest_apart(first_shape, second_shape, turn, origin, rng, spread=4000):
    """The largest distance along any normal: the best of many random ones, then steps along and across that shrink."""
    normals = rng.normal(size=(spread, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    values = separation(first_shape, second_shape, turn, origin, normals)
    best = normals[values.argmax()]
    for _ in range(3):
        result = minimize(
            lambda x, n=best: -separation(first_shape, second_shape, turn, origin, (n + x) / np.linalg.norm(n + x)), np.zeros(3),
            method="Nelder-Mead", options={"xatol": 1e-12, "fatol": 1e-14, "maxiter": 2000},
        )  # fmt: skip
        best = (best + result.x) / np.linalg.norm(best + result.x)
    return float(separation(first_shape, second_shape, turn, origin, best))


KINDS = [
    ("sphere", "hull"), ("capsule", "hull"), ("box", "hull"), ("cylinder", "hull"), ("ellipsoid", "hull"), ("hull", "hull"),
    ("box", "cylinder"), ("cylinder", "cylinder"), ("cylinder", "ellipsoid"), ("box", "box"), ("box", "capsule"), ("box", "ellipsoid"),
    ("pebble", "hull"), ("ellipsoid", "ellipsoid"), ("capsule", "ellipsoid"),
]  # fmt: skip


@pytest.mark.parametrize(("first_shape", "second_shape"), KINDS)
def test_gaps_are_those_of_an_independent_search(first_shape, second_shape):
    """Far apart, near, touching and overlapping; along the normal both shapes end where it is said."""
    rng, all_shapes, pairs, turns, origins, best = np.random.default_rng(1), [], [], [], [], []
    for k in range(16):
        shapes = random_shape(first_shape, rng), random_shape(second_shape, rng)
        turn, origin = (
            Rotation.random(2, rng).as_matrix(),
            np.array([rng.normal(size=3) * (0.1 + 0.03 * k), np.zeros(3)]),
        )
        pairs.append((2 * k, 2 * k + 1))
        all_shapes += shapes
        turns.append(turn)
        origins.append(origin)
        best.append(farthest_apart(*shapes, turn, origin, rng))
    sizes = np.array([[all_shapes[j].sizes for j in pair] for pair in pairs])
    turns, origins, best = np.array(turns), np.array(origins), np.array(best)
    result = Found(all_shapes, pairs, turns, origins, sizes)
    near = best < 0.1  # beyond, balls about the shapes may be compared, which are nearer
    assert (result.gap[~near] <= best[~near] + 1e-6).all()
    assert near.sum() > 5
    for k in np.flatnonzero(near):
        shapes = [all_shapes[j] for j in pairs[k]]
        record = separation(*shapes, turns[k], origins[k], result.normal[k][None])[0]
        assert result.gap[k] == pytest.approx(record, abs=1e-9)
        ends = (
            result.first[k] - result.radius[k, 0] * result.normal[k],
            result.second[k] + result.radius[k, 1] * result.normal[k],
        )
        assert -offset(shapes[0], turns[k][0], origins[k][0], -result.normal[k]) == pytest.approx(
            ends[0] @ result.normal[k], abs=1e-9
        )
        assert offset(shapes[1], turns[k][1], origins[k][1], result.normal[k]) == pytest.approx(
            ends[1] @ result.normal[k], abs=1e-9
        )
        np.testing.assert_allclose(ends[0] - ends[1], result.gap[k] * result.normal[k], atol=1e-9)
        if best[k] > 0:
            assert result.gap[k] == pytest.approx(best[k], abs=1e-6)
            assert result.gap[k] >= best[k] - 1e-9
        else:  # a way out that no other is shorter than by much
            assert result.gap[k] >= 1.6 * best[k] - 1e-3


def test_boxes_overlap_where_linear_programming_finds_a_point_in_both():
    rng = np.random.default_rng(2)
    counts = [0, 0]
    for _ in range(600):
        single, reference = random_shape("box", rng), random_shape("box", rng)
        turn, origin = Rotation.random(2, rng).as_matrix(), np.array([rng.normal(size=3) * 0.3, [0, 0, 0]])
        size = np.array([single.sizes, reference.sizes])
        gap = Found([single, reference], [(0, 1)], turn[None], origin[None], size[None]).gap[0]
        halves = [np.array(shape.sizes) / 2 for shape in (single, reference)]
        matrix = np.concatenate([np.concatenate([t.T, -t.T]) for t in turn])
        limits = np.concatenate(
            [np.concatenate([h + t.T @ o, h - t.T @ o]) for h, t, o in zip(halves, turn, origin, strict=True)]
        )
        # The largest s by which all faces can be moved inwards and still hold a point: above zero where they overlap.
        depth = -linprog([0, 0, 0, -1], np.c_[matrix, np.ones(12)], limits, bounds=[(None, None)] * 4).fun
        if abs(depth) > 1e-6 and depth < 0.015:
            counts[depth > 0] += 1
            assert (gap < 0) == (depth > 0)
    assert min(counts) > 15


def motion_along(base, turn, origin, size, shift, twist, grow, part):
    """How point and normal (weighted by the bars), or the gap (part 1), move with the shapes by the adjoints."""
    record = np.zeros(len(base.gap))
    for side, at in ((0, base.first), (1, base.second)):
        pull, turn_bar, tilt, upright = np.moveaxis(base.pulls[:, 8 * part + 4 * side : 8 * part + 4 * side + 4], 1, 0)
        own, carried = turn[:, side], at - origin[:, side]
        record += (pull * (shift[:, side] + np.cross(twist[:, side], carried))).sum(1)
        record += (turn_bar * twist[:, side]).sum(1)
        local, across, standing = (np.einsum("kji,kj->ki", own, entry) for entry in (pull, tilt, upright))
        record += (base.fraction[:, side] * local * grow[:, side]).sum(1)
        record += (base.rim[:, side] * pull).sum(1) * grow[:, side, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            record -= np.nan_to_num(across * standing / size[:, side] * grow[:, side]).sum(1)
        if part == 1:
            record -= np.where(base.radius[:, side] > 0, grow[:, side, 0], 0)
    return record


FORMS = {4: "lines", 6: "points", 7: "line and point", 8: "point and face"}


@pytest.mark.parametrize(("first_shape", "second_shape"), KINDS)
def test_points_and_normals_move_as_their_adjoints_say(first_shape, second_shape):
    """Shifts and turns of both shapes, and their sizes, against central differences; every form that the pair has."""
    rng, h, count, observed = np.random.default_rng(2), 1e-6, 80, set()
    shapes = [random_shape(kind, rng) for _ in range(count) for kind in (first_shape, second_shape)]
    pairs = [(2 * k, 2 * k + 1) for k in range(count)]
    turn = Rotation.random(2 * count, rng).as_matrix().reshape(count, 2, 3, 3)
    origin = np.zeros((count, 2, 3))
    direction = rng.normal(size=(count, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    size = np.array([shape.sizes for shape in shapes]).reshape(count, 2, 3)
    if first_shape == "cylinder" or second_shape == "cylinder":  # edges across the side of a cylinder are seldom
        turn[::2, 0] = np.linalg.qr(turn[::2, 0] * [1, 1, 0.3])[0]
    low, high, shapes = np.zeros(count), np.full(count, 3.0), polytope_arrays(shapes)
    target = rng.choice([-2e-3, 0.03], count)  # what the shapes are apart
    for _ in range(40):
        midpoint = (low + high) / 2
        origin[:, 0] = midpoint[:, None] * direction
        below = Found(shapes, pairs, turn, origin, size).gap < target
        low, high = np.where(below, midpoint, low), np.where(below, high, midpoint)
    bar = rng.normal(size=(count, 2, 3))
    base = Found(shapes, pairs, turn, origin, size, bar=bar)
    shift, twist = rng.normal(size=(2, count, 2, 3))
    grow = rng.normal(size=(count, 2, 3)) * size

    def end(sign):
        turned = Rotation.from_rotvec((sign * h * twist).reshape(-1, 3)).as_matrix().reshape(turn.shape) @ turn
        return Found(shapes, pairs, turned, origin + sign * h * shift, size + sign * h * grow)

    up, down = end(1), end(-1)
    same = (up.form == base.form).all(1) & (down.form == base.form).all(1)
    curve = (up.normal - 2 * base.normal + down.normal) / h  # large where a corner took over from another
    smooth = same & (np.abs(curve).max(1) < 1e-2) & (np.abs(up.gap - 2 * base.gap + down.gap) < 1e-3 * h)
    rate = [(up.first - down.first) / (2 * h), (up.normal - down.normal) / (2 * h)]
    rate_gap = (up.gap - down.gap) / (2 * h)
    assert smooth.sum() > 0.7 * count
    for part in range(2):
        record = motion_along(base, turn, origin, size, shift, twist, grow, part)
        exact = (rate[0] * bar[:, 0]).sum(1) + (rate[1] * bar[:, 1]).sum(1) if part == 0 else rate_gap
        scale = 1 + np.abs(record) + np.abs(base.pulls).sum((1, 2))
        assert (np.where(smooth, np.abs(record - exact) / scale, 0) < 2e-6).all()
    for form, turned in base.form[smooth]:
        observed.add((FORMS[int(form)], bool(turned)))
    # Two ellipsoids have one form only, an ellipsoid and an end or the axis of a capsule two.
    minimum = {("ellipsoid", "ellipsoid"): 1, ("capsule", "ellipsoid"): 2}
    assert len(observed) >= minimum.get((first_shape, second_shape), 3)


def box_hull(size):
    """The corners of a box."""
    return Hull(tuple(tuple((0.5 * np.array(size) * sign).tolist()) for sign in product((-1, 1), repeat=3)))


@pytest.mark.parametrize("tilt", [0.0, 1e-7, 0.03])
@pytest.mark.parametrize(
    ("upper", "lower"), [("hull", "hull"), ("hull", "box"), ("box", "hull"), ("cylinder", "box"), ("cylinder", "hull")]
)
def test_flat_sides_touch_where_they_have_corners_in_common(upper, lower, tilt):
    """A square turned by 0.3 on a larger one that it overhangs: its corners within, and crossings of the borders."""
    result = {"hull": box_hull, "box": Box, "cylinder": lambda size: Cylinder(size[0] / 2, size[2])}
    shapes = result[upper]((0.4, 0.4, 0.2)), result[lower]((1.0, 1.0, 0.2))
    turn = np.array([Rotation.from_euler("zx", [0.3, tilt]).as_matrix(), np.eye(3)])
    origin = np.array([[0.45, 0.1, 0.2 + 0.2 * tilt], [0.0, 0.0, 0.0]])
    size = np.array([shape.sizes for shape in shapes])
    results = Found(
        shapes,
        [(0, 1)] * 5,
        np.tile(turn, (5, 1, 1, 1)),
        np.tile(origin, (5, 1, 1)),
        np.tile(size, (5, 1, 1)),
        np.arange(5),
    )
    there = results.gap < 0.5 * APART
    place = results.first - (results.radius[:, :1] + results.gap[:, None]) * results.normal
    place = place[there]
    assert len(place) >= 4
    assert (np.abs(place[:, 0]) < 0.5 + 1e-9).all()
    np.testing.assert_allclose(place[:, 2], 0.1, atol=1e-9 + 0.1 * tilt)
    # Of sides that lie on each other all points have the normal of the second.
    tolerance = 1e-15 if tilt < 1e-5 else 1.5 * tilt
    np.testing.assert_allclose(results.normal[there], np.tile([0, 0, 1.0], (len(place), 1)), atol=tolerance)
    # They hold the middle of what is common to both sides.
    hull = ConvexHull(place[:, :2])
    assert hull.volume > (0.06 if upper == "cylinder" else 0.1)
    assert (hull.equations @ [0.38, 0.1, 1.0] < 0).all()


@pytest.mark.parametrize(("upper", "lower"), [("box", "box"), ("hull", "hull"), ("box", "hull")])
@pytest.mark.parametrize("is_upper_first", [True, False])
def test_points_of_flat_contact_move_with_both_shapes_and_normals_with_the_second(upper, lower, is_upper_first):
    """A square on a larger one that it overhangs, tilted by 2e-7, along random motions; corners and crossings."""
    rng, h, count, make = np.random.default_rng(3), 1e-6, 120, {"hull": box_hull, "box": Box}
    order = slice(None, None, 1 if is_upper_first else -1)
    shapes = [make[upper]((0.4, 0.4, 0.2)), make[lower]((1.0, 1.0, 0.2))][order]
    turn = [Rotation.from_euler("zx", [0.3, 2e-7]).as_matrix(), np.eye(3)][order]
    origin = [[0.45, 0.1, 0.2 + 1e-5], [0.0, 0.0, 0.0]][order]
    pairs, slot = [(0, 1)] * count, np.arange(count) % 4 + 1
    turn, origin = (np.tile(np.array(items)[None], (count, 1, 1, 1)[: 1 + np.ndim(items)]) for items in (turn, origin))
    size = np.tile(np.array([shape.sizes for shape in shapes])[None], (count, 1, 1))
    bar, shift, twist = (rng.normal(size=(count, 2, 3)) for _ in range(3))
    grow = rng.normal(size=(count, 2, 3)) * size
    base = Found(shapes, pairs, turn, origin, size, slot, bar)

    def end(sign):
        turned = Rotation.from_rotvec((sign * h * twist).reshape(-1, 3)).as_matrix().reshape(turn.shape) @ turn
        return Found(shapes, pairs, turned, origin + sign * h * shift, size + sign * h * grow, slot)

    up, down = end(1), end(-1)
    there = (base.gap < 0.5 * APART) & (np.abs(up.first - down.first).max(1) < 1e-4)
    assert there.sum() > 0.25 * count  # in others the closest points take the place of a slot
    assert set(base.form[there, 0]) == {4, 8}
    rate = ((up.first - down.first) * bar[:, 0] + (up.normal - down.normal) * bar[:, 1]).sum(1) / (2 * h)
    for part, exact in enumerate((rate, (up.gap - down.gap) / (2 * h))):
        record = motion_along(base, turn, origin, size, shift, twist, grow, part)
        np.testing.assert_allclose(record[there], exact[there], atol=1e-4)
