"""Exact flows, published ones, what is kept, gradients, and input that makes no sense."""

# pyright: reportAttributeAccessIssue=false

import math
from dataclasses import fields

import numpy as np
import pytest
import torch
from derivatives import assert_gradients

from physvision.core import InputError, ModelError, State
from physvision.physics.fluid import Boundary, Flow, FluidMaterial, Jet


def vortices(flow, time, nu, shift=0.3):
    """Taylor and Green's: cos x sin y, −sin x cos y, fading as e^(−2νt); shifted off the grid's symmetry."""
    (x, y), (a, b) = flow.faces(0), flow.faces(1)
    fade = math.exp(-2 * nu * time)
    u, v = torch.cos(x + shift) * torch.sin(y), -torch.sin(a + shift) * torch.cos(b)
    return flow.flow_state(fade * u[None], fade * v[None])


def test_vortices_fade_with_an_error_of_second_order():
    """Space and time are refined together; energy goes as e^(−4νt)."""
    nu, end, errors = 0.05, 0.5, []
    for n in (16, 32):
        flow = Flow(
            (n, n),
            (2 * math.pi,) * 2,
            FluidMaterial(nu),
            boundary=Boundary(("periodic", "periodic")),
            dt=end / (n // 2),
        )
        run = flow.rollout(vortices(flow, 0.0, nu), n // 2)
        errors.append(float((run.final.v - vortices(flow, end, nu).v).abs().max()))
        kinetic, _ = flow.energy(run)
        assert float(kinetic[0, -1] / kinetic[0, 0]) == pytest.approx(math.exp(-4 * nu * end), rel=2e-3)
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    assert errors[1] < 2e-4


def test_without_viscosity_energy_stays_and_momentum_too():
    """Central differences of the conservative form; Heun's method adds of order (ω h)⁴."""
    flow = Flow((16, 16), (1.0, 1.0), FluidMaterial(0.0), boundary=Boundary(("periodic", "periodic")), dt=0.005)
    torch.manual_seed(0)
    rough = State(torch.zeros(1, 256), torch.randn(1, flow.nv)).to(torch.float64)
    start = flow.step(rough)  # without divergence from here on
    run = flow.rollout(start, 40)
    kinetic, _ = flow.energy(run)
    torch.testing.assert_close(kinetic, kinetic[:, :1].expand_as(kinetic), rtol=2e-3, atol=0)
    for part in flow.velocities(run):
        total = part.sum((-1, -2))
        torch.testing.assert_close(total, total[:, :1].expand_as(total), rtol=0, atol=1e-9)


def test_a_channel_has_the_parabola_of_poiseuille():
    """Driven by gravity along a periodic axis: g y (H − y) / 2ν."""
    g, nu = 0.3, 0.1
    flow = Flow(
        (4, 24), (0.5, 1.0), FluidMaterial(nu), boundary=Boundary(("periodic", "walls")), dt=0.25, gravity=(g, 0.0)
    )
    final = flow.rollout(flow.initial_state(1, torch.float64), 120).final
    u, v = flow.velocities(final)
    y = flow.faces(0)[1][0]
    exact = g / (2 * nu) * y * (1 - y)
    assert (u[0] - exact).abs().max() < 0.01 * exact.max()
    assert v.abs().max() < 1e-9


def test_inflow_becomes_the_same_parabola_and_flows_out():
    flow = Flow(
        (48, 12),
        (4.0, 1.0),
        FluidMaterial(0.05),
        boundary=Boundary(("channel", "walls"), inflow=1.0, inflow_dye=1.0),
        dt=0.05,
    )
    run = flow.rollout(flow.initial_state(1, torch.float64), 200)
    u, _ = flow.velocities(run.final)
    y = flow.faces(0)[1][0]
    assert (u[0, 40] - 6 * y * (1 - y)).abs().max() < 0.02 * 1.5
    # What flows in flows out, and carries dye along.
    torch.testing.assert_close(u[0].mean(1), torch.ones(48, dtype=torch.float64), rtol=0, atol=1e-9)
    assert flow.divergence(run.final).abs().max() < 1e-10
    dye = run.final.q.reshape(48, 12)
    assert dye[:40, 2:10].min() > 0.9
    torch.testing.assert_close(dye[:12, 2:10], torch.ones(12, 8).double(), rtol=0, atol=1e-3)
    assert dye.max() < 1.15  # a jump swings over by a tenth, and by its square where it turns


def cavity(n):
    """Least u on the vertical middle line, most and least v on the horizontal one, at Re 100."""
    flow = Flow(
        (n, n), (1.0, 1.0), FluidMaterial(0.01), boundary=Boundary(wall_speed=(0.0, 0.0, 0.0, 1.0)), dt=0.96 / n
    )
    final = flow.rollout(flow.initial_state(1, torch.float64), 16 * n).final
    u, v = flow.velocities(final)
    assert flow.divergence(final).abs().max() < 1e-10
    along_x, along_y = u[0, n // 2 - 1], v[0, :, n // 2 - 1]  # the faces at one half
    return torch.stack([along_x.min(), along_y.max(), along_y.min()])


def test_a_lid_drives_the_cavity_as_published():
    """Botella and Peyret's spectral values, u −0.21404 and v 0.17957, −0.25380; with an error of second order."""
    coarse_steps, fine = cavity(16), cavity(32)
    refined = fine + (fine - coarse_steps) / 3
    exact = torch.tensor([-0.21404, 0.17957, -0.25380], dtype=torch.float64)
    torch.testing.assert_close(refined, exact, rtol=0.01, atol=0)
    torch.testing.assert_close(fine, exact, rtol=0.04, atol=0)


def test_a_lid_in_a_box_moves_nothing_out_of_it_and_dye_is_kept():
    flow = Flow(
        (12, 10),
        (1.0, 0.8),
        FluidMaterial(0.01, diffusivity=1e-3),
        boundary=Boundary(wall_speed=(0.0, 0.0, 0.0, 1.0)),
        dt=0.02,
    )
    x, y = torch.meshgrid(torch.linspace(0, 1, 12), torch.linspace(0, 1, 10), indexing="ij")
    dye = torch.exp(-((x - 0.5) ** 2 + (y - 0.7) ** 2) / 0.06).double().reshape(1, -1)
    run = flow.rollout(State(dye, torch.zeros(1, flow.nv).double()), 100)
    total = run.q.sum(-1)
    torch.testing.assert_close(total, total[:, :1].expand_as(total), rtol=1e-12, atol=0)
    assert run.q.min() > -0.02
    assert run.q.max() < 1.02
    assert (run.q[0, -1] - dye[0]).abs().max() > 0.1


def test_dye_that_is_taken_back_has_its_shape():
    """What is lost there and back is what blurs, of higher than second order: a smooth spot in a steady vortex."""
    errors = []
    for n in (16, 32):
        flow = Flow((n, n), (math.pi, math.pi), FluidMaterial(0.0), dt=0.8 / n, solid_time=1.0)
        (x, y), (a, b) = flow.faces(0), flow.faces(1)
        u, v = torch.sin(x) * torch.cos(y), -torch.cos(a) * torch.sin(b)
        center = (torch.arange(n, dtype=torch.float64) + 0.5) * math.pi / n
        dye = torch.exp(-4 * ((center[:, None] - 1.2) ** 2 + (center - 1.5) ** 2))
        steps = round(1.0 / flow.dt)
        # Inviscid and steady: each half of the way goes through the same flow, once against it.
        there = flow.rollout(flow.flow_state(u[None], v[None], dye[None]), steps).final
        back = flow.rollout(flow.flow_state(-u[None], -v[None], there.q.reshape(1, n, n)), steps).final
        errors.append(float((back.q[0] - dye.flatten()).abs().max()))
    assert math.log2(errors[0] / errors[1]) > 2.5
    assert errors[1] < 0.01


def test_a_solid_stops_the_flow_and_is_dragged():
    """Nothing flows where it stands, and what the walls and it take away is what drives: ρ g area of fluid."""
    solid = torch.zeros(24, 16)
    solid[8:14, 6:10] = 1.0
    flow = Flow(
        (24, 16),
        (1.5, 1.0),
        FluidMaterial(0.2, density=2.0),
        boundary=Boundary(("periodic", "periodic")),
        dt=0.02,
        gravity=(1.0, 0.0),
        solid=solid,
        solid_time=1e-4,
    )
    final = flow.rollout(flow.initial_state(1, torch.float64), 300).final
    u, _ = flow.velocities(final)
    assert u[0, 9:14, 6:10].abs().max() < 0.01 * u.abs().max()
    # Pressure and viscosity reach the solid's own cells, and its force is all that holds the fluid back.
    assert float(flow.drag(final)[0, 0]) == pytest.approx(2.0 * 1.0 * 1.5, rel=0.02)


def everything(ends):
    torch.manual_seed(1)
    solid = 0.5 * torch.rand(4, 3)
    material = FluidMaterial(0.01, diffusivity=0.02, excess_density=0.5)
    boundary = Boundary(ends, (0.2, -0.1, 0.3, 0.4), inflow=[0.5, 0.8, 0.6], inflow_dye=[1.0, 0.2, 0.0])
    dye, jets = torch.rand(4, 3), [Jet((0.2, 0.2), 0.1, (1.0, 0.5))]
    obstacle = {"solid": solid, "solid_time": 0.05}
    down = (0.3, -1.0)
    return Flow((4, 3), (0.4, 0.36), material, dt=0.02, boundary=boundary, gravity=down, dye=dye, jets=jets, **obstacle)


@pytest.mark.parametrize(
    "ends", [("periodic", "periodic"), ("walls", "walls"), ("channel", "walls"), ("channel", "periodic")]
)
def test_gradients_are_those_of_differences(ends):
    flow = everything(ends)
    start = flow.initial_state(1, torch.float64)
    v = 0.5 * torch.randn(1, flow.nv, dtype=torch.float64)
    leaves = dict(flow.properties.items())

    def run(q, v, controls, *values):
        motion = flow.rollout(State(q, v), 2, controls, dict(zip(leaves, values, strict=True)))
        return motion.q, motion.v

    controls = torch.rand(1, 2, 1, dtype=torch.float64)
    assert_gradients(run, (start.q, v, controls, *leaves.values()), 1e-6, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("cells", [(6, 5), (5, 8)])
def test_steps_by_waves_are_those_of_a_box_with_dye(cells):
    """Dye that weighs nothing changes no velocity, but has it found in another way."""
    torch.manual_seed(0)
    jets = [Jet((0.2, 0.3), 0.1, (1.0, 0.5)), Jet((0.4, 0.1), 0.2, (0.3, -1.0))]
    flow = Flow(
        cells, (0.6, 0.7), FluidMaterial(0.03), boundary=Boundary(("periodic", "periodic")), dt=0.005, jets=jets
    )
    v = torch.randn(2, flow.nv, dtype=torch.float64, requires_grad=True)
    controls = torch.rand(2, 4, 2, dtype=torch.float64, requires_grad=True)
    leaves = {"viscosity": torch.tensor([0.03, 0.02]).double(), "gravity": torch.tensor([0.3, -1.0]).double()}
    inputs = (v, controls, *(leaf.requires_grad_() for leaf in leaves.values()))
    weight, result = torch.randn(2, 5, flow.nv, dtype=torch.float64), []
    for dye in (0.0, 1.0):
        run = flow.rollout(State(torch.full((2, flow.nq), dye).double(), v), 4, controls, leaves)
        result.append((run.v, *torch.autograd.grad((run.v * weight).sum(), inputs)))
        assert flow.divergence(run.final).abs().max() < 1e-10
    assert flow.rollout(State(torch.zeros(0, flow.nq), torch.zeros(0, flow.nv)), 4).v.shape == (0, 5, flow.nv)
    for ours, theirs in zip(*result, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12)


def test_worlds_are_apart_and_a_shared_leaf_has_the_sum():
    flow = everything(("walls", "walls"))
    start = flow.initial_state(2, torch.float64)
    v = torch.randn(2, flow.nv, dtype=torch.float64)
    pair = flow.rollout(State(start.q, v), 3)
    torch.testing.assert_close(flow.rollout(State(start.q[:1], v[:1]), 3).v, pair.v[:1], rtol=1e-12, atol=1e-12)
    shared = flow.properties.solid.clone().requires_grad_()
    separation = shared.detach().repeat(2, 1, 1).requires_grad_()
    for leaf in (shared, separation):
        flow.rollout(State(start.q, v), 3, properties={"solid": leaf}).v.square().sum().backward()
    torch.testing.assert_close(shared.grad, separation.grad.sum(0))
    density = flow.properties.density.clone().requires_grad_()
    flow.rollout(State(start.q, v), 2, properties={"density": density}).v.sum().backward()
    assert density.grad == 0.0  # it scales forces alone


def test_steps_far_too_long_are_marked():
    flow = Flow((16, 16), (1.0, 1.0), FluidMaterial(1e-4), dt=1.0)
    fast = State(torch.zeros(2, flow.nq), torch.randn(2, flow.nv) * torch.tensor([[50.0], [1e-4]]))
    with pytest.warns(RuntimeWarning, match="reduce dt"):
        run = flow.rollout(fast, 30)
    assert run.status.failed() == [0]
    assert torch.isfinite(run.q[1]).all()
    flow = Flow((8, 8), (1.0, 1.0), FluidMaterial(0.1), boundary=Boundary(wall_speed=(0.0, 0.0, 0.0, 5.0)), dt=0.2)
    with pytest.warns(RuntimeWarning, match="too fast for the time step"):
        assert flow.rollout(flow.initial_state(), 3).status.first_underresolved_step.tolist() == [1]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"viscosity": -1.0}, ModelError, "viscosity"),
        ({"density": 0.0}, ModelError, "density"),
        ({"solid": np.full((4, 4), 2.0)}, ModelError, "solid"),
        ({"solid": np.zeros((3, 4))}, InputError, "solid"),
        ({"ends": ("walls", "channel")}, InputError, "ends"),
        ({"cells": (1, 4)}, InputError, "cells"),
        ({"dt": 0.0}, InputError, "dt"),
        ({"inflow": [1.0, 2.0]}, InputError, "inflow"),
        ({"jets": [Jet((0.5, 0.5), 0.0, (1.0, 0.0))]}, InputError, "radius"),
    ],
)
def test_nonsense_is_refused(given, error, message):
    numbers = {"cells": (4, 4), "size": (1.0, 1.0), "dt": 0.01, "viscosity": 0.1} | given
    cells, size = numbers.pop("cells"), numbers.pop("size")

    def take(kind):
        return {field.name: numbers.pop(field.name) for field in fields(kind) if field.name in numbers}

    material = FluidMaterial(**take(FluidMaterial))
    with pytest.raises(error, match=message):
        Flow(cells, size, material, boundary=Boundary(**take(Boundary)), **numbers)._operation(torch.device("cpu"))


def test_pictures_show_dye_with_y_up():
    dye = torch.zeros(4, 3)
    dye[3, 2] = 1.0
    flow = Flow((4, 3), (4.0, 3.0), FluidMaterial(0.1), dt=0.1, dye=dye)
    picture = flow.picture(flow.initial_state())
    assert picture.shape == (1, 1, 3, 4)
    assert picture[0, 0, 0, 3] == 1.0
