"""Steps are those of the energy that the page states, written anew in torch and differentiated by it."""

# pyright: reportAttributeAccessIssue=false

import pytest
import torch
from physics.soft.bodies import LAWS, everything, inner_energy, moved

from physvision.core import State

LEFT_OUT = ("viscous_time", "tension", "friction")
KINDS = pytest.mark.parametrize(
    ("axes", "law", "cloth"),
    [*((axes, law, False) for axes in (2, 3) for law in LAWS), (3, "st_venant_kirchhoff", True)],
)


@KINDS
def test_backward_euler_makes_its_energy_least(axes, law, cloth):
    body = everything(axes, law, "backward_euler", cloth)
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
            fixed = list(body.kinematic)
            free = [k for k in range(len(x)) if k not in fixed]
            assert force[free].abs().max() < 1e-8
            torch.testing.assert_close(run.v[world, step + 1].reshape(shape)[free], ((x - x0) / h).detach()[free])
            torch.testing.assert_close(x[fixed].detach(), x0[fixed] + h * v0[fixed])
            torch.testing.assert_close(run.v[world, step + 1].reshape(shape)[fixed], v0[fixed])


@KINDS
def test_symplectic_euler_takes_forces_where_it_starts(axes, law, cloth):
    body = everything(axes, law, "symplectic_euler", cloth)
    q, v, controls = moved(body)
    run = body.rollout(State(q, v), 1, controls[:, :1])
    for world in range(2):
        x = q[world].reshape(-1, axes).clone().requires_grad_()
        v0 = v[world].reshape(-1, axes)
        inner, mass = inner_energy(body, x, (x - body.dt * v0).detach(), controls[world, 0])
        (force,) = torch.autograd.grad(inner, x)
        rate = v0 - body.dt * (force / mass[:, None] + body.properties.velocity_decay * v0)
        rate[list(body.kinematic)] = v0[list(body.kinematic)]
        torch.testing.assert_close(run.v[world, 1].reshape(-1, axes), rate, rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(run.q[world, 1], q[world] + body.dt * run.v[world, 1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("law", "cloth"), [*((law, False) for law in LAWS), ("st_venant_kirchhoff", True)])
def test_energy_is_that_of_the_oracle(law, cloth):
    body = everything(3 if cloth else 2, law, "backward_euler", cloth)
    q, v, _ = moved(body)
    # What the oracle counts and the engine's energy leaves out.
    body.set_properties(body.checked({name: torch.zeros_like(getattr(body.properties, name)) for name in LEFT_OUT}))
    body.set_properties(body.checked({"contact_stiffness": torch.tensor(1e-9)}))
    kinetic, potential = body.energy(State(q, v))
    for world in range(2):
        x, rates = (entry[world].reshape(-1, body.axes) for entry in (q, v))
        inner, mass = inner_energy(body, x, x, torch.zeros(body.nu))
        torch.testing.assert_close(potential[world], inner, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(kinetic[world], (mass[:, None] * rates**2).sum() / 2)
