"""Ray-cast frames of textured balls on a table.

The world has x to the right, y down and z into the table, whose cloth is the plane z = 0; a ball's center is one radius
above it. Every frame is averaged over four moments of the exposure with two by two rays a pixel each, offset so that
all sixteen rays of a pixel lie on a regular grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float, UInt8

from physvision.datasets.billiards.rolling import rotation_matrices
from physvision.datasets.rendering import CameraPath, Lighting, Sensor, SphereTexture
from physvision.datasets.rendering.cameras import project

# Moments of the exposure, as fractions of its duration, and the rays' offsets at each, pixels.
MOMENTS = np.array([-0.375, -0.125, 0.125, 0.375])
_OFFSETS = np.array([[-0.125, -0.125], [0.125, 0.125], [-0.125, 0.125], [0.125, -0.125]])
# Rays across a pixel at each moment.
_RAYS = 2
# Exponent of highlights.
_SHININESS = 40


@dataclass(frozen=True)
class TabletopLooks:
    """Appearance of a trial.

    Attributes:
        surface: Picture of the cloth and of what surrounds it, in the plane z = 0.
        surface_origin: World place of the picture's upper left corner, px.
        surface_scale: Pixels of that picture per px of the world.
        textures: Textures of the balls.
        radius: Radius of the balls, px.
        lighting: Light.
        sensor: Noise and compression.
        camera: Camera in every frame.
    """

    surface: Float[np.ndarray, "rows columns 3"]
    surface_origin: Float[np.ndarray, " 2"]
    surface_scale: float
    textures: list[SphereTexture]
    radius: float
    lighting: Lighting
    sensor: Sensor
    camera: CameraPath


class TabletopRenderer:
    """Renderer of the frames of one trial."""

    def __init__(self, looks: TabletopLooks, height: int, width: int) -> None:
        """Prepare rays and projections.

        Args:
            looks: Appearance of the trial.
            height: Height of a frame, pixels.
            width: Width of a frame, pixels.
        """
        self.looks, self.height, self.width = looks, height, width
        camera = looks.camera
        self.positions = camera.positions()
        # Columns and rows of the rays at each moment, in pixels whose centers are whole numbers.
        self.columns, self.rows = (
            (np.arange(_RAYS * size) + 0.5) / _RAYS - 0.5 + _OFFSETS[:, None, axis]
            for axis, size in enumerate((width, height))
        )
        scale = looks.surface_scale
        from_surface = np.array(
            [[1 / scale, 0, looks.surface_origin[0]], [0, 1 / scale, looks.surface_origin[1]], [0, 0, 1]]
        ) @ np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
        to_rays = [
            np.array([[_RAYS, 0, -_RAYS * column], [0, _RAYS, -_RAYS * row], [0, 0, 1]])
            for column, row in zip(self.columns[:, 0], self.rows[:, 0], strict=True)
        ]
        self.surface_maps = np.stack(to_rays) @ (camera.homographies() @ from_surface)[:, None]

    def frames(
        self,
        times: Float[np.ndarray, " frames"],
        positions: Float[np.ndarray, "frames moments balls 2"],
        orientations: Float[np.ndarray, "frames moments balls 4"],
        random: np.random.Generator,
    ) -> UInt8[np.ndarray, "frames height width 3"]:
        """Render all frames of the trial.

        Args:
            times: Times of the frames, s.
            positions: Centers of the balls at the `MOMENTS` of each exposure, px.
            orientations: Quaternions of the balls at the same times.
            random: Random generator of the noise.
        """
        brightness = self.looks.lighting.brightness(times, self.height, self.width)
        rotations = rotation_matrices(orientations).astype(np.float32)
        frames = np.empty((len(times), self.height, self.width, 3), np.uint8)
        for frame in range(len(times)):
            light = self._radiance(frame, positions[frame], rotations[frame]) * brightness[frame]
            frames[frame] = self.looks.sensor.record(light, random)
        return frames

    def masks(self, positions: Float[np.ndarray, "frames balls 2"]) -> UInt8[np.ndarray, "frames height width"]:
        """Number of the ball that the center of each pixel shows, from 1 on; 0 elsewhere.

        Args:
            positions: Centers of the balls in each frame, px.
        """
        masks = np.zeros((len(positions), self.height, self.width), np.uint8)
        columns, rows = np.arange(self.width)[None], np.arange(self.height)[None]
        for frame, centers in enumerate(self._centers(positions)):
            for ball in self._far_to_near(frame, centers):
                box = self._box(frame, centers[None, ball], 1, 1.3)
                rays = self._rays(frame, columns, rows, box)
                hit = self._intersect(frame, centers[None, ball], rays)[0]
                masks[frame][box][hit[0]] = ball + 1
        return masks

    def _centers(self, positions: np.ndarray) -> np.ndarray:
        height = np.full((*positions.shape[:-1], 1), -self.looks.radius)
        return np.concatenate([positions, height], -1)

    def _far_to_near(self, frame: int, centers: np.ndarray) -> np.ndarray:
        return np.argsort(-np.linalg.norm(centers - self.positions[frame], axis=-1))

    def _box(self, frame: int, centers: np.ndarray, rays: int, reach: float) -> tuple[slice, slice]:
        """Rows and columns of the rays that come within `reach` radii of a ball's center at any moment."""
        camera = self.looks.camera
        places = project(camera.intrinsics, camera.extrinsics[frame], centers)
        margin = reach * self.looks.radius * camera.intrinsics[0, 0] / places[:, 2].min() + 0.5
        low, high = places[:, :2].min(0) - margin + 0.5, places[:, :2].max(0) + margin + 0.5
        bounds = np.clip(np.stack([np.floor(low), np.ceil(high)]), 0, (self.width, self.height)).astype(int) * rays
        return slice(bounds[0, 1], bounds[1, 1]), slice(bounds[0, 0], bounds[1, 0])

    def _rays(self, frame: int, columns: np.ndarray, rows: np.ndarray, box: tuple[slice, slice]) -> np.ndarray:
        """Directions of rays in the world, not of unit length, (moments, rows, columns, 3)."""
        camera = self.looks.camera
        inverse = camera.extrinsics[frame, :3, :3].T @ np.linalg.inv(camera.intrinsics)
        columns, rows = columns[:, None, box[1], None], rows[:, box[0], None, None]
        return (columns * inverse[:, 0] + rows * inverse[:, 1] + inverse[:, 2]).astype(np.float32)

    def _intersect(self, frame: int, centers: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rays that hit a ball at its `centers` (moments, 3), and the unit normals where they do.

        A ray enters the ball √(R² − h²) before its point nearest to the center, which is at the distance h.
        """
        radius = np.float32(self.looks.radius)
        offset = (self.positions[frame] - centers).astype(np.float32)[:, None, None]
        squared = _dot(rays, rays)
        nearest = offset - (_dot(rays, offset) / squared)[..., None] * rays
        discriminant = radius**2 - _dot(nearest, nearest)
        back = np.sqrt(np.maximum(discriminant, 0.0) / squared)
        return discriminant > 0, (nearest - back[..., None] * rays) / radius

    def _radiance(self, frame: int, positions: np.ndarray, rotations: np.ndarray) -> np.ndarray:
        """Light of a frame before the brightness of the lamp, averaged over rays, (height, width, 3)."""
        surface, size = self.looks.surface, (_RAYS * self.width, _RAYS * self.height)
        canvas = np.stack(
            [
                cv2.warpPerspective(surface, mapping, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
                for mapping in self.surface_maps[frame]
            ]
        )
        centers = self._centers(positions)
        balls = self._far_to_near(frame, centers[len(centers) // 2])
        for ball in balls:
            self._add_shadow(frame, centers[:, ball], canvas)
        for ball in balls:
            box = self._box(frame, centers[:, ball], _RAYS, 1.15)
            rays = self._rays(frame, self.columns, self.rows, box)
            hit, normals = self._intersect(frame, centers[:, ball], rays)
            own = normals.reshape(len(centers), -1, 3) @ rotations[:, ball]
            albedo = self.looks.textures[ball].evaluate(own).reshape(normals.shape)
            patch = canvas[:, box[0], box[1]]
            np.copyto(patch, self._shade(albedo, normals, rays), where=hit[..., None])
        # The area of a pixel is that of its rays, so that this averages them.
        return cv2.resize(canvas.mean(0), (self.width, self.height), interpolation=cv2.INTER_AREA)

    def _shade(self, albedo: np.ndarray, normals: np.ndarray, rays: np.ndarray) -> np.ndarray:
        """Ambient and diffuse reflection, and a highlight by Blinn's half vector."""
        lighting = self.looks.lighting
        diffuse = np.maximum(normals @ lighting.direction, 0.0)
        # All rays of a ball are nearly parallel.
        middle = rays[0, rays.shape[1] // 2, rays.shape[2] // 2] if rays.size else lighting.direction
        half = lighting.direction - middle / np.linalg.norm(middle)
        highlight = np.maximum(normals @ (half / np.linalg.norm(half)).astype(np.float32), 0.0) ** _SHININESS
        level = lighting.ambient + (1.0 - lighting.ambient) * diffuse
        return albedo * level[..., None] + np.float32(lighting.gloss) * highlight[..., None]

    def _add_shadow(self, frame: int, centers: np.ndarray, canvas: np.ndarray) -> None:
        """Darken the cloth about the point of contact, and away from the lamp."""
        lighting, radius = self.looks.lighting, np.float32(self.looks.radius)
        box = self._box(frame, centers, _RAYS, 2.4)
        # Shadows are soft: one moment and one grid of rays stand for all.
        center, position = centers.mean(0), self.positions[frame]
        rays = self._rays(frame, self.columns.mean(0)[None], self.rows.mean(0)[None], box)[0]
        cloth = position[:2].astype(np.float32) - np.float32(position[2]) * rays[..., :2] / rays[..., 2:]
        # The shadow of the center lies where the lamp's ray through it meets the cloth.
        cast = center[:2] - center[2] * lighting.direction[:2] / lighting.direction[2]
        away, beneath = ((cloth - place.astype(np.float32)) / radius for place in (cast, center[:2]))
        dark = (1.0 - lighting.ambient) * np.exp(-(_dot(away, away) ** 2)) + np.exp(-2.0 * _dot(beneath, beneath) ** 2)
        canvas[:, box[0], box[1]] *= (1.0 - lighting.shadow * np.minimum(dark, 1.0))[..., None]


def _dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Dot product along the last axis."""
    return np.einsum("...i,...i->...", first, np.broadcast_to(second, first.shape))
