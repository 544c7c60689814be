"""Frames of a pendulum of textured links in front of a wall.

The world has x to the right, y down and z away from the camera, in meters; the links move in the plane z = 0, and the
first hinge is at the origin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from physvision.datasets.rendering import Looks, Renderer
from physvision.datasets.rendering.renderer import RAYS, Box, dot

# Radii of a hinge and of its pin, in half widths of a link.
_HINGE, _PIN = 1.3, 0.45


@dataclass(frozen=True)
class SwingLooks(Looks):
    """Appearance of a trial.

    Attributes:
        textures: Picture of each link, from its hinge to its end and across.
        hinges: Colors of the hinges, (links, 3).
        half_width: Half width of the links, m.
    """

    textures: list[Float[np.ndarray, "_ _ 3"]]
    hinges: Float[np.ndarray, "links 3"]
    half_width: float


def link_points(
    angles: Float[np.ndarray, "*batch links"], lengths: Float[np.ndarray, " links"]
) -> Float[np.ndarray, "*batch points 2"]:
    """Hinges and free end of a chain, x to the right and y down.

    Args:
        angles: Angles of the hinges about z, each against the link before; 0 hangs down.
        lengths: Lengths of the links.
    """
    absolute = np.cumsum(angles, -1)
    steps = lengths[:, None] * np.stack([-np.sin(absolute), np.cos(absolute)], -1)
    return np.concatenate([np.zeros_like(steps[..., :1, :]), np.cumsum(steps, -2)], -2)


class SwingRenderer(Renderer):
    """Renderer of the links of one trial."""

    def __init__(
        self, looks: SwingLooks, height: int, width: int, points: Float[np.ndarray, "frames moments points 2"]
    ) -> None:
        """Prepare the motion of the links.

        Args:
            looks: Appearance of the trial.
            height: Height of a frame, pixels.
            width: Width of a frame, pixels.
            points: Hinges and free end at the `MOMENTS` of each exposure, m.
        """
        super().__init__(looks, height, width)
        self.looks, self.points = looks, points

    def masks(self, points: Float[np.ndarray, "frames points 2"]) -> UInt8[np.ndarray, "frames height width"]:
        """Number of the link that the center of each pixel shows, from 1 on; 0 elsewhere.

        Args:
            points: Hinges and free end at the time of each frame, m.
        """
        masks = np.zeros((len(points), self.height, self.width), np.uint8)
        columns, rows = np.arange(self.width)[None] + 0.0, np.arange(self.height)[None] + 0.0
        for frame, chain in enumerate(points):
            for link in range(len(chain) - 1):
                ends = chain[None, link : link + 2]
                box = self._box(frame, ends, 1)
                plane_points = self.on_plane(frame, 0.0, self.directions(frame, columns, rows, box))
                along, across, length = _in_link(plane_points, ends)
                hit = _distance(along, across, length) < self.looks.half_width
                hit |= np.hypot(along, across) < _HINGE * self.looks.half_width
                masks[frame][box][hit[0]] = link + 1
        return masks

    def add_objects(self, frame: int, canvas: Float[np.ndarray, "moments rows columns 3"]) -> None:
        """Draw shadows and links, from the first hinge on."""
        links = range(self.points.shape[2] - 1)
        for link in links:
            self._add_shadow(frame, self.points[frame, :, link : link + 2], canvas)
        for link in links:
            ends = self.points[frame, :, link : link + 2]
            box = self._box(frame, ends, RAYS)
            points = self.on_plane(frame, 0.0, self.directions(frame, self.columns, self.rows, box))
            self._add_link(link, points, ends, canvas[:, box[0], box[1]])

    def _box(self, frame: int, ends: np.ndarray, rays: int, depth: float = 0.0, reach: float = _HINGE) -> Box:
        """Rows and columns of the rays that come within `reach` half widths of a link at any moment."""
        flat = ends.reshape(-1, 2)
        points = np.concatenate([flat, np.full((len(flat), 1), depth)], 1)
        return self.box(frame, points, reach * self.looks.half_width, rays)

    def _add_link(self, link: int, points: np.ndarray, ends: np.ndarray, patch: np.ndarray) -> None:
        """Draw a link, shaded as a round rod, and its hinge, shaded as a flat disc."""
        looks, lighting = self.looks, self.looks.lighting
        along, across, length = _in_link(points, ends)
        # Sine of the angle between the rod's normal and −z, from −1 on one side to 1 on the other.
        normal_sine = np.clip(across / looks.half_width, -1.0, 1.0)
        texture = looks.textures[link]
        row = ((0.5 + 0.499 * normal_sine) * len(texture)).astype(int)
        column = (np.clip(along / length, 0.0, 0.999) * texture.shape[1]).astype(int)
        # Unit vector across the link at each moment; its normal turns from −z to either side.
        direction = (ends[:, 1] - ends[:, 0]) / length.reshape(-1, 1)
        sideways = (direction @ np.array([[0.0, 1.0], [-1.0, 0.0]]) @ lighting.direction[:2])[:, None, None]
        diffuse = normal_sine * sideways - np.sqrt(1.0 - normal_sine**2) * lighting.direction[2]
        highlight = np.float32(lighting.gloss) * np.maximum(diffuse, 0.0) ** 24
        level = lighting.ambient + (1.0 - lighting.ambient) * np.maximum(diffuse, 0.0)
        rod = texture[row, column] * level[..., None] + 0.5 * highlight[..., None]
        np.copyto(patch, rod, where=(_distance(along, across, length) < looks.half_width)[..., None])
        radius = np.hypot(along, across) / looks.half_width
        shade = lighting.ambient - (1.0 - lighting.ambient) * lighting.direction[2]
        hinge = looks.hinges[link] * shade * np.where(radius < _PIN, 0.3, 1.0)[..., None].astype(np.float32)
        np.copyto(patch, hinge, where=(radius < _HINGE)[..., None])

    def _add_shadow(self, frame: int, ends: np.ndarray, canvas: np.ndarray) -> None:
        """Darken the wall where the lamp's light meets a link."""
        lighting, depth = self.looks.lighting, self.looks.surface_depth
        # Shadows are soft: one moment and one grid of rays stand for all.
        shadow_ends = ends.mean(0, keepdims=True) + depth * lighting.direction[:2] / lighting.direction[2]
        box = self._box(frame, shadow_ends, RAYS, depth, 2.5)
        directions = self.directions(frame, self.columns.mean(0)[None], self.rows.mean(0)[None], box)
        distance = _distance(*_in_link(self.on_plane(frame, depth, directions), shadow_ends)) / self.looks.half_width
        darkness = 0.8 * lighting.shadow * np.exp(-((distance / 1.5) ** 2))
        canvas[:, box[0], box[1]] *= (1.0 - darkness[0])[..., None]


def _in_link(points: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates along and across a link, from its hinge, and its length, for each moment."""
    vector = (ends[:, 1] - ends[:, 0]).astype(np.float32)[:, None, None]
    length = np.linalg.norm(vector, axis=-1)
    direction = vector / length[..., None]
    offset = points - ends[:, None, None, 0].astype(np.float32)
    return dot(offset, direction), offset[..., 1] * direction[..., 0] - offset[..., 0] * direction[..., 1], length


def _distance(along: np.ndarray, across: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Distance from the middle line of a link."""
    return np.hypot(along - np.clip(along, 0.0, length), across)
