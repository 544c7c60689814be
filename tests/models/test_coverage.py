"""Centroids of coverage: exact to parts of a pixel where it is proportional to what a crop shows."""

import pytest
import torch
from torch import nn

from physvision.core import InputError
from physvision.models import BallCropSettings
from physvision.models.coverage import CoverageNetwork

EXTENT, SIDE = 20.0, 64


def blobs(count=16):
    """Crops whose first channel is a smooth blob, and its places."""
    torch.manual_seed(0)
    places = 2.0 * torch.randn(count, 2)
    at = EXTENT * ((torch.arange(SIDE) + 0.5) / SIDE - 0.5)
    columns, rows = at - places[:, :1], at - places[:, 1:]
    blob = torch.exp(-(rows[:, :, None].square() + columns[:, None].square()) / 4.0)
    return torch.stack([blob, torch.rand_like(blob)], 1), places


def test_a_centroid_is_exact_where_coverage_is_what_the_crop_shows():
    crops, places = blobs()
    network = CoverageNetwork(2)
    convolutions = [layer for layer in network.layers if isinstance(layer, nn.Conv2d)]
    entry, exit_layer = convolutions
    with torch.no_grad():
        for layer in convolutions:
            layer.weight.zero_()
            layer.bias.zero_()
        entry.weight[0, 0] = 1.0
        exit_layer.bias.fill_(-1.0)  # softplus of the background is nearly zero
        exit_layer.weight[0, 0] = 4.0
        middle = network(crops, torch.ones(len(crops), SIDE, SIDE), EXTENT)
    assert (middle - places).norm(dim=1).max() < 0.05


def test_few_crops_teach_it_to_tell_an_object_from_noise():
    crops, places = blobs(64)
    torch.manual_seed(1)
    network = CoverageNetwork(2)
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    errors = []
    for _ in range(120):
        error = (network(crops, torch.ones(len(crops), SIDE, SIDE), EXTENT) - places).abs()
        optimizer.zero_grad()
        error.mean().backward()
        optimizer.step()
        errors.append(float(error.detach().mean()))
    assert errors[0] > 1.0
    assert errors[-1] < 0.1


def test_an_empty_crop_has_its_centroid_near_the_middle():
    empty = CoverageNetwork(2)(torch.zeros(3, 2, SIDE, SIDE), torch.ones(3, SIDE, SIDE), EXTENT)
    assert empty.abs().max() < 1.0


def test_nothing_is_covered_beyond_the_border_of_a_picture():
    """A crop whose left half lies outside: of even coverage, the centroid is that of the other half."""
    inside = torch.ones(1, SIDE, SIDE)
    inside[:, :, : SIDE // 2] = 0.0
    middle = CoverageNetwork(2)(torch.ones(1, 2, SIDE, SIDE), inside, EXTENT)
    torch.testing.assert_close(middle, torch.tensor([[0.25 * EXTENT, 0.0]]), atol=0.05, rtol=0)


def test_coverage_is_read_from_colors():
    with pytest.raises(InputError, match="refine needs colors"):
        BallCropSettings(refine=True)
