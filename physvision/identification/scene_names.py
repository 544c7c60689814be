"""Named quantities of a custom scene: numbers in the engine's properties, and tracked points and their plane.

Names of numbers are such as `mass:cart`, `joint_damping:hinge` or `gravity:z`: the property, the row (a body, joint or
shape) and the axis (x, y, z or a number), with colons between them. Without a row, all rows share one number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, State
from physvision.estimation import Unknown
from physvision.identification.kind_settings import CustomSceneSettings
from physvision.physics import Engine
from physvision.physics.engine import MechanicalEngine
from physvision.physics.properties import Leaf, Range

_DEFAULTS = CustomSceneSettings()
_AXES = {"x": 0, "y": 1, "z": 2}
# Bounds of the ranges that do not begin at zero or end at infinity.
_RANGE_BOUNDS: dict[Range, tuple[float, float]] = {
    "any": (-np.inf, np.inf), "not nan": (-np.inf, np.inf), "unit interval": (0.0, 1.0), "poisson": (-1.0, 0.5),
}  # fmt: skip
_NAMED_DIMENSIONS = ("bodies", "moving", "joints", "springs", "shapes", "nq", "nv")


@dataclass(frozen=True)
class PropertyEntry:
    """Single number in an engine's properties, or one that several entries share.

    Attributes:
        leaf: Name of the property.
        mask: Mask of the number, or of the numbers that share it, in the shape of the property.
        unit: SI unit.
        low: Lower bound of the property.
        high: Upper bound of the property.
        value: Value in the engine, the mean if several entries share the number.
    """

    leaf: str
    mask: Tensor
    unit: str
    low: float
    high: float
    value: float


def find_entry(engine: Engine, name: str) -> PropertyEntry:
    """Find the number in an engine's properties that a name refers to."""
    leaf, *path = name.split(":")
    leaves = engine.properties.leaves()
    if leaf not in leaves:
        raise InputError(f"{name}: no property {leaf!r}; expected one of {', '.join(leaves) or 'none'}")
    values = dict(engine.properties.items())[leaf]
    description = leaves[leaf]
    mask = torch.zeros(values.shape, dtype=torch.bool)
    mask[_indices(engine, name, description, path, tuple(values.shape))] = True
    if not bool(mask.any()):
        raise InputError(f"{name}: nothing in the scene has this property")
    low, high = _RANGE_BOUNDS.get(description.range, (0.0, np.inf))
    return PropertyEntry(leaf, mask, description.unit, low, high, float(values[mask].mean()))


def _indices(engine: Engine, name: str, leaf: Leaf, path: Sequence[str], shape: tuple[int, ...]) -> tuple:
    """Return the index along each dimension of the property."""
    parts, indices = list(path), []
    for dimension, size in zip(leaf.shape, shape, strict=True):
        if dimension in _NAMED_DIMENSIONS:
            labels = list(engine.rows.get(str(dimension), [str(k) for k in range(size)]))
            if not parts:
                indices.append(slice(None))
                continue
            part = parts.pop(0)
            matches = [k for k, label in enumerate(labels) if label == part]
            if not matches:
                available = ", ".join(filter(None, labels))
                raise InputError(f"{name}: nothing is called {part!r}; expected one of {available}")
            indices.append(torch.tensor(matches))
        else:
            if not parts:
                raise InputError(f"{name}: an axis is needed, such as {name}:{'z' if size == 3 else 'x'}")
            axis, *rest = parts.pop(0)
            parts[:0] = ["".join(rest)] if rest else []
            index = _AXES.get(axis, int(axis) if axis.isdigit() else size)
            if index >= size:
                raise InputError(f"{name}: no axis {axis!r}; expected one of {', '.join('xyz'[:size])}")
            indices.append(index)
    if parts:
        raise InputError(f"{name}: {leaf.meaning} has no {':'.join(parts)}")
    return tuple(indices)


