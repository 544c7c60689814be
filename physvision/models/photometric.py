"""Photometric fit: the engine's motion whose rendered frames are closest to the given ones.

An encoder reads positions to within what its training taught it; a decoder with a camera tells how well a motion
explains the frames themselves. From the motion that is closest to the encoder's positions (see `consistency`), find
the one that minimizes

    Σ_k |I(q_k) − Î_k|² / σ² + |q_k − q̂_k|² / τ²

with rendered frames I, hats on what is given, by the Levenberg–Marquardt method in the state at the first frame,
independently for each world. Blurred frames widen the basin of the minimum: they come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from physvision.core import Coordinates, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.estimation import MotionResidual

# Renders frames: positions (batch, renders, q) and the time of each to (batch, renders, channels, height, width).
Render = Callable[[Tensor, Sequence[int]], Tensor]

# Steps to the motion closest to the encoder's positions, before any frame is rendered.
_POSITION_STEPS = 3
_DAMPING = 1e-3


@dataclass(frozen=True)
class PhotometricSettings:
    """Tuning numbers of a photometric fit.

    Attributes:
        frames: Largest number of the given frames that are rendered, evenly spaced back from the last one.
        blurs: Width of the blur of each step, pixels, 1 for none. Wider ones find motions from further away; each step
            renders those frames once, and once more for each position.
        step: Step of finite differences for each pixel of blur, units of the positions: less than a pixel in the frame.
        pixel_std: Error of a rendered pixel, brightness 0 to 1.
        position_std: Error of the encoder's positions. They decide what frames do not show, such as hidden objects.
    """

    frames: int = 4
    blurs: tuple[int, ...] = (41, 41, 25, 25, 15, 15, 9, 9, 5, 3)
    step: float = 5e-3
    pixel_std: float = 0.05
    position_std: float = 1.0

    def __post_init__(self) -> None:
        check_count("frames", self.frames)
        for width in self.blurs:
            check_count("blurs", width)
        for name in ("step", "pixel_std", "position_std"):
            check_positive(name, getattr(self, name))


@torch.no_grad()
def photometric_motion(
    problem: MotionResidual,
    start: Float[Tensor, "batch unknowns"],
    coordinates: Coordinates,
    render: Render,
    frames: Float[Tensor, "batch times channels height width"],
    settings: PhotometricSettings,
) -> Trajectory:
    """Fit a motion to frames.

    Args:
        problem: Residuals against the encoder's positions, see `motion_residual`.
        start: First guess of the state at the first frame.
        coordinates: Meaning of the positions.
        render: Function from positions and times to frames.
        frames: Consecutive frames, brightness 0 to 1; one step of the engine each.
        settings: Tuning numbers.

    Returns:
        The motion at all frames; not finite where no step led to a finite cost.
    """
    target, x = _Frames(problem, render, frames, settings), start
    damping = x.new_full((len(x), 1, 1), _DAMPING)
    for blur in (*(0,) * _POSITION_STEPS, *settings.blurs):
        cost, normal, gradient = target.linearize(x, blur)
        scaled = normal + damping * torch.diag_embed(normal.diagonal(dim1=1, dim2=2))
        trial = x - torch.linalg.solve_ex(scaled, gradient[..., None]).result[..., 0]
        better = target.cost(trial, blur) < cost
        x = torch.where(better[:, None], trial, x)
        damping = torch.where(better[:, None, None], 0.2 * damping, 5.0 * damping)
    motion = problem.rollout(x)
    return Trajectory(coordinates.unwind(motion.q), motion.v, dt=motion.dt)


class _Frames:
    """Cost of motions against frames and positions, with its normal equations."""

    def __init__(self, problem: MotionResidual, render: Render, frames: Tensor, settings: PhotometricSettings) -> None:
        self.problem, self.render, self.settings = problem, render, settings
        span = frames.shape[1] - 1
        stride = max(1, round(span / max(1, settings.frames - 1)))
        self.times = list(range(span, -1, -stride))[: settings.frames]
        self.frames = frames[:, self.times]

    def cost(self, start: Tensor, blur: int) -> Tensor:
        """Cost of states of the first frame, that of the positions alone where `blur` is 0; infinite where it fails."""
        residual = self.problem.residual(start)
        cost = (residual / self.settings.position_std).square().sum((1, 2))
        if blur:
            path = self._path(residual)
            cost = cost + self._errors(self._images(path, self.times, blur), blur).square().sum((1, 2))
        return cost.nan_to_num(torch.inf, torch.inf)

    def linearize(self, start: Tensor, blur: int) -> tuple[Tensor, Tensor, Tensor]:
        """Cost, as above, with its normal matrix and gradient."""
        residual, by_start = self.problem.linearize(start)
        off, jacobian = (part.flatten(1, 2) / self.settings.position_std for part in (residual, by_start))
        cost, normal = off.square().sum(1), jacobian.mT @ jacobian
        gradient = (jacobian.mT @ off[..., None])[..., 0]
        if blur:
            path = self._path(residual)
            step, count = self.settings.step * blur, path.shape[2]
            offsets = step * torch.cat([path.new_zeros(1, count), torch.eye(count).to(path)])
            moved = (path[:, None] + offsets[:, None]).flatten(1, 2)
            images = self._images(moved, self.times * len(offsets), blur).unflatten(1, (len(offsets), -1))
            off = self._errors(images[:, 0], blur)
            by_position = (images[:, 1:] - images[:, :1]).movedim(1, -1) / (step * self.settings.pixel_std)
            jacobian = by_position @ by_start[:, self.times, :count]
            cost, normal = cost + off.square().sum((1, 2)), normal + (jacobian.mT @ jacobian).sum(1)
            gradient = gradient + (jacobian.mT @ off[..., None]).sum(1)[..., 0]
        return cost.nan_to_num(torch.inf, torch.inf), normal, gradient

    def _path(self, residual: Tensor) -> Tensor:
        """Positions in the rendered frames, from residuals against those that the encoder reads."""
        return (self.problem.observed + residual)[:, self.times, : residual.shape[2] // 2]

    def _images(self, path: Tensor, times: Sequence[int], blur: int) -> Tensor:
        return _blurred(self.render(path, times), blur).flatten(2)

    def _errors(self, images: Tensor, blur: int) -> Tensor:
        return (images - _blurred(self.frames, blur).flatten(2)) / self.settings.pixel_std


def _blurred(images: Tensor, width: int) -> Tensor:
    """Average squares of `width` pixels a side, at every third of their width, and then three by three of these.

    Each counts for the pixels around it, so that sums of squares are comparable for all widths.
    """
    if width == 1:
        return images
    stride = max(1, width // 3)
    flat = functional.avg_pool2d(images.flatten(0, 1), width, stride, width // 2)
    return stride * functional.avg_pool2d(flat, 3, 1, 1).unflatten(0, images.shape[:2])
