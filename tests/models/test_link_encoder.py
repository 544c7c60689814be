"""The encoder of chains of links: camera against the data set's own masks, geometry of directions, crops and motion."""

# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from physvision.core import State
from physvision.datasets import SwingRecipe
from physvision.models import CameraDecoder, ClipContext, LinkCamera, LinkEncoder, VggEncoder, swing, swing_leaves
from physvision.models.camera_decoder import in_front
from physvision.models.link_encoder import LINK_CHANNELS, LINK_OUTPUTS
from physvision.models.links import LinkFrames
from physvision.models.segmentation import LinkSegmentation
from physvision.models.tabletop import back_project

DT = 1 / 30


@pytest.fixture(scope="module")
def trials():
    """Trials of the data set, whose masks and motion share no code with engine and camera."""
    recipe = SwingRecipe(frames=40, clutter=0, exposure=(0.0, 0.0))
    return [recipe.make("train", number) for number in range(3)]


def properties_of(trial, repeats=1):
    names = ("length", "mass", "joint_damping", "half_width")
    values = {name: torch.as_tensor(np.asarray(trial[name])).float() for name in names}
    # Properties of a trial have a row for each frame.
    rows = {name: value[:1] for name, value in values.items()}
    return {name: value.repeat_interleave(repeats, 0) for name, value in rows.items()}


def tensor(trial, name):
    return torch.as_tensor(trial[name]).float()


def test_the_engine_moves_as_the_trials_do(trials):
    for trial in trials:
        q, v = tensor(trial, "q"), tensor(trial, "v")
        path = swing().rollout(State(q[:1], v[:1]), 30, properties=swing_leaves(properties_of(trial)))
        torch.testing.assert_close(path.q[0], q[:31], atol=2e-3, rtol=0)


def test_every_link_is_drawn_where_the_masks_of_the_trials_are(trials):
    decoder = CameraDecoder(LinkCamera(), None, layered=True)
    at = torch.arange(64.0)
    for trial in trials:
        values = swing_leaves(properties_of(trial, 40))
        q = tensor(trial, "q")
        layers = decoder.layers(
            State(q, torch.zeros_like(q)), swing().properties.overridden(values), tensor(trial, "extrinsics")
        )
        for link in range(2):
            mask, cover = torch.as_tensor(trial["masks"] == link + 1).float(), layers.coverage[:, link]
            whole = mask.sum((1, 2)) > 20
            total = [part.sum((1, 2)).clamp_min(1e-3) for part in (mask, cover)]
            # Masks include the hinges, which are wider by 0.3 of a half width.
            assert (torch.minimum(mask, cover).sum((1, 2)) / total[0])[whole].min() > 0.75
            assert (torch.minimum(mask, cover).sum((1, 2)) / total[1])[whole].min() > 0.8
            for grid in (at, at[:, None]):
                center = [(part * grid).sum((1, 2)) / count for part, count in zip((mask, cover), total, strict=True)]
                assert (center[0] - center[1])[whole].abs().max() < 1.2


def test_a_layer_in_front_keeps_its_outline_and_hides_the_one_behind(trials):
    trial = trials[0]
    values = swing().properties.overridden(swing_leaves(properties_of(trial)))
    camera, pose = LinkCamera(), tensor(trial, "extrinsics")[:1]
    # Folded: the second link lies on the first one.
    state = State(torch.tensor([[0.4, math.pi]]), torch.zeros(1, 2))
    scene = camera.appearance(state, values)
    moved = in_front(scene, pose)
    caster = camera.caster
    posed = replace(caster.camera.to(scene.poses), extrinsics=pose)
    for link in range(2):
        parts = [type(scene)(part.poses.clone(), part.sizes.clone()) for part in (scene, moved)]
        for part in parts:
            # The other link is far away.
            part.poses[:, 1 - link, 0, 3] = 100.0
        alone = [caster.masks(part.poses, sizes=part.sizes, camera=posed)[0, link] for part in parts]
        torch.testing.assert_close(alone[0], alone[1], atol=0.02, rtol=0)
        if link == 1:
            together = caster.masks(moved.poses, sizes=moved.sizes, camera=posed)[0, 1]
            torch.testing.assert_close(together, alone[1], atol=0.02, rtol=0)


