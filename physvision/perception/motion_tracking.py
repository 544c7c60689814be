"""Tracking of moving objects in front of a static background, without training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from physvision.core import Clip, InputError, StrPath
from physvision.core.checks import check_count
from physvision.perception.background import Alignment
from physvision.perception.frame_source import Box, FrameSource
from physvision.perception.hand_occlusion import HandTracker
from physvision.perception.refinement import Detection, Localizer, Target, unwrap_orientation
from physvision.perception.scene import prepare_scene
from physvision.perception.settings import DEFAULT_SETTINGS, PerceptionSettings, TrackSettings
from physvision.perception.static_occlusion import occluded_pixels, visible_offset
from physvision.perception.track import Track, apply_cadence, estimate_noise, repair_timestamps
from physvision.perception.track_selection import filter_tracklets, preview_tracklets, select_tracklets
from physvision.perception.tracklets import Tracklet, TrackletBuilder, detect_blobs

Detections = list[Detection | None]
# Called with the fraction of the work that is done, and with the preliminary path (points, 2) of each object, px.
OnProgress = Callable[[float, list[np.ndarray]], None]
_REPORTS = 20  # in a pass over the clip
_SURVEY_FRACTION, _ASSOCIATION_FRACTION = 0.3, 0.3  # of the processor time, measured on a clip of 720p


def find_tracks(
    clip: Clip | StrPath,
    objects: int | None = None,
    object: Box | str | tuple[float, float, float] | None = None,
    crop: Box | None = None,
    start: float | None = None,
    stop: float | None = None,
    min_objects: int = 1,
    settings: PerceptionSettings = DEFAULT_SETTINGS,
    on_progress: OnProgress | None = None,
) -> list[Track]:
    """Track what moves in front of a static background, by decreasing motion score.

    Foreground blobs are associated over time into tracklets; each object is then localized to a fraction of a pixel by
    its color and size. Frames of a path are decoded repeatedly, so memory does not grow with the clip's length.

    Args:
        clip: Clip in memory, or path of a video.
        objects: Number of objects to track; all with a high motion score if None.
        object: Object to select where several move: a box that it passes through (x, y, width, height; px), or its
            color (a name, "#rrggbb", or red, green, blue from 0 to 1).
        crop: Part of the image to analyze as x, y, width, height, px. Positions are those in the whole image.
        start: Time before which frames are skipped, s.
        stop: Time from which frames are skipped, s.
        min_objects: Number of objects that are tracked, where `objects` is None, even with a low motion score.
        settings: Tuning numbers of all stages.
        on_progress: Function that is called with the fraction of the work that is done, and with the paths of the
            objects as far as they are known; an exception that it raises ends the tracking.

    Raises:
        InputError: Nothing moves, or a different number of objects than expected; the message lists what was detected.
        VideoError: The camera moves, or the file cannot be read.
    """
    if objects is not None:
        check_count("objects", objects)
    analysis = _Analysis(FrameSource(clip, crop, start, stop, settings.background.max_side), settings, on_progress)
    tracklets = analysis.build_tracklets()
    if object is not None:
        if not isinstance(object, str) and len(object) == 4:
            x, y = (np.asarray(object[:2], float) - analysis.corner) / analysis.shrink
            object = (float(x), float(y), object[2] / analysis.shrink, object[3] / analysis.shrink)
        tracklets = filter_tracklets(tracklets, object, analysis.source.name)
        objects = objects or 1
    tracklets, notes = analysis.select(tracklets, objects, min_objects)
    targets = [Target.from_tracklet(tracklet, settings.refinement) for tracklet in tracklets]
    targets, detections = merge_targets(targets, analysis.localize(targets), settings.track)
    detections, static = analysis.track_into_hands(detections)
    notes = tuple(notes + analysis.scene.notes(analysis.shrink))
    candidates = [
        _Candidate(target, track, is_static)
        for target, track, is_static in zip(targets, detections, static, strict=True)
        if _complete(track, settings.track).sum() >= settings.track.min_detections
    ]
    # A hand, for instance, seems to move as one object until it is localized.
    if len(candidates) < (objects or 1):
        message = "the moving object cannot be localized; select it by a box or a color, or cut with crop"
        raise InputError(analysis.explain(message))
    tracks = [analysis.make_track(candidate, index, notes) for index, candidate in enumerate(candidates)]
    return repair_timestamps(apply_cadence(tracks, settings.cadence), settings.timestamps)


class _Candidate(NamedTuple):
    """Target with its detections in all frames; `is_static` if nothing moved there before the first."""

    target: Target
    detections: Detections
    is_static: bool


class _Analysis:
    """Passes over the frames of one clip, against its background.

    Attributes:
        scene: Frames with their background.
        source: Frames as they were filmed.
        frames: Frames to analyze.
        settings: Tuning numbers of perception.
        shrink: Integer factor by which frames are shrunk.
        corner: Upper left corner of the analyzed part, px of the whole image.
        background_survey: Times and changes of all frames.
        background: Background of the clip.
        alignments: Alignment of each frame.
        visits: Number of frames in which each pixel differs from the background.
        on_progress: Function that is called with the progress.
    """

    def __init__(
        self, frames: FrameSource, settings: PerceptionSettings, on_progress: OnProgress | None = None
    ) -> None:
        self.settings, self.on_progress = settings, on_progress
        self.shrink, self.corner = frames.image_transform()
        self.scene = prepare_scene(frames, settings)
        self.source, self.frames = self.scene.source, self.scene.frames
        self.background_survey, self.background = self.scene.background_survey, self.scene.background
        self.alignments: list[Alignment] = []
        self.visits = np.zeros(self.background.image.shape[:2], np.int32)
        self._paths: list[np.ndarray] = []

    def _report(self, number: int, begin: float, fraction: float, builder: TrackletBuilder | None = None) -> None:
        """Report the progress at a frame, if it is due.

        Args:
            number: Number of the frame.
            begin: Fraction of the work before this pass over the clip.
            fraction: Fraction of the work in this pass.
            builder: Tracklets so far, for the paths that are shown; those of the last report if None.
        """
        count = len(self.background_survey.times)
        if self.on_progress is None or number % max(1, count // _REPORTS):
            return
        if builder is not None:
            selected = preview_tracklets(builder, number + 1, self.settings)
            self._paths = [tracklet.positions * self.shrink + self.corner for tracklet in selected]
        self.on_progress(begin + fraction * number / count, self._paths)

    def build_tracklets(self) -> list[Tracklet]:
        """Align all frames, and associate their blobs; repeated frames are skipped."""
        background, association, repeats = self.background, self.settings.association, self.background_survey.repeats
        builder = TrackletBuilder(0.3 * max(self.background_survey.samples.shape[1:3]), association)
        for number, (time, frame) in enumerate(self.frames):
            self._report(number, _SURVEY_FRACTION, _ASSOCIATION_FRACTION, builder)
            previous = self.alignments[-1] if self.alignments else None
            self.alignments.append(background.estimate_alignment(frame, previous))
            if repeats[number]:
                continue
            aligned = background.align(frame, self.alignments[-1])
            difference = background.difference(aligned)
            blobs = detect_blobs(aligned, difference, background.threshold, background.image_uint8, association)
            builder.add(number, time, blobs)
            self.visits += difference > background.threshold
        return builder.tracklets()

    def select(
        self, tracklets: list[Tracklet], objects: int | None, min_objects: int
    ) -> tuple[list[Tracklet], list[str]]:
        """Select the tracklets of moving objects, with notes; see `select_tracklets`."""
        count, name = len(self.background_survey.times), self.source.name
        try:
            return select_tracklets(tracklets, count, objects, name, min_objects, self.settings.selection)
        except InputError as error:
            raise InputError(self.explain(str(error))) from None

    def explain(self, message: str) -> str:
        """Add the notes on noise to the message of an error."""
        notes = self.scene.noise_notes(self.shrink)
        return " ".join([f"{message}.", *notes]) if notes else message

    def localize(self, targets: list[Target]) -> list[Detections]:
        """Localize all targets in all frames."""
        localizer = Localizer(self.background.image, self.background.threshold, self.settings)
        detections: list[Detections] = [[] for _ in targets]
        begin = _SURVEY_FRACTION + _ASSOCIATION_FRACTION
        for number, (_, frame) in enumerate(self.frames):
            self._report(number, begin, 1 - begin)
            aligned = self.background.align(frame, self.alignments[number])
            for target, track in zip(targets, detections, strict=True):
                rivals = [rival for rival in targets if rival is not target and rival.spans(number)]
                track.append(localizer.detect(aligned, number, target, rivals))
        return detections

    def track_into_hands(self, detections: list[Detections]) -> tuple[list[Detections], list[bool]]:
        """Track objects back into the hand; also return which of them appear from a static scene."""
        tracker = HandTracker(self.background.image, self.background.threshold, self.settings.hand)
        ranges = [tracker.required_frames(track) for track in detections]
        required = {number for numbers in ranges for number in numbers}
        frames: dict[int, np.ndarray] = {}
        for number, (_, frame) in enumerate(self.frames):
            if number > max(required, default=-1):
                break
            if number in required:
                frames[number] = self.background.align(frame, self.alignments[number])
        extended, static = [], []
        for numbers, track in zip(ranges, detections, strict=True):
            scene = {number: frames[number] for number in numbers}
            extended.append(tracker.track_back(scene, track))
            static.append(tracker.is_static_before(scene, extended[-1]))
        return extended, static

    def make_track(self, candidate: _Candidate, index: int, notes: tuple[str, ...]) -> Track:
        """Assemble the track of a target, in pixels of the whole image."""
        settings, detections, times = self.settings.track, candidate.detections, self.background_survey.times
        weak = np.array([detection is not None and detection.weak for detection in detections])
        areas, complete = _areas(detections), _complete(detections, settings)
        image_positions = np.array([[np.nan] * 2 if item is None else item.position for item in detections])
        complete &= ~_repeats(image_positions, complete, self.background_survey.changes)
        observed = complete | (weak & (np.convolve(complete, [1, 1, 1], "same") > 0))
        positions = image_positions * self.shrink + self.corner
        frames = np.arange(len(detections))
        for axis in (0, 1):
            positions[:, axis] = np.interp(frames, frames[observed], positions[observed, axis], np.nan, np.nan)
        area = float(np.median(areas[complete]))
        radius = self.shrink * _slow_radius(areas[complete], image_positions[complete], times[complete], settings)
        sigmas = [item.sigma for item, flag in zip(detections, observed, strict=True) if flag and item is not None]
        noise = np.hypot(sigmas, settings.systematic_error) * self.shrink
        sigma = np.full(len(detections), np.inf)
        sigma[observed] = noise * max(1.0, estimate_noise(positions[complete]) / float(np.median(noise)))
        # A missing or surplus area lies to one side of the object.
        # A surplus that no joint explains, since it changed little by little, is the object's own.
        largest = math.exp(settings.max_area_change)
        area_error = np.abs(1 - np.where(observed, np.nan_to_num(areas), area).clip(max=largest * area) / area)
        scatter = 1.4826 * float(np.median(np.abs(np.diff(areas[complete])))) / math.sqrt(2) / area
        is_biased = area_error > max(settings.max_area_error, settings.area_outlier * scatter)
        sigma = np.hypot(sigma, np.where(is_biased, 0.5 * radius * area_error, 0.0))
        items = [item for item, flag in zip(detections, complete, strict=True) if flag and item is not None]
        angles, axis_ratios = np.array([(item.angle, item.axis_ratio) for item in items]).T
        if np.median(axis_ratios) < self.settings.refinement.min_axis_ratio:
            disc = radius / self.shrink
            occluded = occluded_pixels(self.visits, image_positions[complete], disc, self.settings.occlusion)
            offsets = [visible_offset(occluded, position, disc) for position in image_positions[observed]]
            sigma[observed] = np.hypot(sigma[observed], self.shrink * np.array(offsets))
        angle = unwrap_orientation(angles, axis_ratios, self.settings.refinement.min_axis_ratio)
        if angle is not None:
            angle = np.interp(frames, frames[complete], angle, np.nan, np.nan)
        red, green, blue = (float(level) / 255 for level in candidate.target.color)
        track = Track(times, positions, sigma, observed, angle, radius, (red, green, blue), f"object {index + 1}")
        return replace(track, notes=notes, static_before_visible=candidate.is_static)


def _slow_radius(areas: np.ndarray, positions: np.ndarray, times: np.ndarray, settings: TrackSettings) -> float:
    """Radius of the circle of equal area in the slowest frames, px; motion blur widens the object in the others."""
    speed = np.linalg.norm(np.gradient(positions, times, axis=0), axis=1)
    fraction = max(settings.slow_fraction, min(1.0, settings.min_detections / len(speed)))
    return float(np.sqrt(np.median(areas[speed <= np.quantile(speed, fraction)]) / np.pi))


def _areas(detections: Sequence[Detection | None]) -> np.ndarray:
    """Areas of the detections, px; NaN where there is none, or a weak one."""
    return np.array([np.nan if item is None or item.weak else item.area for item in detections])


def _complete(detections: Sequence[Detection | None], settings: TrackSettings) -> np.ndarray:
    """Mask the detections whose area is as in the neighboring frames: neither cut off nor joined to another object.

    In front of something of its color, an object may show a smaller area for a while and still be tracked. An area that
    changes little by little is that of one object, which comes nearer or gets another background.
    """
    areas = _areas(detections)
    frames = np.flatnonzero(np.isfinite(areas))
    complete = np.zeros(len(areas), bool)
    if not len(frames):
        return complete
    log_areas = np.log(areas[frames])
    size = settings.neighbors + 1
    typical = np.array([np.median(log_areas[max(0, index - size + 1) : index + size]) for index in range(len(frames))])
    steady = np.abs(log_areas - typical) < settings.max_area_change
    change = log_areas - np.median(log_areas)
    usual = (change > -settings.max_area_loss) & (change < settings.max_area_change)
    jumps = np.flatnonzero(np.abs(np.diff(typical)) > settings.max_area_step) + 1
    for stretch in np.split(np.arange(len(frames)), jumps):
        usual[stretch] |= (usual & steady)[stretch].any()
    complete[frames] = steady & usual
    return complete


def _repeats(positions: np.ndarray, observed: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Mask the frames that repeat the previous one, while the object moves before and after them."""
    repeats = np.zeros(len(observed), bool)
    typical_change = np.quantile(changes[1:], 0.75)
    for frame in np.flatnonzero(changes < 0.5 * typical_change):
        if frame < 2 or not observed[frame] or not observed[frame - 1]:
            continue
        windows = slice(max(0, frame - 4), frame - 1), slice(frame + 1, frame + 5)
        neighbors = [positions[window][observed[window]] for window in windows]
        distances = [np.linalg.norm(path - positions[frame], axis=1).max(initial=0.0) for path in neighbors]
        step = np.linalg.norm(positions[frame] - positions[frame - 1])
        repeats[frame] = step < 0.2 * min(1.0, *distances)
    return repeats


