"""Tracks of drawn clips, without drawing them."""

import numpy as np

from physvision.perception import Track

NOISE = 0.15  # px, of each coordinate


def tracks_of(clip, seed=0):
    """Where a drawn clip's bodies are seen, with noise."""
    random = np.random.default_rng(seed)
    positions = clip.places()
    radius = [max(body.size) / 2 * clip.view.scale for body in clip.motion.bodies]
    return [
        Track(
            clip.stamps.copy(),
            positions[:, body] + random.normal(0, NOISE, (len(positions), 2)),
            np.full(len(positions), NOISE),
            np.ones(len(positions), bool),
            radius=radius[body],
            name=f"body {body + 1}",
        )
        for body in range(positions.shape[1])
    ]
