"""What the table's encoder sees: contrast without hues, a registered background, crops around the objects."""

# pyright: reportAttributeAccessIssue=false

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from physvision.core import State
from physvision.models import BallCamera, CameraDecoder, ClipContext, TableEncoder, VggEncoder, table_encoder
from physvision.models.segmentation import DIFFERENCE_GAIN, contrast_channels
from physvision.models.segmenting_encoder import SegmentingEncoder
from physvision.models.table_crops import (
    COLOR_CROP_CHANNELS,
    CROP_CHANNELS,
    CROP_OUTPUTS,
    BallCropSettings,
    crop_channels,
)
from physvision.models.table_motion import TableMotion, TableMotionSettings
from physvision.models.tabletop import back_project, project, tabletop


def encoder_of(network=None):
    return TableEncoder(
        2, (64, 64), 1 / 30, network or VggEncoder(CROP_CHANNELS, CROP_OUTPUTS, 0.05, 1, 0.0), BallCamera(2)
    )


def rotated(camera, angles):
    """Poses of a camera that turns about its pinhole, (times, 4, 4)."""
    poses = []
    for x, y in angles:
        turn = torch.tensor([[1, 0, y], [0, 1, -x], [-y, x, 1]], dtype=torch.float64)
        rotation = torch.eye(4, dtype=torch.float64)
        rotation[:3, :3] = torch.linalg.qr(turn)[0] * torch.linalg.qr(turn)[1].diagonal().sign()
        poses.append(rotation @ camera.extrinsics.double())
    return torch.stack(poses)


def pattern(x, y):
    return torch.stack([torch.sin(0.7 * x), torch.sin(0.5 * y + 1), torch.sin(0.4 * (x + y))]) * 0.3 + 0.5


def views(camera, poses):
    """Frames of the pattern on the plane z = 0, exactly."""
    at = torch.arange(64.0, dtype=torch.float64)
    rays = torch.stack([*torch.meshgrid(at, at, indexing="xy"), torch.ones(64, 64, dtype=torch.float64)])
    frames = []
    for pose in poses:
        plane = torch.linalg.inv(camera.intrinsics.double() @ pose[:3][:, [0, 1, 3]])
        ground = torch.einsum("ij,jhw->ihw", plane, rays)
        frames.append(pattern(ground[0] / ground[2], ground[1] / ground[2]))
    return torch.stack(frames).float()


def test_the_background_is_registered_by_the_poses_of_the_camera():
    encoder = encoder_of().eval()
    camera = encoder.camera.caster.camera
    torch.manual_seed(0)
    poses = rotated(camera, 0.01 * torch.randn(15, 2))[None]
    frames = views(camera, poses[0])[None]
    context = ClipContext(extrinsics=poses.float())
    known = encoder.encode(frames, context)[1].background
    unknown = encoder.encode(frames, ClipContext())[1].background
    inner = (slice(None), slice(None), slice(8, -8), slice(8, -8))
    apart = [float((view - frames[:, -2])[inner].abs().mean()) for view in (known, unknown)]
    # Bilinear interpolation of a wave of 9 px is off by (2π / 9)² / 8 = 6 % of its amplitude at most.
    assert apart[0] < 0.06 * 0.3
    assert apart[1] > 4 * apart[0]


def test_the_decoder_shows_the_background_from_the_pose_of_each_frame():
    encoder, decoder = encoder_of().eval(), CameraDecoder(BallCamera(2))
    camera = encoder.camera.caster.camera
    torch.manual_seed(1)
    poses = rotated(camera, 0.01 * torch.randn(20, 2))[None].float()
    frames = views(camera, poses[0].double())[None]
    looks = encoder.encode(frames[:, :15], ClipContext(extrinsics=poses))[0].appearance
    away = State(torch.full((5, 6), -500.0), torch.zeros(5, 6))
    known, unknown = (decoder(away, None, looks.repeat(5, later)) for later in (poses[0, 15:], None))
    inner = (slice(None), slice(None), slice(8, -8), slice(8, -8))
    apart = [float((view - frames[0, 15:])[inner].abs().mean()) for view in (known, unknown)]
    # Interpolated twice, each time off by at most 6 % of the wave's amplitude.
    assert apart[0] < 2 * 0.06 * 0.3
    assert apart[1] > 3 * apart[0]


def test_contrast_knows_no_hues():
    frames, background = torch.rand(2, 3, 8, 8), torch.rand(2, 3, 8, 8)
    order = [2, 0, 1]
    torch.testing.assert_close(
        contrast_channels(frames, background), contrast_channels(frames[:, order], background[:, order])
    )
    still = contrast_channels(frames, frames)
    assert (still[:, 1] == 0).all()
    assert float(still[:, 2].max() - still[:, 2].min()) == 0.0


