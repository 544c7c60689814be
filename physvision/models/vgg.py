"""VGG-11 (configuration A of Simonyan and Zisserman, 2014) as an encoder, and its mirror image as a decoder.

The encoder is torchvision's `VGG`, with all channels scaled by one factor and the first and last layers replaced. The
decoder runs the same configuration backwards: a transposed convolution for each convolution, bilinear upsampling for
each pooling.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models.vgg import VGG, cfgs, make_layers

from physvision.core import InputError
from physvision.core.checks import check_count, check_positive
from physvision.core.weights import read_state_dict
from physvision.models.networks import output_layer

# Output channels of each convolution; "M" halves the resolution.
_CONFIGURATION: tuple[int | str, ...] = tuple(cfgs["A"])
_HIDDEN = 4096


class VggEncoder(VGG):
    """Images of any number of channels to a vector, by torchvision's VGG-11 at a scaled width."""

    def __init__(
        self,
        channels: int,
        outputs: int,
        width: float = 1.0,
        pool: int = 7,
        dropout: float = 0.5,
        batch_norm: bool = False,
        negative_slope: float = 0.0,
        weights: Path | None = None,
    ) -> None:
        """Build the layers of the network.

        Args:
            channels: Channels of an image.
            outputs: Length of the output vector.
            width: Factor of all inner channels; 1 for VGG-11 itself.
            pool: Side of the feature map that the fully connected layers take; VGG-11's is 7.
            dropout: Dropout probability of the fully connected units.
            batch_norm: If true, normalize after each convolution, as torchvision's `vgg11_bn` does.
            negative_slope: Slope of the fully connected units below zero; VGG's have none. Without it the units of a
                network that corrects an estimate die, all of them: to be silent is its first improvement.
            weights: File with a state dict of torchvision's `vgg11` or `vgg11_bn`; random weights if not given. Needs
                width 1 and pool 7.
        """
        configuration, hidden = scaled_configuration(width)
        # Not VGG's own constructor, which would allocate the full-size classifier of 120 million weights.
        super(VGG, self).__init__()
        self.features = make_layers(configuration, batch_norm)
        stem = self.features[0]
        assert isinstance(stem, nn.Conv2d)
        self.features[0] = nn.Conv2d(check_count("channels", channels), stem.out_channels, 3, padding=1)
        self.avgpool = nn.AdaptiveAvgPool2d(check_count("pool", pool))
        self.classifier = nn.Sequential(
            nn.Linear(_channels(configuration)[-1] * pool**2, hidden),
            nn.LeakyReLU(negative_slope, inplace=True),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(negative_slope, inplace=True),
            nn.Dropout(dropout),
            nn.Linear(hidden, check_count("outputs", outputs)),
        )
        init_weights(self)
        if weights is not None:
            self.load_torchvision(read_state_dict(weights))

    @property
    def output_layer(self) -> nn.Linear:
        """The last fully connected layer."""
        return output_layer(self)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch outputs"]:
        """Encode each image as a vector."""
        return super().forward(x)

    def load_torchvision(self, weights: Mapping[str, Tensor]) -> tuple[str, ...]:
        """Load a state dict of torchvision's `vgg11`, and return the names of the weights that stay as they are.

        The kernel of the first convolution and the last layer have other shapes. All other weights must fit.
        """
        own = self.state_dict()
        own_layers = ("features.0.weight", "classifier.6.weight", "classifier.6.bias")
        if set(own) != set(weights):
            raise InputError(f"weights: not those of VGG-11, which have {', '.join(sorted(set(own) ^ set(weights)))}")
        for name, value in weights.items():
            if name not in own_layers and value.shape != own[name].shape:
                raise InputError(
                    f"weights: {name} needs shape {tuple(own[name].shape)}, got {tuple(value.shape)}; "
                    "only width 1 and pool 7 take torchvision's"
                )
        self.load_state_dict({name: own[name] if name in own_layers else value for name, value in weights.items()})
        return own_layers


class VggDecoder(nn.Module):
    """Vectors to images by transposed convolutions, the mirror image of the encoder."""

    def __init__(
        self, inputs: int, channels: int, size: tuple[int, int], width: float = 1.0, pool: int | None = None
    ) -> None:
        """Build the layers of the network.

        Args:
            inputs: Length of the input vector.
            channels: Channels of an image.
            size: Height and width of an image, pixels.
            width: Factor of all inner channels.
            pool: Side of the feature map that the fully connected layers produce; by default the size of an image
                halved as often as the encoder pools.
        """
        super().__init__()
        configuration, hidden = scaled_configuration(width)
        self.size, self.width = tuple(size), _channels(configuration)[-1]
        coarse = (pool, pool) if pool else tuple(max(1, side // 2 ** configuration.count("M")) for side in self.size)
        self.coarse = coarse
        self.classifier = nn.Sequential(
            nn.Linear(check_count("inputs", inputs), hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, self.width * coarse[0] * coarse[1]),
            nn.ReLU(inplace=True),
        )
        self.features = nn.Sequential(*transposed_layers(configuration, channels))
        init_weights(self)

    def forward(self, vectors: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch channels height width"]:
        """Decode each vector to an image."""
        coarse = self.classifier(vectors).unflatten(1, (self.width, *self.coarse))
        images = self.features(coarse)
        if images.shape[-2:] != self.size:
            images = functional.interpolate(images, size=self.size, mode="bilinear", align_corners=False)
        return images


def transposed_layers(configuration: list[int | str], channels: int) -> list[nn.Module]:
    """Mirror torchvision's `make_layers`: the last layer, to `channels`, has no activation."""
    widths = _channels(configuration)
    outputs = [*widths[:-1][::-1], channels]
    layers: list[nn.Module] = []
    fan_in = widths[-1]
    for entry in reversed(configuration):
        if entry == "M":
            layers.append(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False))
            continue
        fan_out = outputs.pop(0)
        layers += [nn.ConvTranspose2d(fan_in, fan_out, 3, padding=1), nn.ReLU(inplace=True)]
        fan_in = fan_out
    return layers[:-1]


def scaled_configuration(width: float) -> tuple[list[int | str], int]:
    """Scale the channels of configuration A, and the width of its hidden layers."""
    factor = check_positive("width", width)
    scaled = [entry if isinstance(entry, str) else max(1, round(entry * factor)) for entry in _CONFIGURATION]
    return scaled, max(1, round(_HIDDEN * factor))


def _channels(configuration: list[int | str]) -> list[int]:
    return [entry for entry in configuration if not isinstance(entry, str)]


def init_weights(network: nn.Module) -> None:
    """Draw weights that keep the scale of a signal through eleven rectified layers."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
