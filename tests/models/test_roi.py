"""Crops around objects."""

import torch

from physvision.models.roi import boxes_around, crop_patches, samples_inside


def test_a_patch_is_a_part_of_the_picture():
    picture = torch.arange(20.0).reshape(1, 1, 1, 4, 5)
    inner = crop_patches(picture, torch.tensor([[[2, 1]]]), 3)
    torch.testing.assert_close(inner[0, 0, 0], picture[0, 0, 0, 0:3, 1:4])
    corner = crop_patches(picture, torch.tensor([[[0, 0]]]), 4, fill=-1.0)
    assert (corner[0, 0, 0, :2] == -1).all()
    torch.testing.assert_close(corner[0, 0, 0, 2:, 2:], picture[0, 0, 0, :2, :2])


def test_samples_of_a_box_lie_on_the_picture_up_to_the_edge_of_its_last_pixels():
    """A box of 4 px around the middle of the first pixel of 3 × 5: a half lies beyond each near border."""
    inside = samples_inside(boxes_around(torch.tensor([[[0.0, 0.0]], [[4.0, 2.0]]]), 4.0), 8, (3, 5))
    # Samples every half pixel, from -1.75 to 1.75 around the middle: those from -0.25 on, and those up to 0.25.
    expected = torch.zeros(2, 8, 8)
    expected[0, 3:, 3:] = 1.0
    expected[1, :5, :5] = 1.0
    assert torch.equal(inside, expected)
