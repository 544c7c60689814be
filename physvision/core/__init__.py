"""What every part of physvision shares: states, shapes, errors and checks. It imports nothing of the other parts."""

from physvision.core.clip import Clip
from physvision.core.errors import (
    CheckpointError,
    DataError,
    DeviceError,
    DtypeError,
    FileError,
    InputError,
    ModelError,
    PhysvisionError,
    ShapeError,
    UnsupportedError,
    VideoError,
)
from physvision.core.shapes import (
    Box,
    Capsule,
    Circle,
    Cylinder,
    Disc,
    Placed,
    Plane,
    Polygon,
    Rectangle,
    Shape,
    Sphere,
)
from physvision.core.state import State, Status, Trajectory

__all__ = [
    "Box",
    "Capsule",
    "CheckpointError",
    "Circle",
    "Clip",
    "Cylinder",
    "DataError",
    "DeviceError",
    "Disc",
    "DtypeError",
    "FileError",
    "InputError",
    "ModelError",
    "PhysvisionError",
    "Placed",
    "Plane",
    "Polygon",
    "Rectangle",
    "Shape",
    "ShapeError",
    "Sphere",
    "State",
    "Status",
    "Trajectory",
    "UnsupportedError",
    "VideoError",
]
