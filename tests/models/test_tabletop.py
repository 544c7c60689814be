"""Camera between encoder and decoder: geometry of layers, instances, identities, codes and properties."""

# pyright: reportAttributeAccessIssue=false

import math

import pytest
import torch

from physvision.core import InputError, State, Trajectory
from physvision.models import (
    AppearanceCode,
    BallCamera,
    BallCropSettings,
    CameraDecoder,
    ClipContext,
    InstanceSettings,
    LayerNetwork,
    Observation,
    PredictiveAutoencoder,
    TableCamera,
    TableEncoder,
    TrackPropertyHead,
    VggEncoder,
    table,
    tabletop,
    tabletop_leaves,
)
from physvision.models.object_order import aligned, chained
from physvision.models.segmentation import Instances, find_instances, link, match_order
from physvision.models.tabletop import back_project, park_absent, park_states
from physvision.models.trial_properties import Tracks, property_loss

SETTINGS = InstanceSettings()


def two_balls(x=20.0, radius=4.0):
    """State and properties of two balls on a table with room for three."""
    q = torch.tensor([[x, 30.0, 0.0, 44.0, 20.0, 0.0, 0.0, 0.0, 0.0]])
    values = {"radius": torch.full((1, 3), radius), "present": torch.tensor([[1.0, 1.0, 0.0]])}
    return State(park_absent(q, values["present"] > 0.5), torch.zeros_like(q)), values


def properties_of(values):
    return tabletop(3).properties.overridden(tabletop_leaves(values))


def code_of(decoder, value=0.7, size=64):
    codes = torch.zeros(1, decoder.shapes, decoder.codes)
    codes[..., :3] = value
    return AppearanceCode(codes.flatten(1), torch.full((1, 3, size, size), 0.2))


def test_layers_have_the_balls_where_they_are_and_as_large_as_they_are():
    state, values = two_balls()
    decoder = CameraDecoder(BallCamera(3))
    layers = decoder.layers(state, properties_of(values))
    rows, columns = torch.arange(64.0)[:, None], torch.arange(64.0)
    camera = decoder.camera.caster.camera
    for ball, (x, y) in enumerate(((20.0, 30.0), (44.0, 20.0))):
        cover = layers.coverage[0, ball]
        pixel = torch.stack([(cover * columns).sum(), (cover * rows).sum()]) / cover.sum()
        extrinsics = camera.extrinsics.float()[None]
        point = back_project(pixel[None, None], camera.intrinsics.float(), extrinsics, torch.tensor([[-4.0]]))
        torch.testing.assert_close(point[0, 0], torch.tensor([x, y]), atol=0.05, rtol=0)
        # Nearer by the radius, in 2.5 sides: larger by 1 / (1 − 4 / 160), and the outline of a sphere by a little more.
        assert float(cover.sum()) == pytest.approx(math.pi * 16 / (1 - 4 / 160) ** 2, rel=0.02)
    assert float(layers.coverage[0, 2].sum()) == 0.0
    assert layers.ids.unique().tolist() == [-1, 0, 1]
    # Coordinates grow from −1 to 1 across a ball.
    inside = layers.coverage[0, 0] > 0.99
    assert 0.6 < float(layers.coordinates[0, 0][inside].max()) < 1.0
    assert float(layers.coordinates[0, 0][inside].mean()) == pytest.approx(0.0, abs=0.05)


def test_the_cameras_picture_has_a_gradient_to_state_and_radius():
    state, values = two_balls()
    q, radius = state.q.clone().requires_grad_(), values["radius"].clone().requires_grad_()
    decoder = CameraDecoder(BallCamera(3))
    frame = decoder(State(q, state.v), properties_of({**values, "radius": radius}), code_of(decoder))
    columns = torch.arange(64.0)
    by_q, by_radius = torch.autograd.grad((frame * columns).sum(), (q, radius))
    # Moving a ball of contrast ½ by one px moves its area, three channels at once.
    area = math.pi * 16 / (1 - 4 / 160) ** 2
    assert float(by_q[0, 0]) == pytest.approx(3 * 0.5 * area / (1 - 4 / 160), rel=0.05)
    assert float(by_radius[0, 0]) > 0
    assert float(by_radius[0, 2]) == 0