class Still(nn.Module):
    """A network that corrects nothing."""

    def __init__(self, outputs):
        super().__init__()
        # The encoder starts a network's last layer near zero; this one has no use.
        self.unused, self.outputs = nn.Linear(1, 1), outputs

    def forward(self, crops):
        return torch.zeros(len(crops), self.outputs)


class Drawn(nn.Module):
    """Segmentation of frames whose first two channels are masks already."""

    def forward(self, frames, background):
        return torch.logit(functional.avg_pool2d(frames[:, :2], 2), 1e-4)


class PlaneFlow(nn.Module):
    """Optical flow that is known."""

    def __init__(self, flows):
        super().__init__()
        self.flows = flows

    def forward(self, first, second):
        return self.flows


def encoder_of(network=None, flow=None):
    flow = flow or PlaneFlow(torch.zeros(2, 2, 64, 64))
    encoder = LinkEncoder(2, (64, 64), DT, network or Still(LINK_OUTPUTS), LinkCamera(), swing(), flow)
    encoder.segmentation, encoder.frame_network = Drawn(), Still(5)
    return encoder


def clip_of(trial, count):
    masks = torch.as_tensor(trial["masks"][:count])
    channels = [(masks == 1).float(), (masks == 2).float(), torch.zeros(count, 64, 64)]
    return torch.stack(channels, 1)[None], ClipContext(tensor(trial, "extrinsics")[None, :count])


@pytest.mark.parametrize("training", [False, True])
def test_directions_are_those_of_the_masks_under_a_tilted_camera(trials, training, monkeypatch):
    """Without corrections: the directions of centroids, seen through the pose of each frame."""
    monkeypatch.setattr("physvision.models.link_encoder._SCALE_RANGE", 0.0)
    monkeypatch.setattr("physvision.models.link_encoder._ANGLE_JITTER", 0.0)
    monkeypatch.setattr("physvision.models.link_encoder._PLACE_JITTER", 0.0)
    encoder = encoder_of().train(training)
    monkeypatch.setattr(encoder, "_augmented", lambda recent, background: (recent, background))
    monkeypatch.setattr(encoder, "_segment", lambda recent, _: encoder.segmentation(recent[0], None)[None])
    for trial in trials:
        frames, context = clip_of(trial, 20)
        observation, segmented = encoder.encode(frames, context)
        times = encoder.read_times(20)
        true = tensor(trial, "q")[times]
        error = encoder.angles.unwind(observation.positions[0].cumsum(-1) - true.cumsum(-1)).abs()
        # The start of the second link is off by up to 0.2 m, for its network is told nothing of lengths.
        assert error[:, 0].median() < 0.06
        assert error[:, 1].median() < 0.45
        assert segmented.logits.shape == (1, 3, 2, 32, 32)
        assert observation.position_std.shape == observation.positions.shape == (1, len(times), 2)
        assert observation.appearance.code.shape == (1, 24)
        assert observation.properties["length"].tolist() == [[pytest.approx(0.8)] * 2]


class Turn(nn.Module):
    """Correction that leads from where a crop was placed to the direction of the mask in it."""

    def __init__(self, outputs):
        super().__init__()
        self.unused, self.outputs = nn.Linear(1, 1), outputs

    def forward(self, crops):
        # A link begins 0.4 of a crop's 1.6 m left of the center; rows go across, columns along.
        cells = 1.6 * ((torch.arange(32) + 0.5) / 32 - 0.5)
        mask = crops[:, 3]
        total = mask.sum((1, 2)).clamp_min(1e-3)
        along = ((cells + 0.4) * mask).sum((1, 2)) / total
        across = (cells[:, None] * mask).sum((1, 2)) / total
        result = torch.zeros(len(crops), self.outputs)
        # Across is (cos θ, sin θ), against which a growing angle turns.
        result[:, 0] = -torch.atan2(across, along)
        return result


@pytest.mark.parametrize("seed", range(4))
def test_crops_that_are_misplaced_and_mirrored_lead_back_to_the_link(trials, seed, monkeypatch):
    """In training crops are placed with errors of 0.12 rad and mirrored; a network that reads the mask mends both."""
    encoder = encoder_of().train()
    encoder.frame_network = Turn(5)
    monkeypatch.setattr("physvision.models.link_encoder._PLACE_JITTER", 0.0)
    monkeypatch.setattr(encoder, "_augmented", lambda recent, background: (recent, background))
    monkeypatch.setattr(encoder, "_segment", lambda recent, _: encoder.segmentation(recent[0], None)[None])
    torch.manual_seed(seed)
    frames, context = clip_of(trials[seed % 3], 20)
    angles = encoder.encode(frames, context)[0].positions[0, :-1, 0]
    true = tensor(trials[seed % 3], "q")[encoder.read_times(20)][:-1, 0]
    # Left are cells of 2 px: a third of one at an arm of 5 px.
    assert float((angles - true).abs().median()) < 0.06


