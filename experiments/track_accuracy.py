"""Accuracy of tracks on synthetic clips of all kinds, filmed as people film.

    python experiments/track_accuracy.py --seeds 2

The distance of each seen place from the true one, without a constant offset (which point of a thing is followed is its
own), and the share of clips in which as many things were found as there are.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from physvision.core import PhysvisionError
from physvision.datasets.clips import KINDS, DrawnClip, draw
from physvision.perception import Track, find_tracks


def distances(clip: DrawnClip, tracks: list[Track]) -> list[np.ndarray]:
    """For each body, pixels between its true places and the nearest track's, where the law holds."""
    lawful = clip.times >= clip.motion.release
    results = []
    for body in np.moveaxis(clip.positions(), 1, 0):
        errors = []
        for track in tracks:
            fit = track.observed & lawful
            if fit.sum() > 0.3 * lawful.sum():
                away = track.positions[fit] - body[fit]
                errors.append(np.linalg.norm(away - np.median(away, axis=0), axis=1))
        results.append(min(errors, key=np.median, default=np.array([np.inf])))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2, help="clips of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    arguments = parser.parse_args()
    everything, right, clips = [], 0, 0
    print(f"{'clip':<20} things  frames  seconds   median px  95 %")
    for kind in arguments.kinds:
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            clip = draw(kind, seed)
            clips += 1
            with tempfile.TemporaryDirectory() as folder:
                path = clip.write(Path(folder) / "clip.mp4")
                began = time.process_time()
                try:
                    tracks = find_tracks(path)
                except PhysvisionError as error:
                    print(f"{kind + ' ' + str(seed):<20} refused: {error}", flush=True)
                    continue
            spent = time.process_time() - began
            right += len(tracks) == len(clip.motion.bodies)
            for errors in distances(clip, tracks):
                everything.append(errors)
                print(
                    f"{kind + ' ' + str(seed):<20} {len(tracks)} of {len(clip.motion.bodies)}  {len(clip.times):6d}"
                    f"  {spent:7.1f}  {np.median(errors):9.3f}  {np.quantile(errors, 0.95):6.3f}",
                    flush=True,
                )
    pooled = np.concatenate(everything)
    print(f"all places: median {np.median(pooled):.3f} px, 95 % within {np.quantile(pooled, 0.95):.3f} px")
    print(f"right number of things: {right} of {clips} clips")


if __name__ == "__main__":
    main()