def test_a_state_moved_by_8_px_moves_the_ball_and_another_code_does_not():
    torch.manual_seed(0)
    decoder = CameraDecoder(BallCamera(3), LayerNetwork(CameraDecoder.input_channels(), width=0.1))
    torch.nn.init.normal_(decoder.network.output_layer.weight, std=0.002)
    columns = torch.arange(64.0)

    def center(x, value):
        state, values = two_balls(x)
        with torch.no_grad():
            frame = decoder(state, properties_of(values), code_of(decoder, value))
            empty = decoder(*_nobody(values), code_of(decoder, value))
        # The second ball is right of column 36.
        difference = (frame - empty).abs().sum(1)[0][:, :36]
        return float((difference * columns[:36]).sum() / difference.sum())

    assert center(24.0, 0.7) - center(16.0, 0.7) == pytest.approx(8.0, abs=1.0)
    assert center(20.0, 0.9) == pytest.approx(center(20.0, 0.5), abs=0.5)


def _nobody(values):
    none = {**values, "present": torch.zeros(1, 3)}
    state = State(park_absent(torch.zeros(1, 9), none["present"] > 0.5), torch.zeros(1, 9))
    return state, properties_of(none)


def test_camera_alone_network_in_series_and_orthographic_camera():
    camera = TableCamera(2, [(1, 0, 0), (0, 1, 0)])
    decoder = CameraDecoder(camera, None, codes=3, colors=((1, 0, 0), (0, 1, 0)))
    state = State(torch.tensor([[20.0, 30.0, 0.0, 44.0, 20.0, 0.0]]), torch.zeros(1, 6))
    torch.testing.assert_close(decoder(state), camera(state), atol=1e-5, rtol=0)
    network = LayerNetwork(CameraDecoder.input_channels(3), width=0.1)
    pair = CameraDecoder(camera, network, codes=3, colors=((1, 0, 0), (0, 1, 0)))
    # The network starts at zero.
    torch.testing.assert_close(pair(state), decoder(state))


@pytest.mark.parametrize("size", [(64, 64), (100, 100), (48, 32)])
def test_layer_network_sizes(size):
    assert LayerNetwork(5, 3, width=0.05)(torch.rand(2, 5, *size)).shape == (2, 3, *size)


def test_a_camera_of_another_scene_is_refused():
    encoder = TableEncoder(2, (64, 64), 1 / 30, VggEncoder(12, 8, 0.05, 1, 0.0), crops=BallCropSettings(codes=0))
    with pytest.raises(InputError, match="bind both to one scene"):
        PredictiveAutoencoder(encoder, table(2), CameraDecoder(TableCamera(3, [(1, 0, 0)] * 3)))


