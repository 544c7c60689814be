"""Folder of images as a video."""

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
    """List the images of a folder in the order of the numbers in their names: frame9 before frame10.

    Raises:
        FileError: The folder holds no image.
    """
    images = [path for path in Path(folder).iterdir() if path.suffix.lower() in _SUFFIXES and path.is_file()]
    if not images:
        raise FileError(f"{folder}: no such file, and no image in this folder; expected files such as frame-000.png")
    return sorted(images, key=lambda path: [part.zfill(20) for part in re.split(r"(\d+)", path.stem)])


def read_image(path: Path, color: Color) -> UInt8[np.ndarray, "height width channels"]:
    """Read the levels of an image, rotated by its orientation tag; "auto" yields gray where the file stores gray."""
    flags = {"rgb": cv2.IMREAD_COLOR, "gray": cv2.IMREAD_GRAYSCALE, "auto": cv2.IMREAD_ANYCOLOR}
    try:
        image = cv2.imdecode(np.fromfile(path, np.uint8), flags[color])
    except cv2.error as error:
        raise VideoError(f"{path}: not an image, or a damaged one ({error.err})") from error
    if image is None:
        raise VideoError(f"{path}: not an image, or a damaged one")
    return image[..., None] if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def stream_images(folder: str | os.PathLike[str], color: Color, fps: float) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the images of a folder with their times at `fps` images per second."""
    for number, path in enumerate(list_images(folder)):
        yield number / fps, read_image(path, color)
