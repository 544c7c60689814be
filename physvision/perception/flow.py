"""Optical flow: where each pixel of one frame is in the next."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import CheckpointError
from physvision.core.checks import check_count
from physvision.core.registry import register
from physvision.core.resources import find
from physvision.core.weights import read_weights, write_weights

_LEAK = 0.1  # slope of the rectifiers below zero
_AROUND = tuple((y, x) for y in (-1, 0, 1) for x in (-1, 0, 1))


class Flow(Protocol):
    """From two frames, levels of 0 to 1, the displacement (x, y) of each pixel of the first, pixels."""

    def __call__(
        self, first: Float[Tensor, "batch 3 height width"], second: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch 2 height width"]:
        """The flow from `first` to `second`."""
        ...


@register("physvision.perception.DenseInverseSearch")
class DenseInverseSearch(nn.Module):
    """OpenCV's DIS (Kroeger et al. 2016), on gray levels: no weights, and no gradient."""

    def __init__(self, finest_scale: int = 0) -> None:
        """Choose the level of the pyramid at which it stops; 0 is full resolution."""
        super().__init__()
        self._search = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        self._search.setFinestScale(finest_scale)

    def forward(
        self, first: Float[Tensor, "batch 3 height width"], second: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch 2 height width"]:
        """The flow from `first` to `second`."""
        pairs = zip(_gray(first), _gray(second), strict=True)
        flows = [self._search.calc(one, other, np.zeros((*one.shape, 2), np.float32)) for one, other in pairs]
        return torch.from_numpy(np.stack(flows)).permute(0, 3, 1, 2).to(first)


def _gray(frames: Tensor) -> list[np.ndarray]:
    levels = (frames.detach().cpu().clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).numpy()
    return [cv2.cvtColor(np.ascontiguousarray(level), cv2.COLOR_RGB2GRAY) for level in levels]


@register("physvision.perception.PyramidFlow")
class PyramidFlow(nn.Module):
    """A spatial pyramid network after Ranjan and Black (2017): each level mends the flow of the coarser one.

    At each level the second frame is warped by the flow so far, and a small network says what is missing. It sees how
    well each pixel matches its neighbours in the warped frame, without which it spends hundreds of updates on finding
    out that matching is what it is for. Its weights are shared by all levels but the finest, which has its own; dilated
    convolutions see far at little cost.
    """

    def __init__(self, levels: int = 4, width: int = 16) -> None:
        """Choose the number of levels, each of half the resolution, and the channels of the inner convolutions."""
        super().__init__()
        self.levels, self.width = check_count("levels", levels), check_count("width", width)
        self.coarse = _Mending(width)
        self.fine = _Mending(width)
        # Twice as fast on a processor.
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def forward(
        self, first: Float[Tensor, "batch 3 height width"], second: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch 2 height width"]:
        """The flow from `first` to `second`."""
        height, width = first.shape[-2:]
        return self.pyramid(first, second)[-1][..., :height, :width]

    def pyramid(self, first: Tensor, second: Tensor) -> list[Tensor]:
        """The flow at each level, coarse to fine, in pixels of that level; frames are padded to whole levels."""
        step = 2 ** (self.levels - 1)
        height, width = first.shape[-2:]
        padding = (0, -width % step, 0, -height % step)
        if any(padding):
            first, second = (functional.pad(frame, padding, mode="replicate") for frame in (first, second))
        pairs = [(first - 0.5, second - 0.5)]
        for _ in range(self.levels - 1):
            pairs.append((functional.avg_pool2d(pairs[-1][0], 2), functional.avg_pool2d(pairs[-1][1], 2)))
        flow = first.new_zeros(len(first), 2, first.shape[-2] // step, first.shape[-1] // step)
        flows: list[Tensor] = []
        for level, (one, other) in enumerate(reversed(pairs)):
            if level:
                flow = 2 * functional.interpolate(flow, scale_factor=2, mode="bilinear", align_corners=False)
            mending = self.fine if level == self.levels - 1 else self.coarse
            warped = warp(other, flow)
            # Under autocast only the convolutions are of half precision, which does not tell pixel 63 from 63.1.
            flow = flow + mending(torch.cat([one, warped - one, _mismatch(one, warped), flow], 1)).to(flow.dtype)
            flows.append(flow)
        return flows


class _Mending(nn.Sequential):
    def __init__(self, width: int) -> None:
        layers: list[nn.Module] = []
        channels = 3 + 3 + len(_AROUND) + 2
        for dilation in (1, 1, 2, 4, 2, 1):
            inner = nn.Conv2d(channels, width, 3, padding=dilation, dilation=dilation)
            # Torch's own choice lets small differences between frames fade from layer to layer.
            nn.init.kaiming_normal_(inner.weight, a=_LEAK)
            layers += [inner, nn.LeakyReLU(_LEAK)]
            channels = width
        last = nn.Conv2d(channels, 2, 3, padding=1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)  # pyright: ignore[reportArgumentType]
        super().__init__(*layers, last)


def _mismatch(first: Tensor, second: Tensor) -> Tensor:
    """How far each pixel's colour is from those around its place in the other frame."""
    height, width = first.shape[-2:]
    around = functional.pad(second, (1, 1, 1, 1), mode="replicate")
    shifted = [around[..., 1 + y : 1 + y + height, 1 + x : 1 + x + width] for y, x in _AROUND]
    return torch.stack([(first - other).abs().mean(1) for other in shifted], 1)


def warp(
    frames: Float[Tensor, "batch channels height width"], flow: Float[Tensor, "batch 2 height width"]
) -> Float[Tensor, "batch channels height width"]:
    """Each pixel looked up where the flow leads from it, bilinear; beyond the border, the border's pixels."""
    height, width = frames.shape[-2:]
    y, x = torch.meshgrid(
        torch.arange(height, dtype=flow.dtype, device=flow.device),
        torch.arange(width, dtype=flow.dtype, device=flow.device),
        indexing="ij",
    )
    grid = torch.stack([(2 * (x + flow[:, 0]) + 1) / width - 1, (2 * (y + flow[:, 1]) + 1) / height - 1], -1)
    return functional.grid_sample(frames, grid, padding_mode="border", align_corners=False)


def endpoint_error(
    flow: Float[Tensor, "batch 2 height width"], truth: Float[Tensor, "batch 2 height width"]
) -> Float[Tensor, "batch height width"]:
    """Distance between where the two lead, pixels."""
    return (flow - truth).square().sum(1).sqrt()


FORMAT = "physvision flow 1"


def save_flow(path: str | os.PathLike[str], network: PyramidFlow) -> Path:
    """Write `network` to a file, usually NAME.safetensors."""
    return write_weights(path, network.state_dict(), {"levels": network.levels, "width": network.width}, FORMAT)


@register("physvision.perception.load_flow")
def load_flow(name: str = "flow") -> PyramidFlow:
    """The flow network `name`: one that comes with physvision ("flow"), or the path of a .safetensors file.

    Raises:
        FileError: there is no such file.
        CheckpointError: it is damaged, or holds something else.
    """
    path = find(f"{name}.safetensors" if Path(name).suffix == "" else str(name), "models")
    tensors, configuration = read_weights(path, FORMAT)
    try:
        network = PyramidFlow(**configuration)
        network.load_state_dict(tensors)
    except (TypeError, RuntimeError) as error:
        raise CheckpointError(f"{path}: its weights do not fit its configuration ({error})") from error
    return network.eval()
