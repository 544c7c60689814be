"""Camera and motion from the motion alone: drawn clips of a tilted camera with distortion and a rolling shutter.

Every clip has random k1 within ± 0.3, a tilt of up to 15° in any direction, a roll of up to 5°, rows read within 20 ms,
and a focal length that nobody knows (`camera_clips`, by cv2.projectPoints). A clip passes if g over L (or the kind's
own parameter) is within 0.5 % and k1 within 0.02, or if their 95 % intervals hold the truth.

With `--film` a clip is drawn, compressed as H.264 and tracked; otherwise its tracks are the true positions with white
noise of 0.2 pixels. With `--focal` the focal length is known, by a calibration without distortion coefficients.

    python experiments/identify_camera.py [--clips 100] [--kind pendulum] [--film false] [--focal false] [--first 0]
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from camera_clips import Camera, draw, tracks_of
from jsonargparse import auto_cli
from result_cache import cached_results

from physvision.camera import Calibration
from physvision.core import PhysvisionError
from physvision.datasets.clips import DrawnClip
from physvision.identification import identify
from physvision.identification.settings import DEFAULT_SETTINGS

NOISE = 0.2  # px, of each coordinate of a track
MAX_ERROR, MAX_K1_ERROR = 0.005, 0.02
MAX_MISSES = 0.1  # of each value, part of the clips whose 95 % interval misses the truth
LEADING = {
    "pendulum": ("length",), "double_pendulum": ("length_1", "length_2"), "spring": ("period",),
    "projectile": ("speed", "angle"), "bounce": ("restitution",),
}  # fmt: skip


def identify_clip(kind: str, seed: int, film: bool, focal: bool) -> dict:
    """Identify one clip: values, intervals and truth of its leading parameters and of its camera."""
    clip, camera = draw(kind, seed)
    settings = DEFAULT_SETTINGS
    if focal:
        center = clip.filming.size[0] / 2, clip.filming.size[1] / 2
        calibration = Calibration((camera.focal, camera.focal), center)
        settings = replace(settings, view=replace(settings.view, calibration=calibration))
    record: dict = {"seed": seed, "values": {}}
    with tempfile.TemporaryDirectory() as folder:
        source = clip.write(Path(folder) / "clip.mp4") if film else tracks_of(clip, NOISE, seed)
        size, began = None if film else clip.filming.size, time.process_time()
        try:
            result = identify(source, kind, clip.known, size=size, settings=settings)
        except PhysvisionError as error:
            return {**record, "rejected": str(error)[:300]}
    record |= {"seconds": time.process_time() - began, "arbitrary": result.evidence.view.arbitrary}
    truth = {name: clip.truth[name] for name in LEADING[kind]} | camera_truth(clip, camera)
    estimates = {**result.parameters, **result.camera}
    for name, value in truth.items():
        entry = estimates.get(name)
        if entry is not None and entry.interval_95 is not None:
            record["values"][name] = [entry.value, *entry.interval_95, value, entry.identifiable]
    return record


def camera_truth(clip: DrawnClip, camera: Camera) -> dict[str, float]:
    """Return the values of a drawn clip's camera as `identify` names them."""
    distortion = camera.k1 * (clip.filming.size[0] / 2 / camera.focal) ** 2
    values = {"k1": camera.k1, "distortion": distortion, "tilt": camera.tilt, "roll": camera.roll}
    return values | {"focal_length": camera.focal, "readout": camera.readout}


def show(records: list[dict], kind: str) -> float:
    """Print a row for each value, and return the largest fraction of clips whose interval misses the truth."""
    clips, worst = len(records), 0.0
    rejected = [record["seed"] for record in records if "rejected" in record]
    print(f"{kind}: {clips} clips, {len(rejected)} rejected {rejected}, seconds each (median, largest): ", end="")
    seconds = [record["seconds"] for record in records if "seconds" in record]
    arbitrary = sum(record.get("arbitrary", False) for record in records)
    print(f"{np.median(seconds):.1f}, {max(seconds):.1f}; taken for an arbitrary camera: {arbitrary}")
    print(f"{'value':<14}{'shown':>7}{'within bar':>12}{'in 95 %':>9}{'either':>8}{'median error':>14}", end="")
    print(f"{'half-width':>12}")
    for name in (*LEADING[kind], "k1", "distortion", "tilt", "roll", "focal_length", "readout"):
        rows = [record["values"][name] for record in records if name in record["values"]]
        if not rows:
            continue
        value, low, high, truth, shown = np.array(rows, float).T
        relative = name in LEADING[kind] or name == "focal_length"
        error = np.abs(value / truth - 1) if relative else np.abs(value - truth)
        half_width = (high - low) / 2 / (truth if relative else 1.0)
        bars = dict.fromkeys(LEADING[kind], MAX_ERROR) | {"k1": MAX_K1_ERROR}
        inside = (low <= truth) & (truth <= high)
        near = error < bars[name] if name in bars else np.zeros(len(error), bool)
        worst = max(worst, 1 - (inside | near).sum() / clips)
        within = int(near.sum()) if name in bars else ""
        print(f"{name:<14}{int(shown.sum()):>7}{within:>12}{int(inside.sum()):>9}", end="")
        print(f"{int((inside | near).sum()):>8}{np.median(error):>14.5f}{np.median(half_width):>12.5f}")
    return worst


def main(
    clips: int = 100,
    kind: str = "pendulum",
    film: bool = False,
    focal: bool = False,
    first: int = 0,
    out: Path = Path("out/identify_camera"),
    part: str = "1/1",
) -> float:
    """Identify drawn clips, print a table, and return the largest fraction of misses of any value.

    Args:
        clips: Number of clips.
        kind: Kind of motion.
        film: If true, clips are drawn and tracked.
        focal: If true, the focal length is known.
        first: Seed of the first clip.
        out: Folder of the results, which are resumed.
        part: Part of the clips that this process identifies, as index/count; "0/1" only prints what is there.
    """
    torch.set_num_threads(1)
    seeds = list(range(first, first + clips))
    index, count = (int(number) for number in part.split("/"))
    path = out / f"{kind}{'_film' if film else ''}{'_focal' if focal else ''}.jsonl"
    results = cached_results(
        path,
        seeds[index - 1 :: count] if index else [],
        lambda seed: identify_clip(kind, seed, film, focal),
        lambda record: record["seed"],
    )
    return show([results[seed] for seed in seeds if seed in results], kind)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