def merge_targets(
    targets: list[Target], detections: list[Detections], settings: TrackSettings
) -> tuple[list[Target], list[Detections]]:
    """Merge targets at the same positions, and targets of which one continues another.

    Args:
        targets: Targets in order of priority.
        detections: Detections of each target in all frames.
        settings: Gaps that count as an interruption.
    """
    detections = [_remove_outliers(track, settings.max_split_gap) for track in detections]
    retained: list[int] = []
    for number in range(len(targets)):
        for target in retained:
            pair, size = (detections[number], detections[target]), targets[target].size
            if _coincide(*pair, size) or _continues(*pair, size, settings.max_merge_gap):
                detections[target] = [_prefer_strong(b, a) for a, b in zip(*pair, strict=True)]
                break
        else:
            retained.append(number)
    return [targets[number] for number in retained], [detections[number] for number in retained]


def _prefer_strong(first: Detection | None, second: Detection | None) -> Detection | None:
    """Return the first detection, or the second where the first is missing or weak."""
    return second if first is None or (first.weak and second is not None) else first


def _frames(detections: Detections) -> np.ndarray:
    return np.flatnonzero([detection is not None for detection in detections])


def _remove_outliers(detections: Detections, max_gap: int) -> Detections:
    """Remove single detections and pairs that are separated by long gaps."""
    frames = _frames(detections)
    if len(frames) < 6:
        return detections
    runs = np.split(frames, np.flatnonzero(np.diff(frames) > max_gap) + 1)
    outliers = {int(frame) for run in runs if len(run) <= 2 for frame in run}
    return [None if number in outliers else detection for number, detection in enumerate(detections)]


