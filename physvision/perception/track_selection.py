"""Selection of the tracklets that show moving objects, without shadows, hands, noise and remnants."""

from __future__ import annotations

import heapq

import numpy as np
from PIL import ImageColor

from physvision.core import InputError
from physvision.perception.frame_source import Box
from physvision.perception.settings import DEFAULT_SETTINGS, PerceptionSettings, SelectionSettings
from physvision.perception.tracklets import Tracklet, TrackletBuilder, dissimilarity, merge_tracklets

_Scored = list[tuple[float, Tracklet]]


def motion_score(tracklet: Tracklet, frames: int, settings: SelectionSettings = DEFAULT_SETTINGS.selection) -> float:
    """Rate a tracklet as one moving object: visible often, traveling far, steady in size, away from the border."""
    areas = np.log([blob.area for blob in tracklet.blobs])
    area_spread = float(np.median(np.abs(areas - np.median(areas))))
    border_fraction = float(np.mean([blob.touches_border for blob in tracklet.blobs]))
    shadow_fraction = float(np.mean([blob.is_shadow for blob in tracklet.blobs]))
    extent = tracklet.extent
    if extent < max(3.0, 0.25 * tracklet.size):
        return 0.0
    steadiness = 1 / (1 + 3 * area_spread) / (1 + 4 * _roughness(tracklet))
    # A hand moves by about its own size, what it throws by many times that.
    steadiness *= extent / (extent + 1.5 * tracklet.size)
    # A hand that rests after a throw gains no score by resting.
    moving_fraction = (len(tracklet) - _resting_frames(tracklet, settings)) / frames
    score = extent**0.7 * np.sqrt(moving_fraction) * tracklet.contrast * steadiness
    return float(score * (1 - 0.8 * border_fraction) * (1 - 0.7 * shadow_fraction))


def _resting_frames(tracklet: Tracklet, settings: SelectionSettings) -> int:
    """Count the frames at the beginning and the end in which the object rests."""
    count = 0
    for positions in (tracklet.positions, tracklet.positions[::-1]):
        rest = np.median(positions[: settings.rest_samples], axis=0)
        moved = np.linalg.norm(positions - rest, axis=1) > settings.rest_distance * tracklet.extent
        count += int(moved.argmax()) if moved.any() else len(positions)
    return min(count, len(tracklet))


