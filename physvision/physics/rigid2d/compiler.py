"""Compiler of a world: from bodies and joints, as people write them, to the arrays that the kernels read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch
import warp as wp

from physvision.core import ModelError
from physvision.core.checks import check_count, check_positive
from physvision.kernels.precision import start_warp
from physvision.kernels.workspace import fill_struct
from physvision.physics.lcp import SolverSettings
from physvision.physics.rigid2d.bodies import Body, Circle, Number, Polygon
from physvision.physics.rigid2d.body_order import BodyOrder
from physvision.physics.rigid2d.joints import BodyName, Joint, Revolute, Spring, relative
from physvision.physics.rigid2d.properties import WorldProperties, offsets
from physvision.physics.rigid2d.settings import StepSettings

# Operations of the log beside events: the parts of a fallback step, and two that end a step.
_FALLBACK_OPERATIONS = 18


class Model:
    """Numbered bodies, joints and springs of a world; the world itself is the body after the last.

    Attributes:
        bodies: Bodies as given.
        names: Names of the bodies.
        joints: Joints, each with the numbers of its bodies.
        springs: Springs, each with the numbers of its bodies.
        pairs: Pairs of bodies that may touch, a circle before a polygon.
        moving: Numbers of the bodies that have a state.
        static: Numbers of the bodies that never move.
        order: Order in which the kernels take bodies, joints and springs.
    """

    def __init__(self, bodies: Sequence[Body], joints: Sequence[Joint], exempt: Sequence[tuple]) -> None:
        self.bodies = list(bodies)
        if not self.bodies:
            raise ModelError("bodies: expected at least one body, got none")
        for body in self.bodies:
            if not isinstance(body, Body):
                raise ModelError(f"bodies: expected circles, polygons and rectangles, got {type(body).__name__}")
        self.names = [body.name or f"body {i}" for i, body in enumerate(self.bodies)]
        repeated = [(name, count) for name, count in Counter(self.names).items() if count > 1]
        if repeated:
            name, count = repeated[0]
            raise ModelError(f"bodies: {count} bodies are called {name!r}; give each its own name")
        if len({id(body) for body in self.bodies}) < len(self.bodies):
            raise ModelError("bodies: a body is listed twice; make one object for each")
        self.moving = [i for i, body in enumerate(self.bodies) if not body.static]
        self.static = [i for i, body in enumerate(self.bodies) if body.static]
        if not self.moving:
            raise ModelError("bodies: every body is static; at least one must move")
        numbered = [(joint, self._numbers(joint)) for joint in joints]
        self.springs = [(joint, ends) for joint, ends in numbered if isinstance(joint, Spring)]
        self.joints = [(joint, ends) for joint, ends in numbered if not isinstance(joint, Spring)]
        exempted = {frozenset(self.number(f"exempt[{i}]", name) for name in pair) for i, pair in enumerate(exempt)}
        exempted |= {frozenset(ends) for joint, ends in self.joints if not joint.collide}
        self.pairs = [
            (a, b) if isinstance(self.bodies[a], Circle) or isinstance(self.bodies[b], Polygon) else (b, a)
            for a, b in combinations(range(len(self.bodies)), 2)
            if not (self._fixed(a) and self._fixed(b)) and frozenset((a, b)) not in exempted
        ]
        self.order = BodyOrder(self.bodies, self.joints, self.springs)

    def _fixed(self, number: int) -> bool:
        return self.bodies[number].static or self.bodies[number].kinematic

    def number(self, where: str, name: BodyName) -> int:
        """Return the number of a body that is given as itself, by name or by number; None is the world."""
        if name is None:
            return len(self.bodies)
        if isinstance(name, Body):
            for i, body in enumerate(self.bodies):
                if body is name:
                    return i
            raise ModelError(f"{where}: the body {name.label!r} is not one of the world's bodies")
        if isinstance(name, str):
            if name in self.names:
                return self.names.index(name)
            raise ModelError(f"{where}: no body is called {name!r}; there are {', '.join(map(repr, self.names))}")
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(self.bodies):
            return name
        raise ModelError(f"{where}: expected a body, its name, or a number below {len(self.bodies)}, got {name!r}")

    def _numbers(self, joint: Joint) -> tuple[int, int]:
        if not isinstance(joint, Joint):
            raise ModelError(f"joints: expected joints and springs, got {type(joint).__name__}")
        ends = self.number(joint.label, joint.first), self.number(joint.label, joint.second)
        if ends[0] == ends[1]:
            raise ModelError(f"{joint.label}: joins the body {self.names[ends[0]]!r} to itself")
        if not set(ends) & set(self.moving):
            raise ModelError(f"{joint.label}: neither of its bodies moves")
        return ends

    def pose(self, number: int) -> tuple[float, float, float]:
        """Return the pose (x, y, angle) of a body's frame at the start."""
        if number == len(self.bodies):
            return 0.0, 0.0, 0.0
        body = self.bodies[number]
        return *body.center, body.angle

    def _points(self, joint: Joint, ends: tuple[int, int]) -> tuple[Sequence[float], Sequence[float]]:
        """Return the points of the world that a joint or spring holds on its two bodies at the start."""
        first, second = joint.anchors
        first = self.pose(ends[0])[:2] if first is None else first
        if second is None:
            second = self.pose(ends[1])[:2] if isinstance(joint, Spring) else first
        return first, second

    def anchors(self, joint: Joint, ends: tuple[int, int]) -> list[tuple[float, float]]:
        """Return the anchors of a joint or spring in the frames of its two bodies."""
        points = self._points(joint, ends)
        return [relative(point, self.pose(end)) for point, end in zip(points, ends, strict=True)]

    @property
    def limited(self) -> list[bool]:
        """Flags of the joints that have limits."""
        return [isinstance(joint, Revolute) and joint.limits is not None for joint, _ in self.joints]

    @property
    def max_contacts(self) -> int:
        """Largest number of contacts at once: two a pair of polygons, one if it has a circle, two a limited joint."""
        round_pairs = sum(any(isinstance(self.bodies[i], Circle) for i in pair) for pair in self.pairs)
        return 2 * len(self.pairs) - round_pairs + 2 * sum(self.limited)

    @property
    def motors(self) -> list[int]:
        """Number of each joint's motor; −1 without one."""
        count, numbers = 0, []
        for joint, _ in self.joints:
            powered = isinstance(joint, Revolute) and joint.motor
            numbers.append(count if powered else -1)
            count += powered
        return numbers

    @property
    def extent(self) -> float:
        """Largest coordinate or diameter of the scene."""
        coordinates = [abs(number) for i in range(len(self.bodies)) for number in self.pose(i)[:2]]
        return max([*coordinates, *(2 * body.bounding_radius for body in self.bodies)])

    @property
    def smallest(self) -> float:
        """Smallest bounding radius of a moving body."""
        return min(self.bodies[i].bounding_radius for i in self.moving)

    def limits(self, settings: StepSettings, dt: float) -> dict[str, Any]:
        """Return the limits and tolerances of a step of `dt` seconds, by their names in the kernels' model."""
        all_contacts = self.max_contacts
        limit = 16 if settings.max_contacts is None else check_count("max_contacts", settings.max_contacts)
        capacity = 1 + min(all_contacts, limit)
        milliseconds = settings.max_milliseconds
        if milliseconds is None:
            milliseconds = 2.0 if self.pairs else 16.0
        tolerance = settings.tolerance * self.extent
        return {
            "max_contacts": capacity,
            "max_speculative_contacts": max(capacity, min(all_contacts, 6 * len(self.bodies) + 2 * sum(self.limited))),
            "max_stored_modes": max(1, min(all_contacts, 3 * len(self.bodies))),
            "work_budget": round(1000 * check_positive("max_milliseconds", milliseconds)),
            "max_operations": check_count("max_events", settings.max_events, 4) + _FALLBACK_OPERATIONS,
            "dt": dt,
            "tolerance": tolerance,
            "restitution_threshold": settings.restitution_threshold * tolerance / dt,
            "length_scale": self.extent,
            "penetration_slop": max(
                settings.min_penetration_slop * tolerance, settings.penetration_slop * self.smallest
            ),
        }

    def properties(self, gravity: Sequence[Number]) -> WorldProperties:
        """Return the properties that bodies and joints were given, in float64."""

        def tensor(values: Any, *shape: int) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.float64).reshape(*shape)

        moving = [self.bodies[i] for i in self.moving]
        joints, springs = [joint for joint, _ in self.joints], [spring for spring, _ in self.springs]
        spring_anchors = [self.anchors(spring, ends) for spring, ends in self.springs]
        anchors = [self.anchors(joint, ends) for joint, ends in self.joints]
        angles = [self.pose(ends[0])[2] - self.pose(ends[1])[2] for _, ends in self.joints]
        limits = [(getattr(joint, "limits", None) or (-math.inf, math.inf)) for joint in joints]
        lengths = [
            spring.length if spring.length is not None else math.dist(*self._points(spring, ends))
            for spring, ends in self.springs
        ]
        return WorldProperties(
            mass=tensor([body.mass for body in moving], -1),
            gyration=tensor([body.gyration for body in moving], -1),
            velocity_decay=tensor([body.velocity_decay for body in moving], -1),
            sliding_deceleration=tensor([body.sliding_deceleration for body in moving], -1),
            static_pose=tensor([self.pose(i) for i in self.static], len(self.static), 3),
            radius=tensor([body.radius if isinstance(body, Circle) else 0.0 for body in self.bodies], -1),
            restitution=tensor([body.restitution for body in self.bodies], -1),
            friction=tensor([body.friction for body in self.bodies], -1),
            gravity=tensor(list(gravity), 2),
            anchors=tensor(anchors, len(joints), 2, 2),
            joint_angle=tensor(angles, len(joints)),
            joint_stiffness=tensor([getattr(joint, "stiffness", 0.0) for joint in joints], len(joints)),
            joint_damping=tensor([getattr(joint, "damping", 0.0) for joint in joints], len(joints)),
            joint_limits=tensor(limits, len(joints), 2),
            spring_anchors=tensor(spring_anchors, len(springs), 2, 2),
            spring_stiffness=tensor([spring.stiffness for spring in springs], len(springs)),  # type: ignore[union-attr]
            spring_length=tensor(lengths, len(springs)),
            spring_damping=tensor([spring.damping for spring in springs], len(springs)),  # type: ignore[union-attr]
        )


