"""When something knocks: onsets in a sound track."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physvision.video import AudioTrack

_BLOCK = 1e-3  # s, in which loudness is measured
_BEFORE = 0.04  # s that a knock is compared with
_LOUDER = 30.0  # times the power of what was before
_APART = 0.06  # s: what follows sooner is the same knock's echo


def detect_onsets(sound: AudioTrack) -> Float[np.ndarray, " onsets"]:
    """Seconds since the clip's first frame at which something much louder than before begins.

    Differences of samples count, in which hum and wind are weak and knocks are strong.
    """
    change = np.abs(np.diff(sound.samples.mean(1)))
    size = max(1, round(_BLOCK * sound.rate))
    blocks = change[: len(change) // size * size].reshape(-1, size)
    power = (blocks**2).mean(1)
    span = round(_BEFORE / _BLOCK)
    if len(power) <= span:
        return np.zeros(0)
    before = np.array([power[max(0, at - span) : at].mean() for at in range(1, len(power))])
    quiet = max(float(np.median(power)), 1e-4 * float(power.max()), 1e-20)
    loud = np.flatnonzero(power[1:] > _LOUDER * np.maximum(before, quiet)) + 1
    found: list[float] = []
    for at in loud:
        # The first sample that stands out of the noise before it.
        floor = 6 * float(np.sqrt(power[max(0, at - span) : at].mean()))
        near = slice((at - 1) * size, (at + 1) * size)
        first = (at - 1) * size + int(np.argmax(change[near] > max(floor, 0.1 * float(change[near].max()))))
        moment = sound.start + (first + 1) / sound.rate
        if not found or moment - found[-1] > _APART:
            found.append(moment)
    return np.array(found)
