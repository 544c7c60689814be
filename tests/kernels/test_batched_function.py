"""Kinds of derivatives that are not there fail by name, wherever they are asked for."""

import pytest
import torch
from torch.autograd import forward_ad

from physvision.camera import Camera, RayCaster
from physvision.core import Circle, DerivativeError, State
from physvision.physics import articulated, rigid2d


def frames():
    caster = RayCaster(Camera.table(8, 8, y_down=True), [Circle(2.0)])
    pose = torch.eye(4, dtype=torch.float64).repeat(1, 1, 1, 1)

    def draw(place):
        shifted = pose.clone()
        shifted[0, 0, :2, 3] = place
        return caster(shifted)

    return draw, torch.tensor([4.0, 3.5], dtype=torch.float64)


def chain():
    engine = articulated.chain([1.0], [1.0], dt=0.01)
    rest = torch.zeros(1, 1, dtype=torch.float64)
    engine.rollout(State(rest, rest), 1)
    return (lambda q: engine.rollout(State(q[None], rest), 2).q), torch.tensor([0.3], dtype=torch.float64)


def plane():
    world = rigid2d.World(bodies=[rigid2d.Circle(1.0, (0.0, 0.0))], dt=0.01)
    rest = torch.zeros(1, 3, dtype=torch.float64)
    return (lambda q: world.rollout(State(q[None], rest), 2).q), torch.tensor([0.3, 0.1, 0.0], dtype=torch.float64)


@pytest.mark.parametrize("make", [frames, chain, plane])
def test_forward_mode_says_what_to_take_instead(make):
    compute, value = make()
    with pytest.raises(DerivativeError, match=r"forward-mode derivatives .* use reverse mode"):
        torch.func.jvp(compute, (value,), (torch.ones_like(value),))
    with forward_ad.dual_level(), pytest.raises(DerivativeError, match="forward-mode derivatives"):
        compute(forward_ad.make_dual(value, torch.ones_like(value)))


@pytest.mark.parametrize("make", [frames, chain, plane])
def test_gradients_of_gradients_say_what_to_take_instead(make):
    compute, value = make()
    value.requires_grad_()
    (gradient,) = torch.autograd.grad(compute(value).square().sum(), value, create_graph=True)
    with pytest.raises(DerivativeError, match="use finite differences of its gradients"):
        torch.autograd.grad(gradient.sum(), value)
    with pytest.raises(DerivativeError, match="use finite differences of its gradients"):
        torch.func.jacrev(torch.func.grad(lambda x: compute(x).square().sum()))(value.detach())


@pytest.mark.parametrize("make", [frames, chain, plane])
def test_first_gradients_with_a_graph_are_those_without(make):
    compute, value = make()
    value.requires_grad_()
    plain, graph = (
        torch.autograd.grad(compute(value).square().sum(), value, create_graph=entry)[0] for entry in (False, True)
    )
    assert torch.equal(plain, graph)