def compile_model(
    model: Model,
    settings: StepSettings,
    solver_settings: SolverSettings,
    limits: dict[str, Any],
    own: WorldProperties,
    device: torch.device,
) -> tuple[Any, list]:
    """Compile the kernels' model of a world on a device.

    Args:
        model: Numbered bodies, joints and springs.
        settings: Settings of the time step.
        solver_settings: Settings of the contact solver.
        limits: Scalar fields of the kernels' model that the world sets.
        own: Properties of the world.
        device: Device of the arrays.

    Returns:
        The model, and the arrays that must live as long as it.
    """
    from physvision.physics.lcp.kernels.problem import Settings
    from physvision.physics.rigid2d.kernels.data import ModelStruct, StepSettingsStruct

    start_warp()
    struct, arrays = ModelStruct(), []
    tables = _body_tables(model) + _joint_tables(model)
    for name, values, dtype, columns in tables:
        filled = np.array(values, dtype) if values else np.zeros((1, 2) if columns > 1 else (1,), dtype)
        # Not through torch: the first rollout may be one that torch.func transforms.
        arrays.append(wp.array(filled, device=str(device)))
        setattr(struct, name, arrays[-1])
    arrays.append(wp.zeros(1, dtype=wp.int32, device=str(device)))
    rows = [model.order.ends(ends) for joint, ends in _ordered(model, "joints") for _ in joint.rows]
    moving = {model.order.numbers[number] for number in model.moving}
    sizes = {
        "settings": fill_struct(StepSettingsStruct, settings),
        "solver": fill_struct(Settings, solver_settings),
        "stop": arrays[-1],
        "bodies": len(model.bodies),
        "num_moving_bodies": len(model.moving),
        "joint_rows": len(rows),
        "joint_band": _band(rows, moving),
        "joints": len(model.joints),
        "springs": len(model.springs),
        "pairs": len(model.pairs),
        "motors": sum(motor >= 0 for motor in model.motors),
        "kinematic_bodies": sum(body.kinematic for body in model.bodies),
    }
    for name, value in {**sizes, **limits, **offsets(own)}.items():
        setattr(struct, name, value)
    return struct, arrays


