"""Closed forms of elasticity: patches, beams, energy, sliding, muscles; and the finite elements of scikit-fem."""

# pyright: reportAttributeAccessIssue=false

import math

import numpy as np
import pytest
import torch
from physics.soft.bodies import LAWS, soft_body

from physvision.core import State
from physvision.physics import soft

FOREVER = 1e6  # s: a step of backward Euler is then an equilibrium


def beam(layers, length=10.0, young=1e5, method="backward_euler", dt=FOREVER, **given):
    """A sheet of depth 1 m and height 1 m, clamped at x = 0."""
    mesh = soft.rectangle((length, 1.0), (int(length) * layers, layers))
    fixed = np.flatnonzero(mesh.nodes[:, 0] == 0.0).tolist()
    numbers = {"youngs_modulus": young, "poissons_ratio": 0.3, "law": "linear", "plane_stress": True}
    return soft_body(mesh, dt=dt, kinematic=fixed, integrator=method, gravity=(0.0, 0.0), **(numbers | given))


def tip_load(body, force):
    """Spread over the nodes of the free end."""
    nodes = torch.from_numpy(body.mesh.nodes)
    end = nodes[:, 0] == nodes[:, 0].max()
    load = torch.zeros(len(nodes), 2, dtype=torch.float64)
    load[end, 1] = force / int(end.sum())
    return {"load": load}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("axes", [2, 3])
def test_a_patch_under_an_even_strain_is_even(law, axes):
    """Nodes inside, shifted off the grid, go where the strain of the surface says."""
    mesh = soft.rectangle((1.0, 1.0), (4, 4)) if axes == 2 else soft.box((1.0, 1.0, 1.0), (3, 3, 3))
    inside = mesh.node_areas == 0.0
    nodes = mesh.nodes + 0.03 * np.sin(7 * mesh.nodes[:, ::-1]) * inside[:, None]
    mesh = soft.Mesh(nodes, mesh.elements)
    fixed = np.flatnonzero(~inside).tolist()
    body = soft.SoftBody(mesh, soft.Material(1e5, law=law), dt=FOREVER, kinematic=fixed, gravity=[0.0] * axes)
    strain = (
        torch.eye(axes).double()
        + 0.1 * torch.tensor([[1.0, 0.5, 0.2], [-0.3, -0.6, 0.1], [0.2, 0.4, 0.3]])[:axes, :axes]
    )
    even = torch.from_numpy(nodes) @ strain.T
    start = torch.where(torch.from_numpy(inside)[:, None], torch.from_numpy(nodes) * 1.02, even).reshape(1, -1)
    end = body.step(State(start, torch.zeros_like(start)))
    assert body.status.converged.all()
    torch.testing.assert_close(body.node_positions(end)[0], even, rtol=0, atol=1e-12)


def test_a_cantilever_bends_as_its_formula_says():
    """F L³ / 3EI; the error falls with the square of h, so two meshes tell where it leads."""
    force, result = 0.5, []
    exact = force * 10.0**3 / (3 * 1e5 / 12)
    for layers in (4, 8):
        body = beam(layers)
        start = body.initial_state(1, torch.float64)
        end = body.step(start, properties=tip_load(body, force))
        result.append(float((end.q - start.q)[0].reshape(-1, 2)[body.mesh.nearest_node((10.0, 0.5)), 1]) / exact)
    assert result[0] < result[1] < 1.0
    assert result[1] + (result[1] - result[0]) / 3 == pytest.approx(1.0, abs=0.02)


def first_frequency(layers, young=1e5, density=1000.0):
    """Of a beam released from the shape under a tip load, which is nearly the first mode's."""
    body = beam(layers, young=young, method="symplectic_euler", dt=0.03 / layers, density=density)
    bent = beam(layers, young=young)
    start = bent.step(bent.initial_state(1, torch.float64), properties=tip_load(bent, 0.5))
    exact = 1.875104**2 / (2 * math.pi) * math.sqrt(young / 12 / (density * 10.0**4))
    run = body.rollout(State(start.q, torch.zeros_like(start.v)), round(1.3 / exact / body.dt))
    height = body.node_positions(run)[0, :, body.mesh.nearest_node((10.0, 0.5)), 1] - 0.5
    # Smooth away the second mode, of 6.27 times the frequency, by its own period.
    width = round(1 / (6.267 * exact) / body.dt)
    smooth = torch.nn.functional.avg_pool1d(height[None], width, 1)[0]
    down, up = (torch.nonzero(turns).flatten()[0] for turns in (smooth[1:] <= 0, (smooth[:-1] < 0) & (smooth[1:] >= 0)))
    return 0.5 / (float(up - down) * body.dt) / exact


def test_a_beam_swings_at_its_first_frequency():
    """(1.875²/2π) √(EI/ρAL⁴), from two meshes as above."""
    coarse_steps, fine = first_frequency(2), first_frequency(4)
    assert coarse_steps > fine > 1.0
    assert fine + (fine - coarse_steps) / 3 == pytest.approx(1.0, abs=0.02)


def test_energy_is_kept_for_ten_seconds():
    body = beam(2, length=4.0, law="neo_hookean", method="symplectic_euler", dt=0.004, plane_stress=False)
    start = body.initial_state(1, torch.float64)
    bend = torch.from_numpy(body.mesh.nodes[:, 0] ** 2 * 0.05)
    v = torch.stack([torch.zeros_like(bend), bend], -1).reshape(1, -1)
    kinetic, potential = body.energy(body.rollout(State(start.q, v), 2500))
    total = (kinetic + potential)[0]
    assert potential.max() > 0.5 * total[0]
    assert (total - total[0]).abs().max() < 0.01 * total[0]


