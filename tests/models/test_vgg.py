import pytest
import torch
from torch import nn
from torchvision.models import vgg11, vgg11_bn

from physvision.core import CheckpointError, InputError
from physvision.models import load, save
from physvision.models.vgg import VggDecoder, VggEncoder


@pytest.mark.parametrize(("original", "batch_norm"), [(vgg11, False), (vgg11_bn, True)])
def test_torchvisions_weights_load(original, batch_norm):
    with torch.device("meta"):  # 130 million numbers are not needed to compare names and shapes
        theirs, ours = original(weights=None), VggEncoder(13, 4, batch_norm=batch_norm)
        assert set(ours.load_torchvision(theirs.state_dict())) == {
            "features.0.weight",
            "classifier.6.weight",
            "classifier.6.bias",
        }


def test_its_layers_are_torchvisions():
    theirs = vgg11(weights=None, init_weights=False).features
    with torch.device("meta"):
        ours = VggEncoder(3, 4).features
    ours.load_state_dict(theirs.state_dict(), assign=True)
    pictures = torch.rand(1, 3, 64, 64)
    torch.testing.assert_close(ours(pictures), theirs(pictures))


def test_weights_come_from_a_file(tmp_path):
    narrow = VggEncoder(13, 4, width=0.05, pool=1)
    torch.save(narrow.state_dict(), tmp_path / "vgg.pt")
    torch.manual_seed(1)
    loaded = VggEncoder(13, 4, width=0.05, pool=1, weights=tmp_path / "vgg.pt")
    assert torch.equal(loaded.features[3].weight, narrow.features[3].weight)
    assert not torch.equal(loaded.features[0].weight, narrow.features[0].weight)
    (tmp_path / "text.pt").write_text("no weights")
    for path, fault in (("text.pt", "damaged or holds more"), ("missing.pt", "no such file")):
        with pytest.raises(CheckpointError, match=fault):
            VggEncoder(13, 4, width=0.05, pool=1, weights=tmp_path / path)


def test_a_saved_model_needs_no_weights_file(tmp_path):
    torch.save(VggEncoder(3, 4, width=0.05, pool=1).state_dict(), tmp_path / "vgg.pt")
    saved = save(tmp_path / "model.safetensors", VggEncoder(3, 4, 0.05, 1, weights=tmp_path / "vgg.pt"))
    (tmp_path / "vgg.pt").unlink()
    assert load(saved, VggEncoder).classifier[-1].out_features == 4


def test_other_weights_are_refused():
    with torch.device("meta"):
        theirs = vgg11(weights=None).state_dict()
    with pytest.raises(InputError, match=r"features\.0\.bias needs shape"):
        VggEncoder(13, 4, width=0.25).load_torchvision(theirs)
    with pytest.raises(InputError, match="not those of VGG-11"):
        VggEncoder(13, 4, width=0.25).load_torchvision({"features.0.weight": torch.zeros(1)})


def test_the_decoder_mirrors_the_encoder():
    encoder, decoder = VggEncoder(13, 4, width=0.25, pool=2), VggDecoder(4, 13, (64, 64), width=0.25)
    down = [tuple(layer.weight.shape) for layer in encoder.features if isinstance(layer, nn.Conv2d)]
    up = [tuple(layer.weight.shape) for layer in decoder.features if isinstance(layer, nn.ConvTranspose2d)]
    assert up == down[::-1]
    assert sum(isinstance(layer, nn.MaxPool2d) for layer in encoder.features) == 5
    assert sum(isinstance(layer, nn.Upsample) for layer in decoder.features) == 5


@pytest.mark.parametrize("size", [(64, 64), (100, 80), (48, 32), (20, 20)])
def test_any_size(size):
    assert VggDecoder(5, 3, size, width=0.1)(torch.randn(2, 5)).shape == (2, 3, *size)
    assert VggEncoder(13, 4, width=0.1, pool=2)(torch.randn(2, 13, *[max(32, side) for side in size])).shape == (2, 4)


def test_signals_neither_fade_nor_grow():
    torch.manual_seed(0)
    result = VggEncoder(13, 200, width=0.25, pool=2).eval()(torch.randn(8, 13, 64, 64))
    assert 0.05 < float(result.std()) < 20
    selected = VggDecoder(16, 3, (64, 64), width=0.25)(torch.randn(8, 16))
    assert 0.02 < float(selected.std()) < 20


def test_it_learns_where_a_spot_is():
    """A narrow encoder finds a bright spot in noise far better than the best constant guess."""
    torch.manual_seed(0)
    network = VggEncoder(1, 2, width=0.125, pool=2, dropout=0.0)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    at = torch.arange(32.0)
    for _ in range(150):
        places = 4 + 24 * torch.rand(32, 2)
        away = (at - places[:, :1, None]).square().unsqueeze(1) + (
            at[:, None] - places[:, 1:, None]
        ).square().unsqueeze(1)
        pictures = torch.exp(-away.reshape(32, 1, 32, 32) / 8) + 0.1 * torch.randn(32, 1, 32, 32)
        error = (network(pictures) - places / 16 + 1).square().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    # A constant guess errs by 24 / √12 / 16 = 0.43 of these units.
    assert float(error.sqrt()) < 0.15
