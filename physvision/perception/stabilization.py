"""Registration of a hand-held clip: every frame is warped onto one of them by the homography of the background.

Corners of the reference frame are tracked into each frame by Lucas and Kanade's pyramid, and RANSAC finds the
homography on which most of them, all over the picture, agree: that of the background. What moves by itself is left.
A plain wall has edges, but too few corners: they determine a shift.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import cv2
import numpy as np
from jaxtyping import Float

from physvision.core import VideoError
from physvision.perception.camera_jitter import JitterEstimator
from physvision.perception.frame_source import FrameSource
from physvision.perception.settings import PerceptionSettings, StabilizationSettings


@dataclass(frozen=True)
class StabilizedFrames:
    """Frames of a source, warped onto a reference frame.

    Attributes:
        source: Frames as they were filmed.
        reference: Frame that all others are warped onto; it also fills what a frame does not show.
        homographies: Homography of each frame to the reference.
        max_shift: Largest shift of a corner of the picture, px.
    """

    source: FrameSource
    reference: np.ndarray
    homographies: Float[np.ndarray, "frames 3 3"]
    max_shift: float

    def __iter__(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield the time, s, and the warped image of each frame."""
        for (time, frame), homography in zip(self.source, self.homographies, strict=True):
            yield (
                time,
                cv2.warpPerspective(
                    frame,
                    homography,
                    frame.shape[1::-1],
                    self.reference.copy(),
                    flags=cv2.INTER_CUBIC,
                    borderMode=cv2.BORDER_TRANSPARENT,
                ),
            )


def stabilize(source: FrameSource, count: int, settings: PerceptionSettings) -> StabilizedFrames:
    """Register all frames of a hand-held clip to its middle one: by homographies, or by shifts where corners are few.

    Args:
        source: Frames of a camera that moves.
        count: Number of frames.
        settings: Thresholds of the registration.

    Raises:
        VideoError: The background determines neither, or the camera moves too far.
    """
    limits = settings.stabilization
    _, reference = next(islice(source, count // 2, None))
    corners = _corners(reference, limits)
    shifts = _shift_homographies(source, count, settings) if len(corners) < limits.min_plane_corners else None
    homographies = _homographies(source, reference, corners, limits) if shifts is None else shifts
    height, width = reference.shape[:2]
    border = np.array([[[0, 0]], [[width, 0]], [[0, height]], [[width, height]]], np.float32)
    moved = np.stack([cv2.perspectiveTransform(border, homography) for homography in homographies])
    max_shift = float(np.linalg.norm(moved - border, axis=-1).max())
    if max_shift > limits.max_shift * max(height, width):
        raise VideoError(f"the image shifts by {max_shift:.0f} pixels during the clip")
    return StabilizedFrames(source, reference, homographies, max_shift)


def camera_shifts(source: FrameSource, settings: PerceptionSettings) -> Float[np.ndarray, "frames 2"]:
    """Return the shift of each frame against the first one, px; NaN where the background does not determine it.

    The search for each frame begins at the shift of the one before, and where that leads nowhere, at that moved on by
    the last step between two frames: a hand may move further in a frame than the search reaches. Where the first frame
    shows too little of what a later one does, the last one of known shift takes its place.

    Args:
        source: Frames of the clip.
        settings: Tuning numbers of the estimation.
    """
    _, last = next(iter(source))
    estimator = JitterEstimator(last, settings.jitter)
    shifts, shift, origin, motion = [], np.zeros(2), np.zeros(2), np.zeros(2)
    for _, frame in source:
        step = estimator.estimate(frame, shift - origin) if estimator.is_wide else None
        if step is None and estimator.is_wide:
            step = estimator.estimate(frame, shift + motion - origin)
        if step is None and last is not None:
            estimator, origin, last = JitterEstimator(last, settings.jitter), shift, None
            step = estimator.estimate(frame, np.zeros(2)) if estimator.is_wide else None
        if step is None:
            shifts.append(np.full(2, np.nan))
            motion = np.zeros(2)
            continue
        motion = origin + step - shift
        shift, last = origin + step, frame
        shifts.append(shift)
    return np.stack(shifts)


def _shift_homographies(
    source: FrameSource, count: int, settings: PerceptionSettings
) -> Float[np.ndarray, "frames 3 3"] | None:
    """Return the shift of each frame to the middle one as a homography; None if too few frames show any."""
    shifts, numbers = camera_shifts(source, settings), np.arange(count)
    observed = np.isfinite(shifts).all(1)
    if observed.mean() < settings.stabilization.min_registered:
        return None
    homographies = np.tile(np.eye(3), (count, 1, 1))
    for axis in range(2):
        path = np.interp(numbers, numbers[observed], shifts[observed, axis])
        homographies[:, axis, 2] = path[count // 2] - path
    return homographies


def _corners(reference: np.ndarray, settings: StabilizationSettings) -> np.ndarray:
    """Return the corners of a frame as OpenCV has them, (corners, 1, 2)."""
    gray = cv2.cvtColor(reference, cv2.COLOR_RGB2GRAY)
    corners = cv2.goodFeaturesToTrack(gray, settings.max_corners, settings.corner_quality, max(gray.shape) / 50)
    return np.empty((0, 1, 2), np.float32) if corners is None else corners


def _homographies(
    source: FrameSource, reference: np.ndarray, corners: np.ndarray, settings: StabilizationSettings
) -> Float[np.ndarray, "frames 3 3"]:
    """Return the homography of each frame to the reference.

    Raises:
        VideoError: The background does not determine it.
    """
    if len(corners) < settings.min_corners:
        raise VideoError("the background has too few corners to register a moving camera")
    gray = cv2.cvtColor(reference, cv2.COLOR_RGB2GRAY)
    # Each search begins at the corners' positions by the homography of the frame before.
    homographies, start, flags = [], np.empty(0), 0
    for _, frame in source:
        frame_gray = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
        positions, status, _ = cv2.calcOpticalFlowPyrLK(
            gray, frame_gray, corners, start, winSize=(21, 21), maxLevel=4, flags=flags
        )
        tracked, homography, inliers = status.ravel() > 0, None, np.zeros(0)
        if tracked.sum() >= settings.min_corners:
            homography, inliers = cv2.findHomography(
                positions[tracked], corners[tracked], cv2.RANSAC, settings.inlier_distance
            )
        if homography is None or inliers.sum() < settings.min_inliers * len(corners):
            raise VideoError("the background does not move as a plane that a moving camera films")
        homographies.append(homography)
        start = cv2.perspectiveTransform(corners, np.linalg.inv(homography)).astype(np.float32)
        flags = cv2.OPTFLOW_USE_INITIAL_FLOW
    return np.stack(homographies)
