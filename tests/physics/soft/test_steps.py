"""Steps are those of the energy that the page states, written anew in torch and differentiated by it."""

import pytest
import torch
from physics.soft.bodies import LAWS, everything, inner_energy, moved

from physvision.core import State

SPACES = pytest.mark.parametrize("axes", [2, 3])


@SPACES
@pytest.mark.parametrize("law", LAWS)
def test_backward_euler_makes_its_energy_least(axes, law):
    body = everything(axes, law, "backward_euler")
    q, v, controls = moved(body)
    run = body.rollout(State(q, v), 2, controls)
    assert run.status.converged.all()
    shape = (-1, axes)
    for world in range(2):
        for step in range(2):
            x0, v0 = run.q[world, step].reshape(shape), run.v[world, step].reshape(shape)
            x = run.q[world, step + 1].reshape(shape).clone().requires_grad_()
            inner, mass = inner_energy(body, x, x0, controls[world, step])
            late, h = x - x0 - body.dt * v0, body.dt
            decay = body.properties.velocity_decay
            moving = (mass[:, None] * (late**2 / (2 * h**2) + decay * (x - x0) ** 2 / (2 * h))).sum()
            (force,) = torch.autograd.grad(inner + moving, x)
            # A node of 2 kg that is off by a rounding of its place, over the square of the step.
            assert force[1:].abs().max() < 1e-8
            torch.testing.assert_close(run.v[world, step + 1].reshape(shape)[1:], ((x - x0) / h).detach()[1:])
            torch.testing.assert_close(x[0].detach(), x0[0] + h * v0[0])
            torch.testing.assert_close(run.v[world, step + 1, :axes], v0[0])


@SPACES
@pytest.mark.parametrize("law", LAWS)
def test_symplectic_euler_takes_forces_where_it_starts(axes, law):
    body = everything(axes, law, "symplectic_euler")
    q, v, controls = moved(body)
    run = body.rollout(State(q, v), 1, controls[:, :1])
    for world in range(2):
        x = q[world].reshape(-1, axes).clone().requires_grad_()
        v0 = v[world].reshape(-1, axes)
        inner, mass = inner_energy(body, x, (x - body.dt * v0).detach(), controls[world, 0])
        (force,) = torch.autograd.grad(inner, x)
        rate = v0 - body.dt * (force / mass[:, None] + body.properties.velocity_decay * v0)
        rate[0] = v0[0]
        torch.testing.assert_close(run.v[world, 1].reshape(-1, axes), rate, rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(run.q[world, 1], q[world] + body.dt * run.v[world, 1], rtol=1e-12, atol=1e-12)


def test_energy_is_that_of_the_oracle():
    for law in LAWS:
        body = everything(2, law, "backward_euler")
        q, v, _ = moved(body)
        kinetic, potential = body.energy(State(q, v))
        p = body.properties
        free = body.checked(
            {name: torch.zeros_like(getattr(p, name)) for name in ("viscous_time", "tension", "friction")}
        )
        body.keep(free)
        for world in range(2):
            x = q[world].reshape(-1, 2)
            inner, mass = inner_energy(body, x, x, torch.zeros(body.nu))
            n, point = torch.tensor([[0.1, 1.0], [0.0, 0.02]], dtype=torch.float64)
            overlap = (-(x - point) @ (n / n.norm())).clamp(min=0)
            touching = (p.contact_stiffness * torch.from_numpy(body.mesh.node_areas) * overlap**2 / 2).sum()
            torch.testing.assert_close(potential[world], inner - touching, rtol=1e-10, atol=1e-10)
            torch.testing.assert_close(kinetic[world], (mass[:, None] * v[world].reshape(-1, 2) ** 2).sum() / 2)
