"""Looks of links and the decoder that paints them, against the data set's own frames, masks and light."""

# pyright: reportAttributeAccessIssue=false, reportOptionalSubscript=false

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from physvision.core import State, brightness
from physvision.datasets import SwingRecipe
from physvision.losses import ssim_map
from physvision.models import AppearanceCode, LayerNetwork, LinkCamera, LinkDecoder, swing, swing_leaves
from physvision.models.link_looks import blurred, clip_looks, fitted_shadow, masked_median, shifted
from physvision.models.links import LinkFrames

GIVEN, LATER = list(range(0, 30, 2)), 59


class Recorder(SwingRecipe):
    """Recipe that keeps the looks of its last trial."""

    def _looks(self, *arguments):
        looks = super()._looks(*arguments)
        object.__setattr__(self, "kept", looks)
        return looks


@pytest.fixture(scope="module")
def trials():
    """Trials without a sensor's noise, and the light of each."""
    recipe = Recorder(frames=60, noise=(0.0, 0.0), quality=None, flicker=0.0, seed=3, angle=2.5)
    return [(recipe.make("train", number), recipe.kept.lighting) for number in range(4)]


def tensor(trial, name):
    return torch.as_tensor(np.asarray(trial[name])).float()


def frames_of(trial, indices):
    return torch.as_tensor(trial["frames"][indices]).permute(0, 3, 1, 2)[None]


def looks_of(trial, indices=GIVEN):
    """Looks of the given frames at true states and masks."""
    numbers = torch.as_tensor(trial["masks"][indices])
    masks = functional.avg_pool2d(torch.stack([(numbers == link).float() for link in (1, 2)], 1), 2)[None]
    poses = tensor(trial, "extrinsics")[None, indices]
    count = len(indices)
    unused = torch.zeros(1, count, 3, 64, 64), torch.zeros(1, count, 2, 2)
    read = LinkFrames(unused[0], masks, unused[1], poses, torch.ones(1), torch.ones(1))
    chain = tensor(trial, "q")[None, indices].cumsum(-1), tensor(trial, "length")[:1], tensor(trial, "half_width")[:1]
    camera = LinkCamera().caster.camera
    return clip_looks(camera, frames_of(trial, indices), read, chain, torch.zeros(1, 24))


def properties_of(trial):
    names = ("length", "mass", "joint_damping", "half_width")
    return swing().properties.overridden(swing_leaves({name: tensor(trial, name)[:1] for name in names}))


def picture_of(decoder, trial, looks, frame=LATER, turn=0.0):
    q, v = tensor(trial, "q")[None, frame] + turn, tensor(trial, "v")[None, frame]
    looks = replace(looks, extrinsics=tensor(trial, "extrinsics")[None, frame])
    return decoder(State(q, v), properties_of(trial), looks)


def likeness(picture, trial, frame=LATER):
    """SSIM over the masks of both links, dilated by 3 px."""
    mask = torch.as_tensor(trial["masks"][frame] > 0).float()
    dilated = functional.max_pool2d(mask[None, None], 7, 1, 3)[0, 0]
    true = brightness(frames_of(trial, [frame])[0])
    return float((ssim_map(picture.detach().clamp(0, 1), true)[0] * dilated).sum() / dilated.sum())


def test_links_are_drawn_with_their_textures_a_second_after_the_given_frames(trials):
    """No network: textures, hinges, background and shadow alone; plain colors or no shadow do worse."""
    decoder = LinkDecoder(LinkCamera())
    scores = []
    for trial, _ in trials:
        looks = looks_of(trial)
        plain = replace(looks, code=torch.full((1, 24), 0.5), textures=None)
        ways = (looks, replace(looks, shadow=None), plain)
        scores.append([likeness(picture_of(decoder, trial, way), trial) for way in ways])
    whole, bright, plain = np.median(scores, 0)
    assert whole > 0.7
    assert whole > bright + 0.01
    assert whole > plain + 0.2


def test_the_picture_follows_the_state_whatever_the_looks(trials):
    """Textures of another trial change colors, not places; a state turned by 0.8 rad moves the picture."""
    decoder = LinkDecoder(LinkCamera())
    trial, second = trials[0][0], trials[1][0]
    wall = torch.full((1, 3, 64, 64), -1.0)
    own, foreign = (replace(looks_of(shown_trial), background=wall, shadow=None) for shown_trial in (trial, second))

    def shown(looks, turn=0.0):
        return (picture_of(decoder, trial, looks, turn=turn).detach() - wall).abs().amax(1)[0] > 0.6

    mask = torch.as_tensor(trial["masks"][LATER] > 0)
    for looks in (own, foreign):
        place = shown(looks)
        common_pixels = (place & mask).sum()
        assert common_pixels > 0.8 * mask.sum()
        assert common_pixels > 0.8 * place.sum()
        assert (shown(looks, 0.8) & mask).sum() < 0.6 * common_pixels
    assert not torch.allclose(picture_of(decoder, trial, own), picture_of(decoder, trial, foreign), atol=0.05)


