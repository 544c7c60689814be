"""Onset detection in the audio track of a clip."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physvision.perception.settings import DEFAULT_SETTINGS
from physvision.video import AudioTrack


def detect_onsets(audio: AudioTrack) -> Float[np.ndarray, " onsets"]:
    """Detect the onsets of impacts, in seconds since the clip's first frame.

    The audio is high-pass filtered by differences between successive samples, which suppress hum and wind. Its power in
    each short block is compared with the mean power just before.
    """
    settings = DEFAULT_SETTINGS.onsets
    differences = np.abs(np.diff(audio.samples.mean(1)))
    block_samples = max(1, round(settings.block * audio.sample_rate))
    blocks = differences[: len(differences) // block_samples * block_samples].reshape(-1, block_samples)
    power = (blocks**2).mean(1)
    num_before = round(settings.background / settings.block)
    if len(power) <= num_before:
        return np.zeros(0)
    background = np.array([power[max(0, block - num_before) : block].mean() for block in range(1, len(power))])
    floor = max(float(np.median(power)), 1e-4 * float(power.max()), 1e-20)
    loud_blocks = np.flatnonzero(power[1:] > settings.min_power_ratio * np.maximum(background, floor)) + 1
    onsets: list[float] = []
    for block in loud_blocks:
        # The onset is the first difference that clearly exceeds the noise before it.
        noise = 6 * float(np.sqrt(power[max(0, block - num_before) : block].mean()))
        window = slice((block - 1) * block_samples, (block + 1) * block_samples)
        sample = int(np.argmax(differences[window] > max(noise, 0.1 * float(differences[window].max()))))
        time = audio.start + ((block - 1) * block_samples + sample + 1) / audio.sample_rate
        if not onsets or time - onsets[-1] > settings.min_interval:
            onsets.append(time)
    return np.array(onsets)