def bounded_unknown(entry: PropertyEntry, name: str, low: float | None = None, high: float | None = None) -> Unknown:
    """Return the unknown for an entry, between bounds; a bound of None is that of the property."""
    low, high = entry.low if low is None else low, entry.high if high is None else high
    if not low < high:
        raise InputError(f"{name}: expected low..high with low below high, got {low:g}..{high:g}")
    if low < entry.value < high:
        start = entry.value
    elif np.isfinite(low) and np.isfinite(high):
        start = (low + high) / 2
    else:
        raise InputError(f"{name}: the scene's {entry.value:g} is out of bounds; give both bounds, as {name}=0..1")
    return Unknown(name, start, low, high, abs(start) or 1.0, unit=entry.unit)


def replace_entry(values: Tensor, entry: PropertyEntry, number: Tensor) -> Tensor:
    """Return a property batched over worlds, with each world's number at the entry."""
    expanded = number.reshape(-1, *[1] * entry.mask.dim())
    return torch.where(entry.mask, expanded.to(values.dtype), values)


# Dynamic properties do not affect the positions of points in a state, and compiling them for every world is costly.
_DYNAMIC_PROPERTIES = {
    "mass", "inertia", "center_of_mass", "joint_stiffness", "joint_damping", "friction_loss", "armature",
    "spring_reference", "gravity", "friction", "rotational_friction", "restitution", "fluid", "drag_size",
}  # fmt: skip


@dataclass(frozen=True)
class TrackedPoints:
    """Points of bodies that are tracked in a clip.

    Attributes:
        engine: Engine of the bodies.
        names: Names of the points: sites, shapes or bodies.
        settings: Settings of the search for the plane.
    """

    engine: MechanicalEngine
    names: Sequence[str]
    settings: CustomSceneSettings = _DEFAULTS

    def __post_init__(self) -> None:
        for name in self.names:
            _resolve(self.engine, name)

    def positions(
        self, state: State, properties: Mapping[str, Tensor] | None = None
    ) -> Float[Tensor, "worlds points 3"]:
        """Return the positions of the points, m."""
        engine = self.engine
        geometric = {name: leaf for name, leaf in (properties or {}).items() if name not in _DYNAMIC_PROPERTIES} or None
        points = [_resolve(engine, name) for name in self.names]
        parent_kinds = {parent_kind for parent_kind, _, _ in points}
        poses = {"shape": engine.appearance(state, geometric).poses} if "shape" in parent_kinds else {}
        if "body" in parent_kinds:
            poses["body"] = engine.poses(state, geometric)
        positions = []
        for parent_kind, row, offset in points:
            pose = poses[parent_kind][:, row]
            positions.append(pose[:, :3, 3] + pose[:, :3, :3] @ pose.new_tensor(offset))
        return torch.stack(positions, 1)

    def random_positions(self) -> Float[Tensor, "states points 3"]:
        """Return the positions of the points in random states; the first is the scene's initial state."""
        count = self.settings.probe_states
        state = self.engine.initial_state(count, torch.float64)
        generator = torch.Generator().manual_seed(0)
        displacement = 2 * torch.rand(count, self.engine.nv, generator=generator, dtype=torch.float64) - 1
        displacement[0] = 0
        with torch.no_grad():
            return self.positions(State(self.engine.integrate(state.q, displacement), state.v))

    def plane(self, axes: str | None = None) -> Float[Tensor, "2 3"]:
        """Return the directions of the scene that point right and up in the picture.

        Args:
            axes: Two axes of the scene that point right and up, such as "xz" or "-xz"; if None, the plane is the one in
                which the points can move, with up opposite to gravity and x (or y) to the right.
        """
        if axes is not None:
            return _parse_plane(axes)
        positions = self.random_positions()
        offsets = (positions - positions[:1]).reshape(-1, 3).numpy()
        _, spreads, directions = np.linalg.svd(offsets, full_matrices=True)
        spreads = np.append(spreads, [0.0, 0.0])[:3]
        if spreads[2] > 0.05 * spreads[0]:
            raise InputError("plane: the points do not move in one plane; give the visible plane, such as plane='xz'")
        gravity = self.gravity.numpy()
        normal = directions[2] if spreads[1] > 0.05 * spreads[0] else _normal_to_line(directions[0], gravity)
        up = -gravity + (gravity @ normal) * normal
        if np.linalg.norm(up) < 0.05 * max(float(np.linalg.norm(gravity)), 1e-9):  # seen from above
            up = np.array([0.0, 1.0, 0.0]) if abs(normal[2]) > 0.5 else np.array([0.0, 0.0, 1.0])
            up = up - (up @ normal) * normal
        up /= np.linalg.norm(up)
        right = np.cross(up, normal)
        right *= np.sign(right[np.abs(right).argmax()])
        return torch.from_numpy(np.stack([right, up]))

    @property
    def gravity(self) -> Float[Tensor, " 3"]:
        """Gravity of the scene, m/s²; zero if the engine has no such property."""
        gravity = dict(self.engine.properties.items()).get("gravity", torch.zeros(3, dtype=torch.float64))
        return torch.nn.functional.pad(gravity.double(), (0, 3 - len(gravity)))


