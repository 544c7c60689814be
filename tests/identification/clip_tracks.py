"""Tracks of drawn clips, without drawing them."""

import csv

import numpy as np

from physvision.perception import Track

NOISE = 0.15  # px, of each coordinate


def tracks_of(clip, seed=0):
    """Where a drawn clip's bodies are seen, with noise."""
    random = np.random.default_rng(seed)
    positions = clip.positions()
    radius = [max(body.size) / 2 * clip.view.scale for body in clip.motion.bodies]
    return [
        Track(
            clip.timestamps.copy(),
            positions[:, body] + random.normal(0, NOISE, (len(positions), 2)),
            np.full(len(positions), NOISE),
            np.ones(len(positions), bool),
            radius=radius[body],
            name=f"body {body + 1}",
        )
        for body in range(positions.shape[1])
    ]


def write_tracks(path, tracks):
    """Write tracks with common times as columns `t, x, y[, angle]`; fields are empty where not observed."""
    names = ["t"]
    for index, track in enumerate(tracks, 1):
        suffix = f"_{index}" if len(tracks) > 1 else ""
        names += [name + suffix for name in ("x", "y", "angle")[: 2 if track.angle is None else 3]]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for sample, time in enumerate(tracks[0].times):
            row = [f"{time:.9g}"]
            for track in tracks:
                values = list(track.positions[sample]) + ([] if track.angle is None else [track.angle[sample]])
                if track.unit == "m":  # in tables in meters, y points up
                    values[1:] = [-value for value in values[1:]]
                row += [f"{value:.9g}" if track.observed[sample] else "" for value in values]
            writer.writerow(row)


def throw_at_a_wall():
    """A throw at 240 frames a second that rests until 0.3 s, hits a wall 0.4 s later, and then rolls on the floor."""
    times = np.arange(480) / 240
    flight = np.clip(times - 0.3, 0, 0.4)
    positions = np.stack([20 + 760 * flight, 150 - 400 * flight + 1560 * flight**2], 1)
    rolling = np.maximum(times - 0.7, 0)
    positions += np.stack([-40 * rolling, 30 * np.minimum(rolling / 0.05, 1)], 1)
    positions += np.random.default_rng(0).normal(0, NOISE, positions.shape)
    return Track(times, positions, np.full(480, NOISE), np.ones(480, bool), radius=6.0, name="ball")
