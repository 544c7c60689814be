"""Clips that a tilted camera with radial distortion and a rolling shutter takes, drawn with OpenCV's camera model.

The projection is that of `cv2.projectPoints`; nothing of it is shared with the camera that `identify` fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from physvision.datasets import clips
from physvision.datasets.clips.drawing import Projection
from physvision.perception import Track

SIZES = ((640, 360), (640, 480), (1280, 720), (480, 640))
FRAME_RATES = (25.0, 30.0, 50.0)
MAX_K1, MAX_TILT, MAX_ROLL, MAX_READOUT = 0.3, np.radians(15), np.radians(5), 0.02
# Tangent of half the horizontal field of view: full-frame lenses of 60 to 24 mm.
HALF_FIELDS = 0.3, 0.75


@dataclass(frozen=True)
class Camera:
    """Camera of a drawn clip, in OpenCV's terms.

    Attributes:
        focal: Focal length, pixels.
        tilt: Angle of the line of sight from the normal of the plane of motion, rad.
        direction: Direction of the tilt in the picture, from x towards y, rad.
        roll: Rotation about the line of sight, rad.
        k1: Radial distortion.
        readout: Time from the first row to the last, s.
    """

    focal: float
    tilt: float
    direction: float
    roll: float
    k1: float
    readout: float


@dataclass(frozen=True)
class OpenCvProjection(Projection):
    """Projection of the plane of motion by OpenCV's camera model.

    Attributes:
        intrinsics: Camera matrix, pixel centers at integers.
        pose: Rotation vector and translation of the plane, y down, in meters.
        distortion: Distortion coefficients.
    """

    intrinsics: np.ndarray
    pose: tuple[np.ndarray, np.ndarray]
    distortion: np.ndarray

    def project(self, points: np.ndarray) -> np.ndarray:
        """Pixels of points (…, 2) of the plane, m."""
        space = np.concatenate([points * [1.0, -1.0], np.zeros_like(points[..., :1])], -1).reshape(-1, 1, 3)
        pixels = cv2.projectPoints(space, *self.pose, self.intrinsics, self.distortion)[0]
        return pixels.reshape(points.shape) + 0.5

    def unproject(self, pixels: np.ndarray) -> np.ndarray:
        """Points of the plane, m, that appear at pixels (…, 2)."""
        criteria = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 60, 1e-10)
        flat = (pixels - 0.5).reshape(-1, 1, 2)
        rays = cv2.undistortPoints(flat, self.intrinsics, self.distortion, criteria=criteria)
        rotation, shift = cv2.Rodrigues(self.pose[0])[0], self.pose[1]
        plane = np.stack([rotation[:, 0], -rotation[:, 1], shift.ravel()], 1)
        points = cv2.convertPointsToHomogeneous(rays)[:, 0] @ np.linalg.inv(plane).T
        return (points[:, :2] / points[:, 2:]).reshape(pixels.shape)


def random_camera(random: np.random.Generator, width: int, frame_interval: float) -> Camera:
    """Camera of an everyday focal length with up to the largest tilt, roll, distortion and readout."""
    return Camera(
        focal=width / 2 / random.uniform(*HALF_FIELDS),
        tilt=random.uniform(0, MAX_TILT),
        direction=random.uniform(-np.pi, np.pi),
        roll=random.uniform(-MAX_ROLL, MAX_ROLL),
        k1=random.uniform(-MAX_K1, MAX_K1),
        readout=random.uniform(0, min(MAX_READOUT, frame_interval)),
    )


def draw(kind: str, seed: int, camera: Camera | None = None) -> tuple[clips.DrawnClip, Camera]:
    """Clip of a kind of motion and the camera that takes it, which is random if not given."""
    random = np.random.default_rng([seed, 40])
    size, fps = SIZES[random.integers(len(SIZES))], FRAME_RATES[random.integers(len(FRAME_RATES))]
    camera = camera or random_camera(random, size[0], 1 / fps)
    filming = clips.Filming(
        size=size, fps=fps, exposure=random.uniform(0.1, 0.4), noise=random.uniform(1, 4), readout=camera.readout,
        fill_fraction=random.uniform(0.6, 0.92),
    )  # fmt: skip
    clip = clips.draw(kind, seed, filming)
    offset = random.uniform(-0.5, 0.5, 2)
    return replace(clip, view=project_motion(clip, camera, offset)), camera


def project_motion(clip: clips.DrawnClip, camera: Camera, offset: np.ndarray) -> OpenCvProjection:
    """Projection that holds a clip's motion in a fraction of the picture; `offset` is −1 to 1 of the room beside it."""
    motion, (width, height) = clip.motion, clip.filming.size
    path = motion.poses(np.linspace(motion.release, motion.duration, 400))[..., :2].reshape(-1, 2)
    margin = max(max(body.size) for body in motion.bodies) / 2
    points = np.concatenate([path - margin, path + margin])
    middle = (points.min(0) + points.max(0)) / 2 * [1.0, -1.0]
    axis = np.array([-np.sin(camera.direction), np.cos(camera.direction), 0.0])
    rotation = cv2.Rodrigues(camera.tilt * axis)[0] @ cv2.Rodrigues(np.array([0.0, 0.0, camera.roll]))[0]
    intrinsics = np.array([[camera.focal, 0, (width - 1) / 2], [0, camera.focal, (height - 1) / 2], [0, 0, 1.0]])
    distortion = np.array([camera.k1, 0.0, 0.0, 0.0, 0.0])
    room = np.array([width, height]) * (1 - clip.filming.fill_fraction) / 2
    center = np.array([width, height]) / 2 + offset * room

    def projection(distance: float) -> OpenCvProjection:
        ray = np.append((center - 0.5 - intrinsics[:2, 2]) / camera.focal, 1.0)
        shift = distance * ray - rotation @ np.append(middle, 0.0)
        pose = cv2.Rodrigues(rotation)[0], shift
        return OpenCvProjection(np.eye(3), float(camera.focal / distance), intrinsics, pose, distortion)

    near, far = 1e-3, 1e3
    for _ in range(60):
        distance = np.sqrt(near * far)
        view = projection(distance)
        rotated = points * [1.0, -1.0] @ rotation[:, :2].T + view.pose[1]
        squared_radius = (rotated[:, :2] ** 2).sum(1) / rotated[:, 2] ** 2
        pixels, room_around = view.project(points), clip.filming.fill_fraction * np.array([width, height]) / 2
        # A strong barrel distortion folds the picture back far outside.
        valid = (rotated[:, 2] > 0.1 * distance) & (1 + 3 * camera.k1 * squared_radius > 0.1)
        valid = bool(valid.all() and (np.abs(pixels - center) < room_around).all())
        near, far = (near, distance) if valid else (distance, far)
    return projection(far)


def tracks_of(clip: clips.DrawnClip, noise: float, seed: int = 0) -> list[Track]:
    """Tracks of a clip's bodies with white noise, pixels."""
    random = np.random.default_rng([seed, 41])
    positions = clip.positions()
    return [
        Track(
            clip.timestamps.copy(),
            positions[:, body] + random.normal(0, noise, (len(positions), 2)),
            np.full(len(positions), noise),
            np.ones(len(positions), bool),
            radius=max(shape.size) / 2 * clip.view.scale,
            name=f"body {body + 1}",
        )
        for body, shape in enumerate(clip.motion.bodies)
    ]
