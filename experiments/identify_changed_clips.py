"""Identify real clips from the file alone after ten changes each, as people edit, film and send them.

The clips are those of `real_clips.json`, of which `CLIPS` names six of several kinds of motion; the changes are the
functions of `CHANGES`. A changed clip is right if its kind is named first or at odds of 1 : 5 or better, as in
`identify_real_kinds.py`; a refusal is sound if it gives one of the reasons that the change justifies
(`SOUND_REASONS`). Results are written line by line, so that an interrupted run resumes.

    python experiments/identify_changed_clips.py --folder path/to/clips [--only fall,glider] [--changes crop,gif]
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from identify_real_kinds import identify_file, kind_verdict
from jsonargparse import auto_cli
from result_cache import cached_results

from physvision import video

CLIPS = (
    "bounce_stick.mp4", "debal_bb.mp4", "fall.mp4", "glider.mp4", "pendulum_red_apple.mov", "pyme_Force_constante.avi",
)  # fmt: skip
SHAKE = 8  # px, largest shift of a hand-held camera in each direction
Frames = Iterator[tuple[float, np.ndarray]]
MP4 = video.Encoding("libx264", "yuv420p", {"crf": "20", "preset": "veryfast"})


def _write(path: Path, frames: Iterable[tuple[float, np.ndarray]], encoding: video.Encoding = MP4) -> Path:
    """Write frames with their times; sides are made even, as phones have them."""
    with video.VideoWriter(path, None, encoding=encoding) as writer:
        for time, frame in frames:
            height, width = (side // 2 * 2 for side in frame.shape[:2])
            writer.add(np.ascontiguousarray(frame[:height, :width]), time)
    return path


def crop(frames: Frames, source: Path, folder: Path) -> Path:
    """Cut 8 % off every side."""

    def cut(frame: np.ndarray) -> np.ndarray:
        y, x = (round(0.08 * side) for side in frame.shape[:2])
        return frame[y:-y, x:-x]

    return _write(folder / "clip.mp4", ((time, cut(frame)) for time, frame in frames))


def portrait(frames: Frames, source: Path, folder: Path) -> Path:
    """Turn the picture into one that is higher than wide, by black bars above and below."""

    def pad(frame: np.ndarray) -> np.ndarray:
        bar = max(round((16 / 9 * frame.shape[1] - frame.shape[0]) / 2), 0)
        return np.pad(frame, ((bar, bar), (0, 0), (0, 0)))

    return _write(folder / "clip.mp4", ((time, pad(frame)) for time, frame in frames))


def enlarge(frames: Frames, source: Path, folder: Path) -> Path:
    """Enlarge the longer side to the 3840 pixels of 4K."""

    def resize(frame: np.ndarray) -> np.ndarray:
        factor = 3840 / max(frame.shape[:2])
        return cv2.resize(frame, None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC)

    return _write(folder / "clip.mp4", ((time, resize(frame)) for time, frame in frames))


def hevc(frames: Frames, source: Path, folder: Path) -> Path:
    """Compress the clip by HEVC."""
    encoding = video.Encoding("libx265", "yuv420p", {"crf": "28", "preset": "veryfast", "x265-params": "log-level=1"})
    return _write(folder / "clip.mp4", frames, encoding)


def variable_rate(frames: Frames, source: Path, folder: Path) -> Path:
    """Drop a quarter of the frames at random; the others keep their times."""
    random = np.random.default_rng(1)
    return _write(folder / "clip.mp4", (item for n, item in enumerate(frames) if n == 0 or random.random() > 0.25))


def gif(frames: Frames, source: Path, folder: Path) -> Path:
    """Write a GIF: 256 fixed colors, and times in hundredths of a second."""
    with video.VideoWriter(folder / "clip.gif", None) as writer:
        last = -1.0
        for time, frame in frames:
            rounded = round(time, 2)
            if rounded > last + 0.005:
                writer.add(frame, rounded)
                last = rounded
    return folder / "clip.gif"


def low_light(frames: Frames, source: Path, folder: Path) -> Path:
    """Take three quarters of the light away, and add a camera's noise of 6 levels."""
    random = np.random.default_rng(2)

    def darken(frame: np.ndarray) -> np.ndarray:
        return np.clip(0.25 * frame + random.normal(0, 6, frame.shape), 0, 255).astype(np.uint8)

    return _write(folder / "clip.mp4", ((time, darken(frame)) for time, frame in frames))


def hand_held(frames: Frames, source: Path, folder: Path) -> Path:
    """Shift the picture by up to 8 pixels in each direction, slowly, and cut its border off."""
    random = np.random.default_rng(3)
    rates, phases = random.uniform(0.3, 1.5, (2, 3)), random.uniform(0, 2 * np.pi, (2, 3))

    def shift(time: float, frame: np.ndarray) -> np.ndarray:
        x, y = SHAKE * np.sin(2 * np.pi * rates * time + phases).mean(1) * 1.4
        matrix = np.array([[1, 0, np.clip(x, -SHAKE, SHAKE)], [0, 1, np.clip(y, -SHAKE, SHAKE)]])
        moved = cv2.warpAffine(frame, matrix, frame.shape[1::-1], flags=cv2.INTER_LINEAR)
        return moved[SHAKE:-SHAKE, SHAKE:-SHAKE]

    return _write(folder / "clip.mp4", ((time, shift(time, frame)) for time, frame in frames))