def drawn_logits(centers, size=64, radius=4.0):
    """Logits that a perfect network would have."""
    at = 2.0 * torch.arange(size // 2) + 0.5
    logits = torch.full((1, 2, size // 2, size // 2), -6.0)
    for x, y in centers:
        distance = ((at - x).square() + (at[:, None] - y).square()).sqrt()
        logits[0, 0] = torch.maximum(logits[0, 0], 3.0 * (radius - distance))
        logits[0, 1] = torch.maximum(logits[0, 1], 4.0 - 2.0 * distance.square())
    return logits


def test_instances_are_the_discs_that_were_drawn():
    places = [(20.3, 30.9), (28.6, 31.2), (50.0, 12.0)]
    result = find_instances(drawn_logits(places), 4, SETTINGS)
    order = match_order(
        torch.tensor([[*places, (0.0, 0.0)]]), torch.tensor([[1.0, 1, 1, 0]]), result.centroids, result.confidence, 20.0
    )
    result = result.permuted(order)
    torch.testing.assert_close(result.centroids[0, :3], torch.tensor(places), atol=0.35, rtol=0)
    assert (result.confidence[0] > SETTINGS.min_confidence).tolist() == [True, True, True, False]
    assert float(result.area[0, 2]) == pytest.approx(math.pi * 16, rel=0.15)


def test_identities_are_constant_in_time_though_detections_are_shuffled():
    """Two balls pass each other at 3 px; constant velocity tells them apart."""
    torch.manual_seed(0)
    frames = []
    for time in range(7):
        centers = torch.tensor([[10.0 + 4 * time, 30.0], [40.0 - 4 * time, 33.0]])
        order = torch.randperm(2)
        blank = torch.zeros(1, 2, 1, 1)
        frames.append(Instances(centers[order][None], torch.ones(1, 2), blank, torch.ones(1, 2)))
    linked = link(frames, SETTINGS, [1.0] * 6)
    rows = torch.stack([entry.centroids[0, :, 1] for entry in linked])
    assert (rows == rows[-1]).all()


def test_leaves_are_those_of_the_trials():
    values = {
        "mass": torch.tensor([[1.0, 2.0]]),
        "radius": torch.tensor([[3.0, 3.0]]),
        "present": torch.tensor([[1.0, 0.0]]),
        "restitution": torch.tensor([0.9]),
        "wall_restitution": torch.tensor([0.8]),
        "sliding_deceleration": torch.tensor([5.0]),
        "walls": torch.tensor([[8.0, 9.0, 50.0, 55.0]]),
    }
    world = tabletop(2)
    own = world.properties.overridden(tabletop_leaves(values))
    assert own.radius.tolist() == [[3.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    assert own.sliding_deceleration.tolist() == [[5.0, 5.0]]
    # A ball that meets the right wall: face at 50, center at 47.
    state = State(torch.tensor([[45.0, 30.0, 0, -500, -500, 0]]), torch.tensor([[30.0, 0, 0, 0, 0, 0]]))
    path = world.rollout(state, 6, properties=tabletop_leaves(values))
    assert float(path.q[0, :, 0].max()) <= 47.0
    speed = math.sqrt(30.0**2 - 2 * 5 * 2.0) * 0.8
    left = 6 / 30 - (30 - math.sqrt(30**2 - 20)) / 5
    assert float(path.v[0, -1, 0]) == pytest.approx(-(speed - 5 * left), rel=1e-3)


def test_absent_balls_are_out_of_reach():
    present = torch.tensor([[True, False]])
    moved = park_states(Trajectory(torch.zeros(1, 3, 6), torch.ones(1, 3, 6)), present)
    assert (moved.q[0, :, 3] < -100).all()
    assert moved.v[0, 0].tolist() == [1, 1, 1, 0, 0, 0]


def tiny_encoder(**options):
    head = TrackPropertyHead({"restitution": (0.8, 0.9)}, {"radius": (2.5, 6.0), "mass": (0.5, 2.0)}, hidden=8)
    network = VggEncoder(12, 8, width=0.05, pool=1, dropout=0.0)
    return TableEncoder(3, (64, 64), 1 / 30, network, BallCamera(3), head, **options)


def test_an_encoder_that_knows_nothing_returns_the_prior_and_its_width():
    observation = tiny_encoder().observe(torch.rand(2, 10, 3, 64, 64), ClipContext())
    assert observation.properties["restitution"].tolist() == pytest.approx([0.85, 0.85])
    assert observation.property_std["restitution"].tolist() == pytest.approx([0.1 / math.sqrt(12)] * 2, rel=1e-4)
    assert observation.property_std["mass"].shape == (2, 3)
    assert observation.position_std.shape == observation.positions.shape == (2, 1, 9)
    assert observation.appearance.code.shape[1] <= 64
    assert observation.masks.shape == (2, 3, 3, 32, 32)


def test_the_code_does_not_see_the_last_frames_nor_the_background_what_moves():
    encoder, frames = tiny_encoder(), torch.rand(1, 30, 3, 64, 64)
    changed = frames.clone()
    changed[:, -3:] = torch.rand(1, 3, 3, 64, 64)
    first, second = (encoder.observe(clip, ClipContext()).appearance for clip in (frames, changed))
    # Three of nine frames changed: a median over masked pixels moves by less than the frames themselves.
    assert float((first.background - second.background).abs().mean()) < 0.15
    # The codes are those of the same objects, in an order that follows the last frame.
    codes = [appearance.code.unflatten(1, (3, -1))[0] for appearance in (first, second)]
    torch.testing.assert_close(*(code[code[:, 0].argsort()] for code in codes))


def test_objects_are_brought_into_the_order_of_the_labels():
    encoder = tiny_encoder()
    observation = encoder.observe(torch.rand(2, 6, 3, 64, 64), ClipContext())
    true = observation.state.q.unflatten(1, (3, 3))[:, [2, 0, 1]].flatten(1)
    labeled = torch.tensor([True, False])
    present = torch.ones(2, 3, dtype=torch.bool)
    matched = aligned(observation, State(true, torch.zeros_like(true)), present, labeled)
    torch.testing.assert_close(matched.state.q[0], true[0])
    torch.testing.assert_close(matched.state.q[1], observation.state.q[1])
    codes = observation.appearance.code.unflatten(1, (3, -1))
    torch.testing.assert_close(matched.appearance.code[0].unflatten(0, (3, -1)), codes[0, [2, 0, 1]])


def test_objects_keep_their_slots_from_window_to_window():
    """Two balls cross; whatever order each window has them in, and wherever a segment ends, slots stay theirs."""
    dt, frames = 1 / 30, 12
    times = torch.arange(frames, dtype=torch.float32)[:, None]
    first = torch.cat([10 + 3 * times, 20 + 0 * times, 0 * times], 1)
    second = torch.cat([43 - 3 * times, 21 + 0 * times, 0 * times], 1)
    q, v = torch.stack([first, second], 1), torch.tensor([[3.0, 0, 0], [-3.0, 0, 0]]).expand(frames, 2, 3) / dt
    torch.manual_seed(0)
    order = torch.stack([torch.randperm(2) for _ in range(frames)])
    rows = torch.arange(frames)[:, None]
    positions, velocities = (part[rows, order].flatten(1)[:, None] for part in (q, v))
    code = AppearanceCode(order.repeat_interleave(3, 1).float(), torch.zeros(frames, 3, 4, 4))
    std = torch.ones_like(positions)
    shuffled = Observation(
        positions, velocities, torch.ones(frames, 1, 2), position_std=std, velocity_std=std, appearance=code
    )
    whole = chained(shuffled, None, dt)
    assert (whole.appearance.code == whole.appearance.code[:1]).all()
    start = order[0].argsort() if order[0, 0] else torch.arange(2)
    torch.testing.assert_close(whole.positions[:, 0].unflatten(1, (2, 3))[:, start], q)
    pieces, earlier = [], None
    for rows in (slice(0, 5), slice(5, 6), slice(6, frames)):
        piece = Observation(
            positions[rows],
            velocities[rows],
            torch.ones(frames, 1, 2)[rows],
            position_std=std[rows],
            velocity_std=std[rows],
            appearance=code[rows],
        )
        earlier = chained(piece, earlier, dt)
        pieces.append(earlier.positions)
    torch.testing.assert_close(torch.cat(pieces), whole.positions)


def test_the_property_loss_is_least_at_the_truth_and_knows_ratios_of_masses_only():
    labeled, present = torch.tensor([True]), torch.ones(1, 2, dtype=torch.bool)
    true = {"mass": torch.tensor([[1.0, 2.0]]), "restitution": torch.tensor([0.9])}
    stds = {"mass": torch.full((1, 2), 0.1), "restitution": torch.tensor([0.05])}

    def loss(mass, restitution):
        values = {"mass": torch.tensor([mass]), "restitution": torch.tensor([restitution])}
        return float(property_loss(values, stds, true, labeled, present))

    minimum = loss([1.0, 2.0], 0.9)
    assert loss([0.5, 1.0], 0.9) == pytest.approx(minimum)
    assert loss([1.0, 1.0], 0.9) > minimum
    assert loss([1.0, 2.0], 0.8) > minimum


def test_the_radius_starts_from_the_masks():
    head = TrackPropertyHead({"restitution": (0.8, 0.9)}, {"radius": (2.5, 6.0)})
    area = torch.full((1, 4, 2), math.pi * 25.0)
    walls = torch.tensor([[0.0, 0, 64, 64]])
    tracks = Tracks(torch.rand(1, 4, 2, 2), torch.arange(4.0) / 30, torch.ones(1, 4, 2), area, walls)
    assert head(tracks)[0]["radius"].tolist() == [pytest.approx([5.0, 5.0])]


class Bright(torch.nn.Module):
    """Segmentation that marks bright cells, whatever the orientation."""

    def forward(self, frames, background):
        return torch.nn.functional.avg_pool2d(frames.mean(1, keepdim=True), 2).expand(-1, 2, -1, -1)


def test_augmented_segmentation_is_that_of_the_frames_as_they_are():
    encoder = tiny_encoder()
    encoder.segmentation = Bright()
    frames = torch.full((2, 3, 3, 64, 64), 0.2)
    frames[0, :, :, 10:12, 40:42] = 1.0
    frames[1, :, :, 50:52, 6:8] = 1.0
    for _ in range(8):
        logits = encoder.train()._segment(frames, torch.zeros(2, 3, 64, 64))
        peaks = logits[:, :, 0].flatten(2).argmax(2)
        assert peaks.tolist() == [[5 * 32 + 20] * 3, [25 * 32 + 3] * 3]


def test_walls_have_the_restitution_of_balls_where_they_have_none_of_their_own():
    leaves = tabletop_leaves({"radius": torch.full((2, 3), 3.2), "restitution": torch.tensor([1.0, 0.8])})
    torch.testing.assert_close(leaves["restitution"], torch.tensor([[1.0], [0.8]]).expand(2, 7))
    torch.testing.assert_close(leaves["radius"], torch.tensor([3.2, 3.2, 3.2, 0, 0, 0, 0]).expand(2, 7))