def _coincide(first: Detections, second: Detections, size: float) -> bool:
    """Return True if both are at the same positions in many frames."""
    pairs = ((a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None)
    distances = [np.linalg.norm(a.position - b.position) for a, b in pairs]
    matches = sum(distance < 0.3 * size for distance in distances)
    return bool(matches > 0.3 * min(len(_frames(first)), len(_frames(second))))


def _continues(first: Detections, second: Detections, size: float, max_gap: int) -> bool:
    """Return True if either begins where and when the other ends; weak detections do not count."""
    strong = [[None if item is None or item.weak else item for item in track] for track in (first, second)]
    if not all(len(_frames(track)) for track in strong):
        return False
    early, late = sorted(strong, key=lambda track: int(_frames(track)[0]))
    end, start = int(_frames(early)[-1]), int(_frames(late)[0])
    if not -2 <= start - end <= max_gap:
        return False
    frames = _frames(early)[-4:]
    positions = np.array([detection.position for frame in frames if (detection := early[frame]) is not None])
    speed = float((np.linalg.norm(np.diff(positions, axis=0), axis=1) / np.diff(frames)).max(initial=0.0))
    last, first_late = early[end], late[start]
    if last is None or first_late is None:
        return False
    similar = abs(np.log(last.area / first_late.area)) < 0.6
    distance = np.linalg.norm(last.position - first_late.position)
    return bool(similar and distance < 1.5 * speed * max(start - end, 1) + size)