class Centroid(nn.Module):
    """Center of the last mask in a crop of 20 px, and its displacement a frame, from crops of masks."""

    def __init__(self):
        super().__init__()
        # The encoder starts a network's last layer at zero; this one has no use.
        self.unused = nn.Linear(1, 1)

    def forward(self, patches):
        at = (torch.arange(32) + 0.5) * 20 / 32 - 10
        masks = patches[:, -3:]
        total = masks.sum((2, 3)).clamp_min(1e-6)
        centers = torch.stack([(masks * at).sum((2, 3)) / total, (masks * at[:, None]).sum((2, 3)) / total], -1)
        return functional.pad(torch.cat([centers[:, 2], (centers[:, 2] - centers[:, 0]) / 2], -1), (0, 4))


class Drawn(nn.Module):
    """Segmentation of frames whose first channel is a mask already."""

    def forward(self, frames, background):
        cells = functional.avg_pool2d(frames[:, :1], 2)
        at = 2 * torch.arange(32) + 0.5
        total = cells.sum((2, 3)).clamp_min(1e-6)
        x, y = ((cells * grid).sum((2, 3)) / total for grid in (at, at[:, None]))
        squared = (at - x[..., None]).square() + (at[:, None] - y[..., None]).square()
        return torch.cat([torch.logit(cells, 1e-5), (4 - 2 * squared)[:, None].clamp_min(-6)], 1)


@pytest.mark.parametrize("seed", range(4))
def test_crops_are_centered_on_objects_and_mirrored_without_a_trace(seed, monkeypatch):
    """A ball moves by (2, -1) px a frame; crops of its mask tell so, however training mirrors them."""
    encoder = encoder_of(Centroid())
    encoder.segmentation = Drawn()
    monkeypatch.setattr(encoder, "_augmented", lambda recent, background: (recent, background))
    at = torch.arange(64.0)
    frames = []
    for frame in range(3):
        x, y = 30.3 + 2 * frame, 40.2 - frame
        disc = (4.0 - ((at - x).square() + (at[:, None] - y).square()).sqrt()).clamp(0, 1)
        frames.append(disc.expand(3, 64, 64))
    clip = torch.stack(frames)[None]
    monkeypatch.setattr(encoder, "registered_background", lambda *_: torch.zeros(1, 3, 64, 64))
    torch.manual_seed(seed)
    corrected = []
    for correct, jitter in ((True, 0.3), (False, 0.0)):
        monkeypatch.setattr(table_encoder, "_PLACE_JITTER", jitter)
        if not correct:
            monkeypatch.setattr(Centroid, "forward", lambda self, patches: torch.zeros(len(patches), 8))
        observation = encoder.encode(clip, ClipContext())[0]
        corrected.append(torch.cat([observation.positions[0, 0, :2], observation.velocities[0, 0, :2] / 30]))
    change = corrected[0] - corrected[1]
    # The network finds the displaced crop's way back to the mask's centroid, and adds the slope once more.
    assert change[:2].tolist() == pytest.approx([0.0, 0.0], abs=0.02)
    # Corrections are limited smoothly to 4 px.
    assert change[2:].tolist() == pytest.approx([4 * math.tanh(0.5), -4 * math.tanh(0.25)], abs=0.02)


class MeanMotion(nn.Module):
    """Corrects the velocity by the mean motion of a crop, seen over two frames."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(1, 1)

    def forward(self, patches):
        return functional.pad(patches[:, -2:].mean((2, 3)), (2, 4))


class Shift(nn.Module):
    """Optical flow that is the same everywhere, one displacement for each pair."""

    def __init__(self, shifts):
        super().__init__()
        self.shifts = shifts

    def forward(self, first, second):
        return self.shifts.repeat(len(first) // len(self.shifts), 1)[:, :, None, None].expand(-1, -1, 64, 64)


@pytest.mark.parametrize("seed", range(4))
def test_flow_becomes_motion_on_the_table_under_a_moving_camera(seed, monkeypatch):
    """The camera shakes; flow of a ball's center still gives its velocity on the table, mirrored or not."""
    camera = BallCamera(2)
    poses = rotated(camera.caster.camera, [(0.002 * k, -0.003 * k) for k in range(3)])[None].float()
    radius = 4.0
    at = torch.tensor([30.0, 35.0]) + torch.arange(3)[:, None] * torch.tensor([1.5, -0.8])
    points = torch.cat([at, torch.full((3, 1), -radius)], 1)[:, None]
    pixels = project(points, camera.caster.camera.intrinsics.float(), poses[0])[:, 0]
    flow = Shift(torch.stack([pixels[1] - pixels[2], pixels[0] - pixels[2]]))
    encoder = TableEncoder(2, (64, 64), 1 / 30, MeanMotion(), camera, crops=BallCropSettings(codes=0), flow=flow)
    encoder.segmentation = Drawn()
    monkeypatch.setattr(encoder, "_augmented", lambda recent, background: (recent, background))
    monkeypatch.setattr(encoder, "registered_background", lambda *_: torch.zeros(1, 3, 64, 64))
    grid = torch.arange(64.0)
    x, y = pixels[2]
    disc = (radius + 0.5 - ((grid - x).square() + (grid[:, None] - y).square()).sqrt()).clamp(0, 1)
    clip = disc.expand(1, 3, 3, 64, 64)
    torch.manual_seed(seed)
    velocity = encoder.encode(clip, ClipContext(extrinsics=poses))[0].velocities[0, 0, :2] / 30
    # The mask stands still in the picture, so its slope on the table is that of the camera alone.
    still = back_project(pixels[2].expand(3, 1, 2), camera.caster.camera.intrinsics.float(), poses[0], -points[:, :, 2])
    slope = (still[2, 0] - still[0, 0]) / 2
    correction = torch.tensor([1.5, -0.8]) - slope
    expected = slope + 4 * torch.tanh(correction / 4)
    assert velocity.tolist() == pytest.approx(expected.tolist(), abs=0.02)


