"""Closed forms of cloth: even strains, curvature on any mesh, plates, strips and elasticas, and cables that hang."""

import math

import numpy as np
import pytest
import torch
from physics.soft.bodies import soft_body

from physvision.core import InputError, ModelError, State
from physvision.physics import soft

FOREVER = 1e6  # s: a step of backward Euler is then an equilibrium
YOUNG, RATIO, THICK = 1e6, 0.3, 0.01
RIGIDITY = YOUNG * THICK**3 / (12 * (1 - RATIO**2))  # N m, of a plate


def skewed(mesh, size, seed=0):
    """The mesh with nodes inside it moved about."""
    inside = np.ones(len(mesh.nodes), dtype=bool)
    for axis in range(2):
        inside &= (mesh.nodes[:, axis] > mesh.nodes[:, axis].min()) & (mesh.nodes[:, axis] < mesh.nodes[:, axis].max())
    shift = size * np.random.default_rng(seed).uniform(-1, 1, (len(mesh.nodes), 2)) * inside[:, None]
    return soft.Mesh(mesh.nodes + np.pad(shift, ((0, 0), (0, 1))), mesh.elements)


def result(mesh, fixed=(), dt=FOREVER, **given):
    numbers = {"youngs_modulus": YOUNG, "poissons_ratio": RATIO, "thickness": THICK, "gravity": (0.0, 0.0, 0.0)}
    return soft_body(mesh, dt=dt, kinematic=fixed, **(numbers | given))


def nodes_at(mesh, *axes):
    """Nodes at the ends of these axes."""
    ends = [np.isclose(mesh.nodes[:, k], end) for k in axes for end in (0.0, mesh.nodes[:, k].max())]
    return np.flatnonzero(np.any(ends, 0)).tolist()


def test_a_patch_of_cloth_under_an_even_strain_is_even_wherever_it_is_turned():
    mesh = skewed(soft.cloth((1.0, 1.0), (4, 4)), 0.08)
    fixed = nodes_at(mesh, 0, 1)
    body = result(mesh, fixed)
    turn = torch.linalg.qr(torch.tensor([[1.0, 2.0, 0.3], [0.4, -1.0, 2.0], [1.5, 0.2, 1.0]]).double())[0]
    stretch = torch.tensor([[1.1, 0.05, 0.0], [0.02, 1.05, 0.0], [0.0, 0.0, 1.0]]).double()
    even = torch.from_numpy(mesh.nodes) @ (turn @ stretch).T
    start = even + 0.01 * torch.sin(7 * even)
    start[fixed] = even[fixed]
    end = body.step(State(start.reshape(1, -1), torch.zeros(1, body.nv).double()))
    torch.testing.assert_close(body.node_positions(end)[0], even, rtol=0, atol=1e-12)


def test_a_cloth_that_is_rolled_up_costs_what_a_plate_costs():
    """D A / 2R² for a roll of radius R, however it is turned: no chord of it is off by more than (h/R)²/24."""
    radius = 0.5
    mesh = soft.cloth((1.0, 0.25), (40, 10))
    body = result(mesh)
    X, Y = torch.from_numpy(mesh.nodes[:, 0]), torch.from_numpy(mesh.nodes[:, 1])
    for rolled in (
        torch.stack([radius * torch.sin(X / radius), Y, radius * torch.cos(X / radius)], 1),
        torch.stack([radius * torch.cos(X / radius), radius * torch.sin(X / radius), -Y], 1),
    ):
        x = rolled.reshape(1, -1)
        with_bending = body.energy(State(x, torch.zeros_like(x)))[1]
        body.set_properties(body.checked({"bending": torch.tensor([0.0])}))
        bent = with_bending - body.energy(State(x, torch.zeros_like(x)))[1]
        body.set_properties(body.checked({"bending": torch.tensor([1.0])}))
        # Beside the two edges across, triangles have no neighbor and half the cost is missing: a share of h/2 of 1 m.
        assert float(bent) == pytest.approx(RIGIDITY * 0.25 / (2 * radius**2), rel=0.03)


