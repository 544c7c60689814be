"""Camera jitter: subpixel shift of a frame against a reference image, robust to moving objects.

Lucas and Kanade's least squares on edge pixels, with gain and offset of the brightness as further unknowns, in
separate blocks. Blocks that contradict the others contain a moving object; without a clear majority there is no shift.
"""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np
from jaxtyping import Float, UInt8

from physvision.core import VideoError
from physvision.perception.settings import JitterSettings

Image = UInt8[np.ndarray, "height width 3"]
Images = UInt8[np.ndarray, "samples height width 3"]
_MIN_COMMON_EXTENT = 0.5  # fraction of the width and height over which edges or corners must extend to show the camera


class JitterEstimator:
    """Estimates the shift of frames against one reference image.

    Attributes:
        is_wide: If true, the edges by which it is estimated lie all over the image.
    """

    def __init__(self, reference: Image, settings: JitterSettings) -> None:
        """Select the edge pixels of the reference image."""
        self._settings = settings
        gray = _smooth_gray(reference)
        gradient_x = cv2.Scharr(gray, cv2.CV_32F, 1, 0) / 32
        gradient_y = cv2.Scharr(gray, cv2.CV_32F, 0, 1) / 32
        magnitude = np.hypot(gradient_x, gradient_y)
        magnitude[:8], magnitude[-8:], magnitude[:, :8], magnitude[:, -8:] = 0, 0, 0, 0
        candidates = (_edge_pixels(magnitude, threshold, settings) for threshold in settings.gradients)
        blocks = next((blocks for blocks in candidates if len(blocks) >= settings.min_blocks), [])
        self._pixels = np.array(blocks, int).reshape(-1, settings.block_pixels)
        self._rows, self._columns = np.divmod(self._pixels, magnitude.shape[1])
        size = np.array(magnitude.shape)
        extent = np.array([np.ptp(self._rows), np.ptp(self._columns)]) if len(blocks) else np.zeros(2)
        # The edges of one moving object lie close together.
        self.is_wide = bool((extent > _MIN_COMMON_EXTENT * size).all())
        gradients = np.stack([-gradient_x.ravel()[self._pixels], -gradient_y.ravel()[self._pixels]], -1).astype(float)
        self._levels = gray.ravel()[self._pixels].astype(float)
        constant = np.ones((*self._levels.shape, 1))
        self._jacobian = np.concatenate([gradients, self._levels[..., None] / 128, constant], -1)

    def estimate(self, frame: Image, guess: Float[np.ndarray, "2"] | None = None) -> Float[np.ndarray, "2"] | None:
        """Estimate the frame's shift in x and y, px; None if the image does not determine it.

        Args:
            frame: Frame, levels.
            guess: Initial shift, such as that of the previous frame, px.
        """
        if len(self._pixels) < 4:
            return None
        gray = _smooth_gray(frame)
        shift = np.zeros(2) if guess is None else guess
        for _ in range(self._settings.iterations):
            x, y = (self._columns + shift[0]).astype(np.float32), (self._rows + shift[1]).astype(np.float32)
            warped = cv2.remap(gray, x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
            step = _consensus(*self._solve_blocks(warped), self._settings.block_tolerance)
            if step is None:
                return None
            shift = shift + step
            if np.abs(step).max() < 0.01:
                break
        return shift

    def _solve_blocks(self, warped: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve for the shift of each block, (blocks, 2), and its precision matrix, (blocks, 2, 2)."""
        residual = warped - self._levels
        deviation = np.abs(residual - np.median(residual, axis=1, keepdims=True))
        inliers = deviation < np.maximum(6.0, 4.4 * np.median(deviation, axis=1, keepdims=True))
        jacobian = self._jacobian * inliers[..., None]
        residual = residual * inliers
        inverse = np.linalg.inv(jacobian.transpose(0, 2, 1) @ jacobian + 1e-3 * np.eye(4))
        solution = (inverse @ (jacobian.transpose(0, 2, 1) @ residual[..., None]))[..., 0]
        squares = (residual - (jacobian @ solution[..., None])[..., 0]) ** 2
        variance = squares.sum(1) / inliers.sum(1) + 0.05
        # The blur correlates about ten pixels with each other.
        covariance = 10 * variance[:, None, None] * inverse[:, :2, :2]
        covariance = covariance + np.eye(2) * self._settings.block_tolerance**2
        return solution[:, :2], np.linalg.inv(covariance)


def _edge_pixels(magnitude: np.ndarray, threshold: float, settings: JitterSettings) -> list[np.ndarray]:
    """Select the flat indices of the strongest edge pixels of each block that has enough of them."""
    blocks = []
    for rows in np.array_split(np.arange(magnitude.shape[0]), settings.grid[0]):
        for columns in np.array_split(np.arange(magnitude.shape[1]), settings.grid[1]):
            if not len(rows) or not len(columns):
                continue  # the image has fewer pixels than the grid has blocks
            block = magnitude[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].ravel()
            pixels = np.argsort(block)[-settings.block_pixels :]
            pixels = pixels[block[pixels] > threshold]
            if len(pixels) >= settings.min_block_pixels:
                # All blocks get equally many pixels, by repetition, so that they are solved as a batch.
                y, x = np.divmod(np.resize(pixels, settings.block_pixels), len(columns))
                blocks.append((rows[0] + y) * magnitude.shape[1] + columns[0] + x)
    return blocks


def undo_shift(image: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Shift an image back by a subpixel shift in x and y, px."""
    matrix = np.array([[1, 0, shift[0]], [0, 1, shift[1]]], float)
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(image, matrix, image.shape[1::-1], flags=flags, borderMode=cv2.BORDER_REPLICATE)


def check_static_camera(samples: Images, settings: JitterSettings) -> float | None:
    """Reject a moving camera: nearly all corners, all over the image, move alike.

    Returns:
        Largest shift that the corners show, px; None if there are too few of them.

    Raises:
        VideoError: The camera moves.
    """
    max_distance, total_shift, num_tracked_pairs = 0.0, np.zeros(2), 0
    grays = [cv2.cvtColor(sample, cv2.COLOR_RGB2GRAY) for sample in samples]
    spacing = max(grays[0].shape) // 20
    for image, next_image in pairwise(grays):
        corners = cv2.goodFeaturesToTrack(image, 100, 0.02, spacing)
        if corners is None or len(corners) < 12:
            continue
        positions, status, _ = cv2.calcOpticalFlowPyrLK(
            image, next_image, corners, np.empty(0), winSize=(21, 21), maxLevel=4
        )
        is_tracked = status.ravel() > 0
        steps = (positions - corners)[is_tracked, 0]
        if len(steps) < 8:
            continue
        num_tracked_pairs += 1
        median = np.median(steps, axis=0)
        moves_alike = np.abs(steps - median).max(1) < 2
        # The corners of one moving object lie close together.
        corner_extent = np.ptp(corners[is_tracked, 0][moves_alike], axis=0) if moves_alike.any() else np.zeros(2)
        is_wide = (corner_extent > _MIN_COMMON_EXTENT * np.array(image.shape[::-1])).all()
        if moves_alike.mean() > settings.min_common_corners and is_wide:
            total_shift = total_shift + median
            max_distance = max(max_distance, float(np.hypot(*total_shift)))
    if max_distance > max(6.0, 0.02 * max(samples.shape[1:3])):
        raise moving_camera_error(max_distance)
    return max_distance if num_tracked_pairs > len(grays) // 2 else None


def moving_camera_error(shift: float) -> VideoError:
    """Return the error of a camera that moves.

    Args:
        shift: Shift of the image during the clip, px.
    """
    return VideoError(
        f"the camera moves: the image shifts by {shift:.0f} pixels during the clip. Expected a static camera; lean it "
        "against something, or select the part of the clip where it rests with start and stop"
    )


def _smooth_gray(image: np.ndarray) -> np.ndarray:
    return cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32), (0, 0), 1.5)


def _consensus(steps: np.ndarray, precisions: np.ndarray, tolerance: float) -> np.ndarray | None:
    """Average the steps of the blocks that agree; None without a clear majority."""
    informative = precisions.trace(axis1=1, axis2=2) > 1 / (2 * tolerance) ** 2
    steps, precisions = steps[informative], precisions[informative]
    inliers = np.ones(len(steps), bool)
    while inliers.sum() >= max(4, 0.6 * len(inliers)):
        total = precisions[inliers].sum(0)
        mean = np.linalg.solve(total, (precisions[inliers] @ steps[inliers][..., None]).sum(0))[:, 0]
        errors = steps - mean
        squared_distances = np.where(inliers, np.einsum("bi,bij,bj->b", errors, precisions, errors), 0.0)
        if squared_distances.max() < 9:
            return mean if 1 / np.linalg.eigvalsh(total)[0] < tolerance**2 else None
        inliers[squared_distances.argmax()] = False
    return None
