"""Centroids of coverage: exact to parts of a pixel where it is proportional to what a crop shows."""

import torch

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
    first, _, last = network.layers
    with torch.no_grad():
        for layer in (first, last):
            layer.weight.zero_()
            layer.bias.zero_()
        first.weight[0, 0, 1, 1] = 1.0
        last.weight[0, 0] = 1.0
        last.bias.fill_(-1.0)  # softplus of the background is nearly zero
        last.weight[0, 0] = 4.0
        middle = network(crops, EXTENT)
    assert (middle - places).norm(dim=1).max() < 0.05


def test_few_crops_teach_it_to_tell_an_object_from_noise():
    crops, places = blobs(64)
    torch.manual_seed(1)
    network = CoverageNetwork(2)
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    errors = []
    for _ in range(120):
        error = (network(crops, EXTENT) - places).abs()
        optimizer.zero_grad()
        error.mean().backward()
        optimizer.step()
        errors.append(float(error.detach().mean()))
    assert errors[0] > 1.0
    assert errors[-1] < 0.1


def test_an_empty_crop_has_its_centroid_near_the_middle():
    assert CoverageNetwork(2)(torch.zeros(3, 2, SIDE, SIDE), EXTENT).abs().max() < 1.0