def _normal_to_line(direction: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    """Return the normal of the plane through a line and the first of gravity, z and x that is not parallel to it."""
    for candidate in (gravity, np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])):
        normal = np.cross(direction, candidate)
        if np.linalg.norm(normal) > 1e-6:
            break
    return normal / np.linalg.norm(normal)


def moving_body_names(engine: MechanicalEngine) -> list[str]:
    """Return the bodies that can move and have a visible shape, or all that can move if none of them has one."""
    visible = {shape.body for shape in engine.geometry if shape.body is not None}
    names = list(engine.body_names)
    positions = TrackedPoints(engine, names).random_positions()
    is_moving = (positions - positions[:1]).norm(dim=2).amax(0) > 1e-6
    visible_names = [name for row, name in enumerate(names) if is_moving[row] and (row in visible or not visible)]
    return visible_names or [name for row, name in enumerate(names) if is_moving[row]]


def _resolve(engine: MechanicalEngine, name: str) -> tuple[str, int, tuple[float, ...]]:
    """Return the kind of a named point's parent ("shape" or "body"), its row, and the point in its frame."""
    sites = engine.sites
    shapes = [shape.name for shape in engine.geometry]
    if name in sites:
        return "body", *sites[name]
    if name in engine.body_names:
        row = engine.body_names.index(name)
        # The thickest of several shapes is taken as the tracked one, since strings and rods are thin.
        attached_shapes = [k for k, shape in enumerate(engine.geometry) if shape.body == row]
        if attached_shapes:
            return "shape", max(attached_shapes, key=lambda k: _thickness(engine, k)), (0.0, 0.0, 0.0)
        center = dict(engine.properties.items()).get("center_of_mass")
        return "body", row, (0.0, 0.0, 0.0) if center is None else tuple(center[row].tolist())
    if name in shapes:
        return "shape", shapes.index(name), (0.0, 0.0, 0.0)
    available_names = ", ".join([*engine.body_names, *filter(None, shapes), *sites])
    raise InputError(f"follow: no body, shape or site is called {name!r}; expected one of {available_names}")


def _thickness(engine: MechanicalEngine, row: int) -> float:
    return min((size for size in engine.geometry[row].shape.sizes if size > 0), default=0.0)


def _parse_plane(text: str) -> Float[Tensor, "2 3"]:
    axes, sign = [], 1.0
    for letter in text:
        if letter == "-":
            sign = -1.0
        else:
            axes.append((sign * np.eye(3)[_AXES[letter]]).tolist() if letter in _AXES else None)
            sign = 1.0
    if len(axes) != 2 or None in axes or abs(np.dot(axes[0], axes[1])) > 0.5:
        raise InputError(f"plane: expected the axes to the right and up, such as 'xz' or '-xz', got {text!r}")
    return torch.tensor(axes, dtype=torch.float64)
