"""Import of a video as a data set: cut into trials, without states."""

from __future__ import annotations

import hashlib
import math
import os
import shlex
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from physvision import video
from physvision.core import FileError, InputError
from physvision.core.checks import check_count
from physvision.datasets.folder import FORMAT, SPLITS, DataFolder, Shard, divide
from physvision.datasets.progress import frames_bar
from physvision.datasets.recipe import FrameFormat, check_number, describe_folder
from physvision.datasets.shards import encode_shard

# Frames and bytes of a trial at most, and frames of one that leaves room for windows of several sizes.
_MAX_TRIAL_FRAMES, _MAX_TRIAL_BYTES, _USUAL_TRIAL_FRAMES = 300, 2**27, 30
# Frames of a trial at least, so that each split of a short clip holds a window of the usual 3 + 10 frames.
_MIN_TRIAL_FRAMES = 13
_GEOMETRY = "the pixel of row i and column j covers j to j + 1 and i to i + 1 of the cropped and resized picture"
_PACKAGES = ("av", "opencv-python-headless", "physvision", "pyarrow")


def import_video(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    fps: float | int | None = None,
    crop: tuple[int, int, int, int] | None = None,
    size: int | tuple[int, int] | None = None,
    gray: bool = False,
    trial_frames: int | None = None,
    progress: bool = True,
) -> Path:
    """Make a data set of the video `source` in the folder `out`, and return the folder.

    The video is cut into trials; the last tenth of them is for testing, the tenth before for validation, and one trial
    each of three to nine trials. A clip of fewer than three trials is for training alone. Memory does not grow with the
    video's length. Run again after an interruption, the import goes on.

    Args:
        source: Any video that FFmpeg reads, or a folder of pictures, whose rate is `fps`.
        out: Folder that is empty or holds a part of this very data set.
        fps: Frames per second; the nearest frames in time are taken. The video's average rate if None.
        crop: Part of the picture to use: x, y, width and height, pixels.
        size: Side of the square frames, or their width and height, pixels.
        gray: If true, store brightness alone.
        trial_frames: Frames of a trial. If None, at most 300, fewer if frames are large, and fewer in clips of less
            than 3,000 frames, so that validation and test have trials too.
        progress: If true, draw a progress bar.

    Raises:
        FileError, VideoError: the video cannot be read to its end; nothing was written.
        DataError: the folder holds something else; nothing was written.
    """
    if fps is not None:
        check_number("fps", fps, 0, exclusive=True)
    conversion = video.Conversion(fps, crop, size)
    frame_format, part = _frame_format(source, conversion, gray)
    conversion = replace(conversion, fps=frame_format.fps)
    frame_bytes = math.prod(frame_format.shape)
    if trial_frames is not None:
        check_count("trial_frames", trial_frames)

    def frames() -> Iterator[np.ndarray]:
        color = "gray" if frame_format.channels == 1 else "rgb"
        return (frame for _, frame in video.stream(source, color, conversion))

    with frames_bar(progress) as bar:
        task = bar.add_task("counting frames", total=None)
        count = 0
        for count, _ in enumerate(frames(), start=1):
            bar.update(task, completed=count)
        trial_frames = trial_frames or _default_trial_frames(count, frame_bytes)
        recipe = {
            "source": Path(source).name,
            "sha256": _digest(source),
            "fps": frame_format.fps,
            "crop": list(part),
            "size": [frame_format.width, frame_format.height],
            "gray": gray,
            "trial_frames": trial_frames,
        }
        folder, shards = DataFolder(out), _cut(count, trial_frames, frame_bytes)
        versions = {package: version(package) for package in _PACKAGES}
        with folder.prepared(describe_folder("video", recipe, versions, frame_format, {}, shards)):
            bar.reset(task, total=count, description="importing")
            metadata = {"format": FORMAT, "name": "video", "recipe": recipe}
            for count in _fill(folder, frames(), frame_format, metadata):
                bar.update(task, advance=count)
    return folder.path


