"""What makes no sense is refused, or marks its own world."""

# pyright: reportAttributeAccessIssue=false

import numpy as np
import pytest
import torch
from physics.soft.bodies import soft_body

from physvision.core import FileError, InputError, ModelError, State, UnsupportedError
from physvision.physics import soft

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def mesh():
    return soft.rectangle((1.0, 1.0), (2, 2))


@pytest.mark.parametrize(
    ("nodes", "elements", "message"),
    [
        (SQUARE, [[0, 1, 2], [0, 3, 2]], "element 1 .* volume -0.5.*exchange"),
        (np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), [[0, 1, 3], [0, 1, 2]], "flat"),
        (SQUARE, [[0, 1, 2]], "node 3 belongs to no element"),
        (np.vstack([SQUARE, SQUARE[:1]]), [[0, 1, 2], [4, 2, 3]], "0 and 4 are at one place"),
        (np.vstack([SQUARE[:3], [[2.0, 0.5], [3.0, 0.4]]]), [[0, 1, 2], [1, 3, 2], [1, 4, 2]], "more than two"),
        (SQUARE * np.nan, [[0, 1, 2], [0, 2, 3]], "finite"),
        (SQUARE, [[0, 1, 4]], "nodes of 0 to 3"),
        (SQUARE, [[0, 1]], "shape"),
    ],
)
def test_meshes_that_are_no_body_are_refused(nodes, elements, message):
    with pytest.raises(ModelError, match=message):
        soft.Mesh(nodes, np.array(elements))


def test_a_body_with_a_hole_in_it_is_a_body():
    whole = soft.rectangle((3.0, 3.0), (3, 3))
    midpoint = whole.nodes[whole.elements].mean(1)
    ring = whole.elements[(np.abs(midpoint - 1.5) > 0.5).any(1)]
    assert len(soft.Mesh(whole.nodes, ring).surface) == 12 + 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"youngs_modulus": -1.0}, "youngs_modulus: expected numbers above zero"),
        ({"poissons_ratio": 0.5}, "poissons_ratio: expected numbers above −1 and below 0.5.*got 0.5"),
        ({"density": 0.0}, "density"),
        ({"viscous_time": -1.0}, "viscous_time"),
        ({"velocity_decay": -1.0}, "velocity_decay"),
        ({"stiffness": 0.0}, "contact_stiffness"),
    ],
)
def test_materials_that_are_none_are_refused(given, message):
    with pytest.raises(ModelError, match=message):
        soft_body(mesh(), dt=0.01, **({"youngs_modulus": 1e5} | given))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"law": "rubber"}, "law"),
        ({"dt": 0.0}, "dt"),
        ({"kinematic": [9]}, "kinematic"),
        ({"actuated": [1, 1]}, "actuated"),
        ({"regions": [0, 1]}, "regions"),
        ({"youngs_modulus": [1e5, 2e5]}, "expected the material of each element"),
        ({"gravity": (0.0, 0.0, -9.81)}, "gravity"),
        ({"load": np.zeros((3, 2))}, "load"),
        ({"muscles": [soft.Muscle([0], (0.0, 0.0), 1.0)]}, "direction"),
        ({"muscles": 2 * [soft.Muscle([0], (1.0, 0.0), 1.0)]}, "another muscle"),
        ({"grounds": [soft.Ground((0.0,), (0.0, 1.0))]}, "point"),
    ],
)
def test_other_nonsense_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        soft_body(mesh(), **({"dt": 0.01, "youngs_modulus": 1e5} | given))


def test_a_shape_at_rest_must_not_be_inside_out():
    body = soft.SoftBody(mesh(), soft.Material(1e5), dt=0.01)
    with pytest.raises(ModelError, match="rest: expected elements of positive volume"):
        body.checked({"rest": -body.properties.rest * torch.tensor([1.0, -1.0])})


