"""The billiards' parts on tables whose truth is known, and on what goes wrong before a camera."""

import numpy as np
import pytest
import torch
from perception.table import RADIUS, SIZE, clip

from physvision.core import ShapeError, State
from physvision.models import (
    ObjectDecoder,
    ObjectEncoder,
    PredictiveAutoencoder,
    TableCamera,
    VggDecoder,
    VggEncoder,
    learned_table,
    table,
)
from physvision.models.object_decoder import FEATURES
from physvision.perception.flow import DenseInverseSearch

COLORS = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
DT = 1 / 30


def encoder(colors=COLORS, **options):
    torch.manual_seed(0)
    network = VggEncoder(13, 4, width=0.05, pool=1, dropout=0.0)
    options = {"crop": 32, **options}
    return ObjectEncoder((SIZE, SIZE), DT, RADIUS, colors, network, DenseInverseSearch(), **options).eval()


def read(model, frames):
    observed = model.observe(frames)
    return observed.state, observed.confidence[:, -1]


def places_of(state):
    return state.q.unflatten(1, (-1, 3))[..., :2], state.v.unflatten(1, (-1, 3))[..., :2]


def windows(colors=COLORS, count=20, seed=0, **options):
    """Windows of three frames and true places; none of them holds an impact."""
    frames, places = clip(colors, frames=200, seed=seed, **options)
    retained = [
        start for start in range(0, 196, 3) if np.abs(np.diff(places[start : start + 3], 2, axis=0)).max() < 1e-9
    ][:count]
    return torch.stack([frames[k : k + 3] for k in retained]), torch.from_numpy(
        np.stack([places[k : k + 3] for k in retained])
    )


@pytest.mark.parametrize("crop", [32, None])
def test_an_encoder_that_was_not_trained_says_what_perception_sees(crop):
    """Position exact to some hundredths of a pixel, velocity to as much a frame."""
    frames, truth = windows()
    state, confidence = read(encoder(crop=crop), frames)
    position, velocity = places_of(state)
    assert (position - truth[:, -1]).norm(dim=-1).max() < 0.05
    assert (velocity * DT - (truth[:, 2] - truth[:, 1])).norm(dim=-1).max() < 0.05
    assert confidence.shape == (len(frames), 3)
    assert confidence.min() > 0.9
    assert (state.q[:, 2::3] == 0).all()


def test_frames_that_follow_are_read_as_windows():
    frames, _ = windows(count=2)
    frames = torch.cat([frames, frames.flip(1)], 1)
    observed = encoder().observe((frames * 255).round().to(torch.uint8))
    assert observed.positions.shape == observed.velocities.shape == (2, 4, 9)
    assert observed.confidence.shape == (2, 4, 3)
    alone = encoder().observe((frames * 255).round()[:, 1:4] / 255)
    torch.testing.assert_close(observed.positions[:, 1], alone.state.q)
    torch.testing.assert_close(observed.velocities[:, 1], alone.state.v)


def test_the_network_learns_what_perception_gets_wrong():
    """Frames that are shifted by half a pixel against the labels: only the network can know."""
    frames, truth = windows(count=6)
    model = encoder()
    optimizer = torch.optim.Adam(model.network.parameters(), 3e-3)
    errors = []
    for _ in range(25):
        position, _ = places_of(model(frames))
        loss = (position - (truth[:, -1] + 0.5)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors.append(float(loss.detach()))
    assert errors[0] == pytest.approx(0.25, rel=0.1)
    assert errors[-1] < 0.1 * errors[0]
    assert all(parameter.grad is not None for parameter in model.network.parameters())


def test_a_ball_that_is_hidden_has_an_extrapolated_place_and_no_confidence():
    frames, truth = windows()
    frames = frames.clone()
    frames[:, 2, 0] = 0.0
    state, confidence = read(encoder(), frames)
    position, _ = places_of(state)
    assert (confidence[:, 0] == 0).all()
    assert (confidence[:, 1:] > 0.9).all()
    assert (position[:, 0] - truth[:, 2, 0]).norm(dim=-1).max() < 0.1


def test_a_ball_that_was_never_seen_rests_in_the_middle():
    state, confidence = read(encoder(), torch.zeros(2, 3, 3, SIZE, SIZE))
    position, velocity = places_of(state)
    assert (confidence == 0).all()
    assert (position == SIZE / 2).all()
    assert (velocity == 0).all()


def test_a_ball_that_leaves_loses_confidence():
    frames, truth = windows(count=1)
    column = int(truth[0, 0, 0, 0])
    way = torch.zeros(1, 3, 3, SIZE, SIZE)
    for time, beyond in enumerate((-3, -1, 1)):
        middle = SIZE - 1 + beyond
        way[0, time, 0, :, middle - 5 :] = frames[0, 0, 0, :, column - 5 : column + SIZE - middle]
    _, confidence = read(encoder(), way)
    assert 0.0 < float(confidence[0, 0]) < 0.75
    assert (confidence[0, 1:] == 0).all()


def test_two_of_one_color_are_two():
    frames, truth = windows([COLORS[0], COLORS[0]], count=6, seed=4)
    state, confidence = read(encoder([COLORS[0]], counts=[2]), frames)
    position, _ = places_of(state)
    # Which of them is called the first follows from where they are, not from what they were called before.
    distances = torch.cdist(position, truth[:, 2].float())
    assert distances.amin(2).max() < 0.1
    assert (distances.argmin(2).sort(1).values == torch.tensor([0, 1])).all()
    assert confidence.min() > 0.9


@pytest.mark.parametrize("shape", [(1, 3, 3, 48, 64), (1, 2, 3, SIZE, SIZE), (1, 3, 1, SIZE, SIZE)])
def test_frames_of_another_shape_are_refused(shape):
    with pytest.raises(ShapeError, match=r"expected shape \(batch, 3 or more, 3, 64, 64\)"):
        encoder()(torch.zeros(shape))


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
    model = PredictiveAutoencoder(encoder([COLORS[0]]), engine, TableCamera(1, [COLORS[0]]))
    start = State(torch.tensor([[50.0, 30.0, 0.0]]), torch.tensor([[60.0, 10.0, 0.0]]))
    trajectory = model.simulate(start, 10)
    assert float(trajectory.v[0, -1, 0].detach()) == pytest.approx(-30.0)
    frames = model.decode(trajectory, [10])
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