def summarize(data: str | os.PathLike[str]) -> str:
    """Describe the trials of an imported data set in one line, with the command that trains on it."""
    shards = DataFolder(data).shards()
    counts = {split: sum(shard.trials for shard in shards if shard.split == split) for split in SPLITS}
    lengths = sorted({shard.frames for shard in shards}, reverse=True)
    parts = ", ".join(f"{count} {split}" for split, count in counts.items() if count)
    last = f", the last of {lengths[-1]}" if len(lengths) > 1 else ""
    trials = f"{parts} trial{'s' if sum(counts.values()) > 1 else ''} of {lengths[0]} frames{last}"
    if not counts["test"]:
        trials += ", too few for validation and test (--trial_frames makes shorter ones)"
    return f"{data}: {trials}; next: physvision fit --config FILE --data.path {shlex.quote(str(data))}"


def _frame_format(
    source: str | os.PathLike[str], conversion: video.Conversion, gray: bool
) -> tuple[FrameFormat, tuple[int, int, int, int]]:
    """Format of the frames made of a video, and the part of its picture that they show."""
    properties, fps = video.read_info(source), conversion.fps
    if fps is None and not math.isfinite(properties.fps):
        raise InputError(f"fps: {source} does not state its frame rate; give one")
    width, height = conversion.size_of(properties.width, properties.height)
    rate = float(properties.fps if fps is None else fps)
    frame_format = FrameFormat(height, width, 1 if gray else properties.channels, rate, _GEOMETRY)
    return frame_format, conversion.crop_of(properties.width, properties.height)


def _fill(
    folder: DataFolder, frames: Iterator[np.ndarray], frame_format: FrameFormat, metadata: dict[str, Any]
) -> Iterator[int]:
    """Make missing and damaged shards, and yield the number of frames of every shard, made or not."""
    for shard in folder.shards():
        if folder.fault(shard) is None:
            deque(islice(frames, shard.trials * shard.frames), maxlen=0)
        else:
            trials = ({"frames": np.stack(list(islice(frames, shard.frames)))} for _ in range(shard.trials))
            folder.commit(shard, encode_shard(frame_format, {}, metadata | {"shard": asdict(shard)}, trials))
        yield shard.trials * shard.frames


def _default_trial_frames(count: int, frame_bytes: int) -> int:
    """Frames of a trial that make ten trials of a video, fewer of a short clip, more of a long one."""
    trials = min(10, count // _USUAL_TRIAL_FRAMES)
    if trials < 3:
        trials = 3 if count >= 3 * _MIN_TRIAL_FRAMES else 1
    return max(1, min(-(-count // trials), _MAX_TRIAL_FRAMES, _MAX_TRIAL_BYTES // frame_bytes))


def _cut(count: int, trial_frames: int, frame_bytes: int) -> list[Shard]:
    """Divide a video of `count` frames into shards in the order of time; a shorter last trial has one of its own."""
    complete_trials, remainder = divmod(count, trial_frames)
    trials = complete_trials + (remainder > 0)
    held_out = max(1, trials // 10) if trials >= 3 else 0
    splits = {"train": trials - 2 * held_out, "valid": held_out, "test": held_out}
    last = "test" if held_out else "train"
    if remainder:
        splits[last] -= 1
    shards = divide(splits, trial_frames, frame_bytes)
    if remainder:
        number = sum(shard.split == last for shard in shards)
        shards.append(Shard(f"{last}-{number:05d}.arrow", last, splits[last], 1, remainder))
    return shards


def _digest(source: str | os.PathLike[str]) -> str:
    digest = hashlib.sha256()
    try:
        for path in video.list_images(source) if Path(source).is_dir() else [Path(source)]:
            with path.open("rb") as file:
                while block := file.read(2**20):
                    digest.update(block)
        return digest.hexdigest()
    except OSError as error:
        raise FileError(f"{source}: cannot be read ({error.strerror})") from error
