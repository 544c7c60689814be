import pytest
import torch
from torch.nn import functional

from physvision.core import CheckpointError
from physvision.core.weights import write_weights
from physvision.perception.flow import FORMAT, DenseInverseSearch, PyramidFlow, endpoint_error, load_flow, warp
from physvision.perception.synthetic_flow import FlowPairs, SyntheticFlow


def samples(seed=0, **options):
    return SyntheticFlow(**options).draw(16, torch.Generator().manual_seed(seed))


def test_the_flow_leads_to_the_same_colors():
    """Where nothing is hidden, the second frame looked up along the flow is the first; resampling blurs a little."""
    rendered = samples(max_noise=0.0)
    back = warp(rendered.second, rendered.flow)
    difference = (back - rendered.first).abs().mean(1)
    still = (rendered.second - rendered.first).abs().mean(1)
    moving = rendered.flow.norm(dim=1) > 0.5
    assert difference[moving].median() < 0.005
    assert difference[moving].mean() < 0.4 * still[moving].mean()


def test_a_known_shift():
    """One shape on a still background: its pixels flow by what its centroid moved."""
    rendered = samples(
        max_shapes=1, max_rotation=0.0, textured_fraction=0.0, max_noise=0.0, radius_range=(6.0, 8.0), max_speed=3.0
    )
    for k in range(16):
        inside = rendered.shapes[k, 0] > 0
        border = torch.cat(
            [inside[:6].flatten(), inside[-6:].flatten(), inside[:, :6].flatten(), inside[:, -6:].flatten()]
        )
        if border.any() or not inside.any():
            continue
        cover = (
            (rendered.first[k] - rendered.first[k, :, :1, :1]).abs().sum(0),
            (rendered.second[k] - rendered.first[k, :, :1, :1]).abs().sum(0),
        )
        y, x = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")
        centers = [torch.stack([(c * x).sum(), (c * y).sum()]) / c.sum() for c in cover]
        if min(float(c.sum()) for c in cover) < 20:
            continue
        torch.testing.assert_close(centers[1] - centers[0], rendered.flow[k][:, inside].mean(1), atol=0.05, rtol=0)


def test_what_cannot_be_seen_does_not_move():
    rendered = samples(textured_fraction=0.0, max_rotation=0.5)
    assert (rendered.flow * (1 - rendered.shapes)).abs().max() == 0


def test_pairs_follow_from_the_seed():
    pairs, again, another = (FlowPairs(3, 2, seed) for seed in (1, 1, 2))
    assert torch.equal(pairs[2].first, again[2].first)
    assert not torch.equal(pairs[2].first, pairs[1].first)
    assert not torch.equal(pairs[2].first, another[2].first)


def test_warping_by_whole_pixels_is_a_shift():
    frames = torch.rand(1, 3, 8, 10, dtype=torch.float64)
    flow = torch.zeros(1, 2, 8, 10, dtype=torch.float64)
    flow[:, 0], flow[:, 1] = 2, -1
    torch.testing.assert_close(warp(frames, flow)[:, :, 1:, :-2], frames[:, :, :-1, 2:])


def test_a_new_network_says_zero_and_any_size_goes():
    network = PyramidFlow()
    flow = network(torch.rand(2, 3, 37, 51), torch.rand(2, 3, 37, 51))
    assert flow.shape == (2, 2, 37, 51)
    assert (flow == 0).all()


def test_a_network_learns_a_shift():
    torch.manual_seed(0)
    network = PyramidFlow(levels=2, width=8)
    first = functional.interpolate(torch.rand(4, 3, 8, 8), size=(32, 32), mode="bicubic", align_corners=False)
    second = torch.roll(first, (0, 1), (2, 3))
    truth = torch.tensor([1.0, 0.0]).reshape(1, 2, 1, 1).expand(4, 2, 32, 32)
    optimizer = torch.optim.Adam(network.parameters(), 5e-3)
    for _ in range(60):
        loss = endpoint_error(network(first, second), truth).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1


def test_dis_behind_the_same_interface():
    first = functional.interpolate(torch.rand(1, 3, 16, 16), size=(64, 64), mode="bicubic").clamp(0, 1)
    second = torch.roll(first, (1, 2), (2, 3))
    flow = DenseInverseSearch()(first, second)[..., 8:-8, 8:-8]
    torch.testing.assert_close(flow.mean((0, 2, 3)), torch.tensor([2.0, 1.0]), atol=0.2, rtol=0)


@pytest.mark.parametrize(
    ("change", "scale", "match"),
    [
        ({"levels": 10**9}, 1.0, "levels: expected an integer from 1 to 12"),
        ({"width": 10**9}, 1.0, "width: expected an integer from 1 to 1,024"),
        ({"weights": "other.safetensors"}, 1.0, "expected a configuration of levels and width, got levels, width, w"),
        ({}, float("nan"), "weights that are not finite"),
    ],
)
def test_files_that_hold_no_flow_network_of_use_are_refused(tmp_path, change, scale, match):
    tensors = {name: scale * value for name, value in PyramidFlow(width=2).state_dict().items()}
    path = write_weights(tmp_path / "a.safetensors", tensors, {"levels": 4, "width": 2} | change, FORMAT)
    with pytest.raises(CheckpointError, match=match):
        load_flow(str(path))
