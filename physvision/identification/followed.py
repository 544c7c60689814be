"""Which points of an engine's bodies are followed in a clip, and the plane that they move in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, State
from physvision.physics.engine import MechanicalEngine

_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
# Leaves that say how things move, not where a state has them; made ready for every world, they would cost the most.
_MOVING = {
    "mass", "inertia", "center_of_mass", "joint_stiffness", "joint_damping", "friction_loss", "armature",
    "spring_reference", "gravity", "friction", "turning_friction", "restitution", "medium", "drag_size",
}  # fmt: skip
_TRIES = 64  # positions at which it is looked where points can go


@dataclass(frozen=True)
class Followed:
    """Points of bodies.

    Attributes:
        engine: that moves them.
        names: of the points: sites, shapes or bodies.
    """

    engine: MechanicalEngine
    names: Sequence[str]

    def __post_init__(self) -> None:
        for name in self.names:
            _row(self.engine, name)

    def places(self, state: State, properties: Mapping[str, Tensor] | None = None) -> Float[Tensor, "worlds points 3"]:
        """Where they are, m."""
        found, engine = [], self.engine
        properties = {name: leaf for name, leaf in (properties or {}).items() if name not in _MOVING} or None
        rows = [_row(engine, name) for name in self.names]
        kinds = {kind for kind, _, _ in rows}
        poses = {"shape": engine.appearance(state, properties).poses} if "shape" in kinds else {}
        if "body" in kinds:
            poses["body"] = engine.poses(state, properties)
        for kind, row, point in rows:
            pose = poses[kind][:, row]
            found.append(pose[:, :3, 3] + pose[:, :3, :3] @ pose.new_tensor(point))
        return torch.stack(found, 1)

    def tried(self) -> tuple[State, Float[Tensor, "tries points 3"]]:
        """Positions of all kinds, drawn at random, and where the points are then."""
        state = self.engine.initial_state(_TRIES, torch.float64)
        generator = torch.Generator().manual_seed(0)
        moves = 2 * torch.rand(_TRIES, self.engine.nv, generator=generator, dtype=torch.float64) - 1
        # The first is the scene as it is described.
        moves[0] = 0
        state = State(self.engine.integrate(state.q, moves), state.v)
        with torch.no_grad():
            return state, self.places(state)

    def plane(self, axes: str | None = None) -> Float[Tensor, "2 3"]:
        """To the right and up, in the picture, as directions of the scene.

        Args:
            axes: two axes of the scene, as "xz" or "-xz"; found from where the points can go and from gravity if not
                given, seen so that x (or y) is on the right.
        """
        if axes is not None:
            return _named_plane(axes)
        _, places = self.tried()
        away = (places - places[:1]).reshape(-1, 3).numpy()
        _, sizes, directions = np.linalg.svd(away, full_matrices=True)
        sizes = np.append(sizes, [0.0, 0.0])[:3]
        if sizes[2] > 0.05 * sizes[0]:
            raise InputError("plane: the points do not move in one plane; say which is seen, as plane='xz'")
        gravity = self.gravity.numpy()
        if sizes[1] > 0.05 * sizes[0]:
            normal = directions[2]
        else:  # on a line: gravity, or else z, lies in the plane too
            other = gravity if np.linalg.norm(np.cross(directions[0], gravity)) > 1e-6 else np.array([0.0, 0.0, 1.0])
            other = other if np.linalg.norm(np.cross(directions[0], other)) > 1e-6 else np.array([1.0, 0.0, 0.0])
            normal = np.cross(directions[0], other)
            normal /= np.linalg.norm(normal)
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
        """Of the scene, m/s²; none where it has no such property."""
        pull = dict(self.engine.properties.items()).get("gravity", torch.zeros(3, dtype=torch.float64))
        return torch.nn.functional.pad(pull.double(), (0, 3 - len(pull)))


def moving_names(engine: MechanicalEngine) -> list[str]:
    """Bodies that can move and can be seen; all that can move where nothing can be seen."""
    carriers = {placed.body for placed in engine.geometry if placed.body is not None}
    names = list(engine.body_names)
    _, places = Followed(engine, names).tried()
    goes = (places - places[:1]).norm(dim=2).amax(0) > 1e-6
    seen = [name for row, name in enumerate(names) if goes[row] and (row in carriers or not carriers)]
    return seen or [name for row, name in enumerate(names) if goes[row]]


def _row(engine: MechanicalEngine, name: str) -> tuple[str, int, tuple[float, ...]]:
    """What a name means: a shape's row, or a body's with a point in its frame."""
    sites = engine.sites
    shapes = [placed.name for placed in engine.geometry]
    if name in sites:
        return "body", *sites[name]
    if name in engine.body_names:
        row = engine.body_names.index(name)
        # Of several shapes the thickest is what one sees; strings and rods are thin.
        own = [k for k, placed in enumerate(engine.geometry) if placed.body == row]
        if own:
            return "shape", max(own, key=lambda k: _thickness(engine, k)), (0.0, 0.0, 0.0)
        middle = dict(engine.properties.items()).get("center_of_mass")
        return "body", row, (0.0, 0.0, 0.0) if middle is None else tuple(middle[row].tolist())
    if name in shapes:
        return "shape", shapes.index(name), (0.0, 0.0, 0.0)
    listed = ", ".join([*engine.body_names, *filter(None, shapes), *sites])
    raise InputError(f"follow: no body, shape or site is called {name!r}; there are {listed}")


def _thickness(engine: MechanicalEngine, row: int) -> float:
    return min((size for size in engine.geometry[row].shape.sizes if size > 0), default=0.0)


def _named_plane(axes: str) -> Float[Tensor, "2 3"]:
    found, sign = [], 1.0
    for letter in axes:
        if letter == "-":
            sign = -1.0
        elif letter in _AXES:
            found.append([sign * value for value in _AXES[letter]])
            sign = 1.0
        else:
            found.append(None)
    if len(found) != 2 or None in found or abs(np.dot(found[0], found[1])) > 0.5:
        raise InputError(f"plane: expected the axes to the right and up, as 'xz' or '-xz', got {axes!r}")
    return torch.tensor(found, dtype=torch.float64)
