"""When velocities change at once: bounces, the flights between them, and two things that meet."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from physvision.identification.starts import polynomial


def bounces(times: Float[np.ndarray, " samples"], down: Float[np.ndarray, " samples"], noise: float) -> list[int]:
    """The samples after which something that moved down moves up: each the last before its impact."""
    speed = np.diff(down) / np.diff(times)
    usual = np.median(np.abs(np.diff(speed)))
    # A frame that shows the one before again makes the next step look twice as fast.
    fastest = float(np.median([np.abs(speed[at : at + 3]) for at in range(max(len(speed) - 2, 1))], axis=1).max())
    jump = max(3 * usual, 0.12 * fastest, 6 * noise / float(np.median(np.diff(times))))
    found: list[int] = []
    hardest = 0.0
    for at in range(1, len(speed) - 1):
        # The step in which it hits may show any speed between: the steps around it show the jump.
        turned = speed[at - 1] > 0 > speed[at + 1] and speed[at - 1] - speed[at + 1] > jump
        if turned and (not found or at - found[-1] > 2):
            lowest = at + int(np.argmax(down[at : at + 2]))
            found.append(lowest)
        if turned:
            hardest = max(hardest, float(speed[at - 1] - speed[at + 1]))
    # What swings turns round as well, but softly.
    return found if hardest > 0.8 * fastest else []


def flights(
    times: Float[np.ndarray, " samples"], places: Float[np.ndarray, "samples 2"], hits: list[int]
) -> tuple[float, float, float, np.ndarray, np.ndarray] | None:
    """Acceleration, height of the floor, restitution, first place and velocity, from flights between impacts."""
    edges = [0, *hits, len(times)]
    weights = []
    for first, last in pairwise(edges):
        part = slice(first + (first > 0) + 1 if first else 0, max(last - 1, first))
        if last - first < 5:
            continue
        arc = polynomial(times[part] - times[part.start], places[part], 2)
        weights.append((2 * float(arc[2][1]), last - first))
    usable = [(weight, count) for weight, count in weights if weight > 0]
    if not usable:
        return None
    weight = float(np.average([w for w, _ in usable], weights=[c**3 for _, c in usable]))
    ratios, floors = [], []
    for number, hit in enumerate(hits):
        floors.append(float(places[max(hit - 1, 0) : hit + 2, 1].max()))
        before, after = edges[number + 1] - edges[number], edges[number + 2] - edges[number + 1]
        if number + 1 < len(hits):
            if number > 0:
                ratios.append(after / before)
            else:
                rise = floors[-1] - places[hits[0] : hits[1], 1].min()
                drop = floors[-1] - places[: hits[0], 1].min()
                ratios.append(math.sqrt(max(rise, 1e-9) / max(drop, 1e-9)))
        elif not ratios:
            rise, drop = (floors[-1] - part[:, 1].min() for part in (places[hit:], places[:hit]))
            ratios.append(math.sqrt(max(rise, 1e-9) / max(drop, 1e-9)))
    few = max(4, min(hits[0] - 1, 12))
    local = times[:few] - times[0]
    rest = places[:few].copy()
    rest[:, 1] -= weight / 2 * local**2
    line = polynomial(local, rest, 1)
    return weight, float(np.median(floors)), float(np.median(ratios)), line[0], line[1]


def meeting(
    times: Float[np.ndarray, " samples"], places: Float[np.ndarray, "samples numbers"]
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray] | None:
    """When velocities change at once, the velocities before and after, and the places then.

    Every sample is tried: lines before and after it that meet. Around it a third of a second counts, or fifteen
    samples: over more, friction bends the lines.
    """
    reach = min(0.35, 15 * float(np.median(np.diff(times))))
    best, found = np.inf, None
    everything = float(((places - places.mean(0)) ** 2).sum())
    for at in range(4, len(times) - 4):
        local = times - times[at]
        near = np.abs(local) < reach
        if (near & (local < 0)).sum() < 3 or (near & (local > 0)).sum() < 3:
            continue
        part = local[near]
        basis = np.stack([np.ones_like(part), np.minimum(part, 0), np.maximum(part, 0)], 1)
        solved = np.linalg.lstsq(basis, places[near], rcond=None)[0]
        cost = float(((places[near] - basis @ solved) ** 2).sum())
        # How much better than without a change of velocity, for each sample.
        straight = np.stack([np.ones_like(part), part], 1)
        plain = float(((places[near] - straight @ np.linalg.lstsq(straight, places[near], rcond=None)[0]) ** 2).sum())
        if cost - plain < best:
            best, found = cost - plain, (float(times[at]), solved[1], solved[2], solved[0])
    return found if best < -1e-4 * everything else None
