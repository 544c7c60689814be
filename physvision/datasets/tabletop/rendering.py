"""Ray-cast frames of textured balls on a table.

The world has x to the right, y down and z into the table, whose cloth is the plane z = 0; a ball's center is one radius
above it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from physvision.datasets.billiards.rolling import rotation_matrices
from physvision.datasets.rendering import Looks, Renderer, SphereTexture
from physvision.datasets.rendering.renderer import RAYS, dot

# Exponent of highlights.
_SHININESS = 40


@dataclass(frozen=True)
class TabletopLooks(Looks):
    """Appearance of a trial.

    Attributes:
        textures: Textures of the balls.
        radius: Radius of the balls, px.
    """

    textures: list[SphereTexture]
    radius: float


class TabletopRenderer(Renderer):
    """Renderer of the balls of one trial."""

    def __init__(
        self,
        looks: TabletopLooks,
        height: int,
        width: int,
        positions: Float[np.ndarray, "frames moments balls 2"],
        orientations: Float[np.ndarray, "frames moments balls 4"],
    ) -> None:
        """Prepare the motion of the balls.

        Args:
            looks: Appearance of the trial.
            height: Height of a frame, pixels.
            width: Width of a frame, pixels.
            positions: Centers of the balls at the `MOMENTS` of each exposure, px.
            orientations: Quaternions of the balls at the same times.
        """
        super().__init__(looks, height, width)
        self.looks = looks
        self.centers, self.rotations = self._centers(positions), rotation_matrices(orientations).astype(np.float32)

    def masks(self, positions: Float[np.ndarray, "frames balls 2"]) -> UInt8[np.ndarray, "frames height width"]:
        """Number of the ball that the center of each pixel shows, from 1 on; 0 elsewhere.

        Args:
            positions: Centers of the balls at the time of each frame, px.
        """
        masks = np.zeros((len(positions), self.height, self.width), np.uint8)
        columns, rows = np.arange(self.width)[None] + 0.0, np.arange(self.height)[None] + 0.0
        for frame, centers in enumerate(self._centers(positions)):
            for ball in self._far_to_near(frame, centers):
                box = self.box(frame, centers[None, ball], 1.3 * self.looks.radius, 1)
                hit = self._intersect(frame, centers[None, ball], self.directions(frame, columns, rows, box))[0]
                masks[frame][box][hit[0]] = ball + 1
        return masks

    def add_objects(self, frame: int, canvas: Float[np.ndarray, "moments rows columns 3"]) -> None:
        """Draw shadows and balls, the farthest ball first."""
        centers = self.centers[frame]
        balls = self._far_to_near(frame, centers[len(centers) // 2])
        for ball in balls:
            self._add_shadow(frame, centers[:, ball], canvas)
        for ball in balls:
            box = self.box(frame, centers[:, ball], 1.15 * self.looks.radius, RAYS)
            directions = self.directions(frame, self.columns, self.rows, box)
            hit, normals = self._intersect(frame, centers[:, ball], directions)
            local_normals = normals.reshape(len(centers), -1, 3) @ self.rotations[frame, :, ball]
            albedo = self.looks.textures[ball].evaluate(local_normals).reshape(normals.shape)
            patch = canvas[:, box[0], box[1]]
            np.copyto(patch, self._shade(albedo, normals, directions), where=hit[..., None])

    def _centers(self, positions: np.ndarray) -> np.ndarray:
        height = np.full((*positions.shape[:-1], 1), -self.looks.radius)
        return np.concatenate([positions, height], -1)

    def _far_to_near(self, frame: int, centers: np.ndarray) -> np.ndarray:
        return np.argsort(-np.linalg.norm(centers - self.positions[frame], axis=-1))

    def _intersect(self, frame: int, centers: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rays that hit a ball at its `centers` (moments, 3), and the unit normals where they do.

        A ray enters the ball √(R² − h²) before its point nearest to the center, which is at the distance h.
        """
        radius = np.float32(self.looks.radius)
        offset = (self.positions[frame] - centers).astype(np.float32)[:, None, None]
        squared = dot(directions, directions)
        nearest_points = offset - (dot(directions, offset) / squared)[..., None] * directions
        discriminant = radius**2 - dot(nearest_points, nearest_points)
        half_chord = np.sqrt(np.maximum(discriminant, 0.0) / squared)
        return discriminant > 0, (nearest_points - half_chord[..., None] * directions) / radius

    def _shade(self, albedo: np.ndarray, normals: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """Ambient and diffuse reflection, and a highlight by Blinn's half vector."""
        lighting = self.looks.lighting
        diffuse = np.maximum(normals @ lighting.direction, 0.0)
        # All rays of a ball are nearly parallel.
        rows, columns = directions.shape[1:3]
        view = directions[0, rows // 2, columns // 2] if directions.size else np.ones(3)
        half_vector = lighting.direction - view / np.linalg.norm(view)
        half_vector = (half_vector / np.linalg.norm(half_vector)).astype(np.float32)
        highlight = np.maximum(normals @ half_vector, 0.0) ** _SHININESS
        level = lighting.ambient + (1.0 - lighting.ambient) * diffuse
        return albedo * level[..., None] + np.float32(lighting.gloss) * highlight[..., None]

    def _add_shadow(self, frame: int, centers: np.ndarray, canvas: np.ndarray) -> None:
        """Darken the cloth about the point of contact, and away from the lamp."""
        lighting, radius = self.looks.lighting, np.float32(self.looks.radius)
        box = self.box(frame, centers, 2.4 * self.looks.radius, RAYS)
        # Shadows are soft: one moment and one grid of rays stand for all.
        center = centers.mean(0)
        directions = self.directions(frame, self.columns.mean(0)[None], self.rows.mean(0)[None], box)[0]
        cloth = self.on_plane(frame, 0.0, directions)
        # The shadow of the center lies where the lamp's ray through it meets the cloth.
        shadow_center = center[:2] - center[2] * lighting.direction[:2] / lighting.direction[2]
        offsets = ((cloth - point.astype(np.float32)) / radius for point in (shadow_center, center[:2]))
        cast, contact = (dot(offset, offset) for offset in offsets)
        darkness = (1.0 - lighting.ambient) * np.exp(-(cast**2)) + np.exp(-2.0 * contact**2)
        canvas[:, box[0], box[1]] *= (1.0 - lighting.shadow * np.minimum(darkness, 1.0))[..., None]