def test_a_world_that_starts_inside_out_is_marked_and_the_other_goes_on():
    body = soft.SoftBody(mesh(), soft.Material(1e5), dt=0.01)
    start = body.initial_state(2, torch.float64)
    q = start.q.clone()
    q[1, 8:10] = 5.0  # the middle node, beyond all others
    with pytest.warns(RuntimeWarning, match="inverted"):
        run = body.rollout(State(q, start.v), 3)
    assert run.status.failed() == [1]
    assert run.status.first_failed_step.tolist() == [-1, 1]
    assert torch.isfinite(run.q[0]).all()
    alone = body.rollout(State(q[:1], start.v[:1]), 3)
    assert torch.equal(alone.q[0], run.q[0])


def test_a_state_that_is_no_number_and_steps_too_long_are_marked():
    body = soft.SoftBody(mesh(), soft.Material(1e5), dt=0.01, integrator="symplectic_euler")
    start = body.initial_state(2, torch.float64)
    v = start.v.clone()
    v[0, 3] = torch.nan
    with pytest.warns(RuntimeWarning, match="1 of 2 worlds failed"):
        assert body.rollout(State(start.q, v), 3).status.failed() == [0]
    long = soft.SoftBody(mesh(), soft.Material(1e5), dt=1.0, integrator="symplectic_euler", kinematic=(0,))
    with pytest.warns(RuntimeWarning, match="Reduce dt"):
        assert long.rollout(long.initial_state(), 200).status.failed() == [0]


def test_meshes_are_read_from_files(tmp_path):
    meshio = pytest.importorskip("meshio")
    for entry in (soft.disc(1.0, 2), soft.box((1.0, 1.0, 1.0), (1, 1, 2))):
        kind = "triangle" if entry.axes == 2 else "tetra"
        turned = entry.elements.copy()
        turned[0, :2] = turned[0, 1::-1]
        nodes = np.vstack([np.full((1, entry.axes), 7.0), entry.nodes])  # one that nobody needs
        path = tmp_path / f"{kind}.vtk"
        meshio.Mesh(np.pad(nodes, ((0, 0), (0, 3 - entry.axes))), [(kind, turned + 1)]).write(path)
        result = soft.read(path)
        np.testing.assert_allclose(result.nodes, entry.nodes)
        np.testing.assert_allclose(result.volumes, entry.volumes)
    lines = tmp_path / "lines.vtk"
    meshio.Mesh(np.zeros((2, 3)), [("line", [[0, 1]])]).write(lines)
    with pytest.raises(ModelError, match="found line"):
        soft.read(lines)
    lines.write_text("nothing")
    with pytest.raises(FileError, match="cannot be read"):
        soft.read(lines)
    with pytest.raises(FileError, match="no file"):
        soft.read(tmp_path / "absent.msh")


def test_a_factor_fills_what_elimination_fills():
    """The pattern holds every entry of a dense factor, and elimination by place fills less than by number."""
    body = soft.SoftBody(soft.rectangle((3.0, 3.0), (8, 8)), soft.Material(1e5), dt=0.01, kinematic=(4,))
    parts = body._compiled.integers
    n = len(parts["node"])
    matrix = np.eye(n) * 100
    for corners in parts["place"][body.mesh.elements]:
        known = corners[corners >= 0]
        matrix[np.ix_(known, known)] += 1.0
    factor = np.linalg.cholesky(matrix)
    stored = np.zeros((n, n), dtype=bool)
    for column in range(n):
        stored[parts["row"][parts["column"][column] : parts["column"][column + 1]], column] = True
    np.testing.assert_array_equal(stored, np.tril(np.abs(factor) > 0, -1))
    assert stored.sum() < 0.8 * n * 9


def test_too_many_velocities_are_not_linearised():
    body = soft.SoftBody(soft.rectangle((1.0, 1.0), (32, 32)), soft.Material(1e5), dt=0.01)
    with pytest.raises(UnsupportedError, match="expected up to 2000 velocities, got 2178"):
        body.linearize(body.initial_state())
