"""Independent random streams of one seed, one per purpose."""

from __future__ import annotations

import numpy as np

# `default_rng(0)` and `default_rng((0, 0))` are one stream: NumPy pads entropy with zeros. Spawn keys are not padded.
_STREAMS = {"labels": 1, "shards": 2, "order": 3}


def random_stream(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """Random generator of `seed` that shares no numbers with those of other purposes or indices.

    Args:
        seed: Seed that the user chose.
        purpose: "labels", "shards" or "order".
        indices: Numbers that tell streams of one purpose apart, such as epoch and rank.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAMS[purpose], *indices)))
