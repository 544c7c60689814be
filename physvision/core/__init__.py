"""Types that every part of physvision shares: states, clips, shapes, errors and checks; it imports no other part."""

from physvision.core.clip import Clip as Clip, brightness as brightness
from physvision.core.coordinates import Coordinates as Coordinates
from physvision.core.errors import (
    CheckpointError as CheckpointError,
    DataError as DataError,
    DerivativeError as DerivativeError,
    DeviceError as DeviceError,
    DtypeError as DtypeError,
    FileError as FileError,
    InputError as InputError,
    MissingError as MissingError,
    ModelError as ModelError,
    PhysvisionError as PhysvisionError,
    ShapeError as ShapeError,
    TrainingError as TrainingError,
    TruncatedVideoError as TruncatedVideoError,
    UnsupportedError as UnsupportedError,
    VideoError as VideoError,
)
from physvision.core.registry import register_all
from physvision.core.resources import StrPath as StrPath
from physvision.core.scene import Pinhole as Pinhole, Scene as Scene, SceneObject as SceneObject
from physvision.core.shapes import (
    Appearance as Appearance,
    Box as Box,
    Capsule as Capsule,
    Circle as Circle,
    Cylinder as Cylinder,
    Disc as Disc,
    Ellipsoid as Ellipsoid,
    Hull as Hull,
    Placed as Placed,
    Plane as Plane,
    Polygon as Polygon,
    Rectangle as Rectangle,
    Shape as Shape,
    Sphere as Sphere,
)
from physvision.core.state import State as State, Status as Status, Trajectory as Trajectory
from physvision.core.state_files import load_states as load_states, save_states as save_states

register_all(
    "physvision.core",
    (Box, Capsule, Circle, Cylinder, Disc, Ellipsoid, Hull, Placed, Plane, Polygon, Rectangle, Sphere),
)
