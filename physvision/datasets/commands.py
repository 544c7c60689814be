"""Command-line commands that make, check and show data sets."""

from __future__ import annotations

from pathlib import Path

from physvision.datasets import registry
from physvision.datasets.executors import Executor
from physvision.datasets.generation import generate as make
from physvision.datasets.importing import import_video
from physvision.datasets.recipe import Recipe
from physvision.datasets.showing import show as draw
from physvision.video import Conversion


def generate_recipe(
    recipe: Recipe, out: str | None = None, workers: int | None = None, executor: Executor = "local"
) -> None:
    """Generate the data set of a recipe.

    Args:
        recipe: Recipe of the data set.
        out: Folder of the data set, data/NAME of the recipe if not given; run again after an interruption to go on.
        workers: Number of processes; all cores if not given.
        executor: "local", or "ray" for an existing Ray cluster.
    """
    print(make(recipe, out or f"data/{recipe.name}", workers=workers, executor=executor))


# `physvision generate NAME …`
generate = {name: (generate_recipe, recipe) for name, recipe in registry.RECIPES.items()}


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
    print(import_video(video, out, fps=fps, crop=part.crop, size=part.size, gray=gray, trial_frames=trial_frames))


def show(
    source: str,
    out: str = "out/show.png",
    trial: int = 0,
    split: str = "train",
    frames: int = 12,
    states: bool = True,
) -> None:
    """Draw a trial of a data set, or a video, with the true states over the frames.

    Args:
        source: Folder of a data set, or a video.
        out: Path of the result: a contact sheet if it ends in .png, a clip for .mp4, .gif and other video suffixes.
        trial: Number of a trial of the data set.
        split: Split of the data set: train, valid or test.
        frames: Number of frames of the contact sheet.
        states: If true, draw the states over the frames.
    """
    print(draw(source, out, trial=trial, split=split, frames=frames, states=states))


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


def repair(data: str, workers: int | None = None) -> None:
    """Make the missing and damaged shards of a data set again, and no others.

    Args:
        data: Folder of the data set.
        workers: Number of processes; all cores if not given.
    """
    print(registry.repair(data, workers))
