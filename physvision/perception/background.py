"""Static background of a clip: its image, its noise, camera jitter and illumination changes.

The median over sampled frames shows what is visible most of the time. Where an object stays long or moves little, so
that a pixel has two colors for much of the time, the color that fits the surroundings is the background.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Bool, Float

from physvision.core import InputError, VideoError
from physvision.perception.camera_jitter import Image, Images, JitterEstimator, check_static_camera, undo_shift
from physvision.perception.frame_source import enhance
from physvision.perception.settings import DEFAULT_SETTINGS, BackgroundSettings, JitterSettings
from physvision.perception.single_changes import unify_single_changes


@dataclass(frozen=True)
class BackgroundSurvey:
    """Sampled frames and frame-to-frame changes of a whole clip.

    Attributes:
        samples: Evenly spaced frames.
        times: Times of all frames, s.
        changes: Mean change of each frame from the previous one, levels; infinite for the first.
    """

    samples: Images
    times: Float[np.ndarray, " times"]
    changes: Float[np.ndarray, " times"]

    @property
    def repeats(self) -> Bool[np.ndarray, " times"]:
        """Mask of frames that may repeat the previous one; never more than three in a row."""
        repeats = self.changes < 0.3 * np.quantile(self.changes[1:], 0.75)
        for frame in range(3, len(repeats)):
            repeats[frame] &= not repeats[frame - 3 : frame].all()
        return repeats


def survey_background(frames: Iterable[tuple[float, np.ndarray]], settings: BackgroundSettings) -> BackgroundSurvey:
    """Sample frames evenly in one pass over all of them, given with their times."""
    samples: list[np.ndarray] = []
    times, changes, step, previous = [], [], 1, None
    for index, (time, frame) in enumerate(frames):
        small = frame[::2, ::2, 1].astype(np.int16)
        changes.append(np.inf if previous is None else float(np.abs(small - previous).mean()))
        times.append(time)
        previous = small
        if index % step == 0:
            samples.append(frame)
            if len(samples) == 2 * settings.samples:
                samples, step = samples[::2], 2 * step
    if len(times) < 5:
        raise InputError(f"expected at least 5 frames to detect motion, got {len(times)}")
    return BackgroundSurvey(np.stack(samples), np.array(times), np.array(changes))


def brightening_gain(samples: Images, settings: BackgroundSettings) -> float:
    """Return the factor by which a dark picture is brightened, so that contrasts are those of any other; 1 if none.

    Args:
        samples: Frames spread over the whole clip.
        settings: Level below which a picture is dark, and largest factor.
    """
    brightest = float(np.quantile(samples[:, ::4, ::4], 0.999))
    return min(settings.max_gain, 255 / max(brightest, 1.0)) if brightest < settings.max_dark_level else 1.0


def find_enhancement(samples: Images, settings: BackgroundSettings) -> tuple[float, float] | None:
    """Return the blur, px, and the gain of noisy or dark frames; None if they are neither, or a blur does not help.

    A sensor's noise in low light and the dithering of a palette differ from pixel to pixel, so that a blur of a pixel
    or two averages them out; changes by a moving camera stay, and those of the light are no noise.

    Args:
        samples: Frames spread over the whole clip, of a static camera or registered.
        settings: Blurs and gains to select from, and the noise that is usual.
    """
    gain = brightening_gain(samples, settings)
    unblurred = gain * _mean_deviation(samples[:, ::4, ::4])
    if unblurred < settings.min_enhanced_noise:
        return (settings.smoothing[0], gain) if gain > 1 else None

    def noise(smoothing: float) -> float:
        return _mean_deviation(np.stack([enhance(sample, smoothing, gain)[::4, ::4] for sample in samples]))

    usual = settings.min_noisy_change / settings.noise_factor
    goal = max(usual, settings.noise_floor_ratio * noise(settings.smoothing[-1]))
    goal = min(goal, settings.max_noise_ratio * unblurred)
    smoothing = next((smoothing for smoothing in settings.smoothing if noise(smoothing) < goal), None)
    if smoothing is None:
        return (settings.smoothing[0], gain) if gain > 1 else None
    return smoothing, gain


@dataclass(frozen=True)
class Alignment:
    """Camera shift and illumination of one frame, relative to the background.

    Attributes:
        shift: Shift in x and y, px.
        gains: Brightness of each channel relative to the background's.
    """

    shift: Float[np.ndarray, "2"]
    gains: Float[np.ndarray, "3"]


class Background:
    """Background image, and the difference of frames from it.

    Attributes:
        image: Red, green, blue of each pixel, levels.
        image_uint8: Image rounded to bytes.
        noise: Standard deviation of each pixel, levels.
        jitter_std: Standard deviation of the camera's shift over the samples, px.
        has_jitter: If true, the shift is estimated and undone in each frame.
        jitter_coverage: Fraction of the samples whose shift is determined.
        corner_shift: Largest shift that corners of the background show, px; None if there are too few of them.
    """

    def __init__(
        self,
        samples: Images,
        settings: BackgroundSettings = DEFAULT_SETTINGS.background,
        jitter: JitterSettings = DEFAULT_SETTINGS.jitter,
    ) -> None:
        """Estimate the background from sampled frames.

        Args:
            samples: Frames spread over the whole clip.
            settings: Thresholds of the estimation.
            jitter: Tuning numbers of the jitter estimation.
        """
        self.corner_shift = check_static_camera(samples, jitter)
        self._settings = settings
        median = _median(samples)
        self._jitter = JitterEstimator(_to_bytes(median), jitter)
        estimates = [self._jitter.estimate(sample) for sample in samples]
        self.jitter_coverage = sum(estimate is not None for estimate in estimates) / len(estimates)
        shifts = _interpolate_missing(estimates)
        self._initial_shift = shifts[0]
        # Estimates for a static camera scatter by a few hundredths of a pixel; undoing these would add noise.
        self.jitter_std = float(np.hypot(*shifts.std(0)))
        self.has_jitter = self.jitter_std > settings.min_jitter
        if self.has_jitter:
            samples = np.stack([undo_shift(frame, shift) for frame, shift in zip(samples, shifts, strict=True)])
            median = _median(samples)
        gains = [self._estimate_gains(sample, median, np.zeros(2)) for sample in samples]
        samples = np.stack([self._normalize(*pair) for pair in zip(samples, gains, strict=True)])
        self.image, self.noise = _resolve_ambiguity(samples, _median(samples), settings)
        self.image_uint8 = _to_bytes(self.image)
        self._jitter = JitterEstimator(self.image_uint8, jitter)

    @property
    def threshold(self) -> Float[np.ndarray, "height width"]:
        """Change above which a pixel is foreground, levels."""
        return np.maximum(self._settings.min_change, self._settings.noise_factor * self.noise)

    def estimate_alignment(self, frame: Image, previous: Alignment | None = None) -> Alignment:
        """Estimate shift and gains of a frame.

        Args:
            frame: Frame, levels.
            previous: Alignment of the previous frame, where the search starts.
        """
        if not self.has_jitter:
            return Alignment(np.zeros(2), self._estimate_gains(frame, self.image, np.zeros(2)))
        guess = self._initial_shift if previous is None else previous.shift
        estimate = self._jitter.estimate(frame, guess)
        # A codec may repeat the background unchanged, so that the frame has no information on the shift.
        shift = guess if estimate is None else estimate
        return Alignment(shift, self._estimate_gains(frame, self.image, shift))

    def align(self, frame: Image, alignment: Alignment) -> Image:
        """Undo the shift and the illumination change of a frame."""
        shifted = undo_shift(frame, alignment.shift) if alignment.shift.any() else frame
        return self._normalize(shifted, alignment.gains)

    def difference(self, aligned: Image) -> Float[np.ndarray, "height width"]:
        """Largest change over the channels of an aligned frame, slightly blurred, levels."""
        channels = cv2.split(cv2.absdiff(aligned, self.image_uint8))
        maximum = cv2.max(cv2.max(channels[0], channels[1]), channels[2])
        return cv2.GaussianBlur(maximum.astype(np.float32), (0, 0), 0.8)

    def _estimate_gains(self, frame: np.ndarray, image: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Estimate the relative brightness of each channel of a shifted frame, on every fifth row and column."""
        height, width = image.shape[:2]
        axes = (height, round(float(shift[1]))), (width, round(float(shift[0])))
        rows, columns = (np.clip(np.arange(0, size, 5) + offset, 0, size - 1) for size, offset in axes)
        reference = image[::5, ::5].reshape(-1, 3)
        current = frame[np.ix_(rows, columns)].reshape(-1, 3)
        gains = np.ones(3)
        low, high = self._settings.bright_levels
        for channel in range(3):
            bright = (reference[:, channel] > low) & (reference[:, channel] < high)
            if bright.mean() > self._settings.min_bright_fraction:
                gains[channel] = np.median(current[bright, channel] / reference[bright, channel])
        return gains

    def _normalize(self, frame: np.ndarray, gains: np.ndarray) -> np.ndarray:
        """Divide a frame by its gains, channel by channel."""
        if np.abs(gains - 1).max() < self._settings.min_gain_change:
            return frame
        levels = np.arange(256)[:, None] / gains
        return cv2.LUT(frame, np.clip(np.round(levels), 0, 255).astype(np.uint8)[:, None])


