"""The order in which the kernels take bodies, joints and springs: one that does not hang on how they were listed.

Sums in another order are rounded differently, and where a step is nearly undecided that is enough for another answer.
So bodies are numbered by what they are and where they start, mirrored or not; bodies that joints hold together follow
each other as a walk along the joints meets them (Cuthill and McKee, 1969), which keeps the joints' equations banded
however they were listed.
"""

from __future__ import annotations

from collections.abc import Sequence

from physvision.physics.rigid2d.bodies import Body
from physvision.physics.rigid2d.joints import Joint

# A joint or spring, and the numbers of its bodies; the world is the body after the last.
Joined = tuple[Joint, tuple[int, int]]


class Ordering:
    """What was given in the kernels' order, and the kernels' numbers of bodies.

    Attributes:
        lists: for "bodies", "joints" and "springs", the numbers as given, in the kernels' order.
        numbers: for each body as given, and the world, the kernels' number.
    """

    def __init__(self, bodies: Sequence[Body], joints: Sequence[Joined], springs: Sequence[Joined]) -> None:
        self._bodies = bodies
        walked = _walk(bodies, joints)
        self.numbers = [len(bodies)] * (len(bodies) + 1)
        for number, body in enumerate(walked):
            self.numbers[body] = number
        self.lists = {"bodies": walked, "joints": self._sorted(joints), "springs": self._sorted(springs)}

    def ends(self, ends: tuple[int, int]) -> tuple[int, int]:
        """The kernels' numbers of two bodies."""
        return self.numbers[ends[0]], self.numbers[ends[1]]

    def _sorted(self, joined: Sequence[Joined]) -> list[int]:
        """By the later of a joint's bodies that move, so that rows that share a body are near each other."""

        def key(which: int) -> tuple:
            joint, ends = joined[which]
            moving = [self.numbers[end] for end in ends if _moves(self._bodies, end)]
            center = self._bodies[ends[0]].center if ends[0] < len(self._bodies) else (0.0, 0.0)
            x, y = joint.places[0] or center
            return max(moving), min(moving), type(joint).__name__, y, abs(x)

        return sorted(range(len(joined)), key=key)


def _moves(bodies: Sequence[Body], number: int) -> bool:
    return number < len(bodies) and not bodies[number].static


def _nature(body: Body) -> tuple:
    """What a body is and how it starts: the same for its mirror image."""
    x, y = body.center
    own = (body.static, body.driven, type(body).__name__, body.mass, body.reach, body.friction, body.restitution)
    return (*own, y, abs(x), abs(body.angle), float(body.velocity[1]), abs(float(body.velocity[0])), abs(body.spin))


def _walk(bodies: Sequence[Body], joints: Sequence[Joined]) -> list[int]:
    """Bodies, neighbours by joints after each other; each walk starts where the fewest joints are."""
    joined: list[set[int]] = [set() for _ in bodies]
    for _, (a, b) in joints:
        if _moves(bodies, a) and _moves(bodies, b):
            joined[a].add(b)
            joined[b].add(a)
    natures = [_nature(body) for body in bodies]
    waiting = sorted(range(len(bodies)), key=lambda body: (len(joined[body]), natures[body]))
    rank = {body: at for at, body in enumerate(waiting)}
    found: list[int] = []
    seen: set[int] = set()
    for start in waiting:
        queue = [start] if start not in seen else []
        seen.add(start)
        while queue:
            body = queue.pop(0)
            found.append(body)
            new = sorted(joined[body] - seen, key=rank.__getitem__)
            seen.update(new)
            queue += new
    return found
