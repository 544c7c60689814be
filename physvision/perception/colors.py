"""Colour segmentation: which pixels show which colour, and how much of each pixel does.

A pixel at an edge mixes an object's colour c with the background's b: p = b + a (c − b). The share a is found by
projection, a = (p − b)·(c − b) / |c − b|², and the colour is the one that leaves the smallest rest. So masks are as
smooth as the anti-aliased frames, and their centroids are exact to a small part of a pixel.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from physvision.core import InputError
from physvision.core.checks import check_count

_CONTRAST = 0.06  # of full scale: less than this beyond the noise is background
_APART = 12.0  # in L*a*b*: closer colours are one
_PLAIN = 0.8  # share of one colour above which a background is that colour
_MOST_FRAMES = 64  # looked at to find colours
_MOST_PIXELS = 20_000


@dataclass(frozen=True)
class ColorFilters:
    """Colours to look for.

    Attributes:
        colors: red, green, blue of each, 0 to 1.
        background: what is behind, 0 to 1: one colour as (3, 1, 1), or a picture.
        counts: how many objects have each colour.
        contrast: smallest difference from the background that counts, of full scale.
    """

    colors: Float[Tensor, "colors 3"]
    background: Float[Tensor, "3 height width"]
    counts: tuple[int, ...]
    contrast: float = _CONTRAST

    def __post_init__(self) -> None:
        if self.colors.dim() != 2 or self.colors.shape[1] != 3 or len(self.counts) != len(self.colors):
            raise InputError(
                f"colors: expected (colors, 3) and a count for each, got {tuple(self.colors.shape)} and {self.counts}"
            )
        for index, count in enumerate(self.counts):
            check_count(f"counts[{index}]", count)
        around = self.background.reshape(3, -1).median(dim=1).values
        for index, color in enumerate(self.colors):
            if (color - around).norm() <= self.contrast:
                raise InputError(f"colors[{index}]: {color.tolist()} cannot be told from the background")

    @classmethod
    def from_colors(
        cls,
        colors: list[tuple[float, float, float]],
        background: tuple[float, float, float] = (0.0, 0.0, 0.0),
        counts: tuple[int, ...] | None = None,
    ) -> ColorFilters:
        """Filters for known colours on a plain background."""
        behind = torch.tensor(background).reshape(3, 1, 1)
        return cls(torch.tensor(colors), behind, counts or (1,) * len(colors))

    @property
    def num_objects(self) -> int:
        """How many objects there are in all."""
        return sum(self.counts)

    def masks(self, frames: Float[Tensor, "*batch 3 height width"]) -> Float[Tensor, "*batch colors height width"]:
        """The share of each pixel that each colour covers, 0 to 1; a pixel belongs to one colour at most."""
        colors, behind = self.colors.to(frames), self.background.to(frames)
        away = frames - behind
        squares = away.square().sum(-3)
        shares, costs = [], []
        for color in colors:
            toward = color[:, None, None] - behind
            length = toward.square().sum(-3)
            along = (away * toward).sum(-3)
            share = (along / length).clamp(0, 1)
            # |p − b − a (c − b)|², multiplied out: a picture of three channels for each colour would be costly.
            rest = (squares - share * (2 * along - share * length)).clamp_min(0).sqrt()
            shares.append(share)
            # Of colours that explain a pixel alike, such as gray and white on black, the one that covers it more.
            costs.append(rest + self.contrast * (1 - share))
        least, nearest = costs[0], torch.zeros_like(costs[0], dtype=torch.int8)
        for index, cost in enumerate(costs[1:], 1):
            nearest = torch.where(cost < least, index, nearest)
            least = torch.minimum(cost, least)
        nearest = torch.where(squares > self.contrast**2, nearest, -1)
        return torch.stack([share * (nearest == index) for index, share in enumerate(shares)], -3)


def find_colors(frames: Float[Tensor, "times 3 height width"], objects: int) -> ColorFilters:
    """Filters for the `objects` objects of a clip: the background is what stands still, the rest is clustered.

    Args:
        frames: 0 to 1; the camera does not move.
        objects: how many there are. Fewer colours than objects are found where some share one.
    """
    from kornia.color import rgb_to_lab  # here, since commands that look for no colours need not wait for it

    check_count("objects", objects)
    step = max(1, len(frames) // _MOST_FRAMES)
    chosen = frames[::step].float()
    background = _background(chosen)
    away = (chosen - background).norm(dim=1)
    contrast = max(_CONTRAST, 5 * float(away.median()))
    apart = away > contrast
    # At edges colours are mixed: pixels differ less from the background than their neighbours inside do.
    inside = away > 0.9 * functional.max_pool2d(away, 3, stride=1, padding=1)
    pixels = chosen.movedim(1, -1)[apart & inside]
    if len(pixels) < objects:
        raise InputError(
            f"frames: nothing moves that differs from the background by more than {contrast:.2f} of full scale; "
            "give the colours"
        )
    pixels = pixels[:: max(1, len(pixels) // _MOST_PIXELS)]
    lab = rgb_to_lab(pixels.T[:, :, None])[..., 0].T
    labels, centers = _clusters(lab.numpy(), objects)
    colors = torch.stack([pixels[labels == index].median(dim=0).values for index in range(len(centers))])
    sizes = np.bincount(labels, minlength=len(centers)).astype(float)
    return ColorFilters(colors, background, _shared(sizes, objects), contrast)


def _background(frames: Tensor) -> Tensor:
    """What is seen most of the time; one colour if most of it is, so that what hardly moves stays an object."""
    mostly = frames.median(dim=0).values
    plain = mostly.flatten(1).median(dim=1).values[:, None, None]
    alike = (mostly - plain).norm(dim=0) < _CONTRAST
    return plain if float(alike.float().mean()) > _PLAIN else mostly


def _clusters(lab: np.ndarray, objects: int) -> tuple[np.ndarray, np.ndarray]:
    """As many clusters as there are objects, fewer where centres would lie too close."""
    count = min(objects, len(lab))
    labels, centers = k_means(lab, count)
    while count > 1 and _closest(centers) < _APART:
        count -= 1
        labels, centers = k_means(lab, count)
    # Brightest first, so that the order does not depend on where clustering began.
    order = np.lexsort(centers.T[::-1])[::-1]
    return np.argsort(order)[labels], centers[order]


def _closest(centers: np.ndarray) -> float:
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=-1)
    return float(distances[~np.eye(len(centers), dtype=bool)].min())


def _shared(sizes: np.ndarray, objects: int) -> tuple[int, ...]:
    """How many objects each cluster holds, by its size, at least one each."""
    counts = np.ones(len(sizes), int)
    for _ in range(objects - len(sizes)):
        counts[np.argmax(sizes / counts)] += 1
    return tuple(counts.tolist())


def k_means(points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The cluster of each of the points, (points,), and the clusters' centres, (count, dimensions)."""
    cv2.setRNGSeed(0)
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 50, 1e-2)
    none = np.empty(0, np.int32)
    _, labels, centers = cv2.kmeans(points.astype(np.float32), count, none, stop, 8, cv2.KMEANS_PP_CENTERS)
    return labels.ravel(), centers.astype(np.float64)
