"""Types that every part of physvision shares: states, clips, shapes, errors and checks; it imports no other part."""

from physvision.core.clip import Clip, brightness
from physvision.core.coordinates import Coordinates
from physvision.core.errors import (
    CheckpointError,
    DataError,
    DerivativeError,
    DeviceError,
    DtypeError,
    FileError,
    InputError,
    MissingError,
    ModelError,
    PhysvisionError,
    ShapeError,
    TrainingError,
    UnsupportedError,
    VideoError,
)
from physvision.core.registry import register_all
from physvision.core.resources import StrPath
from physvision.core.scene import Pinhole, Scene, SceneObject
from physvision.core.shapes import (
    Appearance,
    Box,
    Capsule,
    Circle,
    Cylinder,
    Disc,
    Ellipsoid,
    Hull,
    Placed,
    Plane,
    Polygon,
    Rectangle,
    Shape,
    Sphere,
)
from physvision.core.state import State, Status, Trajectory
from physvision.core.state_files import load_states, save_states

__all__ = [
    "Appearance",
    "Box",
    "Capsule",
    "CheckpointError",
    "Circle",
    "Clip",
    "Coordinates",
    "Cylinder",
    "DataError",
    "DerivativeError",
    "DeviceError",
    "Disc",
    "DtypeError",
    "Ellipsoid",
    "FileError",
    "Hull",
    "InputError",
    "MissingError",
    "ModelError",
    "PhysvisionError",
    "Pinhole",
    "Placed",
    "Plane",
    "Polygon",
    "Rectangle",
    "Scene",
    "SceneObject",
    "Shape",
    "ShapeError",
    "Sphere",
    "State",
    "Status",
    "StrPath",
    "TrainingError",
    "Trajectory",
    "UnsupportedError",
    "VideoError",
    "brightness",
    "load_states",
    "save_states",
]

register_all(
    "physvision.core",
    (Box, Capsule, Circle, Cylinder, Disc, Ellipsoid, Hull, Placed, Plane, Polygon, Rectangle, Sphere),
)
