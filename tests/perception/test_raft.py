import pytest
import torch
from torch.nn import functional
from torchvision.models.optical_flow import raft_small

from physvision.core import CheckpointError, InputError
from physvision.models import CachedFlow, load, save
from physvision.perception import Raft


@pytest.fixture(scope="module")
def theirs():
    torch.manual_seed(3)
    return raft_small(weights=None).eval()


@pytest.fixture(scope="module")
def file(theirs, tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "raft_small.pth"
    torch.save(theirs.state_dict(), path)
    return path


@torch.no_grad()
def test_large_frames_have_torchvisions_flow(theirs, file):
    first, second = torch.rand(2, 1, 3, 136, 128)
    expected = theirs(2 * first - 1, 2 * second - 1, num_flow_updates=3)[-1]
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(Raft(file, updates=3)(first, second), expected)


@torch.no_grad()
def test_small_frames_are_enlarged_and_their_flow_is_in_their_own_pixels(theirs, file):
    large = torch.rand(2, 1, 3, 16, 32)
    first, second = (functional.interpolate(part, (64, 100), mode="bilinear") for part in large)
    enlarged = [2 * functional.interpolate(frame, (128, 200), mode="bilinear") - 1 for frame in (first, second)]
    expected = 0.5 * functional.interpolate(theirs(*enlarged, num_flow_updates=2)[-1], (64, 100), mode="bilinear")
    flow = Raft(file, updates=2)(first, second)
    assert flow.shape == (1, 2, 64, 100)
    torch.testing.assert_close(flow, expected)


@torch.no_grad()
def test_it_stands_behind_the_cache_and_is_saved_with_its_weights(file, tmp_path):
    first, second = torch.rand(2, 1, 3, 40, 40)
    network = Raft(file, updates=2)
    torch.testing.assert_close(CachedFlow(network)(first, second), network(first, second), atol=1e-2, rtol=1e-3)
    saved = save(tmp_path / "raft.safetensors", network)
    torch.testing.assert_close(load(saved, Raft)(first, second), network(first, second))


def test_other_weights_are_refused(file, tmp_path):
    with pytest.raises(InputError, match="not those of torchvision's raft_large; check `large`"):
        Raft(file, large=True)
    (tmp_path / "text.pth").write_text("no weights")
    with pytest.raises(CheckpointError, match="damaged or holds more"):
        Raft(tmp_path / "text.pth")
    with pytest.raises(CheckpointError, match="no such file"):
        Raft(tmp_path / "missing.pth")
