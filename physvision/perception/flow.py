"""Optical flow: the displacement of each pixel from one frame to the next.

An estimator is a function of two frames, 0 to 1, to the displacement (x, y) of each pixel of the first, px.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import CheckpointError, InputError, StrPath
from physvision.core.checks import check_count
from physvision.core.registry import register
from physvision.core.resources import find
from physvision.core.weights import read_weights, write_weights

FORMAT = "physvision flow 1"
# Far above every network of use: finest pixels in one of the coarsest 2,048, and 56 million weights.
_MAX_LEVELS, _MAX_WIDTH = 12, 1024
Frames = Float[Tensor, "batch 3 height width"]
FlowField = Float[Tensor, "batch 2 height width"]
_LEAK = 0.1  # slope of the leaky rectifiers
_NEIGHBORS = tuple((y, x) for y in (-1, 0, 1) for x in (-1, 0, 1))


@register("physvision.perception.DenseInverseSearch")
class DenseInverseSearch(nn.Module):
    """Dense inverse search (DIS; Kroeger et al. 2016) on gray levels, by OpenCV; without weights or gradient."""

    def __init__(self) -> None:
        super().__init__()
        self._search = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        self._search.setFinestScale(0)  # full resolution

    def forward(self, first: Frames, second: Frames) -> FlowField:
        """Estimate the flow from `first` to `second`."""
        pairs = zip(_to_gray(first), _to_gray(second), strict=True)
        flows = [self._search.calc(image, target, np.zeros((*image.shape, 2), np.float32)) for image, target in pairs]
        return torch.from_numpy(np.stack(flows)).permute(0, 3, 1, 2).to(first)


def _to_gray(frames: Tensor) -> list[np.ndarray]:
    images = (frames.detach().cpu().clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).numpy()
    return [cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY) for image in images]


@register("physvision.perception.PyramidFlow")
class PyramidFlow(nn.Module):
    """Spatial pyramid network (SPyNet; Ranjan and Black 2017): each level refines the flow of the coarser one.

    At each level the second frame is warped by the current flow, and a small network estimates the remaining flow. Its
    input includes the matching costs of each pixel with its neighbors in the warped frame, without which training
    spends hundreds of updates on learning to match. The finest level has its own weights, all others share theirs;
    dilated convolutions have a large receptive field at low cost.
    """

    def __init__(self, levels: int = 4, width: int = 16, weights: str | None = None) -> None:
        """Build the network; without weights its output is zero.

        Args:
            levels: Number of levels, each with half the resolution of the next finer one.
            width: Channels of the hidden convolutions.
            weights: Flow network of the same size whose weights it gets, see `load_flow`.
        """
        super().__init__()
        self.levels = check_count("levels", levels, maximum=_MAX_LEVELS)
        self.width = check_count("width", width, maximum=_MAX_WIDTH)
        self.coarse = _FlowRefinement(width)
        self.fine = _FlowRefinement(width)
        # Twice as fast on a CPU.
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        if weights is not None:
            source = load_flow(weights)
            if (source.levels, source.width) != (levels, width):
                raise InputError(f"weights: {weights} has {source.levels} levels of width {source.width}; use these")
            self.load_state_dict(source.state_dict())

    def forward(self, first: Frames, second: Frames) -> FlowField:
        """Estimate the flow from `first` to `second`."""
        height, width = first.shape[-2:]
        return self.pyramid(first, second)[-1][..., :height, :width]

    def pyramid(self, first: Tensor, second: Tensor) -> list[Tensor]:
        """Estimate the flow at each level, coarse to fine, in pixels of that level; frames are padded."""
        factor = 2 ** (self.levels - 1)
        height, width = first.shape[-2:]
        padding = (0, -width % factor, 0, -height % factor)
        if any(padding):
            first, second = (functional.pad(frame, padding, mode="replicate") for frame in (first, second))
        pairs = [(first - 0.5, second - 0.5)]
        for _ in range(self.levels - 1):
            pairs.append((functional.avg_pool2d(pairs[-1][0], 2), functional.avg_pool2d(pairs[-1][1], 2)))
        flow = first.new_zeros(len(first), 2, first.shape[-2] // factor, first.shape[-1] // factor)
        flows: list[Tensor] = []
        for level, (image, target) in enumerate(reversed(pairs)):
            if level:
                flow = 2 * functional.interpolate(flow, scale_factor=2, mode="bilinear", align_corners=False)
            refinement = self.fine if level == self.levels - 1 else self.coarse
            warped = warp(target, flow)
            inputs = torch.cat([image, warped - image, _matching_cost(image, warped), flow], 1)
            # Under autocast only the convolutions use half precision, which cannot represent 63.1 px.
            flow = flow + refinement(inputs).to(flow.dtype)
            flows.append(flow)
        return flows


class _FlowRefinement(nn.Sequential):
    def __init__(self, width: int) -> None:
        layers: list[nn.Module] = []
        channels = 3 + 3 + len(_NEIGHBORS) + 2
        for dilation in (1, 1, 2, 4, 2, 1):
            hidden = nn.Conv2d(channels, width, 3, padding=dilation, dilation=dilation)
            # With torch's default, small differences between frames vanish from layer to layer.
            nn.init.kaiming_normal_(hidden.weight, a=_LEAK)
            layers += [hidden, nn.LeakyReLU(_LEAK)]
            channels = width
        output = nn.Conv2d(channels, 2, 3, padding=1)
        nn.init.zeros_(output.weight)
        nn.init.zeros_(output.bias)  # pyright: ignore[reportArgumentType]
        super().__init__(*layers, output)


def _matching_cost(first: Tensor, second: Tensor) -> Tensor:
    """Color distance of each pixel of `first` from the pixel of `second` at its position and its eight neighbors."""
    height, width = first.shape[-2:]
    padded = functional.pad(second, (1, 1, 1, 1), mode="replicate")
    shifted = [padded[..., 1 + y : 1 + y + height, 1 + x : 1 + x + width] for y, x in _NEIGHBORS]
    return torch.stack([(first - neighbor).abs().mean(1) for neighbor in shifted], 1)


def warp(
    frames: Float[Tensor, "batch channels height width"], flow: Float[Tensor, "batch 2 height width"]
) -> Float[Tensor, "batch channels height width"]:
    """Sample frames bilinearly where the flow leads from each pixel; the border is replicated."""
    height, width = frames.shape[-2:]
    y, x = (torch.arange(size, dtype=flow.dtype, device=flow.device) for size in (height, width))
    y = y[:, None]
    grid = torch.stack([(2 * (x + flow[:, 0]) + 1) / width - 1, (2 * (y + flow[:, 1]) + 1) / height - 1], -1)
    return functional.grid_sample(frames, grid, padding_mode="border", align_corners=False)


def endpoint_error(flow: FlowField, truth: FlowField) -> Float[Tensor, "batch height width"]:
    """Distance between the endpoints of estimated and true flow, px."""
    return (flow - truth).square().sum(1).sqrt()


def save_flow(path: StrPath, network: PyramidFlow) -> Path:
    """Write a flow network to a file, usually NAME.safetensors."""
    return write_weights(path, network.state_dict(), {"levels": network.levels, "width": network.width}, FORMAT)


@register("physvision.perception.load_flow")
def load_flow(name: str = "flow") -> PyramidFlow:
    """Load a flow network: one that comes with physvision ("flow"), or the path of a .safetensors file.

    Raises:
        FileError: There is no such file.
        CheckpointError: The file is damaged, or holds something else.
    """
    path = find(name, "models")
    tensors, configuration = read_weights(path, FORMAT)
    if not configuration.keys() <= {"levels", "width"}:
        raise CheckpointError(f"{path}: expected a configuration of levels and width, got {', '.join(configuration)}")
    try:
        network = PyramidFlow(**configuration)
        network.load_state_dict(tensors)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: its weights do not fit its configuration ({error})") from error
    if not all(bool(torch.isfinite(value).all()) for value in tensors.values()):
        raise CheckpointError(f"{path}: holds weights that are not finite; its training diverged")
    return network.eval()