def test_flow_of_a_turning_link_is_no_residual_motion(trials):
    """Points of a rigid link that turns as the slope says have no motion left, others have."""
    encoder = encoder_of().eval()
    trial = trials[1]
    context = clip_of(trial, 20)[1]
    q, lengths = tensor(trial, "q"), properties_of(trial)["length"][0]
    directions = q.cumsum(-1)

    def carried(points, frame):
        """Where the material points of each link at frame 19 were at another frame."""
        start = [torch.zeros(2), torch.zeros(2)]
        for link in range(2):
            now, then = directions[19, link], directions[frame, link]
            turn = then - now
            rotation = torch.stack([torch.stack([turn.cos(), -turn.sin()]), torch.stack([turn.sin(), turn.cos()])])
            yield (points - start[0]) @ rotation.T + start[1]
            for side, angle in enumerate((now, then)):
                start[side] = start[side] + lengths[link] * torch.stack([-angle.sin(), angle.cos()])

    camera = encoder.camera.caster.camera
    grid = torch.stack(torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="xy"), -1).flatten(0, 1)
    poses = context.extrinsics
    now = back_project(grid[None], camera.intrinsics.float(), poses[:, 19], torch.zeros(1, 4096))[0]
    read = LinkFrames(
        torch.zeros(1, 3, 3, 64, 64),
        torch.zeros(1, 3, 2, 32, 32),
        torch.zeros(1, 3, 2, 2),
        poses[:, 17:],
        torch.ones(1),
        torch.ones(1),
    )
    slopes = (directions[19] - directions[17])[None] / (2 * DT)
    for link in range(2):
        motion = torch.stack([(now - list(carried(now, frame))[link]) / (19 - frame) for frame in (18, 17)])
        motion = motion.transpose(1, 2).unflatten(-1, (64, 64))[None]
        start = torch.zeros(1, 2)
        if link:
            start = lengths[None, :1] * torch.stack([-directions[19:20, 0].sin(), directions[19:20, 0].cos()], -1)
        place = start, directions[19:20, link]
        chain = directions[19][None], lengths[None]
        left = encoder._residual_motion(read, motion, place, slopes[:, : link + 1], chain, link)
        apart = encoder._residual_motion(read, motion, place, 0.0 * slopes[:, : link + 1], chain, link)
        inner = (..., slice(12, 20), slice(8, 20))
        # Accelerations of up to 20 rad/s² move a point by 0.01 m more or less than the mean slope.
        assert float(left[inner].abs().mean()) < 0.15
        if float(slopes[0, : link + 1].abs().max()) > 1.0:
            assert float(apart[inner].abs().mean()) > 1.5 * float(left[inner].abs().mean())


def test_segmentation_learns_the_visible_share_of_each_link():
    network = LinkSegmentation(2, 8)
    coverage = torch.zeros(1, 2, 16, 16)
    coverage[0, 1, 4:8, 4:7] = 1.0
    target = network.targets(coverage)
    assert target.shape == (1, 2, 8, 8)
    assert float(target[0, 0].sum()) == 0.0
    assert float(4 * target[0, 1].sum()) == 12.0
    frames = torch.rand(2, 3, 64, 64)
    assert network(frames, frames).shape == (2, 2, 32, 32)
    # The distance from the hinge has no orientation: it may be mirrored as frames are.
    inputs = network.inputs(frames, frames)[:, -1]
    torch.testing.assert_close(inputs, inputs.flip(-1).transpose(-1, -2))


