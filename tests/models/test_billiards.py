"""The billiards' engine, camera and decoder on tables whose truth is known."""

import numpy as np
import pytest
import torch
from models.table_clips import RADIUS, SIZE, clip

from physvision.core import ShapeError, State
from physvision.models import ObjectDecoder, Observation, TableCamera, VggDecoder, learned_table, table
from physvision.models.interfaces import AppearanceCode
from physvision.models.object_decoder import FEATURES
from physvision.models.object_order import ordered_by_color

COLORS = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
DT = 1 / 30


def test_the_table_is_that_of_the_data():
    """A window's true first state, stepped, gives its true last one, impacts included."""
    _, places = clip(COLORS, frames=120, seed=2)
    _, later = clip(COLORS, frames=121, seed=2)
    steps = torch.from_numpy(np.diff(later, axis=0))
    engine = table(3, RADIUS, dt=DT)
    start = torch.zeros(1, 3, 3, dtype=torch.float64)
    rate = torch.zeros_like(start)
    start[0, :, :2], rate[0, :, :2] = torch.from_numpy(places[0]), steps[0] / DT
    run = engine.rollout(State(start.flatten(1), rate.flatten(1)), 119)
    result = run.q.unflatten(2, (3, 3))[0, :, :, :2]
    assert bool(run.status.converged.all())
    # Chaos multiplies rounding by some 1e5 over the four seconds.
    torch.testing.assert_close(result, torch.from_numpy(places), atol=1e-4, rtol=0)


def test_the_camera_draws_what_the_data_shows():
    frames, places = clip(COLORS, frames=30)
    state = torch.zeros(30, 3, 3)
    state[..., :2] = torch.from_numpy(places)
    camera = TableCamera(3, COLORS, RADIUS)
    rendered = camera(State(state.flatten(1), torch.zeros(30, 9)))
    # Tangents in the place of arcs: the sagitta of a pixel's chord is 1/(8 · 3.2) of a pixel; and 8 bits.
    assert (rendered - frames).abs().max() < 1 / (8 * RADIUS) + 1 / 255


def test_restitution_and_radius_have_gradients_from_frames():
    engine = learned_table(1, 2.5, restitution=0.5)
    start = State(torch.tensor([[50.0, 30.0, 0.0]]), torch.tensor([[60.0, 10.0, 0.0]]))
    trajectory = engine.rollout(start, 10)
    assert float(trajectory.v[0, -1, 0].detach()) == pytest.approx(-30.0)
    frames = TableCamera(1, [COLORS[0]])(trajectory.state(10), engine.properties)
    assert float(frames.sum().detach()) == pytest.approx(np.pi * 2.5**2, rel=0.02)
    (frames * torch.linspace(0, 1, SIZE)).sum().backward()
    gradients = {name: p.grad for name, p in engine.learned.named_parameters()}
    assert all(bool(gradient != 0) for gradient in gradients.values())


def test_the_decoder_learns_to_draw():
    """A narrow one comes to half of what an empty picture errs."""
    frames, places = clip(COLORS[:1], frames=16)
    state = torch.zeros(16, 3)
    state[:, :2] = torch.from_numpy(places[:, 0])
    torch.manual_seed(0)
    decoder = ObjectDecoder((SIZE, SIZE), COLORS[:1], VggDecoder(FEATURES, 1, (SIZE, SIZE), width=0.05))
    optimizer = torch.optim.Adam(decoder.parameters(), 3e-3)
    for _ in range(60):
        loss = (decoder(State(state, torch.zeros_like(state))) - frames).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.5 * frames.square().mean()
    with pytest.raises(ShapeError, match="1 objects"):
        decoder(State(torch.zeros(1, 6), torch.zeros(1, 6)))


def test_objects_are_ordered_by_the_colors_of_a_scene():
    """Darker than the scene has them, as mixed with the background, and with an object that is hidden for a while."""
    codes = torch.tensor([[0.1, 0.0, 0.6, 7.0], [0.0, 0.5, 0.0, 8.0], [0.7, 0.1, 0.0, 9.0]])
    hidden = codes.clone()
    hidden[0] = torch.tensor([0.9, 0.0, 0.0, 7.0])
    positions = torch.tensor([1.0, 1.0, 0.0, 2.0, 2.0, 0.0, 3.0, 3.0, 0.0]).expand(2, 1, 9)
    observation = Observation(
        positions,
        torch.zeros(2, 1, 9),
        torch.tensor([[[1.0, 1.0, 1.0]], [[0.0, 1.0, 1.0]]]),
        appearance=AppearanceCode(torch.stack([codes, hidden]).flatten(1), torch.zeros(2, 3, 4, 4)),
        position_std=torch.ones(2, 1, 9),
        velocity_std=torch.ones(2, 1, 9),
    )
    ordered = ordered_by_color(observation, torch.tensor(COLORS))
    assert ordered.positions[:, 0, ::3].tolist() == [[3.0, 2.0, 1.0]] * 2
    assert ordered.confidence[1, 0].tolist() == [1.0, 1.0, 0.0]
    assert ordered.appearance.code[0, 3::4].tolist() == [9.0, 8.0, 7.0]