def _roughness(tracklet: Tracklet) -> float:
    """Deviation of positions from local parabolas, in object sizes: large for noise and for hands."""
    positions, times = tracklet.positions, np.array(tracklet.times)
    if len(tracklet) < 7:
        return 0.5
    deviations = []
    for start in range(0, len(tracklet) - 6, max(1, len(tracklet) // 60)):
        window = slice(start, start + 7)
        offsets = times[window] - times[start + 3]
        if np.ptp(offsets) > 0.6:
            continue
        powers = np.stack([np.ones(7), offsets, offsets**2], 1)
        residual = positions[window] - powers @ np.linalg.lstsq(powers, positions[window], rcond=None)[0]
        deviations.append(np.sqrt((residual**2).sum() / 8))
    return float(np.median(deviations)) / tracklet.size if deviations else 0.5


def select_tracklets(
    tracklets: list[Tracklet],
    frames: int,
    objects: int | None,
    name: str,
    min_objects: int = 1,
    settings: SelectionSettings = DEFAULT_SETTINGS.selection,
) -> tuple[list[Tracklet], list[str]]:
    """Select the moving objects, by decreasing score; also return notes on the selection.

    Args:
        tracklets: All tracklets of the clip.
        frames: Number of analyzed frames.
        objects: Expected number of objects; None for all with a high score.
        name: Name of the clip in messages.
        min_objects: Number of objects that are selected even with a much lower score than the best.
        settings: Thresholds of the scores.
    """
    scored = sorted(((motion_score(item, frames, settings), item) for item in tracklets), key=lambda pair: -pair[0])
    scored = [(score, tracklet) for score, tracklet in scored if score > 0]
    if not scored:
        raise InputError(
            f"{name}: nothing moves that can be tracked. {_summarize(tracklets)}"
            "Expected an object that moves in front of a static background; select it with object, or cut with crop"
        )
    selected: _Scored = []
    for score, tracklet in scored:
        min_score = settings.min_score if len(selected) >= min_objects else settings.min_expected_score
        is_strong = score >= min_score * scored[0][0]
        if is_strong and not any(_is_reflection(tracklet, source, settings) for _, source in selected):
            selected.append((score, tracklet))
    notes = []
    if objects is None:
        return [tracklet for _, tracklet in selected], notes
    if len(selected) < objects:
        raise InputError(f"{name}: expected {objects} moving objects, found {len(selected)}: {_list(selected)}")
    if len(selected) > objects:
        if selected[objects][0] > settings.max_ambiguity * selected[objects - 1][0]:
            raise InputError(
                f"{name}: expected {objects} moving object{'s' * (objects > 1)}, found {len(selected)}: "
                f"{_list(selected)}. Select one with object (a box or a color), or cut with crop, start and stop"
            )
        notes.append(f"Other objects move too: {_list(selected[objects:])}.")
    return [tracklet for _, tracklet in selected[:objects]], notes


def preview_tracklets(builder: TrackletBuilder, frames: int, settings: PerceptionSettings) -> list[Tracklet]:
    """Select the moving objects of the frames so far; of the longest tracklets alone, which takes little time.

    Args:
        builder: Builder of the tracklets, in the middle of a clip.
        frames: Number of frames so far.
        settings: Tuning numbers of perception.
    """
    longest = heapq.nlargest(settings.selection.max_previewed, builder.unmerged(), key=len)
    try:
        merged = merge_tracklets(longest, settings.association)
        return select_tracklets(merged, frames, None, "clip", settings=settings.selection)[0]
    except InputError:  # nothing moves yet
        return []


def filter_tracklets(
    tracklets: list[Tracklet], selector: Box | str | tuple[float, float, float], name: str
) -> list[Tracklet]:
    """Retain the tracklets that pass through a box (x, y, width, height), px, or that have a color."""
    if not isinstance(selector, str) and len(selector) == 4:
        low = np.array(selector[:2])
        high = low + selector[2:]
        is_inside = [((item.positions >= low) & (item.positions <= high)).all(1).any() for item in tracklets]
        inside = [tracklet for tracklet, flag in zip(tracklets, is_inside, strict=True) if flag]
        if not inside:
            box = ", ".join(f"{float(value):g}" for value in selector)
            raise InputError(
                f"object: no moving object passes through the box {box} (x, y, width, height) in {name}. "
                f"{_summarize(tracklets)}"
            )
        return inside
    color = parse_color(selector)
    distances = [float(np.linalg.norm(_chroma(tracklet.color) - _chroma(color))) for tracklet in tracklets]
    limit = min(0.7, min(distances, default=0.0) + 0.2)
    matches = [tracklet for tracklet, distance in zip(tracklets, distances, strict=True) if distance < limit]
    if not matches:
        raise InputError(f"object: no moving object in {name} has the color {selector}. {_summarize(tracklets)}")
    return matches


def parse_color(color: object) -> np.ndarray:
    """Convert a color name, `#rrggbb`, or red, green, blue from 0 to 1, to levels."""
    try:
        return np.array(ImageColor.getrgb(color)[:3] if isinstance(color, str) else 255 * np.asarray(color), float)
    except (ValueError, TypeError):
        raise InputError(
            f'object: expected a box (x, y, width, height) or a color such as "red", "#c02020", got {color!r}'
        ) from None


def _chroma(color: np.ndarray) -> np.ndarray:
    """Chromaticity of a color, with its brightness weighted down."""
    return np.append(color / max(float(color.sum()), 30.0) * 1.5, 0.3 * color.sum() / 765)


def _is_reflection(tracklet: Tracklet, source: Tracklet, settings: SelectionSettings) -> bool:
    """Return True if a tracklet is the shadow, the reflection or a part of a stronger one."""
    common = sorted(set(tracklet.frames) & set(source.frames))
    if len(common) < 6 or len(common) < 0.6 * len(tracklet):
        return False
    blobs, source_blobs = (dict(zip(item.frames, item.blobs, strict=True)) for item in (tracklet, source))
    positions = np.array([blobs[frame].position for frame in common])
    source_positions = np.array([source_blobs[frame].position for frame in common])
    is_shadow = np.mean([blobs[frame].is_shadow for frame in common]) > 0.5
    contrast = np.median([blobs[frame].contrast for frame in common])
    is_dimmer = contrast < 0.7 * np.median([source_blobs[frame].contrast for frame in common])
    is_dimmer &= _shares_hue(tracklet, source, settings.min_reflection_cosine)
    affine = np.column_stack([source_positions, np.ones(len(source_positions))])
    residual = positions - affine @ np.linalg.lstsq(affine, positions, rcond=None)[0]
    follows = np.sqrt((residual**2).sum(1).mean()) < 0.15 * max(tracklet.extent, 1.0)
    if (is_shadow or is_dimmer) and follows and _moves_with(positions, source_positions):
        return True
    # A part of the same object keeps its distance.
    offset = np.median(positions - source_positions, axis=0)
    is_rigid = np.median(np.abs(positions - source_positions - offset), axis=0).max() < 0.25 * source.size
    distance = float(np.linalg.norm(offset))
    is_marking = distance < 1.5 * source.size and dissimilarity(tracklet, source) > 0.8
    # Where a body looks like the background, as in low light, it shows as several parts; other bodies lie side by side.
    is_within = distance < settings.max_part_distance * (tracklet.size + source.size) / 2
    return bool(is_rigid and (is_marking or is_within))


def _shares_hue(tracklet: Tracklet, source: Tracklet, min_cosine: float) -> bool:
    """Return True if both differ from the background in about the same direction of color space."""
    differences = ([blob.color_difference for blob in item.blobs] for item in (tracklet, source))
    color, source_color = (np.median(colors, axis=0) for colors in differences)
    return bool(color @ source_color > min_cosine * np.linalg.norm(color) * np.linalg.norm(source_color))


def _moves_with(positions: np.ndarray, source_positions: np.ndarray, steps: int = 8) -> bool:
    """Return True if one moves whenever the source does; an object that rests until it is hit does not."""
    samples = np.linspace(0, len(source_positions) - 1, steps + 1).astype(int)
    paths = positions[samples], source_positions[samples]
    distance, source_distance = (np.linalg.norm(np.diff(path, axis=0), axis=1) for path in paths)
    moving = source_distance > 0.3 * source_distance.max()
    ratio = distance[moving] / source_distance[moving]
    return bool(ratio.min() > 0.1 * ratio.max())


def _list(scored: _Scored) -> str:
    return "; ".join(_describe(tracklet) for _, tracklet in scored[:4])


def _describe(tracklet: Tracklet) -> str:
    x, y = tracklet.positions[0]
    red, green, blue = (round(float(level)) for level in tracklet.color)
    return (
        f"{tracklet.size:.0f} pixels wide, color #{red:02x}{green:02x}{blue:02x}, from ({x:.0f}, {y:.0f}) "
        f"at {tracklet.times[0]:.2f} s to {tracklet.times[-1]:.2f} s"
    )


def _summarize(tracklets: list[Tracklet]) -> str:
    if not tracklets:
        return "No foreground was detected. "
    longest = sorted(tracklets, key=len, reverse=True)[:3]
    return f"Detected: {'; '.join(_describe(tracklet) for tracklet in longest)}. "
