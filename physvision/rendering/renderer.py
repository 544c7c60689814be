"""Lit pictures of any engine with bodies, by rasterization on the CPU."""

# Warp's arrays of vectors have no types for type checkers.
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import warp as wp
from jaxtyping import UInt8
from numpy.typing import NDArray

from physvision.core import Appearance, Circle, InputError, Polygon, State
from physvision.kernels import precision
from physvision.kernels.launching import launch
from physvision.physics import Engine
from physvision.physics.engine import Overrides
from physvision.rendering.draw_list import DrawList
from physvision.rendering.rasterization import Rasterizer
from physvision.rendering.settings import SETTINGS, RenderSettings
from physvision.rendering.view import View

KERNELS = "physvision.rendering.kernels"
# Rotated grid: four samples of a pixel in four different rows and columns.
SAMPLE_OFFSETS = np.array([[-0.125, -0.375], [0.375, -0.125], [-0.375, 0.125], [0.125, 0.375]], np.float32)
MIN_SUN_EXTENT = 0.2  # half width of the sun's picture, in the farthest distance from which shadows are cast
_CPU = torch.device("cpu")


class Renderer:
    """Renderer of the states of one engine: sunlight, soft shadows, a ground with a grid, and a sky.

    All that it knows of an engine are `geometry`, `appearance`, `poses` and `visuals`. Every pixel has four samples of
    coverage. A frame is not differentiable; `physvision.camera` has the camera that is.

    Attributes:
        mechanics: Mechanical engine whose bodies are visible.
        planar: If true, the world is flat, and shapes are slabs in front of a wall.
        ground_height: Height of the ground where the scene has none, m; None for no ground.
    """

    def __init__(self, engine: Engine, settings: RenderSettings = SETTINGS) -> None:
        if engine.mechanics is None:
            raise InputError(f"engine: {type(engine).__name__} has no bodies to render; give one with mechanics")
        self.mechanics, self.settings = engine.mechanics, settings
        self._engine = engine
        self._kernels: Any = precision.load(KERNELS, torch.float32)
        geometry = self.mechanics.geometry
        self.planar = bool(geometry) and all(isinstance(item.shape, Circle | Polygon) for item in geometry)
        self.ground_height: float | None = None
        self._list: DrawList | None = None
        self._sizes: NDArray | None = None
        self._rasterizers: dict[tuple[int, int, int], Rasterizer] = {}

    @torch.no_grad()
    def frames(self, states: State, properties: Overrides = None) -> tuple[NDArray, NDArray]:
        """Return the poses of everything in the scene, (batch, frames, 4, 4), and the sizes of shapes, (shapes, 3).

        Args:
            states: States of one world.
            properties: Properties that they share; the engine's own if None.
        """
        values = self._engine.properties if properties is None else properties
        appearance: Appearance = self.mechanics.appearance(states, values)
        bodies = self.mechanics.poses(states, values)
        eye = torch.eye(4, dtype=bodies.dtype, device=bodies.device).expand(states.batch, 1, 4, 4)
        poses = torch.cat([appearance.poses, bodies, eye], 1).double().cpu().numpy()
        shapes = self.mechanics.visuals.shapes
        if shapes:
            first, world = len(self.mechanics.geometry), poses.shape[1] - 1
            carriers = [world if placed.body is None else first + placed.body for placed, _ in shapes]
            placed_poses = np.array([placed.pose for placed, _ in shapes])
            poses = np.concatenate([poses, poses[:, carriers] @ placed_poses], 1)
        return poses, appearance.sizes[0].double().cpu().numpy()

    def draw_list(self, sizes: NDArray) -> DrawList:
        """Return the triangles for sizes of the shapes, which are made again if the sizes change."""
        if self._list is None or self._sizes is None or not np.array_equal(self._sizes, sizes):
            extent = float(np.abs(sizes).max(initial=0.0))
            bodies, visuals = len(self.mechanics.body_names), self.mechanics.visuals
            self._list = DrawList(
                self._kernels, self.mechanics.geometry, sizes, bodies, visuals, self.settings, 0.35 * extent
            )
            self._sizes = sizes
        return self._list

    def render(self, state: State, view: View, properties: Overrides = None) -> UInt8[np.ndarray, "height width 3"]:
        """Render the state of one world.

        Args:
            state: State, a batch of one.
            view: Camera.
            properties: Properties; the engine's own if None.
        """
        poses, sizes = self.frames(state, properties)
        return self.render_frames(poses[0], sizes, view)

    def render_frames(self, poses: NDArray, sizes: NDArray, view: View) -> UInt8[np.ndarray, "height width 3"]:
        """Render poses of one state, (frames, 4, 4), and sizes, which `frames` returned."""
        scene = self.draw_list(sizes)
        # Positions are relative to what is looked at, for single precision.
        origin = view.eye + view.distance * view.rotation[2]
        poses = poses.copy()
        poses[:, :3, 3] -= origin
        world, normals = self._move(scene, poses)
        sun = self._sun_view(scene, poses, view)
        shadow_raster = self._rasterizer(sun.height, sun.width, 1)
        shadow_raster.draw(scene, world, self._view_struct(sun, np.zeros(3)), 0.0, cull=False)
        raster = self._rasterizer(view.height, view.width, 4)
        raster.draw(scene, world, self._view_struct(view, origin), self.settings.near)
        return self._shade(scene, (world, normals), poses, view, origin, (raster, shadow_raster, sun))

    def _move(self, scene: DrawList, poses: NDArray) -> tuple[wp.array, wp.array]:
        """Return positions and normals of all vertices relative to the origin of the picture."""
        world = wp.empty(max(scene.vertex_count, 1), dtype=wp.vec3, device="cpu")
        normals = wp.empty_like(world)
        frames = wp.array(poses.astype(np.float32), dtype=wp.mat44, device="cpu")
        inputs = [scene.vertices, scene.normals, scene.rows, frames, world, normals]
        launch(self._kernels.transform, scene.vertex_count, inputs, _CPU, 0.02 * scene.vertex_count)
        if len(scene.deforming):
            _recompute_normals(world.numpy(), normals.numpy(), scene)
        return world, normals

    def _sun_view(self, scene: DrawList, poses: NDArray, view: View) -> View:
        """Return the orthographic view from the sun, around all that may cast a shadow into the picture."""
        direction = self._sun(view)
        centers, radius = poses[scene.casts, :3, 3], scene.radius[scene.casts]
        reach = 2.0 * view.distance if not view.orthographic else 0.75 * max(view.height, view.width) / view.focal
        near = (np.linalg.norm(centers, axis=1) - radius < reach) & np.isfinite(centers).all(1)
        low, high = np.full(3, -1e-3), np.full(3, 1e-3)
        if near.any():
            low = (centers[near] - radius[near, None]).min(0).clip(-reach, reach)
            high = (centers[near] + radius[near, None]).max(0).clip(-reach, reach)
        middle, extent = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
        # Texels that are too small would limit the width of soft edges, which is counted in them.
        extent = max(extent, MIN_SUN_EXTENT * reach)
        size = self.settings.shadow_size
        side = np.cross([0.0, 0.0, 1.0] if abs(direction[2]) < 0.9 else [1.0, 0.0, 0.0], direction)
        side /= np.linalg.norm(side)
        rotation = np.stack([side, np.cross(-direction, side), -direction])
        eye = middle + 2.0 * extent * direction
        focal, center = 0.5 * (size - 8) / extent, 0.5 * (size - 1)
        return View(rotation, eye, focal, (center, center), size, size, 2.0 * extent, True)

    def _sun(self, view: View) -> NDArray:
        """Unit vector towards the sun; in a flat world from above the left of the picture."""
        sun = np.array(self.settings.sun)
        if self.planar:
            right, down, forward = view.rotation
            sun = -0.45 * right - 0.6 * down - 1.2 * forward
        return sun / np.linalg.norm(sun)

    def _rasterizer(self, height: int, width: int, samples: int) -> Rasterizer:
        key = (height, width, samples)
        if key not in self._rasterizers:
            offsets = SAMPLE_OFFSETS if samples == 4 else np.zeros((1, 2), np.float32)
            self._rasterizers[key] = Rasterizer(self._kernels, height, width, offsets)
        return self._rasterizers[key]

    def _view_struct(self, view: View, origin: NDArray) -> Any:
        """Return the view for the kernels, relative to an origin."""
        struct = self._kernels.View()
        eye = view.eye - origin
        struct.rotation = wp.mat33(*view.rotation.ravel().tolist())
        struct.translation = wp.vec3(*(-view.rotation @ eye).tolist())
        struct.eye = wp.vec3(*eye.tolist())
        struct.focal, struct.orthographic = view.focal, int(view.orthographic)
        struct.center_x, struct.center_y = view.center
        struct.far = 2.0 * view.distance
        return struct

    def _light(self, view: View) -> Any:
        light, settings = self._kernels.Light(), self.settings
        light.sun = wp.vec3(*self._sun(view).tolist())
        light.up = wp.vec3(*((-view.rotation[1]).tolist() if self.planar else (0.0, 0.0, 1.0)))
        for name in ("sun_color", "sky_color", "ground_color", "horizon", "zenith"):
            setattr(light, name, wp.vec3(*getattr(settings, name)))
        light.haze, light.backdrop = settings.haze * view.distance, int(self.planar)
        return light

    def _shade(
        self,
        scene: DrawList,
        vertices: tuple[wp.array, wp.array],
        poses: NDArray,
        view: View,
        origin: NDArray,
        drawings: tuple[Rasterizer, Rasterizer, View],
    ) -> UInt8[np.ndarray, "height width 3"]:
        raster, shadow_raster, sun = drawings
        frame = self._kernels.Frame()
        frame.world, frame.normals = vertices
        for name in ("uv", "faces", "groups", "face_materials", "materials", "texels"):
            setattr(frame, name, getattr(scene, name))
        planes = self._planes(scene, poses, view, origin)
        frame.planes, frame.plane_count = wp.array(planes, dtype=self._kernels.Plane, device="cpu"), len(planes)
        frame.nearness, frame.ids, frame.offsets = raster.nearness, raster.ids, raster.offsets
        frame.width, frame.textured = view.width, int(scene.textured)
        shadow = shadow_raster.shadow(self._view_struct(sun, np.zeros(3)), self.settings)
        image = wp.empty((view.height, view.width, 3), dtype=wp.uint8, device="cpu")
        inputs = [frame, self._view_struct(view, origin), self._light(view), shadow, image]
        launch(self._kernels.shade, view.height, inputs, _CPU, 0.1 * view.width * view.height)
        return image.numpy()

    def _planes(self, scene: DrawList, poses: NDArray, view: View, origin: NDArray) -> Any:
        """Return the planes of the picture, with nearness as a function of the place on the screen."""
        rows = list(scene.planes)
        if scene.extra_ground is not None and (self.planar or self.ground_height is not None):
            rows.append(scene.extra_ground)
        table: Any = np.zeros(len(rows), self._kernels.Plane.numpy_dtype())
        for number, row in enumerate(rows):
            pose = self._ground_pose(view, origin) if row.frame < 0 else poses[row.frame]
            _fill_plane(table[number], pose, view, origin)
            # A floor collides without bounds, so a large one has none in the picture either.
            endless = row.is_floor and min(row.half_size) > view.distance
            table["half_x"][number], table["half_y"][number] = (0.0, 0.0) if endless else row.half_size
            table["grid"][number] = 0.0 if row.textured else grid_size(view)
            table["material"][number] = row.material
        return table

    def _ground_pose(self, view: View, origin: NDArray) -> NDArray:
        """Pose of a ground that the scene does not have: a wall behind a flat world."""
        pose = np.eye(4)
        if self.planar:
            assert self._sizes is not None
            behind = view.rotation[2, 2] * 0.5 * 0.35 * float(np.abs(self._sizes).max(initial=0.0))
            pose[:3, 3] = np.array([0.0, 0.0, 1.01 * behind]) - origin
        else:
            pose[:3, 3] = np.array([0.0, 0.0, self.ground_height or 0.0]) - origin
        return pose


