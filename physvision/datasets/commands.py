"""Command-line commands that generate, import and check data sets."""

from __future__ import annotations

from pathlib import Path

from physvision.datasets import generation, registry
from physvision.datasets.importing import import_video, summarize
from physvision.video import Conversion

# `physvision generate NAME …`
generate = {name: (generation.generate, recipe) for name, recipe in registry.RECIPES.items()}


def import_(
    video: str,
    out: str | None = None,
    fps: float | None = None,
    crop: str | None = None,
    size: str | None = None,
    gray: bool = False,
    trial_frames: int | None = None,
) -> None:
    """Make a data set of a video.

    Args:
        video: Path of any video that FFmpeg reads.
        out: Folder of the data set, data/NAME of the video if not given; run again after an interruption to go on.
        fps: Frames per second; the video's own if not given.
        crop: Part of the image to keep, as x,y,width,height in pixels.
        size: Side of the square frames, or their width,height; pixels.
        gray: If true, store brightness alone.
        trial_frames: Frames of a trial; at most 300 if not given, fewer of large frames and short clips.
    """
    out = out or str(Path("data") / Path(video).stem)
    part = Conversion.parse(crop=crop, size=size)
    import_video(video, out, fps=fps, crop=part.crop, size=part.size, gray=gray, trial_frames=trial_frames)
    print(summarize(out))


def verify(data: str) -> int:
    """Compare the shards of a data set with their checksums; the exit status is 1 if one is missing or damaged.

    Args:
        data: Folder of the data set.
    """
    faults = registry.faults(data)
    for shard, fault in faults.items():
        print(f"{shard.file}: {fault}")
    print(f"{data}: {f'{len(faults)} shards to be made again: physvision repair {data}' if faults else 'whole'}")
    return 1 if faults else 0
