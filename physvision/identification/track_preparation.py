"""Preparation of tracks: selection, merging of fragments, trimming of rests and length, hinged rods, the moving ones.

A rod hides the background behind its hinge, so part of it is taken for background, and more of it where the rod is
slow: the center of the visible part moves along the rod. The lines of the rod's long axis intersect in the hinge
wherever that center lies, and the same point of a rigid rod keeps its distance from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline

from physvision.core import InputError
from physvision.identification.initial_guesses import MAD_TO_STD
from physvision.identification.settings import TrackSettings
from physvision.perception import Track


def select_tracks(
    tracks: Sequence[Track], name: object, start: float | None, stop: float | None, settings: TrackSettings
) -> list[Track]:
    """Select given tracks by name and time.

    Args:
        tracks: Given tracks.
        name: Name of the track to select; None for all.
        start: First time, s; None for the first sample.
        stop: Last time, s; None for the last sample.
        settings: Thresholds of track preparation.
    """
    if not tracks:
        raise InputError("source: expected at least one track")
    if start is not None and stop is not None and stop <= start:
        raise InputError(f"stop: expected more than start = {start:g} s, got {stop:g} s")
    named = [track for track in tracks if name is None or track.name == name]
    if not named:
        names = ", ".join(track.name for track in tracks)
        raise InputError(f"object: expected the name of a track, one of {names}, got {name!r}")
    low, high = -math.inf if start is None else start, math.inf if stop is None else stop
    first, last = np.searchsorted(named[0].times, [low, high]).tolist()
    windows = [track.window(first, last) for track in named]
    usable_tracks = [track for track in windows if track.observed.sum() >= settings.min_positions]
    if not usable_tracks:
        counts = ", ".join(f"{track.name}: {int(track.observed.sum())}" for track in windows)
        raise InputError(f"expected at least {settings.min_positions} positions of a moving object, got {counts}")
    return usable_tracks


def check_moving(tracks: Sequence[Track], settings: TrackSettings) -> None:
    """Refuse tracks of which none leaves its first position."""
    if all(_count_resting(track, settings) == track.observed.sum() for track in tracks):
        names = ", ".join(track.name for track in tracks)
        raise InputError(f"nothing moves: none of {names} leaves its first position")


def merge_fragments(tracks: Sequence[Track], settings: TrackSettings) -> list[Track]:
    """Merge tracks of which one begins where and when another ends: an object that was lost and found again."""
    merged: list[Track] = []
    for track in sorted(tracks, key=lambda track: int(np.flatnonzero(track.observed)[0])):
        start = int(np.flatnonzero(track.observed)[0])
        for index, earlier in enumerate(merged):
            end = int(np.flatnonzero(earlier.observed)[-1])
            if not settings.min_gap <= start - end <= settings.max_gap or len(earlier) != len(track):
                continue
            distance = float(np.linalg.norm(track.positions[start] - earlier.positions[end]))
            last_positions = earlier.positions[np.flatnonzero(earlier.observed)[-4:]]
            speed = float(np.linalg.norm(np.diff(last_positions, axis=0), axis=1).max(initial=0.0))
            max_distance = settings.gap_speed_ratio * speed * max(start - end, 1)
            size = earlier.radius or (1.0 if earlier.unit == "px" else 0.01 * earlier.extent)
            if distance <= max_distance + 2 * size:
                merged[index] = _merge(earlier, track, end)
                break
        else:
            merged.append(track)
    return merged


def _merge(before: Track, after: Track, end: int) -> Track:
    is_after = np.arange(len(before)) > end
    return replace(
        before,
        positions=np.where(is_after[:, None], after.positions, before.positions),
        sigma=np.where(is_after, after.sigma, before.sigma),
        observed=np.where(is_after, after.observed, before.observed),
        angle=None,
    )


def moving_tracks(tracks: list[Track], min_count: int, settings: TrackSettings) -> list[Track]:
    """Return the tracks that move far, the best observed first, `min_count` of them at least.

    A track whose positions scatter by more than its object's radius, as of flickering edges, shows no object; it is
    left out if another one does.

    Args:
        tracks: Tracks to choose from.
        min_count: Smallest number of tracks to return.
        settings: Thresholds of track preparation.
    """
    ordered = sorted(tracks, key=_signal_to_noise, reverse=True)
    max_extent = max(map(_robust_extent, tracks))
    moving = [track for track in ordered if _robust_extent(track) > settings.min_extent_ratio * max_extent]
    moving = [track for track in moving if not _is_scattered(track)] or moving
    return moving if len(moving) >= min_count else ordered[:min_count]


def _robust_extent(track: Track) -> float:
    """Return the diagonal of the box from the 5th to the 95th percentile of the positions, which one outlier leaves."""
    if not track.observed.any():
        return 0.0
    low, high = np.percentile(track.positions[track.observed], [5, 95], axis=0)
    return float(np.hypot(*(high - low)))


def _noise(track: Track) -> float:
    return float(np.median(track.sigma[track.observed]))


def _is_scattered(track: Track) -> bool:
    return track.radius is not None and _noise(track) > track.radius


def _signal_to_noise(track: Track) -> float:
    """Return the extent over the noise of all positions combined."""
    return track.extent / _noise(track) * math.sqrt(float(track.observed.sum()))


def trim_initial_rest(tracks: Sequence[Track], settings: TrackSettings) -> tuple[list[Track], list[str]]:
    """Mark the samples before anything moves as not observed, with a warning; the models do not cover rest.

    A short rest may be the slow start of the motion itself, unless it ends suddenly, as where something is let go.

    Args:
        tracks: Tracks to trim.
        settings: Thresholds of track preparation.

    Returns:
        The tracks, and the warnings.
    """
    counts = [_count_resting(track, settings) for track in tracks]
    # Objects may be observed at different times: everything rests until the first of them that moves does.
    moving = [track.times[track.observed][count:] for track, count in zip(tracks, counts, strict=True)]
    time = min((float(times[0]) for times in moving if len(times)), default=-math.inf)
    resting = [float((track.times[track.observed] < time).mean()) for track in tracks]
    is_held = any(
        len(times) and times[0] == time and _leaves_suddenly(track, count, settings)
        for track, count, times in zip(tracks, counts, moving, strict=True)
    )
    if max(resting) < settings.min_rest_fraction and not is_held:
        return list(tracks), []
    trimmed = [_mask_samples(track, track.times >= time) for track in tracks]
    usable = [track for track in trimmed if track.observed.sum() >= settings.min_positions]
    return usable or trimmed, [f"Nothing moves in the first {time - tracks[0].times[0]:.2g} s; they are left out."]


def trim_final_rest(tracks: Sequence[Track], settings: TrackSettings) -> tuple[list[Track], list[str]]:
    """Mark the samples after a track has come to rest as not observed, with a warning.

    Args:
        tracks: Tracks to trim.
        settings: Thresholds of track preparation.

    Returns:
        The tracks of which enough is left, and the warnings; all tracks as they are if there is none.
    """
    trimmed, notes = [], []
    for track in tracks:
        count = _count_resting(track, settings, backwards=True)
        if count >= settings.min_rest_fraction * int(track.observed.sum()):
            time = float(track.times[track.observed][-count])
            track = _mask_samples(track, track.times < time)
            notes.append(
                f"{track.name} rests from {time:.2f} s on, and no law explains how it came to rest: that part is left "
                f"out, as by --to {time:.2f}."
            )
        trimmed.append(track)
    usable = [track for track in trimmed if track.observed.sum() >= settings.min_positions]
    return (usable, notes) if usable else (list(tracks), [])


def shorten_final_rest(tracks: Sequence[Track], settings: TrackSettings) -> list[Track]:
    """Mark most of the samples after everything has come to rest as not observed; a long rest says no more.

    Args:
        tracks: Tracks to shorten.
        settings: Thresholds of track preparation.
    """
    moving = [track.times[track.observed] for track in tracks]
    counts = [_count_resting(track, settings, backwards=True) for track in tracks]
    ends = [float(times[-1 - min(count, len(times) - 1)]) for times, count in zip(moving, counts, strict=True)]
    start, end = min(float(times[0]) for times in moving), max(ends)
    limit = end + settings.max_rest_ratio * (end - start)
    return [_mask_samples(track, track.times <= limit) for track in tracks]


def _mask_samples(track: Track, mask: np.ndarray) -> Track:
    """Return the track observed only where the mask is true."""
    observed = track.observed & mask
    return replace(track, observed=observed, sigma=np.where(observed, track.sigma, np.inf))


def _leaves_suddenly(track: Track, count: int, settings: TrackSettings) -> bool:
    """Return whether a rest of the first `count` positions is one, and not the slow start of a motion from rest.

    Under a constant force the distance grows with the square of the time, so that four times the distance of a rest is
    reached after twice its time; after a rest it is reached sooner.
    """
    times = track.times[track.observed]
    later_count = _count_resting(track, settings, distance_ratio=4.0)
    if count < settings.min_positions or later_count >= len(times):
        return False
    return bool(times[later_count] - times[0] < settings.max_departure_ratio * (times[count] - times[0]))


def _count_resting(track: Track, settings: TrackSettings, backwards: bool = False, distance_ratio: float = 1.0) -> int:
    """Count the first (or last) observed positions that lie where the very first (last) ones do."""
    positions = track.positions[track.observed][:: -1 if backwards else 1]
    rest_radius = max(settings.rest_noise_ratio * _noise(track), settings.rest_distance * track.extent)
    rest_radius *= distance_ratio
    is_away = np.linalg.norm(positions - np.median(positions[:5], axis=0), axis=1) > rest_radius
    return int(is_away.argmax()) if is_away.any() else len(positions)


def frame_interval(times: np.ndarray, settings: TrackSettings) -> float:
    """Return the mean time between frames, s, missing frames left out; the mean, since timestamps may be rounded."""
    steps = np.diff(times)
    return float(steps[steps < settings.max_frame_ratio * np.median(steps)].mean())


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
    hinge, error, axis_distance = _intersect_lines(positions, normals, settings.hinge_iterations)
    distances = np.linalg.norm(positions - hinge, axis=1)
    radius = float(np.median(distances))
    # A median, since some lines may belong to another object.
    change = np.median(np.abs(distances - radius))
    if (
        axis_distance > settings.max_axis_miss * radius
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
    offsets = (normals * points).sum(1)
    point = np.linalg.lstsq(normals, offsets, rcond=None)[0]
    for _ in range(iterations):
        distances = np.abs(normals @ point - offsets)
        root_weights = 1 / np.sqrt(np.maximum(1.0, distances / (1.5 * MAD_TO_STD * np.median(distances) + 1e-9)))
        point = np.linalg.lstsq(normals * root_weights[:, None], offsets * root_weights, rcond=None)[0]
    typical_distance = MAD_TO_STD * float(np.median(np.abs(normals @ point - offsets)))
    return point, typical_distance / float(np.linalg.svd(normals, compute_uv=False)[-1]), typical_distance


def limit_samples(tracks: Sequence[Track], settings: TrackSettings) -> tuple[list[Track], list[str]]:
    """Thin tracks of very many samples, and cut what is still too long, with warnings.

    Args:
        tracks: Tracks of the same times.
        settings: Largest number of samples, and the loss by thinning.

    Returns:
        The tracks, and the warnings.
    """
    observed = np.flatnonzero(np.any([track.observed for track in tracks], axis=0))
    first, end = int(observed[0]), int(observed[-1]) + 1
    if end - first <= settings.max_samples:
        return list(tracks), []
    tracks = [track.window(first, end) for track in tracks]
    count, stride = end - first, math.ceil((end - first) / settings.max_samples)
    while stride > 1 and any(_lost_path(track, stride, settings) > settings.max_lost_path for track in tracks):
        stride //= 2
    notes = []
    if stride > 1:
        notes.append(f"The track has {count} samples; every {_ordinal(stride)} is used.")
        tracks = [track.window(0, None, stride) for track in tracks]
    if len(tracks[0]) > settings.max_samples:
        tracks = [track.window(0, settings.max_samples) for track in tracks]
        start, stop = (float(tracks[0].times[index]) for index in (0, -1))
        notes.append(
            f"The track has {count} samples; only the part from {start:.4g} to {stop:.4g} s is used: --from and --to "
            "select another."
        )
    usable = [track for track in tracks if track.observed.sum() >= settings.min_positions]
    return usable or tracks, notes


def _lost_path(track: Track, stride: int, settings: TrackSettings) -> float:
    """Return the part of the path that thinning would lose: a curve through half as many samples misses the others."""
    stride *= 2
    times, positions = track.times[track.observed], track.positions[track.observed]
    if len(times) < 2 * stride:
        return 1.0
    noise = float(np.median(track.sigma[track.observed]))
    curve = CubicSpline(times[::stride], positions[::stride])
    missed = np.linalg.norm(curve(times) - positions, axis=1) > settings.max_thinning_error * noise
    # Where it rests, noise is no path.
    steps = np.linalg.norm(np.diff(curve(times[::stride]), axis=0), axis=1)
    path = np.maximum(steps - settings.max_thinning_error * noise, 0.0).repeat(stride)[: len(times)]
    path += 1e-12
    return float((path * missed[: len(path)]).sum() / path.sum())


def _ordinal(number: int) -> str:
    """Return an English ordinal, such as 2nd or 60th."""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{suffix}"
