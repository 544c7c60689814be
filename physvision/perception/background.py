"""What stands still behind everything: its picture, its noise, the camera's shake and the light's flicker.

The median of some frames shows what is there most of the time. Where something stays long or moves little, so that a
pixel shows two things for much of the time, the one that fits what is around is the background.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Bool, Float, UInt8

from physvision.core import InputError, VideoError
from physvision.perception.camera_jitter import JitterEstimator, check_still, shifted_back

_SAMPLES = 48  # frames that the background is made from
_FLOOR = 12.0  # levels: less is never called a change
_OFTEN = 0.12  # share of the time from which a second colour of a pixel is no passing thing
_FAR = 4.0  # tolerances from what is around, from which on it makes no difference: the guess may be wrong
_RARE = 2.0  # such tolerances that a background may be off for being seen e times as often
_ALWAYS = 0.9  # share of the time for which something hides what is behind it, if nothing of that is ever seen
_PLAIN = 0.03  # share of what passes, from which on a colour is that of a thing
_LIT = 0.05  # share of the pixels that must be bright enough to tell the light: fewer may be those of a thing
_SPECKLED = 21  # px: what is wrong of the background in less than half of such a square is mended by the rest
_MOST = 0.45  # share of the picture that may change like this; beyond it the camera moves


@dataclass(frozen=True)
class BackgroundSurvey:
    """A first look at all frames.

    Attributes:
        samples: some of the frames, evenly spread.
        times: of all frames, s.
        changes: mean change of each frame from the one before, levels; infinite for the first.
    """

    samples: UInt8[np.ndarray, "samples height width 3"]
    times: Float[np.ndarray, " times"]
    changes: Float[np.ndarray, " times"]

    @property
    def repeats(self) -> Bool[np.ndarray, " times"]:
        """Frames that change so little that they may show the one before again; never more than three in a row."""
        alike = self.changes < 0.3 * np.quantile(self.changes[1:], 0.75)
        for frame in range(3, len(alike)):
            alike[frame] &= not alike[frame - 3 : frame].all()
        return alike


def survey_background(footage) -> BackgroundSurvey:
    """Go through all frames once and keep some of them."""
    kept: list[np.ndarray] = []
    times, changes, step, before = [], [], 1, None
    for index, (moment, frame) in enumerate(footage):
        small = frame[::2, ::2, 1].astype(np.int16)
        changes.append(np.inf if before is None else float(np.abs(small - before).mean()))
        times.append(moment)
        before = small
        if index % step == 0:
            kept.append(frame)
            if len(kept) == 2 * _SAMPLES:
                kept, step = kept[::2], 2 * step
    if len(times) < 5:
        raise InputError(f"expected at least 5 frames to see a motion, got {len(times)}")
    return BackgroundSurvey(np.stack(kept), np.array(times), np.array(changes))


@dataclass(frozen=True)
class Alignment:
    """How one frame was taken.

    Attributes:
        shift: of the camera in x and y, pixels.
        gains: the light in each channel, of the background's.
    """

    shift: Float[np.ndarray, "2"]
    gains: Float[np.ndarray, "3"]


class Background:
    """The picture behind, and how a frame differs from it."""

    def __init__(self, samples: UInt8[np.ndarray, "samples height width 3"]) -> None:
        """Make it from frames of the whole time."""
        check_still(samples)
        middle = _median(samples)
        self._shake = JitterEstimator(_bytes(middle))
        shifts = _filled_in([self._shake.measure(sample) for sample in samples])
        self._first = shifts[0]
        # Estimates scatter by some hundredths of a pixel when nothing moves; correcting these would add noise.
        self.shift_deviation = float(np.hypot(*shifts.std(0)))
        self.shaky = self.shift_deviation > 0.16
        if self.shaky:
            samples = np.stack([shifted_back(one, shift) for one, shift in zip(samples, shifts, strict=True)])
            middle = _median(samples)
        samples = np.stack([_lit(sample, self._gains(sample, middle, np.zeros(2))) for sample in samples])
        self.picture, self.noise = _resolved(samples, _median(samples))
        self.bytes = _bytes(self.picture)
        self._shake = JitterEstimator(self.bytes)

    @property
    def threshold(self) -> Float[np.ndarray, "height width"]:
        """Levels from which on a pixel has changed."""
        return np.maximum(_FLOOR, 5 * self.noise)

    def alignment(self, frame: UInt8[np.ndarray, "height width 3"], before: Alignment | None = None) -> Alignment:
        """How a frame was taken; `before` is that of the frame before it."""
        if not self.shaky:
            return Alignment(np.zeros(2), self._gains(frame, self.picture, np.zeros(2)))
        guess = self._first if before is None else before.shift
        measured = self._shake.measure(frame, guess)
        # A codec may leave the picture behind as it was, so that it does not tell.
        shift = guess if measured is None else measured
        return Alignment(shift, self._gains(frame, self.picture, shift))

    def aligned(
        self, frame: UInt8[np.ndarray, "height width 3"], alignment: Alignment
    ) -> UInt8[np.ndarray, "height width 3"]:
        """The frame as it would be from the camera's mean place and in the mean light."""
        return _lit(shifted_back(frame, alignment.shift) if alignment.shift.any() else frame, alignment.gains)

    def change(self, aligned: UInt8[np.ndarray, "height width 3"]) -> Float[np.ndarray, "height width"]:
        """Largest change of any channel of an aligned frame, levels, slightly blurred."""
        apart = cv2.absdiff(aligned, self.bytes)
        most = cv2.max(cv2.max(apart[..., 0], apart[..., 1]), apart[..., 2])
        return cv2.GaussianBlur(most.astype(np.float32), (0, 0), 0.8)

    def _gains(self, frame: np.ndarray, picture: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """The light in each channel of a frame that is shifted, of the background's: at every fifth pixel each way."""
        height, width = picture.shape[:2]
        rows, columns = (
            np.clip(np.arange(0, size, 5) + round(float(off)), 0, size - 1)
            for size, off in ((height, shift[1]), (width, shift[0]))
        )
        behind = picture[::5, ::5].reshape(-1, 3)
        now = frame[np.ix_(rows, columns)].reshape(-1, 3)
        gains = np.ones(3)
        for channel in range(3):
            bright = (behind[:, channel] > 30) & (behind[:, channel] < 245)
            if bright.mean() > _LIT:
                gains[channel] = np.median(now[bright, channel] / behind[bright, channel])
        return gains


def _filled_in(shifts: Sequence[Float[np.ndarray, "2"] | None]) -> Float[np.ndarray, "samples 2"]:
    """Shifts with those that nothing tells between the ones around; none where nothing tells any."""
    told = [number for number, shift in enumerate(shifts) if shift is not None]
    if not told:
        return np.zeros((len(shifts), 2))
    known = np.array([shift for shift in shifts if shift is not None])
    return np.stack([np.interp(np.arange(len(shifts)), told, known[:, axis]) for axis in (0, 1)], 1)


def _lit(frame: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """The frame in the background's light."""
    if np.abs(gains - 1).max() < 0.004:
        return frame
    levels = np.arange(256)[:, None] / gains
    return cv2.LUT(frame, np.clip(np.round(levels), 0, 255).astype(np.uint8)[:, None])


def _bytes(picture: np.ndarray) -> np.ndarray:
    return np.clip(np.round(picture), 0, 255).astype(np.uint8)


def _median(samples: np.ndarray) -> np.ndarray:
    """The median over samples, by strips of rows, so that no copy of all of them is made."""
    strips = np.array_split(np.arange(samples.shape[1]), max(1, samples.shape[1] // 32))
    return np.concatenate([np.median(samples[:, rows], axis=0) for rows in strips]).astype(np.float32)


def _resolved(samples: np.ndarray, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The background and each pixel's noise, with pixels that show two things settled by what is around them."""
    apart = np.abs(samples - middle[None]).max(-1)
    noise = 1.4826 * np.median(apart, axis=0)
    usual = float(np.median(noise))
    # Noise differs little from place to place; where the spread is large, something moves there.
    tolerance = max(_FLOOR, 5 * min(usual, 4.0))
    often = (apart > tolerance).mean(0) > _OFTEN
    unsure = cv2.morphologyEx(often.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    noise = cv2.GaussianBlur(np.minimum(noise, usual + 4.0).astype(np.float32), (0, 0), 2)
    if not unsure.any():
        return middle, noise
    if unsure.mean() > _MOST:
        raise VideoError(
            f"{100 * unsure.mean():.0f} % of the picture keeps changing, so that there is no still background: the "
            "camera moves, or too much else does. Film from a camera that stands still, or cut out a part with crop"
        )
    region = cv2.dilate(_filled(unsure), np.ones((5, 5), np.uint8))
    around = cv2.inpaint(np.round(middle).astype(np.uint8), region, 5, cv2.INPAINT_TELEA).astype(np.float32)
    rows, columns = np.nonzero(region)
    values = samples[:, rows, columns].astype(np.float32)
    guess = around[rows, columns]
    nearest = np.take_along_axis(values, np.abs(values - guess).max(-1).argmin(0)[None, :, None], 0)[0]
    alike = np.abs(values - nearest).max(-1) < tolerance
    chosen = (values * alike[..., None]).sum(0) / alike.sum(0)[:, None]
    # What is seen most of the time stays, unless something rarer fits what is around much better.
    usually = middle[rows, columns]
    as_usual = np.abs(values - usually).max(-1) < tolerance
    stays = _oddity(usually - guess, as_usual.mean(0), tolerance) <= _oddity(nearest - guess, alike.mean(0), tolerance)
    rarer = chosen.copy()
    chosen[stays] = usually[stays]
    # What is seldom or never seen without something before it is taken from there, or from around, if that something is
    # what moves nearby.
    passing = values[~alike & ~as_usual & unsure[rows, columns].astype(bool)]
    odd = np.abs(chosen - guess).max(-1) > 2 * tolerance
    # A shadow's colour may be that of what is behind elsewhere: such colours say nothing.
    things, plain = _common(passing), _common(chosen[~odd])
    things = things[(np.abs(things[:, None] - plain).max(-1) > 2 * tolerance).all(1)]
    odd = np.flatnonzero(odd)
    if len(odd) and len(things):
        hidden = _among(values[:, odd], things, 2 * tolerance).mean(0)
        fits = np.abs(rarer - guess)[odd].max(-1) < 2 * tolerance
        shown = fits & (hidden + alike[:, odd].mean(0) > _ALWAYS)
        chosen[odd[shown]] = rarer[odd[shown]]
        chosen[odd[~shown & (hidden > _ALWAYS)]] = guess[odd[~shown & (hidden > _ALWAYS)]]
    picture = middle.copy()
    picture[rows, columns] = chosen
    # Pixels are judged one by one: where a few of a thing's colour are left among others, those others are right, if
    # they were seen there more than once. What is thin and stands still, a post or a hand, is as rare among others.
    around = cv2.medianBlur(_bytes(picture), _SPECKLED)[rows, columns].astype(np.float32)
    left = np.abs(chosen - around).max(-1) > 2 * tolerance
    if left.any() and len(things):
        left &= _among(chosen, things, 2 * tolerance)
        left[left] = (np.abs(values[:, left] - around[left]).max(-1) < 2 * tolerance).sum(0) > 1
        picture[rows[left], columns[left]] = around[left]
    return picture, noise


def _common(values: Float[np.ndarray, "values 3"]) -> Float[np.ndarray, "colors 3"]:
    """The colours that many of these values have: those of things, not of their blurred edges."""
    _, which, counts = np.unique(values // 16, axis=0, return_inverse=True, return_counts=True)
    often = counts >= _PLAIN * len(values)
    return np.array([values[which.ravel() == cell].mean(0) for cell in np.flatnonzero(often)]).reshape(-1, 3)


def _among(values: np.ndarray, colors: np.ndarray, tolerance: float) -> np.ndarray:
    """Which of values (…, 3) are one of these colours (n, 3), to within a tolerance of levels in every channel."""
    levels = np.arange(4, 256, 8, dtype=np.float32)
    cells = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1)
    near = np.zeros(cells.shape[:3], bool)
    for color in colors:
        near |= np.abs(cells - color).max(-1) < tolerance
    return near[tuple((values // 8).astype(int).clip(0, 31).T)].T


def _oddity(away: np.ndarray, share: np.ndarray, tolerance: float) -> np.ndarray:
    """How odd colours are as a background: far from what is around, as far as that can be guessed, or rare."""
    return np.minimum(np.abs(away).max(-1) / tolerance, _FAR) - _RARE * np.log(np.maximum(share, 1e-3))


def _filled(mask: np.ndarray) -> np.ndarray:
    """The mask with those of its holes filled that are smaller than what is around them."""
    closed = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((7, 7), np.uint8))
    count, labels, stats, _ = cv2.connectedComponentsWithStats((closed == 0).astype(np.uint8), connectivity=4)
    for label in range(1, count):
        left, top, width, height, area = stats[label]
        inside = left > 0 and top > 0 and left + width < mask.shape[1] and top + height < mask.shape[0]
        if inside and area < closed.sum():
            closed[labels == label] = 1
    return closed
