"""A folder of pictures as a video."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import UInt8

from physvision.core import FileError, VideoError
from physvision.video.decoding import Color

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}


def list_images(folder: str | os.PathLike[str]) -> list[Path]:
    """The pictures of a folder in the order of the numbers in their names: frame9 before frame10.

    Raises:
        FileError: there is none.
    """
    found = [path for path in Path(folder).iterdir() if path.suffix.lower() in _SUFFIXES and path.is_file()]
    if not found:
        raise FileError(f"{folder}: no such file, and no picture in this folder; expected some such as frame-000.png")
    return sorted(found, key=lambda path: [part.zfill(20) for part in re.split(r"(\d+)", path.stem)])


def read_image(path: Path, color: Color) -> UInt8[np.ndarray, "height width channels"]:
    """The levels of one picture, turned as its camera says; "auto" takes gray where it stores gray."""
    encoded = np.fromfile(path, np.uint8)
    stored = cv2.IMREAD_COLOR if color == "rgb" else cv2.IMREAD_GRAYSCALE if color == "gray" else cv2.IMREAD_ANYCOLOR
    try:
        picture = cv2.imdecode(encoded, stored)
    except cv2.error as error:
        raise VideoError(f"{path}: not a picture, or a damaged one ({error.err})") from error
    if picture is None:
        raise VideoError(f"{path}: not a picture, or a damaged one")
    return picture[..., None] if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)


def stream_images(folder: str | os.PathLike[str], color: Color, fps: float) -> Iterator[tuple[float, np.ndarray]]:
    """The pictures of a folder and their times at `fps` pictures a second."""
    for number, path in enumerate(list_images(folder)):
        yield number / fps, read_image(path, color)
