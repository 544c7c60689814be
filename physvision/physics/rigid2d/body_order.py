"""Order in which the kernels take bodies, joints and springs, independent of the order in which they are listed.

Sums in another order are rounded differently, and where a step is nearly undecided that is enough for another result.
So bodies are numbered by their properties and start, mirrored or not; bodies that joints connect follow each other as a
breadth-first walk along the joints meets them (Cuthill and McKee, 1969), which keeps the joints' equations banded.
"""

from __future__ import annotations

from collections.abc import Sequence

from physvision.physics.rigid2d.bodies import Body
from physvision.physics.rigid2d.joints import Joint

# A joint or spring, and the numbers of its bodies; the world is the body after the last.
NumberedJoint = tuple[Joint, tuple[int, int]]


class BodyOrder:
    """Bodies, joints and springs in the kernels' order.

    Attributes:
        lists: Numbers as given, in the kernels' order, for "bodies", "joints" and "springs".
        numbers: Kernels' number of each body as given, and of the world.
    """

    def __init__(
        self, bodies: Sequence[Body], joints: Sequence[NumberedJoint], springs: Sequence[NumberedJoint]
    ) -> None:
        self._bodies = bodies
        order = _walk(bodies, joints)
        self.numbers = [len(bodies)] * (len(bodies) + 1)
        for number, body in enumerate(order):
            self.numbers[body] = number
        self.lists = {"bodies": order, "joints": self._sorted(joints), "springs": self._sorted(springs)}

    def ends(self, ends: tuple[int, int]) -> tuple[int, int]:
        """Return the kernels' numbers of two bodies."""
        return self.numbers[ends[0]], self.numbers[ends[1]]

    def _sorted(self, numbered: Sequence[NumberedJoint]) -> list[int]:
        """Sort by the later of a joint's moving bodies, so that rows that share a body are near each other."""

        def key(which: int) -> tuple:
            joint, ends = numbered[which]
            moving = [self.numbers[end] for end in ends if _moves(self._bodies, end)]
            center = self._bodies[ends[0]].center if ends[0] < len(self._bodies) else (0.0, 0.0)
            x, y = joint.anchors[0] or center
            return max(moving), min(moving), type(joint).__name__, y, abs(x)

        return sorted(range(len(numbered)), key=key)


def _moves(bodies: Sequence[Body], number: int) -> bool:
    return number < len(bodies) and not bodies[number].static


def _sort_key(body: Body) -> tuple:
    """Return a sort key of properties and start, equal for the mirror image."""
    x, y = body.center
    (vx, vy), kind = map(float, body.velocity), type(body).__name__
    attributes = body.static, body.kinematic, kind, body.mass, body.bounding_radius, body.friction, body.restitution
    return (*attributes, y, abs(x), abs(body.angle), vy, abs(vx), abs(body.spin))


def _walk(bodies: Sequence[Body], joints: Sequence[NumberedJoint]) -> list[int]:
    """Return the bodies, those that joints connect next to each other; each walk starts at the fewest joints."""
    numbered: list[set[int]] = [set() for _ in bodies]
    for _, (a, b) in joints:
        if _moves(bodies, a) and _moves(bodies, b):
            numbered[a].add(b)
            numbered[b].add(a)
    keys = [_sort_key(body) for body in bodies]
    starts = sorted(range(len(bodies)), key=lambda body: (len(numbered[body]), keys[body]))
    rank = {body: position for position, body in enumerate(starts)}
    order: list[int] = []
    visited: set[int] = set()
    for start in starts:
        queue = [start] if start not in visited else []
        visited.add(start)
        while queue:
            body = queue.pop(0)
            order.append(body)
            added = sorted(numbered[body] - visited, key=rank.__getitem__)
            visited.update(added)
            queue += added
    return order
