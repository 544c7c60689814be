"""Random pairs of benchmarks/convex_pairs.py against its oracle: linear and quadratic programming, and all features."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from physvision import State
from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Placed
from physvision.physics import articulated
from physvision.physics.articulated.contact.polytopes import polytope_arrays


@pytest.fixture
def pairs(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
    return import_module("convex_pairs")


@pytest.mark.extended
def test_separations_are_those_of_the_oracle(pairs):
    """Of 2,000 random pairs, half of them nearly degenerate, as many penetrate as are separate."""
    results = [result for number in range(40) for result in pairs.compare(1, number)]
    penetrating = np.array([result.exact < 0 for result in results])
    assert 0.2 < penetrating.mean() < 0.8
    faults = [result for result in results if result.fault]
    # Axes of capsules within 1e-3 rad of each other count as parallel.
    parallel = [result for result in faults if result.kind == ("capsule", "capsule")]
    assert all(abs(result.value - result.exact) < 1e-6 for result in parallel)
    assert len(faults) == len(parallel)


def test_parallel_axes_that_penetrate_hold_all_of_both_radii(pairs):
    """A small cylinder inside a capsule, with axes within 1e-6 rad of each other that nearly meet."""
    rng = np.random.default_rng(0)
    for tilt in (0.0, 1e-9, 1e-6, 1e-4):
        turn = Rotation.random(None, rng)
        a = pairs.Posed(
            Cylinder(0.01, 0.02), (turn * Rotation.from_rotvec([tilt, 0, 0])).as_matrix(), turn.apply([1e-9, 0, 0.1])
        )
        values, _ = pairs.measured([(a, pairs.Posed(Capsule(0.14, 0.3), turn.as_matrix(), np.zeros(3)))])
        assert values[0] == pytest.approx(-0.15, abs=1e-6)


def test_capsule_leaves_a_cylinder_the_shortest_way(pairs):
    """Axes at random, crossing and parallel: no way out among many is shorter, and the one told is one."""
    rng = np.random.default_rng(4)
    normals = rng.normal(size=(20000, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    shapes = Cylinder(0.15, 0.3), Capsule(0.05, 0.5)
    posed = []
    for turn in [Rotation.random(None, rng) for _ in range(60)] + [
        Rotation.from_euler("x", a) for a in (0, 1e-9, 1e-4)
    ]:
        for place in (np.zeros(3), turn.as_matrix()[:, 2] * 0.2, rng.normal(size=3) * 0.08):
            posed.append(
                (pairs.Posed(shapes[0], np.eye(3), place), pairs.Posed(shapes[1], turn.as_matrix(), np.zeros(3)))
            )
            quarter = Rotation.from_euler("y", np.pi / 2).as_matrix()
            posed.append(
                (pairs.Posed(shapes[0], quarter, place), pairs.Posed(shapes[1], turn.as_matrix(), np.zeros(3)))
            )
    values, listed = pairs.measured(posed)
    deep = 0
    for (a, b), value, normal in zip(posed, values, listed, strict=True):
        assert pairs.separation_along(a, b, normal) == pytest.approx(value, abs=1e-9)
        assert value >= pairs.separation_along(a, b, normals).max() - 1e-9
        deep += value < -0.05
    assert deep > 200


def test_oracle_knows_boxes_by_their_formula(pairs):
    """Parallel boxes: the distance of their intervals along each axis, or the least overlap."""
    rng = np.random.default_rng(3)
    turn = Rotation.random(None, rng).as_matrix()
    for _ in range(20):
        sizes, offset = rng.uniform(0.2, 0.6, (2, 3)), rng.normal(size=3) * 0.4
        a = pairs.Posed(Box(tuple(sizes[0].tolist())), turn, turn @ offset)
        b = pairs.Posed(Box(tuple(sizes[1].tolist())), turn, np.zeros(3))
        gaps = np.abs(offset) - sizes.sum(0) / 2
        exact = np.linalg.norm(gaps.clip(min=0)) if gaps.max() > 0 else gaps.max()
        assert pairs.separation(a, b, rng) == pytest.approx(exact, abs=1e-12)
        assert pairs.share_a_point(a, b) == (exact < 0)


@pytest.mark.extended
def test_flat_ellipsoids_apart_exert_no_impulse():
    """Two disks one above the other and far to the side: their centers are near, and they are 6 mm apart."""
    bodies = [
        articulated.Body(
            name,
            None,
            [articulated.Joint("free")],
            1.0,
            (0, 0, 0),
            (0.01,) * 3,
            shapes=[Placed(Ellipsoid((0.4, 0.4, 0.012)))],
        )
        for name in "ab"
    ]
    engine = articulated.tree(bodies, dt=0.002, gravity=(0, 0, 0), contact="event")
    q = torch.tensor([[0.0, 0, 0, 1, 0, 0, 0, 0.3, 0, 0.03, 1, 0, 0, 0]], dtype=torch.float64)
    start = State(q, torch.zeros(1, 12, dtype=torch.float64))
    assert float(engine.contacts(start, max_separation=1.0).separation.min()) > 0.005
    assert bool((engine.rollout(start, 1).final.v == 0).all())


def test_faces_of_hulls_are_flat(pairs):
    """No vertex of a hull lies above a face, and those of the face lie in it; Euler counts them."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        arrays = polytope_arrays([pairs.random_shape("hull", rng)])
        vertices, starts = arrays["hulls.vertex"][:-1], arrays["hulls.loop_start"]
        faces = np.split(arrays["hulls.loop"][:-1], starts[1:-1])
        assert len(vertices) - starts[-1] / 2 + len(faces) == 2
        for face, normal in zip(faces, arrays["hulls.face_normal"][:-1], strict=True):
            height = (vertices - vertices[face[0]]) @ normal
            assert height.max() < 2e-6
            assert np.ptp(height[face]) < 2e-6