# Name, values, type and number of columns of an array of the kernels' model.
Table = tuple[str, list, type, int]


def _ordered(model: Model, kind: str) -> list:
    """Return bodies, joints or springs in the kernels' order."""
    return [getattr(model, kind)[i] for i in model.order.lists[kind]]


def _body_tables(model: Model) -> list[Table]:
    """Return the arrays of bodies and of pairs of them."""
    bodies, count = _ordered(model, "bodies"), len(model.bodies)
    corners = [body.corners if isinstance(body, Polygon) else () for body in bodies]
    slots = {model.order.numbers[number]: slot for slot, number in enumerate(model.moving)}
    static_slots = {model.order.numbers[number]: slot for slot, number in enumerate(model.static)}
    pairs = _pairs(model)
    return [
        ("state_index", [slots.get(i, -1) for i in range(count)], np.int32, 1),
        ("static_index", [static_slots.get(i, -1) for i in range(count)], np.int32, 1),
        ("is_kinematic", [int(body.kinematic) for body in bodies], np.int32, 1),
        ("shape_type", [0 if isinstance(body, Circle) else 1 for body in bodies], np.int32, 1),
        ("vertex_start", [sum(map(len, corners[:i])) for i in range(count)], np.int32, 1),
        ("vertex_count", [len(points) for points in corners], np.int32, 1),
        ("vertices", [point for points in corners for point in points], np.float64, 2),
        ("normals", [normal for points in corners for normal in _normals(points)], np.float64, 2),
        ("radii", [body.bounding_radius for body in bodies], np.float64, 1),
        ("pair_bodies", pairs, np.int32, 2),
        ("pair_index", _pair_numbers(count, pairs), np.int32, 1),
    ]