def test_looks_know_nothing_of_frames_that_are_not_given(trials):
    trial = trials[0][0]
    first = looks_of(trial)
    changed = {**trial, "frames": trial["frames"].copy()}
    changed["frames"][30:] = 0
    second = looks_of(changed)
    for name in ("textures", "background", "shadow"):
        assert torch.equal(getattr(first, name), getattr(second, name))


def test_a_shadow_is_fitted_where_it_was_cast():
    """A mask that moves over a plain wall, its shadow 4 px right and 2 px up."""
    generator = torch.Generator().manual_seed(0)
    masks = torch.zeros(2, 12, 64, 64)
    for time in range(12):
        masks[:, time, 16 + 2 * time : 28 + 2 * time, 20 + 2 * time : 25 + 2 * time] = 1.0
    true = torch.tensor([[4.0, -4.0, 0.4], [-5.0, 2.0, 0.25]])
    shade = shifted(blurred(masks.flatten(0, 1), 2.0), true[:, :2].repeat_interleave(12, 0)).unflatten(0, (2, 12))
    wall = 0.3 + 0.4 * torch.rand(2, 3, 64, 64, generator=generator)
    images = wall[:, None] * (1.0 - true[:, 2, None, None, None, None] * shade[:, :, None])
    hidden = functional.max_pool2d(masks, 3, 1, 1) > 0
    background = masked_median(images, hidden)
    fitted = fitted_shadow(images, background, masks, hidden)
    torch.testing.assert_close(fitted[:, :2], true[:, :2], atol=1.0, rtol=0)
    torch.testing.assert_close(fitted[:, 2], true[:, 2], atol=0.1, rtol=0)
    none = fitted_shadow(wall[:, None].expand_as(images), wall, masks, hidden)
    assert float(none[:, 2].abs().max()) < 0.02


def test_shadows_of_trials_fall_away_from_the_lamp(trials):
    for trial, lighting in trials:
        shadow = looks_of(trial).shadow[0]
        # The lamp's direction points towards it, from the wall to the camera: z is negative.
        away = torch.as_tensor(lighting.direction[:2] / lighting.direction[2])
        if float(shadow[2]) > 0.1:
            cosine = float((shadow[:2] @ away) / (shadow[:2].norm() * away.norm()).clamp_min(1e-6))
            assert cosine > 0.5, (shadow, away)


def test_the_picture_has_a_sharp_gradient_by_state_and_length(trials):
    """Derivatives of a sum over the picture, against differences."""
    trial = trials[0][0]
    decoder, looks = LinkDecoder(LinkCamera()).double(), looks_of(trial).to(torch.float64)
    looks = replace(looks, extrinsics=tensor(trial, "extrinsics")[None, LATER].double())
    names = ("mass", "joint_damping", "half_width")
    values = {name: tensor(trial, name)[:1].double() for name in names}
    weights = torch.linspace(-1.0, 1.0, 64, dtype=torch.float64)

    def total(q, length):
        own = swing().properties.overridden(swing_leaves({**values, "length": length}))
        picture = decoder(State(q, torch.zeros_like(q)), own, looks)
        return (picture * weights * weights[:, None].square()).sum()

    q = tensor(trial, "q")[None, LATER].double().requires_grad_()
    length = tensor(trial, "length")[:1].double().requires_grad_()
    gradients = torch.autograd.grad(total(q, length), (q, length))
    step = 1e-5
    for place in range(2):
        change = step * torch.eye(2, dtype=torch.float64)[place]
        for number, gradient in enumerate(gradients):
            ends = [
                total(q + sign * change * (number == 0), length + sign * change * (number == 1)) for sign in (1, -1)
            ]
            slope = float((ends[0] - ends[1]) / (2 * step))
            assert float(gradient[0, place]) == pytest.approx(slope, rel=0.05, abs=0.02)


def test_a_network_starts_at_the_flat_picture_and_a_scene_without_a_clip_is_drawn(trials):
    trial = trials[0][0]
    looks = looks_of(trial)
    flat, network = LinkDecoder(LinkCamera()), LayerNetwork(LinkDecoder.input_channels(), 3, 0.05)
    layered = LinkDecoder(LinkCamera(), network)
    torch.testing.assert_close(picture_of(flat, trial, looks), picture_of(layered, trial, looks))
    q = tensor(trial, "q")[:1]
    picture = flat(State(q, torch.zeros_like(q)), properties_of(trial))
    assert picture.shape == (1, 3, 64, 64)
    # Links are gray before black.
    assert float(picture.amax()) == pytest.approx(0.5, abs=0.02)


def test_looks_are_repeated_and_selected_with_all_their_parts():
    parts = {
        "textures": torch.rand(2, 2, 3, 4, 5),
        "shadow": torch.rand(2, 3),
        "background_extrinsics": torch.rand(2, 4, 4),
    }
    looks = AppearanceCode(torch.rand(2, 24), torch.rand(2, 3, 8, 8), **parts)
    repeated = looks.repeat(3, torch.rand(6, 4, 4))
    for name, value in parts.items():
        assert torch.equal(getattr(repeated, name)[3:], value[1:].expand(3, *value.shape[1:]))
        assert torch.equal(getattr(looks[1:], name), value[1:])
        assert getattr(looks.to(torch.float64), name).dtype == torch.float64
    assert repeated.extrinsics.shape == (6, 4, 4)
