"""Command-line commands that make, check and show data sets."""

from __future__ import annotations

from pathlib import Path

from physvision.datasets import registry
from physvision.datasets.billiards import BilliardsRecipe
from physvision.datasets.block import BlockRecipe
from physvision.datasets.dye import DyeRecipe
from physvision.datasets.executors import Executor
from physvision.datasets.generation import generate as make
from physvision.datasets.importing import import_video
from physvision.datasets.pendulum import PendulumRecipe
from physvision.datasets.showing import show as draw
from physvision.datasets.swing import SwingRecipe
from physvision.datasets.tabletop import TabletopRecipe
from physvision.video import Conversion


def generate_billiards(
    out: str = "data/billiards", workers: int | None = None, executor: Executor = "local", **recipe
) -> None:
    """Balls that bounce in a box: exact from impact to impact, drawn anti-aliased.

    Args:
        out: Folder of the data set; run again after an interruption to go on.
        workers: Number of processes; all cores if not given.
        executor: "local", or "ray" for an existing Ray cluster.
        recipe: Values of the recipe.
    """
    print(make(BilliardsRecipe(**recipe), out, workers=workers, executor=executor))


def generate_pendulum(
    out: str = "data/pendulum", workers: int | None = None, executor: Executor = "local", **recipe
) -> None:
    """An n-link compound pendulum, simulated and drawn in gray by MuJoCo.

    Args:
        out: Folder of the data set; run again after an interruption to go on.
        workers: Number of processes; all cores if not given.
        executor: "local", or "ray" for an existing Ray cluster.
        recipe: Values of the recipe.
    """
    print(make(PendulumRecipe(**recipe), out, workers=workers, executor=executor))


def generate_block(out: str = "data/block", workers: int | None = None, executor: Executor = "local", **recipe) -> None:
    """An elastic block that hangs by its top and is let go, by scikit-fem.

    Args:
        out: Folder of the data set; run again after an interruption to go on.
        workers: Number of processes; all cores if not given.
        executor: "local", or "ray" for an existing Ray cluster.
        recipe: Values of the recipe.
    """
    print(make(BlockRecipe(**recipe), out, workers=workers, executor=executor))


def generate_dye(out: str = "data/dye", workers: int | None = None, executor: Executor = "local", **recipe) -> None:
    """Dye that a flow stirs, by a pseudo-spectral solver.

    Args:
        out: Folder of the data set; run again after an interruption to go on.
        workers: Number of processes; all cores if not given.
        executor: "local", or "ray" for an existing Ray cluster.
        recipe: Values of the recipe.
    """
    print(make(DyeRecipe(**recipe), out, workers=workers, executor=executor))


def generate_swing(out: str = "data/swing", workers: int | None = None, executor: Executor = "local", **recipe) -> None:
    """Pendulum of textured links in front of a cluttered wall, filmed by a moving camera.

    Args:
        out: Folder of the data set; run again after an interruption to go on.
        workers: Number of processes; all cores if not given.
        executor: "local", or "ray" for an existing Ray cluster.
        recipe: Values of the recipe.
    """
    print(make(SwingRecipe(**recipe), out, workers=workers, executor=executor))


def generate_tabletop(
    out: str = "data/tabletop", workers: int | None = None, executor: Executor = "local", **recipe
) -> None:
    """Textured balls on a cluttered table under a moving camera, exact from event to event.

    Args:
        out: Folder of the data set; run again after an interruption to go on.
        workers: Number of processes; all cores if not given.
        executor: "local", or "ray" for an existing Ray cluster.
        recipe: Values of the recipe.
    """
    print(make(TabletopRecipe(**recipe), out, workers=workers, executor=executor))


# `physvision generate NAME …`
generate = {
    "billiards": generate_billiards,
    "block": generate_block,
    "dye": generate_dye,
    "pendulum": generate_pendulum,
    "swing": generate_swing,
    "tabletop": generate_tabletop,
}


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
