"""A camera bound to what is learned draws it as it is learned, and hands the gradient back."""

import copy
import pickle

import torch

from physvision import State
from physvision.camera import Camera
from physvision.core import Coordinates
from physvision.models import LearnedForce, StatePerceptron
from physvision.physics import Hybrid, PhysicsLayer, articulated, rigid2d

VIEW = {"position": (0.0, -5.0, -0.7), "target": (0.0, 0.0, -0.7), "fov": 0.6}


def test_lengths_are_learned_from_frames_through_a_bound_camera_alone():
    """No state is compared and nothing moves: what lengths do to the picture is all that is known of them."""
    true = articulated.chain([0.8, 0.6])
    q = torch.tensor([[0.3, 0.4], [-0.5, 0.9], [0.8, -0.6], [0.1, -1.2]])
    state = State(q, torch.zeros_like(q))
    target = Camera.pinhole(48, 48, **VIEW).bind(true)(state)
    layer = PhysicsLayer(articulated.chain([0.6, 0.8]), {"lengths": [0.6, 0.8]}, articulated.chain_properties)
    view = Camera.pinhole(48, 48, **VIEW).bind(layer)
    optimizer = torch.optim.Adam(layer.physical_parameters(), 0.02)
    for _ in range(120):
        optimizer.zero_grad()
        (view(state) - target).square().sum().backward()
        optimizer.step()
    torch.testing.assert_close(layer.learned_values["lengths"], torch.tensor([0.8, 0.6]), atol=2e-3, rtol=0)


def test_a_camera_draws_through_every_wrapper():
    chain = articulated.chain([0.8, 0.6])
    layer = PhysicsLayer(chain, {"lengths": [0.5, 0.4]}, articulated.chain_properties)
    force = LearnedForce(StatePerceptron(Coordinates(2, (0, 1)), outputs=1, hidden=4))
    state = chain.initial_state()
    frame = Camera.pinhole(24, 24, **VIEW).bind(layer)(state)
    assert not torch.allclose(frame, Camera.pinhole(24, 24, **VIEW).bind(chain)(state))
    for wrapped in (
        Hybrid(layer, force),
        PhysicsLayer(Hybrid(layer, force), {"gravity": [0.0, 0.0, -1.0]}, positive=[]),
    ):
        assert wrapped.mechanics is chain
        torch.testing.assert_close(Camera.pinhole(24, 24, **VIEW).bind(wrapped)(state), frame)


def test_what_was_used_can_be_copied_and_pickled():
    world = rigid2d.World([rigid2d.Circle(4.0, (10.0, 12.0), velocity=(30.0, 0.0))], gravity=(0.0, 5.0))
    view = Camera.table(24, 24, y_down=True).bind(world)
    after = world.rollout(world.initial_state(), 3).final
    frame = view(after)
    for again in (copy.deepcopy, lambda whole: pickle.loads(pickle.dumps(whole))):
        torch.testing.assert_close(again(world).rollout(world.initial_state(), 3).final.q, after.q, atol=0, rtol=0)
        torch.testing.assert_close(again(view)(after), frame, atol=0, rtol=0)
