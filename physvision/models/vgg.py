"""VGG-11 after Simonyan and Zisserman (2014) as an encoder, and its mirror as a decoder.

The encoder has torchvision's layers under torchvision's names, so its weights load, all but those of the first
convolution, whose channels are others, and of the last layer. The decoder runs the same table backwards: a transposed
convolution for each convolution, bilinear upsampling for each pooling.
"""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import InputError
from physvision.core.checks import check_count, check_positive

# Channels of each convolution; "M" halves the resolution.
_LAYERS: tuple[int | str, ...] = (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M")
_HIDDEN = 4096


class VggEncoder(nn.Module):
    """Pictures of any number of channels to numbers."""

    def __init__(self, channels: int, outputs: int, width: float = 1.0, pool: int = 7, dropout: float = 0.5) -> None:
        """Build the network.

        Args:
            channels: of a picture.
            outputs: how many numbers.
            width: factor of all inner channels; 1 for VGG-11 itself.
            pool: side of the feature map that the fully connected layers see; VGG-11's is 7.
            dropout: share of the fully connected units that are left out in training.
        """
        super().__init__()
        layers, hidden = _scaled(width)
        stages: list[nn.Module] = []
        below = check_count("channels", channels)
        for layer in layers:
            if isinstance(layer, str):
                stages.append(nn.MaxPool2d(2))
                continue
            stages += [nn.Conv2d(below, layer, 3, padding=1), nn.ReLU(inplace=True)]
            below = layer
        self.features = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d(check_count("pool", pool))
        self.classifier = nn.Sequential(
            nn.Linear(_channels(layers)[-1] * pool**2, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(hidden, check_count("outputs", outputs)),
        )
        _begin(self)

    def forward(self, pictures: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch outputs"]:
        """The numbers of each picture."""
        return self.classifier(self.avgpool(self.features(pictures)).flatten(1))

    def load_torchvision(self, weights: Mapping[str, Tensor]) -> tuple[str, ...]:
        """Take the weights of torchvision's `vgg11`; the names of those that stay as they were.

        The first convolution and the last layer have other sizes. All others must fit.
        """
        kept = ("features.0.weight", "classifier.6.weight", "classifier.6.bias")
        own = self.state_dict()
        if set(own) != set(weights):
            raise InputError(f"weights: not those of VGG-11, which have {', '.join(sorted(set(own) ^ set(weights)))}")
        for name, value in weights.items():
            if name not in kept and value.shape != own[name].shape:
                raise InputError(
                    f"weights: {name} needs shape {tuple(own[name].shape)}, got {tuple(value.shape)}; "
                    "only width 1 and pool 7 take torchvision's"
                )
        self.load_state_dict({name: own[name] if name in kept else value for name, value in weights.items()})
        return kept


class VggDecoder(nn.Module):
    """Numbers to pictures, the encoder's mirror."""

    def __init__(
        self, inputs: int, channels: int, size: tuple[int, int], width: float = 1.0, pool: int | None = None
    ) -> None:
        """Build the network.

        Args:
            inputs: how many numbers.
            channels: of a picture.
            size: height and width of a picture, pixels.
            width: factor of all inner channels.
            pool: side of the feature map that the fully connected layers make; what halving `size` five times leaves
                if not given.
        """
        super().__init__()
        layers, hidden = _scaled(width)
        self.size, self.width = tuple(size), _channels(layers)[-1]
        coarse = (pool, pool) if pool else tuple(max(1, side // 2 ** layers.count("M")) for side in self.size)
        self.coarse = coarse
        self.classifier = nn.Sequential(
            nn.Linear(check_count("inputs", inputs), hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, self.width * coarse[0] * coarse[1]),
            nn.ReLU(inplace=True),
        )
        stages: list[nn.Module] = []
        below = [*_channels(layers)[:-1][::-1], channels]
        wide = self.width
        for layer in reversed(layers):
            if layer == "M":
                stages.append(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False))
                continue
            narrow = below.pop(0)
            stages += [nn.ConvTranspose2d(wide, narrow, 3, padding=1), nn.ReLU(inplace=True)]
            wide = narrow
        self.features = nn.Sequential(*stages[:-1])
        _begin(self)

    def forward(self, numbers: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch channels height width"]:
        """The picture of each row."""
        coarse = self.classifier(numbers).unflatten(1, (self.width, *self.coarse))
        pictures = self.features(coarse)
        if pictures.shape[-2:] != self.size:
            pictures = functional.interpolate(pictures, size=self.size, mode="bilinear", align_corners=False)
        return pictures


def _scaled(width: float) -> tuple[list[int | str], int]:
    factor = check_positive("width", width)
    layers = [layer if isinstance(layer, str) else max(1, round(layer * factor)) for layer in _LAYERS]
    return layers, max(1, round(_HIDDEN * factor))


def _channels(layers: list[int | str]) -> list[int]:
    return [layer for layer in layers if not isinstance(layer, str)]


def _begin(network: nn.Module) -> None:
    """Weights that neither fade nor grow a signal through eleven rectified layers."""
    for part in network.modules():
        if isinstance(part, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)
