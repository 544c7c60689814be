"""Rods that turn about a fixed point: where along itself such a rod is seen does not matter, only its direction.

A rod always hides what is behind its hinge, so that part of it is taken for background, and more of it where it is
slow: the middle of what is seen moves along the rod. The lines of its long axis meet in the hinge wherever that middle
lies, and what is seen of a rigid rod stays at one distance from there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from physvision.perception import Track

_TURNS = 0.2  # rad: lines that turn less meet nowhere in particular
_ROUNDS = 10  # in which lines far from the others lose weight
_MISSED = 0.02  # of the distance from the hinge: lines that pass it farther off on average have no hinge
_WANDERS = 0.05  # of that distance: what changes its distance more is not a rod on a hinge
_SURE = 0.02  # of that distance: how well the hinge must be known


def hinged(track: Track) -> Track:
    """The track of a rod that turns about a hinge, with its places at one distance from there; others as they are."""
    if track.angle is None:
        return track
    known = track.observed & np.isfinite(track.angle) & np.isfinite(track.sigma)
    if known.sum() < 12 or np.ptp(track.angle[known]) < _TURNS:
        return track
    places, angles = track.positions[known], track.angle[known]
    hinge, error, missed = _meeting(places, np.stack([-np.sin(angles), np.cos(angles)], 1))
    away = np.linalg.norm(places - hinge, axis=1)
    usual = float(np.median(away))
    # A typical distance, since a few lines may be those of something else.
    if missed > _MISSED * usual or error > _SURE * usual or np.median(np.abs(away - usual)) > _WANDERS * usual:
        return track
    arms = track.positions - hinge
    return replace(track, positions=hinge + usual * arms / np.linalg.norm(arms, axis=1, keepdims=True))


def _meeting(
    places: Float[np.ndarray, "lines 2"], normals: Float[np.ndarray, "lines 2"]
) -> tuple[Float[np.ndarray, "2"], float, float]:
    """The point closest to all lines, its largest standard error, and by how much a line usually misses it."""
    levels = (normals * places).sum(1)
    point = np.linalg.lstsq(normals, levels, rcond=None)[0]
    for _ in range(_ROUNDS):
        off = np.abs(normals @ point - levels)
        root = 1 / np.sqrt(np.maximum(1.0, off / (1.5 * 1.4826 * np.median(off) + 1e-9)))
        point = np.linalg.lstsq(normals * root[:, None], levels * root, rcond=None)[0]
    usual = 1.4826 * float(np.median(np.abs(normals @ point - levels)))
    return point, usual / float(np.linalg.svd(normals, compute_uv=False)[-1]), usual
