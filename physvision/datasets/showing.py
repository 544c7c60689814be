"""Contact sheets and clips of data sets and videos, with the states drawn over the frames."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from physvision import video
from physvision.core import InputError
from physvision.core.checks import check_count
from physvision.datasets.dataset import Dataset
from physvision.datasets.folder import DESCRIPTION
from physvision.datasets.registry import recipe_of
from physvision.video.overlay import OverlayShape, add_caption, draw_overlay, image_grid

# Small frames are shown about this high.
_HEIGHT = 320
_COLUMNS = 4


def show(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str] = "out/show.png",
    *,
    trial: int = 0,
    split: str = "train",
    frames: int = 12,
    states: bool = True,
) -> Path:
    """Draw a trial of a data set, or a video, and return the file.

    Args:
        source: Folder of a data set, or a video.
        out: Path of the result: a contact sheet of frames at equal steps if it ends in .png, a clip of all frames for
            .mp4, .gif and other video suffixes.
        trial: Number of a trial of the data set.
        split: Split of the data set.
        frames: Number of frames of the contact sheet.
        states: If true, draw the true states over the frames.
    """
    check_count("frames", frames)
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    is_sheet = path.suffix.lower() == ".png"
    if Path(source).is_dir() or (Path(source) / DESCRIPTION).exists():
        dataset = Dataset(source, split)
        length, fps = dataset.shards[dataset.shard_of(trial)].frames, dataset.fps
        indices = _equally_spaced(length, frames) if is_sheet else range(length)
        pictures = _trial_pictures(dataset, trial, indices, states)
    else:
        fps = video.read_info(source).fps
        length = sum(1 for _ in video.stream(source)) if is_sheet else 0
        indices = _equally_spaced(length, frames) if is_sheet else None
        pictures = _video_pictures(source, None if indices is None else set(indices))
    if not is_sheet:
        if not np.isfinite(fps):
            raise InputError(f"source: {source} does not state its frame rate")
        return video.write(path, (picture for _, picture in pictures), fps)
    page = image_grid([add_caption(picture, f"{time:.2f} s") for time, picture in pictures], _COLUMNS)
    return video.write(path, page[None], 1)


def _equally_spaced(length: int, count: int) -> list[int]:
    return sorted({round(index) for index in np.linspace(0, length - 1, count)})


def _magnification(height: int) -> int:
    return max(1, round(_HEIGHT / height))


def _trial_pictures(dataset: Dataset, trial: int, indices, states: bool) -> Iterator[tuple[float, np.ndarray]]:
    recipe = recipe_of(dataset.folder.description()) if states else None
    for index in indices:
        marks: list[OverlayShape] = []
        if recipe is not None:
            marks = recipe.marks({name: dataset.field(name, trial, index, index + 1)[0] for name in dataset.fields})
        frame = dataset.frames(trial, index, index + 1)[0]
        yield index * dataset.dt, draw_overlay(frame, marks, _magnification(len(frame)))


def _video_pictures(source: str | os.PathLike[str], indices: set[int] | None) -> Iterator[tuple[float, np.ndarray]]:
    for index, (time, frame) in enumerate(video.stream(source)):
        if indices is None or index in indices:
            yield time, draw_overlay(frame, (), _magnification(len(frame)))
