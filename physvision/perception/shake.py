"""How far a frame is shifted against a picture, to a small part of a pixel, whatever moves in it.

Lucas and Kanade's least squares on edges, with a gain and an offset of the light as unknowns, in blocks of their own.
Blocks that contradict the others show something that moves; without a clear majority there is no shift.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from jaxtyping import Float, UInt8

from physvision.core import VideoError

_GRID = 4, 5  # blocks in rows and columns
_EDGES = 1500  # pixels looked at in each block
_CLEAR = 1.5  # levels a pixel: weaker gradients are noise
_TOLERANCE = 0.15  # px: blocks may differ by as much for reasons of their own
_ROUNDS = 4


@dataclass(frozen=True)
class _Block:
    """Pixels of one block, with the gradients (x, y) of the picture there, and its levels."""

    pixels: np.ndarray
    slopes: np.ndarray
    levels: np.ndarray


class Shake:
    """Measures shifts against one picture."""

    def __init__(self, picture: UInt8[np.ndarray, "height width 3"]) -> None:
        """Find the edges that shifts are measured with."""
        gray = _gray(picture)
        across = cv2.Scharr(gray, cv2.CV_32F, 1, 0) / 32
        down = cv2.Scharr(gray, cv2.CV_32F, 0, 1) / 32
        strength = np.hypot(across, down)
        strength[:8], strength[-8:], strength[:, :8], strength[:, -8:] = 0, 0, 0, 0
        numbers = np.arange(strength.size).reshape(strength.shape)
        self._blocks = []
        for row in np.array_split(np.arange(strength.shape[0]), _GRID[0]):
            for column in np.array_split(np.arange(strength.shape[1]), _GRID[1]):
                piece = slice(row[0], row[-1] + 1), slice(column[0], column[-1] + 1)
                best = np.argsort(strength[piece].ravel())[-_EDGES:]
                best = numbers[piece].ravel()[best[strength[piece].ravel()[best] > _CLEAR]]
                if len(best) >= 60:
                    slopes = np.stack([across.ravel()[best], down.ravel()[best]], 1).astype(float)
                    self._blocks.append(_Block(best, slopes, gray.ravel()[best].astype(float)))

    def measure(self, frame: UInt8[np.ndarray, "height width 3"]) -> Float[np.ndarray, "2"]:
        """The frame's shift in x and y, pixels; zero where the picture does not tell."""
        shift = np.zeros(2)
        if len(self._blocks) < 4:
            return shift
        gray = _gray(frame)
        for _ in range(_ROUNDS):
            moved = (gray if not shift.any() else shifted_back(gray, shift)).ravel()
            steps, weights = zip(*(_solve(block, moved[block.pixels]) for block in self._blocks), strict=True)
            step = _agreed(np.array(steps), np.array(weights))
            if step is None:
                return np.zeros(2)
            shift = shift + step
            if np.abs(step).max() < 0.01:
                break
        return shift


def shifted_back(picture: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """The picture as it would be without the shift."""
    matrix = np.array([[1, 0, shift[0]], [0, 1, shift[1]]], float)
    size = picture.shape[1], picture.shape[0]
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(picture, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)


def check_still(samples: UInt8[np.ndarray, "samples height width 3"]) -> None:
    """Refuse a camera that moves: corners all over the picture go the same way."""
    far, way = 0.0, np.zeros(2)
    grays = [cv2.cvtColor(sample, cv2.COLOR_RGB2GRAY) for sample in samples]
    apart = max(grays[0].shape) // 20
    for one, other in pairwise(grays):
        corners = cv2.goodFeaturesToTrack(one, 100, 0.02, apart)
        if corners is None or len(corners) < 12:
            continue
        places, found, _ = cv2.calcOpticalFlowPyrLK(one, other, corners, np.empty(0), winSize=(21, 21), maxLevel=4)
        moves = (places - corners)[found.ravel() > 0, 0]
        if len(moves) < 8:
            continue
        usual = np.median(moves, axis=0)
        if (np.abs(moves - usual).max(1) < 2).mean() > 0.5:
            way = way + usual
            far = max(far, float(np.hypot(*way)))
    if far > max(6.0, 0.02 * max(samples.shape[1:3])):
        raise VideoError(
            f"the camera moves: the picture is shifted by {far:.0f} pixels in the course of the clip. A camera that "
            "stands still (leaned against something) is expected; choose a part where it does with start and stop"
        )


def _gray(picture: np.ndarray) -> np.ndarray:
    return cv2.GaussianBlur(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32), (0, 0), 1.5)


def _solve(block: _Block, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shift that one block sees and the inverse of its covariance."""
    apart = now - block.levels
    away = np.abs(apart - np.median(apart))
    fine = away < max(6.0, 4.4 * np.median(away))
    matrix = np.column_stack([-block.slopes, block.levels, np.ones(len(now))])[fine]
    inverse = np.linalg.pinv(matrix.T @ matrix, hermitian=True)
    solution = inverse @ (matrix.T @ apart[fine])
    rest = float(np.mean((apart[fine] - matrix @ solution) ** 2)) + 0.05
    # The blur correlates some ten pixels with each other.
    return solution[:2], np.linalg.pinv(10 * rest * inverse[:2, :2] + np.eye(2) * _TOLERANCE**2, hermitian=True)


def _agreed(steps: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """The shift that most blocks agree on, or None."""
    told = [number for number in range(len(steps)) if weights[number].trace() > 1 / (2 * _TOLERANCE) ** 2]
    kept = list(told)
    while len(kept) >= max(4, 0.6 * len(told)):
        total = weights[kept].sum(0)
        mean = np.linalg.pinv(total, hermitian=True) @ np.einsum("bij,bj->i", weights[kept], steps[kept])
        apart = steps[kept] - mean
        odds = np.einsum("bi,bij,bj->b", apart, weights[kept], apart)
        if odds.max() < 9:
            return mean if 1 / np.linalg.eigvalsh(total)[0] < _TOLERANCE**2 else None
        kept.pop(int(odds.argmax()))
    return None
