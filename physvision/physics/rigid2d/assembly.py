"""From bodies and joints, as people write them, to the arrays that the kernels read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch
import warp as wp

from physvision.core import ModelError
from physvision.kernels.precision import start_warp
from physvision.physics.rigid2d.bodies import Body, Circle, Number, Polygon
from physvision.physics.rigid2d.joints import BodyName, Joint, Revolute, Spring, relative
from physvision.physics.rigid2d.ordering import Ordering
from physvision.physics.rigid2d.properties import WorldProperties, offsets


class Assembly:
    """Bodies, joints and springs by number; the world itself is the body after the last.

    Attributes:
        bodies: as given; `names` are theirs.
        joints: joints and their bodies' numbers.
        springs: springs and their bodies' numbers.
        pairs: pairs of bodies that may touch, a circle before a polygon.
        moving: numbers of the bodies that have a state.
        static: numbers of the bodies that stand still.
        ordering: the order in which the kernels take all of them.
    """

    def __init__(self, bodies: Sequence[Body], joints: Sequence[Joint], exempt: Sequence[tuple]) -> None:
        self.bodies = list(bodies)
        if not self.bodies:
            raise ModelError("bodies: expected at least one body, got none")
        for body in self.bodies:
            if not isinstance(body, Body):
                raise ModelError(f"bodies: expected circles, polygons and rectangles, got {type(body).__name__}")
        self.names = [body.name or f"body {i}" for i, body in enumerate(self.bodies)]
        repeated = [name for name in self.names if self.names.count(name) > 1]
        if repeated:
            raise ModelError(
                f"bodies: {repeated.count(repeated[0])} bodies are called {repeated[0]!r}; give each its own name"
            )
        if len({id(body) for body in self.bodies}) < len(self.bodies):
            raise ModelError("bodies: a body is listed twice; make one object for each")
        self.moving = [i for i, body in enumerate(self.bodies) if not body.static]
        self.static = [i for i, body in enumerate(self.bodies) if body.static]
        if not self.moving:
            raise ModelError("bodies: every body is static; at least one must move")
        numbered = [(joint, self._numbers(joint)) for joint in joints]
        self.springs = [(joint, ends) for joint, ends in numbered if isinstance(joint, Spring)]
        self.joints = [(joint, ends) for joint, ends in numbered if not isinstance(joint, Spring)]
        free = {frozenset(self.number(f"exempt[{i}]", name) for name in pair) for i, pair in enumerate(exempt)}
        free |= {frozenset(ends) for joint, ends in self.joints if not joint.collide}
        self.pairs = [
            (a, b) if isinstance(self.bodies[a], Circle) or isinstance(self.bodies[b], Polygon) else (b, a)
            for a, b in combinations(range(len(self.bodies)), 2)
            if not (self._fixed(a) and self._fixed(b)) and frozenset((a, b)) not in free
        ]
        self.ordering = Ordering(self.bodies, self.joints, self.springs)

    def _fixed(self, number: int) -> bool:
        return self.bodies[number].static or self.bodies[number].driven

    def number(self, where: str, name: BodyName) -> int:
        """The number of a body that is given as itself, by name or by number; None is the world."""
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
        """Where a body's frame is at the start."""
        if number == len(self.bodies):
            return 0.0, 0.0, 0.0
        body = self.bodies[number]
        return *body.center, body.angle

    def anchors(self, joint: Joint, ends: tuple[int, int]) -> tuple[tuple[float, float], tuple[float, float]]:
        """Where a joint or spring sits in the frames of its two bodies."""
        poses = self.pose(ends[0]), self.pose(ends[1])
        first, second = joint.places
        first = poses[0][:2] if first is None else first
        second = (poses[1][:2] if isinstance(joint, Spring) else first) if second is None else second
        return relative(first, poses[0]), relative(second, poses[1])

    @property
    def limited(self) -> list[bool]:
        """Whether each joint has limits."""
        return [isinstance(joint, Revolute) and joint.limits is not None for joint, _ in self.joints]

    @property
    def most_contacts(self) -> int:
        """How many contacts can touch at once: two a pair of polygons, one where a circle is in it, one a limit."""
        round_pairs = sum(any(isinstance(self.bodies[i], Circle) for i in pair) for pair in self.pairs)
        return 2 * len(self.pairs) - round_pairs + 2 * sum(self.limited)

    @property
    def motors(self) -> list[int]:
        """The number of each joint's motor; −1 without one."""
        count, numbers = 0, []
        for joint, _ in self.joints:
            powered = isinstance(joint, Revolute) and joint.motor
            numbers.append(count if powered else -1)
            count += powered
        return numbers

    @property
    def size(self) -> float:
        """The largest coordinate or extent of the scene."""
        reaches = [body.reach for body in self.bodies]
        places = [abs(number) for i in range(len(self.bodies)) for number in self.pose(i)[:2]]
        return max([*places, *(2 * reach for reach in reaches)])

    @property
    def smallest(self) -> float:
        """The smallest radius of a body that moves."""
        return min(self.bodies[i].reach for i in self.moving)

    def properties(self, gravity: Sequence[Number]) -> WorldProperties:
        """The properties that bodies and joints were given, in float64."""

        def tensor(values: Any, *shape: int) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.float64).reshape(*shape)

        moving = [self.bodies[i] for i in self.moving]
        joints, springs = [joint for joint, _ in self.joints], [spring for spring, _ in self.springs]
        spans = [self.anchors(spring, ends) for spring, ends in self.springs]
        pins = [self.anchors(joint, ends) for joint, ends in self.joints]
        angles = [self.pose(ends[0])[2] - self.pose(ends[1])[2] for _, ends in self.joints]
        limits = [(getattr(joint, "limits", None) or (-math.inf, math.inf)) for joint in joints]
        lengths = [
            spring.length if spring.length is not None else self._length(spring, ends)  # type: ignore[union-attr]
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
            anchors=tensor(pins, len(joints), 2, 2),
            joint_angle=tensor(angles, len(joints)),
            joint_stiffness=tensor([getattr(joint, "stiffness", 0.0) for joint in joints], len(joints)),
            joint_damping=tensor([getattr(joint, "damping", 0.0) for joint in joints], len(joints)),
            joint_limits=tensor(limits, len(joints), 2),
            spring_anchors=tensor(spans, len(springs), 2, 2),
            spring_stiffness=tensor([spring.stiffness for spring in springs], len(springs)),  # type: ignore[union-attr]
            spring_length=tensor(lengths, len(springs)),
            spring_damping=tensor([spring.damping for spring in springs], len(springs)),  # type: ignore[union-attr]
        )

    def _length(self, spring: Joint, ends: tuple[int, int]) -> float:
        first, second = spring.places
        first = self.pose(ends[0])[:2] if first is None else first
        second = self.pose(ends[1])[:2] if second is None else second
        return math.dist(first, second)