def _joint_tables(model: Model) -> list[Table]:
    """Return the arrays of joints, of their rows and of springs."""
    joints = _ordered(model, "joints")
    rows = [(kind, number) for number, (joint, _) in enumerate(joints) for kind in joint.rows]
    motors, limited = model.motors, model.limited
    return [
        ("joint_bodies", [model.order.ends(ends) for _, ends in joints], np.int32, 2),
        ("motor", [motors[i] for i in model.order.lists["joints"]], np.int32, 1),
        ("has_limits", [int(limited[i]) for i in model.order.lists["joints"]], np.int32, 1),
        ("row_kind", [kind for kind, _ in rows], np.int32, 1),
        ("row_joint", [number for _, number in rows], np.int32, 1),
        ("spring_bodies", [model.order.ends(ends) for _, ends in _ordered(model, "springs")], np.int32, 2),
    ]


def _pairs(model: Model) -> list[tuple[int, int]]:
    """Return the pairs that may touch, by the kernels' numbers: a circle before a polygon, else the lower first."""
    pairs = []
    for ends in model.pairs:
        a, b = model.order.ends(ends)
        alike = isinstance(model.bodies[ends[0]], Circle) == isinstance(model.bodies[ends[1]], Circle)
        pairs.append((min(a, b), max(a, b)) if alike else (a, b))
    return sorted(pairs, key=lambda pair: (min(pair), max(pair)))


def _pair_numbers(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Return the index of every two bodies' pair, row after row; −1 for bodies that pass through each other."""
    numbers = [-1] * count**2
    for number, (a, b) in enumerate(pairs):
        numbers[a * count + b] = numbers[b * count + a] = number
    return numbers


def _band(ends: Sequence[tuple[int, int]], moving: set[int]) -> int:
    """Return the largest distance of two rows that act on the same moving body, given the bodies of each row."""
    rows: dict[int, list[int]] = {}
    for row, pair in enumerate(ends):
        for body in moving.intersection(pair):
            rows.setdefault(body, []).append(row)
    return max((max(numbers) - min(numbers) for numbers in rows.values()), default=0)


def _normals(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the outward unit normal of each edge of a polygon."""
    edges = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(points, (*points[1:], *points[:1]), strict=True)]
    return [(y / math.hypot(x, y), -x / math.hypot(x, y)) for x, y in edges]