def _interpolate_missing(shifts: Sequence[Float[np.ndarray, "2"] | None]) -> Float[np.ndarray, "samples 2"]:
    """Interpolate missing shifts; zero where none is estimated."""
    frames = [number for number, shift in enumerate(shifts) if shift is not None]
    if not frames:
        return np.zeros((len(shifts), 2))
    estimates = np.array([shift for shift in shifts if shift is not None])
    return np.stack([np.interp(np.arange(len(shifts)), frames, estimates[:, axis]) for axis in (0, 1)], 1)


def _max_channel(image: np.ndarray) -> np.ndarray:
    """Return the largest of the three channels; NumPy reduces a short last axis ten times more slowly."""
    return np.maximum(np.maximum(image[..., 0], image[..., 1]), image[..., 2])


def _to_bytes(image: np.ndarray) -> np.ndarray:
    return np.clip(np.round(image), 0, 255).astype(np.uint8)


def _median(samples: np.ndarray) -> np.ndarray:
    """Compute the median of bytes over samples by strips of rows, which stay in the processor's cache."""
    low, high = (len(samples) - 1) // 2, len(samples) // 2
    strips = np.array_split(np.arange(samples.shape[1]), max(1, samples.shape[1] // 8))
    medians = []
    for rows in strips:
        strip = samples[:, rows[0] : rows[-1] + 1]
        median = _order_statistic(strip, low).astype(np.float32)
        medians.append(median if low == high else (median + _order_statistic(strip, high)) / 2)
    return np.concatenate(medians)


def _order_statistic(values: np.ndarray, rank: int) -> np.ndarray:
    """Return the bytes of a rank along the first axis, bit by bit; several times faster than a partition."""
    statistic = np.zeros(values.shape[1:], np.uint8)
    for bit in (128, 64, 32, 16, 8, 4, 2, 1):
        candidate = statistic | np.uint8(bit)
        below = (values < candidate).sum(0, dtype=np.uint16)
        statistic = np.where(below <= rank, candidate, statistic)
    return statistic


def _deviation(samples: Iterable[np.ndarray], median: np.ndarray) -> np.ndarray:
    """Return the largest deviation over the channels of each pixel of all samples from their median."""
    return np.stack([_max_channel(np.abs(sample - median)) for sample in samples])


def _mean_deviation(samples: np.ndarray) -> float:
    """Return a typical pixel's standard deviation by its mean deviation: few levels of a dither are its median.

    What changes all of the picture alike, as a light does, is left out.
    """
    levels = samples.astype(np.float32)
    brightness = levels.mean((1, 2), keepdims=True).clip(min=1e-3)
    levels *= np.median(brightness, axis=0) / brightness
    return 1.2533 * float(np.median(_deviation(levels, np.median(levels, axis=0)).mean(0)))


def _resolve_ambiguity(
    samples: np.ndarray, median: np.ndarray, settings: BackgroundSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Return the background and its noise, with ambiguous pixels resolved by their surroundings."""
    deviation = _deviation(samples, median)
    # A partition of contiguous values is three times faster.
    noise = 1.4826 * np.median(np.ascontiguousarray(np.moveaxis(deviation, 0, -1)), axis=-1)
    typical_noise = float(np.median(noise))
    # Noise is nearly uniform; where the deviation is large, something moves.
    tolerance = max(settings.min_change, settings.noise_factor * min(typical_noise, 4.0))
    frequent = (deviation > tolerance).mean(0) > settings.min_second_color_fraction
    ambiguous = cv2.morphologyEx(frequent.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    noise = cv2.GaussianBlur(np.minimum(noise, typical_noise + 4.0).astype(np.float32), (0, 0), 2)
    if not ambiguous.any():
        return median, noise
    if ambiguous.mean() > settings.max_changing_fraction:
        raise VideoError(
            f"{100 * ambiguous.mean():.0f} % of the image keeps changing, by {typical_noise:.0f} of 255 levels, so "
            "there is no static background: the camera moves, too much else does, or it is noise, as of a GIF with few "
            "colors. Film with a static camera, give the original clip, or select a part of the image with crop"
        )
    region = cv2.dilate(_fill_holes(ambiguous), np.ones((5, 5), np.uint8))
    inpainted = cv2.inpaint(np.round(median).astype(np.uint8), region, 5, cv2.INPAINT_TELEA).astype(np.float32)
    rows, columns = np.nonzero(region)
    values = samples[:, rows, columns].astype(np.float32)
    images = median, inpainted, ambiguous.astype(bool)
    typical, surroundings, is_ambiguous = (image[rows, columns] for image in images)
    colors, object_colors = _resolve_colors(values, typical, surroundings, is_ambiguous, tolerance, settings)
    image = median.copy()
    image[rows, columns] = colors
    # Each pixel is resolved on its own: where a few keep an object's color among others, the others are right, if they
    # were visible there more than once. A thin static object, such as a post or a hand, is as rare among others.
    smooth = cv2.medianBlur(_to_bytes(image), settings.speckle_size)[rows, columns].astype(np.float32)
    speckles = np.abs(colors - smooth).max(-1) > 2 * tolerance
    if speckles.any() and len(object_colors):
        speckles &= _matches_any(colors, object_colors, 2 * tolerance)
        visible = np.abs(values[:, speckles] - smooth[speckles]).max(-1) < 2 * tolerance
        speckles[speckles] = visible.sum(0) > 1
        image[rows[speckles], columns[speckles]] = smooth[speckles]
    return unify_single_changes(image, samples, region.astype(bool), tolerance, settings), noise


def _resolve_colors(
    values: Float[np.ndarray, "samples pixels 3"],
    typical: Float[np.ndarray, "pixels 3"],
    inpainted: Float[np.ndarray, "pixels 3"],
    ambiguous: Bool[np.ndarray, " pixels"],
    tolerance: float,
    settings: BackgroundSettings,
) -> tuple[Float[np.ndarray, "pixels 3"], Float[np.ndarray, "colors 3"]]:
    """Choose the background color of ambiguous pixels; also return the colors of the moving objects.

    Args:
        values: Colors of the pixels in all samples.
        typical: Median color of each pixel.
        inpainted: Color of each pixel as its surroundings suggest it.
        ambiguous: Mask of the ambiguous pixels; the others are next to them.
        tolerance: Difference up to which two colors are equal, levels.
        settings: Thresholds of the estimation.
    """
    nearest = np.take_along_axis(values, np.abs(values - inpainted).max(-1).argmin(0)[None, :, None], 0)[0]
    matches = np.abs(values - nearest).max(-1) < tolerance
    rare_colors = (values * matches[..., None]).sum(0) / matches.sum(0)[:, None]
    # The typical color stays, unless a rarer one fits the surroundings much better.
    typical_matches = np.abs(values - typical).max(-1) < tolerance
    typical_saliency = _saliency(typical - inpainted, typical_matches.mean(0), tolerance, settings)
    keeps_typical = typical_saliency <= _saliency(nearest - inpainted, matches.mean(0), tolerance, settings)
    colors = np.where(keeps_typical[:, None], typical, rare_colors)
    # A pixel that is rarely or never uncovered takes the rare or the inpainted color, if what covers it has the color
    # of an object that moves nearby. A shadow's color may be that of the background elsewhere and says nothing.
    foreground = values[~matches & ~typical_matches & ambiguous]
    salient = np.abs(colors - inpainted).max(-1) > 2 * tolerance
    object_colors = _frequent_colors(foreground, settings)
    background_colors = _frequent_colors(colors[~salient], settings)
    is_distinct = (np.abs(object_colors[:, None] - background_colors).max(-1) > 2 * tolerance).all(1)
    object_colors = object_colors[is_distinct]
    salient = np.flatnonzero(salient)
    if len(salient) and len(object_colors):
        hidden = _matches_any(values[:, salient], object_colors, 2 * tolerance).mean(0)
        matches_surroundings = np.abs(rare_colors - inpainted)[salient].max(-1) < 2 * tolerance
        visible = matches_surroundings & (hidden + matches[:, salient].mean(0) > settings.min_hidden_fraction)
        colors[salient[visible]] = rare_colors[salient[visible]]
        covered = salient[~visible & (hidden > settings.min_hidden_fraction)]
        colors[covered] = inpainted[covered]
    return colors, object_colors


def _frequent_colors(
    values: Float[np.ndarray, "values 3"], settings: BackgroundSettings
) -> Float[np.ndarray, "colors 3"]:
    """Return the colors that many of the values have; blurred edges have none."""
    _, cells, counts = np.unique(values // 16, axis=0, return_inverse=True, return_counts=True)
    frequent = np.flatnonzero(counts >= settings.min_color_fraction * len(values))
    return np.array([values[cells.ravel() == cell].mean(0) for cell in frequent]).reshape(-1, 3)


def _matches_any(values: np.ndarray, colors: np.ndarray, tolerance: float) -> np.ndarray:
    """Return which of the values (…, 3) equal any of the colors (n, 3) within a tolerance in every channel, levels."""
    levels = np.arange(4, 256, 8, dtype=np.float32)
    cells = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1)
    table = np.zeros(cells.shape[:3], bool)
    for color in colors:
        table |= np.abs(cells - color).max(-1) < tolerance
    return table[tuple((values // 8).astype(int).clip(0, 31).T)].T


def _saliency(offset: np.ndarray, frequency: np.ndarray, tolerance: float, settings: BackgroundSettings) -> np.ndarray:
    """Return how much colors stand out as those of a background: far from the inpainted color, or rare."""
    distance = np.minimum(np.abs(offset).max(-1) / tolerance, settings.max_distance)
    return distance - settings.rarity_weight * np.log(np.maximum(frequency, 1e-3))


def _fill_holes(mask: np.ndarray) -> np.ndarray:
    """Close gaps in the mask, and fill its holes that are smaller than the mask itself."""
    closed = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((7, 7), np.uint8))
    count, labels, stats, _ = cv2.connectedComponentsWithStats((closed == 0).astype(np.uint8), connectivity=4)
    for label in range(1, count):
        left, top, width, height, area = stats[label]
        inside = left > 0 and top > 0 and left + width < mask.shape[1] and top + height < mask.shape[0]
        if inside and area < closed.sum():
            closed[labels == label] = 1
    return closed
