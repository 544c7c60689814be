"""The README's gallery: nine pictures, each a frame of the film that one command leaves.

    python experiments/gallery.py [--only cloth,arm]

A command is run only where its film is missing.
"""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from jsonargparse import auto_cli

from physvision import video

SIZE = (480, 360)


@dataclass(frozen=True)
class Picture:
    """A picture of the gallery.

    Attributes:
        command: Command that makes the film, as the README has it.
        film: Path of the film.
        time: Time of the frame that is shown, s.
        part: Left, top, right and bottom border of the part of the frame that is shown, as fractions of it.
    """

    command: str
    film: str
    time: float
    part: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)


PICTURES = {
    "identify": Picture("make demo", "out/demo/bob/prediction.mp4", 2.0, (0.04, 0.11, 0.96, 0.97)),
    "predict": Picture("make demo", "out/demo/billiards-3/prediction.mp4", 3.0, (0.014, 0.075, 0.332, 0.765)),
    "tabletop": Picture("make demo", "out/demo/tabletop/prediction.mp4", 2.0, (0.014, 0.075, 0.332, 0.765)),
    "swing": Picture("make demo", "out/demo/swing/prediction.mp4", 2.0, (0.014, 0.075, 0.332, 0.765)),
    "quadruped": Picture("physvision simulate quadruped --seconds 2", "out/quadruped.mp4", 1.0),
    "racecar": Picture("physvision simulate racecar --seconds 2", "out/racecar.mp4", 1.0),
    "arm": Picture("physvision simulate arm --seconds 2", "out/arm.mp4", 1.0),
    "swing-up": Picture("physvision control cartpole", "out/control/cartpole.mp4", 2.0),
    "pixels": Picture("physvision control pendulum-pixels", "out/control/pendulum-pixels.mp4", 2.0),
}


def picture_of(shown: Picture) -> np.ndarray:
    """Frame of the film, cut to the part and the size of all pictures, RGB."""
    if not Path(shown.film).exists():
        subprocess.run(shlex.split(shown.command), check=True)
    frame = next(frame for time, frame in video.stream(shown.film, "rgb") if time >= shown.time)
    height, width = frame.shape[:2]
    left, top, right, bottom = shown.part
    frame = frame[round(top * height) : round(bottom * height), round(left * width) : round(right * width)]
    scale = min(SIZE[0] / frame.shape[1], SIZE[1] / frame.shape[0])
    frame = cv2.resize(frame, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    picture = np.full((SIZE[1], SIZE[0], 3), (13, 17, 23), np.uint8)
    row, column = (SIZE[1] - frame.shape[0]) // 2, (SIZE[0] - frame.shape[1]) // 2
    picture[row : row + frame.shape[0], column : column + frame.shape[1]] = frame
    return picture


def main(only: tuple[str, ...] = (), out: Path = Path("docs/images/gallery")) -> None:
    """Write the pictures of the gallery.

    Args:
        only: Names of the pictures to write; all by default.
        out: Folder of the pictures.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in only or PICTURES:
        cv2.imwrite(str(out / f"{name}.jpg"), picture_of(PICTURES[name])[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 85])
        print(out / f"{name}.jpg")


if __name__ == "__main__":
    auto_cli(main)
