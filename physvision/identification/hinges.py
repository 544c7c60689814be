"""Rods that turn about a fixed hinge: only their direction matters, not the observed center along the rod.

A rod hides the background behind its hinge, so part of it is taken for background, and more of it where the rod is
slow: the center of the visible part moves along the rod. The lines of the rod's long axis intersect in the hinge
wherever that center lies, and the same point of a rigid rod keeps its distance from there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from physvision.identification.initial_guesses import MAD_TO_STD
from physvision.identification.settings import TrackSettings
from physvision.perception import Track

_DEFAULTS = TrackSettings()


def project_to_hinge_circle(track: Track, settings: TrackSettings = _DEFAULTS) -> Track:
    """Move a hinged rod's positions to one distance from the hinge; tracks without a hinge are returned unchanged."""
    if track.angle is None:
        return track
    valid = track.observed & np.isfinite(track.angle) & np.isfinite(track.sigma)
    if valid.sum() < settings.min_hinge_samples or np.ptp(track.angle[valid]) < settings.min_hinge_turn:
        return track
    positions, angles = track.positions[valid], track.angle[valid]
    normals = np.stack([-np.sin(angles), np.cos(angles)], 1)
    hinge, error, miss = _intersect_lines(positions, normals, settings.hinge_iterations)
    distances = np.linalg.norm(positions - hinge, axis=1)
    radius = float(np.median(distances))
    # A median, since some lines may belong to another object.
    change = np.median(np.abs(distances - radius))
    if (
        miss > settings.max_axis_miss * radius
        or error > settings.max_hinge_error * radius
        or change > settings.max_radius_change * radius
    ):
        return track
    arms = track.positions - hinge
    return replace(track, positions=hinge + radius * arms / np.linalg.norm(arms, axis=1, keepdims=True))


def _intersect_lines(
    points: Float[np.ndarray, "lines 2"], normals: Float[np.ndarray, "lines 2"], iterations: int
) -> tuple[Float[np.ndarray, "2"], float, float]:
    """Return the point closest to all lines, its largest standard error, and the typical distance of a line from it."""
    levels = (normals * points).sum(1)
    point = np.linalg.lstsq(normals, levels, rcond=None)[0]
    for _ in range(iterations):
        misses = np.abs(normals @ point - levels)
        root = 1 / np.sqrt(np.maximum(1.0, misses / (1.5 * MAD_TO_STD * np.median(misses) + 1e-9)))
        point = np.linalg.lstsq(normals * root[:, None], levels * root, rcond=None)[0]
    miss = MAD_TO_STD * float(np.median(np.abs(normals @ point - levels)))
    return point, miss / float(np.linalg.svd(normals, compute_uv=False)[-1]), miss
