"""K-means, the same for the same points."""

from __future__ import annotations

import cv2
import numpy as np


def cluster(points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The cluster of each of the points, (points,), and the clusters' centres, (count, dimensions)."""
    cv2.setRNGSeed(0)
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 50, 1e-2)
    none = np.empty(0, np.int32)
    _, labels, centers = cv2.kmeans(points.astype(np.float32), count, none, stop, 8, cv2.KMEANS_PP_CENTERS)
    return labels.ravel(), centers.astype(np.float64)