def test_windows_of_a_clip_are_read_as_they_are_by_themselves_before_its_background():
    torch.manual_seed(2)
    encoder = encoder_of().eval()
    camera = encoder.camera.caster.camera
    poses = rotated(camera, 0.01 * torch.randn(12, 2))[None].expand(2, -1, -1, -1)
    frames = torch.stack([views(camera, poses[0]), torch.rand(12, 3, 64, 64)])
    context = ClipContext(poses.float(), {"walls": torch.tensor([[1.0, 2.0, 60.0, 61.0], [0.0, 0.0, 64.0, 64.0]])})
    windows = encoder._read_windows(frames, [5, 8], context)
    assert [window.positions.shape for window in windows] == [(2, 1, 6)] * 2
    for end, window in zip((5, 8), windows, strict=True):
        recent = slice(end - 2, end + 1)
        indices, median = SegmentingEncoder._context(encoder, frames, context)
        balls = encoder._segment_context(frames, indices, median)[1]
        registered = encoder._masked_background(frames, indices, balls, end + 1, context)
        alone = encoder.encode(
            frames[:, recent], ClipContext(context.extrinsics[:, recent], context.properties), False, registered
        )[0]
        torch.testing.assert_close(window.positions, alone.positions)
        torch.testing.assert_close(window.properties["walls"], context.properties["walls"])


def test_an_engine_changes_what_is_observed_in_evaluation_and_the_window_alone_stays():
    torch.manual_seed(3)
    plain = encoder_of().eval()
    fitted = TableEncoder(
        2,
        (64, 64),
        1 / 30,
        plain.network,
        BallCamera(2),
        motion=TableMotion(tabletop(2), 2, TableMotionSettings(max_cost=1e9, position_std=0.5, velocity_std=5.0)),
    )
    fitted.load_state_dict(plain.state_dict())
    fitted.eval()
    frames = torch.rand(1, 8, 3, 64, 64)
    assert dict(fitted.motion.named_parameters()) == {}
    torch.testing.assert_close(fitted.observe_window(frames).positions, plain.observe(frames).positions)
    observation, own = fitted.observe(frames), plain.observe(frames)
    assert observation.positions.shape == own.positions.shape
    assert not torch.equal(observation.velocities, own.velocities)


def test_with_colors_crops_tell_a_hue_that_brightness_does_not():
    """A ball as bright as the cloth: only its colors differ."""
    background = torch.full((1, 3, 64, 64), 0.5)
    frames = background[:, None].repeat(1, 3, 1, 1, 1)
    frames[:, :, :, 20:28, 20:28] = torch.tensor([0.7, 0.5, 0.3])[:, None, None]
    channels = crop_channels(frames, background, colors=True).unflatten(1, (3, -1))
    assert torch.equal(channels[0, 1, -3:, 24, 24], DIFFERENCE_GAIN * (frames - background[:, None])[0, 1, :, 24, 24])
    assert torch.equal(channels[:, :, :5], contrast_channels(frames[0], background.expand(3, -1, -1, -1))[None])
    assert float(channels[0, 1, 0, 24, 24]) == pytest.approx(0.0, abs=1e-6)
    network = VggEncoder(COLOR_CROP_CHANNELS, CROP_OUTPUTS, 0.05, 2, 0.0)
    encoder = TableEncoder(
        2, (64, 64), 1 / 30, network, BallCamera(2), crops=BallCropSettings(64, True, codes=0)
    ).eval()
    assert encoder.observe(frames).positions.isfinite().all()