def grid_size(view: View) -> float:
    """Return the side of the squares of a grid, of which about twelve lie across the picture: 1, 2 or 5 · 10ⁿ m."""
    across = view.width / view.focal * (1.0 if view.orthographic else view.distance)
    exponent = np.floor(np.log10(across / 12.0))
    return float(min((m * 10.0**exponent for m in (1, 2, 5, 10)), key=lambda side: abs(np.log(across / 12.0 / side))))


def _fill_plane(row: Any, pose: NDArray, view: View, origin: NDArray) -> None:
    """Set the frame of a plane, and its nearness on the screen."""
    row["origin"], row["normal"] = pose[:3, 3], pose[:3, 2]
    row["axis_x"], row["axis_y"] = pose[:3, 0], pose[:3, 1]
    normal = view.rotation @ pose[:3, 2]
    offset = float(normal @ (view.rotation @ (pose[:3, 3] - (view.eye - origin))))
    cx, cy = view.center
    if abs(offset) < 1e-12 or (view.orthographic and abs(normal[2]) < 1e-9):
        row["nearness"] = (0.0, 0.0, -1.0)
        return
    if view.orthographic:
        # A ray (x/f, y/f, z) meets the plane at z = (offset − n_x x/f − n_y y/f) / n_z, the nearness is far − z.
        slopes = np.array([normal[0], normal[1]]) / (view.focal * normal[2])
        rest = 2.0 * view.distance - offset / normal[2] - slopes @ [cx, cy]
    else:
        # A ray z · (x/f, y/f, 1) meets it at z = offset / (n · ray), the nearness is 1/z.
        slopes = np.array([normal[0], normal[1]]) / (view.focal * offset)
        rest = normal[2] / offset - slopes @ [cx, cy]
    row["nearness"] = (*slopes, rest)


def _recompute_normals(world: NDArray, normals: NDArray, scene: DrawList) -> None:
    """Set the normals of deforming surfaces to the sums of those of their triangles, weighted by area."""
    faces = scene.deforming_faces
    corners = world[faces].astype(np.float64)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    total = np.zeros((len(world), 3))
    for axis in range(3):
        for corner in range(3):
            total[:, axis] += np.bincount(faces[:, corner], cross[:, axis], len(world))
    sums = total[scene.deforming]
    normals[scene.deforming] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-30)
