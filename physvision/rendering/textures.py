"""Materials and the images that cover them, packed for the kernels."""

# Warp's arrays of vectors have no types for type checkers.
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import warp as wp

from physvision.core.visuals import Look

MAX_TEXTURE = 1024  # texels of the longer side


class MaterialTable:
    """Materials of a scene, each made once, with their textures and halved copies of them."""

    def __init__(self, kernels: Any) -> None:
        self._kernels = kernels
        self._rows: list[tuple[Any, ...]] = []
        self._texels: list[np.ndarray] = []
        self._next_texel = 0
        self._images: dict[int, tuple[int, int, int, int]] = {}

    def add(self, look: Look, gloss: float) -> int:
        """Add a material and return its row.

        Args:
            look: Color and texture.
            gloss: Strength of its highlights.
        """
        image = (-1, 0, 0, 0) if look.texture is None else self._add_image(look.texture)
        self._rows.append((linear(look.color), gloss, *image, *look.repeat))
        return len(self._rows) - 1

    def pack(self) -> tuple[wp.array, wp.array]:
        """Return the materials, and the texels of all images."""
        table: Any = np.zeros(max(len(self._rows), 1), self._kernels.Material.numpy_dtype())
        names = ("color", "gloss", "texel", "width", "height", "levels", "repeat_x", "repeat_y")
        for row, values in enumerate(self._rows):
            for name, value in zip(names, values, strict=True):
                table[name][row] = value
        texels = np.concatenate(self._texels) if self._texels else np.zeros((1, 3), np.float32)
        return (
            wp.array(table, dtype=self._kernels.Material, device="cpu"),
            wp.array(texels.astype(np.float32), dtype=wp.vec3, device="cpu"),
        )

    def _add_image(self, image: np.ndarray) -> tuple[int, int, int, int]:
        """Pack an image and its halved copies; return the first texel, width, height and number of images."""
        if id(image) in self._images:
            return self._images[id(image)]
        shrink = max(image.shape[:2]) / MAX_TEXTURE
        if shrink > 1:
            size = (max(1, int(image.shape[1] / shrink)), max(1, int(image.shape[0] / shrink)))
            scaled = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        else:
            scaled = image
        level = linear(scaled.astype(np.float32) / 255)
        first, (height, width) = self._next_texel, level.shape[:2]
        levels = 0
        while True:
            self._texels.append(level.reshape(-1, 3))
            self._next_texel += level.shape[0] * level.shape[1]
            levels += 1
            if max(level.shape[:2]) == 1:
                break
            size = (max(level.shape[1] // 2, 1), max(level.shape[0] // 2, 1))
            level = cv2.resize(level, size, interpolation=cv2.INTER_AREA).reshape(size[1], size[0], 3)
        self._images[id(image)] = first, width, height, levels
        return self._images[id(image)]


def linear(color: Any) -> np.ndarray:
    """Convert colors of a picture to linear light, by a gamma of two."""
    return np.square(np.asarray(color, np.float32))