def build(assembly: Assembly, own: WorldProperties, settings: dict[str, Any], device: torch.device) -> tuple[Any, list]:
    """What the kernels know of the world, on a device, and the arrays that must live as long as it."""
    from physvision.physics.rigid2d.kernels.data import WorldParts

    start_warp()
    order = assembly.ordering
    bodies = [assembly.bodies[i] for i in order.lists["bodies"]]
    joints = [assembly.joints[i] for i in order.lists["joints"]]
    springs = [assembly.springs[i] for i in order.lists["springs"]]
    corners = [body.corners if isinstance(body, Polygon) else () for body in bodies]
    starts = [sum(map(len, corners[:i])) for i in range(len(bodies))]
    rows = [(kind, number) for number, (joint, _) in enumerate(joints) for kind in joint.rows]
    slots = {order.numbers[number]: slot for slot, number in enumerate(assembly.moving)}
    static_slots = {order.numbers[number]: slot for slot, number in enumerate(assembly.static)}
    pairs = _pairs(assembly)
    whole = {
        "slot": [slots.get(i, -1) for i in range(len(bodies))],
        "static_slot": [static_slots.get(i, -1) for i in range(len(bodies))],
        "driven": [int(body.driven) for body in bodies],
        "kind": [0 if isinstance(body, Circle) else 1 for body in bodies],
        "vertex_start": starts,
        "vertex_count": [len(points) for points in corners],
        "pair_bodies": pairs,
        "pair_number": _pair_numbers(len(bodies), pairs),
        "joint_bodies": [order.ends(ends) for _, ends in joints],
        "motor": [assembly.motors[i] for i in order.lists["joints"]],
        "limited": [int(assembly.limited[i]) for i in order.lists["joints"]],
        "row_kind": [kind for kind, _ in rows],
        "row_joint": [number for _, number in rows],
        "spring_bodies": [order.ends(ends) for _, ends in springs],
    }
    real = {
        "vertices": [point for points in corners for point in points],
        "normals": [normal for points in corners for normal in _normals(points)],
        "reach": [body.reach for body in bodies],
    }
    parts, kept = WorldParts(), []
    wide = ("pair_bodies", "joint_bodies", "spring_bodies", "vertices", "normals")
    for values, dtype in ((whole, np.int32), (real, np.float64)):
        for name, numbers in values.items():
            filled = np.array(numbers, dtype) if numbers else np.zeros((1, 2) if name in wide else (1,), dtype)
            # Not through torch: the first rollout may be one that torch.func transforms.
            kept.append(wp.array(filled, device=str(device)))
            setattr(parts, name, kept[-1])
    kept.append(wp.zeros(1, dtype=wp.int32, device=str(device)))
    counts = {
        "stop": kept[-1],
        "bodies": len(bodies),
        "moving": len(assembly.moving),
        "joint_rows": len(rows),
        "joint_band": _band([order.ends(joints[number][1]) for _, number in rows], set(slots)),
        "joints": len(joints),
        "springs": len(springs),
        "pairs": len(pairs),
        "motors": sum(motor >= 0 for motor in assembly.motors),
        "platforms": sum(body.driven for body in bodies),
    }
    for name, value in {**counts, **settings, **offsets(own)}.items():
        setattr(parts, name, value)
    return parts, kept


