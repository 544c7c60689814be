"""Image quality of frames, PSNR and SSIM, frame by frame and fast on a CPU, without gradients."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

# Wang et al., "Image quality assessment: from error visibility to structural similarity" (2004).
_WINDOW, _SIGMA = 11, 1.5
_C1, _C2 = 0.01**2, 0.03**2
_KERNEL = cv2.getGaussianKernel(_WINDOW, _SIGMA, cv2.CV_32F)

Frames = Float[Tensor, "frames channels height width"]


def psnr(predicted: Frames, true: Frames) -> Float[Tensor, " frames"]:
    """Compute the peak signal-to-noise ratio of each frame, with brightness in [0, 1]; in dB, at most 100."""
    error = (predicted - true).detach().square().mean((1, 2, 3))
    return -10 * error.clamp_min(1e-10).log10()


def ssim(predicted: Frames, true: Frames) -> Float[Tensor, " frames"]:
    """Compute the structural similarity of each frame, the mean over channels and pixels; edges are mirrored."""
    return ssim_map(predicted, true).mean((1, 2))


def ssim_map(predicted: Frames, true: Frames) -> Float[Tensor, "frames height width"]:
    """Compute the structural similarity around each pixel, the mean over channels; edges are mirrored."""
    pairs = zip(*(frames.detach().float().cpu().numpy() for frames in (predicted, true)), strict=True)
    maps = [np.mean([_channel_ssim(a, b) for a, b in zip(*pair, strict=True)], 0) for pair in pairs]
    size = (len(predicted), *predicted.shape[2:])
    return torch.from_numpy(np.array(maps, np.float32).reshape(size)).to(predicted.device)


def _channel_ssim(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute the similarity around each pixel of one channel."""

    def mean(values: np.ndarray) -> np.ndarray:
        return cv2.sepFilter2D(values, -1, _KERNEL, _KERNEL, borderType=cv2.BORDER_REFLECT_101)

    mean_a, mean_b = mean(a), mean(b)
    variance_a, variance_b = mean(a * a) - mean_a**2, mean(b * b) - mean_b**2
    covariance = mean(a * b) - mean_a * mean_b
    value = (2 * mean_a * mean_b + _C1) * (2 * covariance + _C2)
    return value / ((mean_a**2 + mean_b**2 + _C1) * (variance_a + variance_b + _C2))
