"""How far a frame is shifted against a picture, to a small part of a pixel, whatever moves in it.

Lucas and Kanade's least squares on edges, with a gain and an offset of the light as unknowns, in blocks of their own.
Blocks that contradict the others show something that moves; without a clear majority there is no shift.
"""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np
from jaxtyping import Float, UInt8

from physvision.core import VideoError

_GRID = 4, 5  # blocks in rows and columns
_EDGES = 200  # pixels looked at in each block
_FEWEST = 40
# Levels a pixel: weaker gradients are noise, and codecs do not show how weak ones move. The first with enough blocks.
_CLEAR = (6.0, 3.0, 1.5)
_ENOUGH = 6  # blocks
_TOLERANCE = 0.15  # px: blocks may differ by as much for reasons of their own
_ROUNDS = 4
_MOST = 0.7  # share of the corners that go the same way where the camera moves: less may be one thing with many corners


class JitterEstimator:
    """Measures shifts against one picture."""

    def __init__(self, picture: UInt8[np.ndarray, "height width 3"]) -> None:
        """Find the edges that shifts are measured with."""
        gray = _gray(picture)
        across = cv2.Scharr(gray, cv2.CV_32F, 1, 0) / 32
        down = cv2.Scharr(gray, cv2.CV_32F, 0, 1) / 32
        strength = np.hypot(across, down)
        strength[:8], strength[-8:], strength[:, :8], strength[:, -8:] = 0, 0, 0, 0
        chosen = next((found for least in _CLEAR if len(found := _edges(strength, least)) >= _ENOUGH), [])
        self._pixels = np.array(chosen, int).reshape(-1, _EDGES)
        self._rows, self._columns = np.divmod(self._pixels, strength.shape[1])
        slopes = np.stack([-across.ravel()[self._pixels], -down.ravel()[self._pixels]], -1).astype(float)
        levels = gray.ravel()[self._pixels].astype(float)
        self._levels = levels
        self._matrix = np.concatenate([slopes, levels[..., None] / 128, np.ones((*levels.shape, 1))], -1)

    def measure(
        self, frame: UInt8[np.ndarray, "height width 3"], guess: Float[np.ndarray, "2"] | None = None
    ) -> Float[np.ndarray, "2"] | None:
        """The frame's shift in x and y, pixels; None where the picture does not tell.

        Args:
            frame: the frame.
            guess: a shift that is not far from it, such as that of the frame before.
        """
        if len(self._pixels) < 4:
            return None
        gray = _gray(frame)
        shift = np.zeros(2) if guess is None else guess
        for _ in range(_ROUNDS):
            x, y = (self._columns + shift[0]).astype(np.float32), (self._rows + shift[1]).astype(np.float32)
            now = cv2.remap(gray, x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
            step = _agreed(*self._solve(now))
            if step is None:
                return None
            shift = shift + step
            if np.abs(step).max() < 0.01:
                break
        return shift

    def _solve(self, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The shift that each block sees, (blocks, 2), and the inverse of its covariance, (blocks, 2, 2)."""
        apart = now - self._levels
        away = np.abs(apart - np.median(apart, axis=1, keepdims=True))
        fine = away < np.maximum(6.0, 4.4 * np.median(away, axis=1, keepdims=True))
        matrix = self._matrix * fine[..., None]
        apart = apart * fine
        inverse = np.linalg.inv(matrix.transpose(0, 2, 1) @ matrix + 1e-3 * np.eye(4))
        solution = (inverse @ (matrix.transpose(0, 2, 1) @ apart[..., None]))[..., 0]
        rest = ((apart - (matrix @ solution[..., None])[..., 0]) ** 2).sum(1) / fine.sum(1) + 0.05
        # The blur correlates some ten pixels with each other.
        covariance = 10 * rest[:, None, None] * inverse[:, :2, :2] + np.eye(2) * _TOLERANCE**2
        return solution[:, :2], np.linalg.inv(covariance)


def _edges(strength: np.ndarray, least: float) -> list[np.ndarray]:
    """The numbers of the clearest pixels of each block that has enough of them."""
    chosen = []
    for rows in np.array_split(np.arange(strength.shape[0]), _GRID[0]):
        for columns in np.array_split(np.arange(strength.shape[1]), _GRID[1]):
            piece = strength[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].ravel()
            best = np.argsort(piece)[-_EDGES:]
            best = best[piece[best] > least]
            if len(best) >= _FEWEST:
                # Every block gets as many, some of them twice, so that all are solved at once.
                best = np.resize(best, _EDGES)
                chosen.append((rows[0] + best // len(columns)) * strength.shape[1] + columns[0] + best % len(columns))
    return chosen


def shifted_back(picture: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """The picture as it would be without the shift."""
    matrix = np.array([[1, 0, shift[0]], [0, 1, shift[1]]], float)
    size = picture.shape[1], picture.shape[0]
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(picture, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)


def check_still(samples: UInt8[np.ndarray, "samples height width 3"]) -> None:
    """Refuse a camera that moves: nearly all corners, all over the picture, go the same way."""
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
        agree = np.abs(moves - usual).max(1) < 2
        # Those of one thing that moves lie close together.
        wide = np.ptp(corners[found.ravel() > 0, 0][agree], axis=0) if agree.any() else np.zeros(2)
        if agree.mean() > _MOST and (wide > 0.5 * np.array(one.shape[::-1])).all():
            way = way + usual
            far = max(far, float(np.hypot(*way)))
    if far > max(6.0, 0.02 * max(samples.shape[1:3])):
        raise VideoError(
            f"the camera moves: the picture is shifted by {far:.0f} pixels in the course of the clip. A camera that "
            "stands still (leaned against something) is expected; choose a part where it does with start and stop"
        )


def _gray(picture: np.ndarray) -> np.ndarray:
    return cv2.GaussianBlur(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32), (0, 0), 1.5)


def _agreed(steps: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """The shift that most blocks agree on, or None."""
    told = weights.trace(axis1=1, axis2=2) > 1 / (2 * _TOLERANCE) ** 2
    steps, weights = steps[told], weights[told]
    kept = np.ones(len(steps), bool)
    while kept.sum() >= max(4, 0.6 * len(kept)):
        total = weights[kept].sum(0)
        mean = np.linalg.solve(total, (weights[kept] @ steps[kept][..., None]).sum(0))[:, 0]
        apart = steps - mean
        odds = np.where(kept, np.einsum("bi,bij,bj->b", apart, weights, apart), 0.0)
        if odds.max() < 9:
            return mean if 1 / np.linalg.eigvalsh(total)[0] < _TOLERANCE**2 else None
        kept[odds.argmax()] = False
    return None
