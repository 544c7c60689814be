"""Background of a clip behind objects that move and rest."""

import pytest
import torch

from physvision.models.segmenting_encoder import filled, uncovered_median


def test_pixels_take_the_median_of_the_times_that_show_them():
    images = torch.rand(2, 5, 3, 6, 8)
    covered = torch.zeros(2, 5, 1, 6, 8, dtype=torch.bool)
    covered[0, :3, :, 2, 3] = True
    background = uncovered_median(images, covered)
    expected = images.median(1).values
    expected[0, :, 2, 3] = images[0, 3:, :, 2, 3].median(0).values
    assert torch.equal(background, expected)


@pytest.mark.parametrize("side", [7, 64])
def test_what_an_object_always_covers_gets_the_colors_around_it(side):
    ramp = torch.linspace(0, 1, side).expand(1, 3, side, side)
    known = torch.ones(1, 1, side, side, dtype=torch.bool)
    known[..., side // 2 : side // 2 + 3, side // 2 : side // 2 + 3] = False
    image = torch.where(known, ramp, 5.0)
    completed = filled(image, known)
    assert torch.equal(completed[known.expand_as(image)], image[known.expand_as(image)])
    assert (completed - ramp).abs().max() < 3 / side


def test_an_image_without_known_pixels_is_black():
    assert not filled(torch.rand(1, 3, 9, 5), torch.zeros(1, 1, 9, 5, dtype=torch.bool)).any()