def test_viscosity_makes_a_body_lose_energy_unless_it_turns():
    body = beam(2, length=4.0, law="neo_hookean", dt=0.02, viscous_time=1.0, plane_stress=False)
    free = soft.SoftBody(body.mesh, soft.Material(1e5, viscous_time=0.5, density=1000.0), dt=0.001, gravity=(0.0, 0.0))
    x = torch.from_numpy(body.mesh.nodes) - torch.tensor([2.0, 0.5])
    spin = 0.3 * torch.stack([-x[:, 1], x[:, 0]], -1).reshape(1, -1)
    start = State(free.initial_state(1, torch.float64).q, spin)
    kinetic, _ = free.energy(free.rollout(start, 100))
    # Backward Euler loses (ω h)² a step of what turns.
    assert kinetic[0, -1] == pytest.approx(float(kinetic[0, 0]), rel=2 * 100 * (0.3 * 0.001) ** 2 + 1e-3)
    bend = torch.stack([torch.zeros_like(x[:, 0]), 0.05 * (x[:, 0] + 2) ** 2], -1).reshape(1, -1)
    kinetic, potential = body.energy(body.rollout(State(body.initial_state(1, torch.float64).q, bend), 200))
    total = (kinetic + potential)[0]
    assert (total[1:] <= total[:-1] * (1 + 1e-9)).all()
    assert total[-1] < 0.5 * total[0]


def test_a_block_stays_or_slides_by_its_friction():
    """On a slope of 0.3 it creeps at g (0.3 − 0.2) or holds at 0.4; a block of 0.1 m deep presses by its weight."""
    slope, angle = 0.3, math.atan(0.3)
    for friction in (0.2, 0.4):
        mesh = soft.rectangle((0.3, 0.1), (3, 1))
        down = (-9.81 * math.sin(angle), -9.81 * math.cos(angle))
        ground = soft.Ground((0.0, 0.0), (0.0, 1.0), friction)
        body = soft.SoftBody(
            mesh,
            soft.Material(1e6, viscous_time=0.01),
            contact=soft.SoftContact(grounds=[ground]),
            dt=0.005,
            gravity=down,
        )
        run = body.rollout(body.initial_state(1, torch.float64), 200)
        speed = run.v[0, :, ::2].mean(-1)
        expected = 9.81 * math.cos(angle) * (slope - friction) if friction < slope else 0.0
        assert -float(speed[-1] - speed[100]) / 0.5 == pytest.approx(expected, abs=0.02)
        assert abs(float(speed[-1])) < 2e-3 or friction < slope
        # Its weight is carried by the planes: the mean overlap of its foot.
        foot = mesh.nodes[:, 1] == 0.0
        area = torch.from_numpy(mesh.node_areas[foot])
        press = (area * -run.q[0, -1].reshape(-1, 2)[foot, 1]).sum() * body.properties.contact_stiffness
        assert float(press) == pytest.approx(0.3 * 0.1 * 1000 * 9.81 * math.cos(angle), rel=0.01)


def test_a_muscle_shortens_as_far_as_the_stress_holds():
    """In a sheet free at its sides, tension T shortens a linear body along its fibres by T(1 − ε)/E."""
    mesh = soft.rectangle((1.0, 0.2), (5, 1))
    fixed = np.flatnonzero(mesh.nodes[:, 0] == 0.0)[:1].tolist()
    muscle = soft.Muscle(range(len(mesh.elements)), (1.0, 0.0), 2e3)
    body = soft.SoftBody(
        mesh, soft.Material(1e5, poissons_ratio=0.3, law="linear", plane_stress=True), dt=FOREVER,
        kinematic=fixed, muscles=[muscle], gravity=(0.0, 0.0),
    )  # fmt: skip
    start = body.initial_state(1, torch.float64)
    end = body.step(start, torch.full((1, 1), 0.5, dtype=torch.float64))
    width = body.node_positions(end)[0, :, 0]
    stretch = -1e3 / (1e5 + 1e3)
    assert float(width.max() - width.min()) == pytest.approx(1.0 + stretch, rel=1e-9)


@pytest.mark.parametrize("axes", [2, 3])
def test_equilibria_are_those_of_scikit_fem(axes):
    skfem = pytest.importorskip("skfem")
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    mesh = soft.disc(1.0, 4) if axes == 2 else soft.box((1.0, 0.5, 0.4), (4, 2, 2))
    fixed = np.flatnonzero(mesh.nodes[:, 0] < -0.5 if axes == 2 else mesh.nodes[:, 0] == 0.0)
    rng = np.random.default_rng(0)
    load = rng.normal(size=mesh.nodes.shape)
    body = soft.SoftBody(
        mesh, soft.Material(1e3, poissons_ratio=0.4, law="linear", density=1e-3), dt=FOREVER, kinematic=fixed.tolist(),
        load=load, gravity=[0.0] * axes,
    )  # fmt: skip
    start = body.initial_state(1, torch.float64)
    ours = body.node_positions(body.step(start))[0].numpy() - mesh.nodes
    kind, element = (skfem.MeshTri, skfem.ElementTriP1) if axes == 2 else (skfem.MeshTet, skfem.ElementTetP1)
    basis = skfem.Basis(kind(mesh.nodes.T.copy(), mesh.elements.T.copy()), skfem.ElementVector(element()))
    stiffness = skfem.asm(linear_elasticity(*lame_parameters(1e3, 0.4)), basis)
    force = np.zeros(basis.N)
    force[basis.nodal_dofs.T] = load
    fixed_dofs = basis.nodal_dofs[:, fixed].ravel()
    theirs = skfem.solve(*skfem.condense(stiffness, force, D=fixed_dofs))[basis.nodal_dofs.T]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max())