def _pairs(assembly: Assembly) -> list[tuple[int, int]]:
    """The pairs that may touch, by the kernels' numbers: a circle before a polygon, else the lower number first."""
    pairs = []
    for ends in assembly.pairs:
        a, b = assembly.ordering.ends(ends)
        alike = isinstance(assembly.bodies[ends[0]], Circle) == isinstance(assembly.bodies[ends[1]], Circle)
        pairs.append((min(a, b), max(a, b)) if alike else (a, b))
    return sorted(pairs, key=lambda pair: (min(pair), max(pair)))


def _pair_numbers(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """The number of every two bodies' pair, row after row; −1 for what passes through each other."""
    numbers = [-1] * count**2
    for number, (a, b) in enumerate(pairs):
        numbers[a * count + b] = numbers[b * count + a] = number
    return numbers


def _band(ends: Sequence[tuple[int, int]], moving: set[int]) -> int:
    """How far apart rows are, at most, that act on the same moving body, given the bodies of each."""
    rows: dict[int, list[int]] = {}
    for row, pair in enumerate(ends):
        for body in moving.intersection(pair):
            rows.setdefault(body, []).append(row)
    return max((max(found) - min(found) for found in rows.values()), default=0)


def _normals(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    found = []
    for a, b in zip(points, (*points[1:], *points[:1]), strict=True):
        x, y = b[0] - a[0], b[1] - a[1]
        length = math.hypot(x, y)
        found.append((y / length, -x / length))
    return found