def test_a_plate_that_is_supported_sinks_as_its_formula_says():
    """0.00406 q a⁴/D in the middle of a square whose edges turn freely."""
    results = []
    for count in (8, 16):
        mesh = soft.cloth((1.0, 1.0), (count, count))
        load = torch.zeros(len(mesh.nodes), 3).double()
        load[:, 2] = -1e-3 * torch.from_numpy(mesh.node_areas)
        body = result(mesh, nodes_at(mesh, 0, 1), load=load)
        end = body.step(body.initial_state(dtype=torch.float64))
        sunk = -float(body.node_positions(end)[0, mesh.nearest_node((0.5, 0.5, 0.0)), 2])
        results.append(sunk / (0.00406235 * 1e-3 / RIGIDITY))
    # Half of what bends at the edge is not counted: an error that falls with the size of a square.
    assert results[0] < results[1] < 1.0
    assert 2 * results[1] - results[0] == pytest.approx(1.0, abs=0.02)


def test_a_strip_bends_as_a_beam_does():
    """F L³/3EI, for a strip without Poisson's ratio, whose first two rows are held; two meshes tell where it leads."""
    results = []
    for count in (10, 20):
        mesh = soft.cloth((1.0, 0.2), (count, count // 5))
        fixed = np.flatnonzero(mesh.nodes[:, 0] < 1.01 / count).tolist()
        load = torch.zeros(len(mesh.nodes), 3).double()
        end = np.flatnonzero(np.isclose(mesh.nodes[:, 0], 1.0))
        load[end, 2] = -1e-3 / len(end)
        body = result(mesh, fixed, load=load, poissons_ratio=0.0)
        moved = body.step(body.initial_state(dtype=torch.float64))
        results.append(
            -float(body.node_positions(moved)[0, end, 2].mean()) / (1e-3 / (3 * YOUNG * 0.2 * THICK**3 / 12))
        )
    assert 2 * results[1] - results[0] == pytest.approx(1.0, abs=0.02)


def test_a_cloth_hangs_as_an_elastic_cable():
    """Between two lines, without bending: the elastic catenary, from its horizontal force."""
    span, weight, count = 1.0, 981.0 * THICK, 40  # m, N/m² at 100 kg/m³
    mesh = soft.cloth((1.2, 0.06), (count, 2))
    fixed = np.flatnonzero(np.isclose(mesh.nodes[:, 0] % 1.2, 0.0)).tolist()
    body = result(mesh, fixed, density=100.0, gravity=(0.0, 0.0, -9.81), poissons_ratio=0.0, bending=0.0)
    positions = torch.from_numpy(mesh.nodes).clone()
    fraction = positions[:, 0] / 1.2
    positions[:, 0] = span * fraction
    positions[:, 2] = -1.2 * fraction * (1 - fraction)
    end = body.step(State(positions.reshape(1, -1), torch.zeros(1, body.nv).double()))
    sag = -float(body.node_positions(end)[0, mesh.nearest_node((0.6, 0.03, 0.0)), 2])
    stiffness = YOUNG * THICK  # N/m
    force = weight * 0.5
    for _ in range(100):  # of the span, which grows with the force
        slope = weight * 0.6 / force
        reached = 2 * (force * 0.6 / stiffness + force / weight * math.asinh(slope))
        force *= span / reached if reached < span else (span / reached) ** 2
    exact = weight * 0.6**2 / (2 * stiffness) + force / weight * (math.sqrt(1 + slope**2) - 1)
    assert sag == pytest.approx(exact, rel=0.005)


def test_what_cloth_is_not_is_refused():
    mesh = soft.cloth((1.0, 1.0), (2, 2))
    with pytest.raises(InputError, match="thickness: expected a number for cloth"):
        soft.SoftBody(mesh, soft.Material(1e5), dt=0.01)
    with pytest.raises(InputError, match="thickness: expected a number for cloth"):
        soft.SoftBody(soft.rectangle((1.0, 1.0), (1, 1)), soft.Material(1e5, thickness=0.1), dt=0.01)
    with pytest.raises(InputError, match="law: expected 'st_venant_kirchhoff' for cloth"):
        result(mesh, law="neo_hookean")
    with pytest.raises(InputError, match="across it"):
        result(mesh, muscles=[soft.Muscle([0], (0.0, 0.0, 1.0), 1.0)])
    with pytest.raises(ModelError, match="thickness"):
        result(mesh, thickness=0.0)
    with pytest.raises(ModelError, match="flat"):
        soft.Mesh(mesh.nodes * [1.0, 0.0, 1.0] + [0.0, 0.0, 1.0] * mesh.nodes[:, :1], mesh.elements)