def half_rate(frames: Frames, source: Path, folder: Path) -> Path:
    """Compress by H.264 at half the bit rate of the source."""
    duration = float(video.read_timestamps(source)[-1])
    rate = str(int(source.stat().st_size * 8 / duration / 2))
    options = {"b": rate, "maxrate": rate, "bufsize": rate, "preset": "veryfast"}
    return _write(folder / "clip.mp4", frames, video.Encoding("libx264", "yuv420p", options))


def cut_off(frames: Frames, source: Path, folder: Path) -> Path:
    """Keep the first four fifths of the bytes, as of an interrupted download."""
    path = _write(folder / "whole.mkv", frames)
    content = path.read_bytes()
    (folder / "clip.mkv").write_bytes(content[: 4 * len(content) // 5])
    return folder / "clip.mkv"


CHANGES: dict[str, Callable[[Frames, Path, Path], Path]] = {
    change.__name__: change
    for change in (crop, portrait, enlarge, hevc, variable_rate, gif, low_light, hand_held, half_rate, cut_off)
}
# Reasons for a refusal that a change justifies, as regular expressions of its message.
SOUND_REASONS = {
    "crop": "leaves the picture|positions are observed|nothing moves",
    "low_light": "nois|dark|contrast",
    "hand_held": "camera moves|static background",
    "half_rate": "nois|contrast|compress",
    "gif": "nois|contrast|color",
    "cut_off": "damage|positions are observed|no kind of motion",
}


def identify_changed(source: Path, change: str, clip: dict[str, Any]) -> dict[str, Any]:
    """Change a clip, and identify it from the file alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = CHANGES[change](video.stream(source, color="rgb"), source, Path(folder))
        record = identify_file(path, clip, kind_given=False)
    record.pop("parameters", None)
    return record | {"file": source.name, "change": change}


def verdict(record: dict[str, Any], clip: dict[str, Any]) -> str:
    """Return "right", "refused" (for a sound reason), "refused?" (for another), or "wrong"."""
    if "refused" in record:
        sound = re.search(SOUND_REASONS.get(record["change"], "$^"), record["refused"])
        return "refused" if sound else "refused?"
    return "right" if kind_verdict(record, clip) in ("right", "beside") else "wrong"


def show(records: list[dict[str, Any]], clips: dict[str, Any]) -> None:
    """Print a row for each change with a column for each clip, and the sums of each clip."""
    files = list(dict.fromkeys(record["file"] for record in records))
    verdicts = {(record["file"], record["change"]): verdict(record, clips[record["file"]]) for record in records}
    print(f"\n{'change':<15}" + "".join(f"{Path(file).stem[:17]:>19}" for file in files))
    for change in CHANGES:
        print(f"{change:<15}" + "".join(f"{verdicts.get((file, change), ''):>19}" for file in files))
    for name in ("right", "refused", "refused?", "wrong"):
        counts = [sum(verdicts.get((file, change)) == name for change in CHANGES) for file in files]
        print(f"{name:<15}" + "".join(f"{count:>19}" for count in counts))
    for record in records:
        if verdicts[record["file"], record["change"]] != "right":
            text = record.get("refused") or f"{record['motion']}, not {' or '.join(clips[record['file']]['kinds'])}"
            print(f"{record['file']}, {record['change']}: {text[:300]}")


def main(
    folder: Path,
    only: str | None = None,
    changes: str | None = None,
    out: Path = Path("out/identify_changed_clips"),
) -> None:
    """Change and identify the clips, and print the table.

    Args:
        folder: Folder of the clips; missing ones are skipped.
        only: Words, separated by commas, of which a clip's name must contain one; all of `CLIPS` if not given.
        changes: Names of changes, separated by commas; all if not given.
        out: Folder of the results, which are resumed.
    """
    torch.set_num_threads(1)
    clips = json.loads(Path(__file__).with_name("real_clips.json").read_text())
    files = [file for file in CLIPS if (folder / file).exists()]
    files = [file for file in files if only is None or any(word in file for word in only.split(","))]
    names = list(CHANGES) if changes is None else changes.split(",")
    keys = [(file, change) for change in names for file in files]

    def work(key: tuple[str, str]) -> dict[str, Any]:
        return identify_changed(folder / key[0], key[1], clips[key[0]])

    def key_of(record: dict[str, Any]) -> tuple[str, str]:
        return record["file"], record["change"]

    results = cached_results(out / "results.jsonl", keys, work, key_of)
    show([results[key] for key in keys], clips)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
