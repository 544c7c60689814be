"""The mass of a struck chain, found from where it ends and from all of its way."""

import pytest
import torch
from physics.rigid2d.scenes import push, start, struck_chain

TRUE = 7.0


def runs(links, steps=100):
    world = struck_chain(links)

    def run(total):
        mass = torch.cat([(total / links).expand(links), torch.ones(1, dtype=torch.float64)])
        return world.rollout(start(world), steps, push(world, steps), {"mass": mass}).q

    return run


@pytest.mark.parametrize(
    ("links", "whole", "max_updates"), [(5, False, 14), (10, False, 20), (5, True, 61), (10, True, 97)], ids=str
)
def test_the_papers_procedure_finds_the_mass(links, whole, max_updates):
    # Gradient descent at 0.01 with gradients clipped at 100, from 1; the published engine needed 14 and 20 updates from
    # the final position, and from the whole trajectory stopped at 6.9 and 6.6.
    run = runs(links)
    target = run(torch.tensor(TRUE, dtype=torch.float64))
    mass = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    for _ in range(max_updates):
        q = run(mass)
        loss = (q - target if whole else q[:, -1] - target[:, -1]).square().mean()
        gradient = torch.autograd.grad(loss, mass)[0].clamp(-100, 100)
        mass = (mass - 0.01 * gradient).detach().requires_grad_()
    assert abs(mass.item() / TRUE - 1) < 1e-3