def test_an_observation_is_refined_to_the_motion_of_the_engine(trials):
    """Properties become those that the directions determine; the network's state stays in training."""
    network = VggEncoder(LINK_CHANNELS, LINK_OUTPUTS, 0.05, 1, 0.0)
    encoder = encoder_of(network).eval()
    frames, context = clip_of(trials[0], 30)
    observation = encoder.encode(frames, context)[0]
    exact = tensor(trials[0], "q")[None, :30]
    known = properties_of(trials[0])
    observation = replace(
        observation,
        positions=exact,
        position_std=torch.full_like(exact, 0.003),
        velocity_std=torch.full_like(observation.velocity_std, 50.0),
        properties={**observation.properties, "length": known["length"]},
        property_std={**observation.property_std, "length": torch.full((1, 2), 0.001)},
    )
    refined = encoder.refined(observation, 30)
    assert refined.properties["length"].shape == (1, 2)
    torch.testing.assert_close(refined.positions[:, -1], exact[:, -1], atol=0.005, rtol=0)
    torch.testing.assert_close(refined.velocities[0, 0], tensor(trials[0], "v")[29], atol=0.1, rtol=0)
    ratio = refined.properties["mass"][0, 1] / refined.properties["mass"][0, 0]
    assert float(ratio / (known["mass"][0, 1] / known["mass"][0, 0])) == pytest.approx(1.0, abs=0.15)
    encoder.train()
    times = encoder.read_times(30)
    part = replace(observation, positions=exact[:, times], position_std=torch.full((1, len(times), 2), 0.003))
    trained = encoder.refined(part, 30)
    assert torch.equal(trained.velocities, observation.velocities)
    assert not torch.equal(trained.properties["mass"], observation.properties["mass"])


def test_centroids_of_the_last_link_tell_lengths_that_directions_do_not(trials):
    """A chain at rest: its directions say nothing of lengths, the middle of the last link their sum."""
    encoder = encoder_of().eval()
    frames, context = clip_of(trials[0], 30)
    observation = encoder.encode(frames, context, looks=False)[0]
    still, length = torch.zeros(1, 30, 2), torch.tensor([[0.9, 0.7]])
    observation = replace(
        observation,
        positions=still,
        velocities=torch.zeros(1, 1, 2),
        position_std=torch.full_like(still, 0.01),
        velocity_std=torch.full((1, 1, 2), 0.1),
        property_std={**observation.property_std, "length": torch.full((1, 2), 0.1)},
    )
    middle = length[:, 0] + 0.5 * length[:, 1]
    centroids = torch.stack([torch.zeros_like(middle), middle], -1)[:, None].expand(-1, 30, -1)
    alone, together = (encoder.fitted(observation, 30, points).properties["length"] for points in (None, centroids))
    torch.testing.assert_close(alone, torch.full_like(alone, 0.8), atol=1e-3, rtol=0)
    torch.testing.assert_close((together[:, 0] + 0.5 * together[:, 1]).float(), middle, atol=5e-3, rtol=0)


@pytest.mark.parametrize("seed", range(3))
def test_scaled_crops_show_links_of_other_lengths_and_give_back_their_own(trials, seed, monkeypatch):
    """A network that reads where a mask ends returns the same length at every scale of the crop."""

    class Length(nn.Module):
        """Length from the outline of the mask in a crop, on the range that the encoder maps it to."""

        def __init__(self):
            super().__init__()
            self.unused = nn.Linear(1, 1)

        def forward(self, crops):
            cells = 1.6 * ((torch.arange(32) + 0.5) / 32 - 0.5)
            covered = crops[:, 3].amax(1) > 0.5
            length = torch.where(covered, cells + 0.4, -1.0).amax(1)
            result = torch.zeros(len(crops), 5)
            result[:, 2] = torch.atanh(((length - 0.8) / (0.6 * 0.8)).clamp(-0.99, 0.99))
            return result

    encoder = encoder_of().train()
    encoder.frame_network = Length()
    for name in ("_PLACE_JITTER", "_ANGLE_JITTER"):
        monkeypatch.setattr(f"physvision.models.link_encoder.{name}", 0.0)
    monkeypatch.setattr(encoder, "_augmented", lambda recent, background: (recent, background))
    monkeypatch.setattr(encoder, "_segment", lambda recent, _: encoder.segmentation(recent[0], None)[None])
    frames, context = clip_of(trials[seed], 20)
    lengths = []
    for spread in (0.0, 0.25):
        monkeypatch.setattr("physvision.models.link_encoder._SCALE_RANGE", spread)
        torch.manual_seed(seed)
        lengths.append(float(encoder.encode(frames, context, looks=False)[0].properties["length"][0, 0]))
    # A cell of the crop is 0.05 m at the scale 1.
    assert lengths[1] == pytest.approx(lengths[0], abs=0.08)
