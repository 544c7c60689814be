"""The same tree in Pinocchio, built from the description alone.

Pinocchio's crba wants joints depth first, so its numbers stand in an order of their own.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import numpy as np
import pinocchio as pin

from physvision.physics.articulated import Body


def rotation(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion
    return pin.Quaternion(w, x, y, z).toRotationMatrix()


class Oracle:
    """Dynamics by Pinocchio, in the conventions of physvision's states."""

    def __init__(self, bodies: list[Body]) -> None:
        self.model = pin.Model()
        carriers: dict[str | None, tuple[int, pin.SE3]] = {None: (0, pin.SE3.Identity())}
        armature: list[float] = []
        layouts: dict[str, list[tuple[str, int, int]]] = {}
        for body in depth_first(bodies):
            joint, placement = carriers[body.parent]
            placement = placement * pin.SE3(rotation(body.orientation), np.asarray(body.position, float))
            layouts[body.name] = []
            for element in body.joints:
                anchor = pin.SE3(np.eye(3), np.asarray(element.anchor, float))
                joint = self.model.addJoint(joint, _joint(element), placement * anchor, f"{body.name} {element.kind}")
                added = self.model.joints[joint]
                layouts[body.name].append((element.kind, added.idx_q, added.idx_v))
                armature += [element.armature] * added.nv
                placement = anchor.inverse()
            inertia = pin.Inertia(body.mass, np.asarray(body.center_of_mass, float), np.asarray(body.inertia, float))
            self.model.appendBodyToJoint(joint, inertia, placement)
            carriers[body.name] = joint, placement
        self.model.armature = np.array(armature)
        self.data = self.model.createData()
        # Joints in physvision's order, and where Pinocchio has the numbers of a velocity that stand there.
        self.joints = [joint for body in bodies for joint in layouts[body.name]]
        size = {"revolute": 1, "prismatic": 1, "ball": 3, "free": 6}
        self.there = np.concatenate([np.arange(v, v + size[kind]) for kind, _, v in self.joints])

    def positions(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio writes quaternions x, y, z, w."""
        out, start = np.zeros(self.model.nq), 0
        for kind, at, _ in self.joints:
            size = {"revolute": 1, "prismatic": 1, "ball": 4, "free": 7}[kind]
            own = q[start : start + size].copy()
            if kind in ("ball", "free"):
                own[-4:] = np.roll(own[-4:], -1)
            out[at : at + size] = own
            start += size
        return out

    def frame(self, q: np.ndarray) -> np.ndarray:
        """T with v_pinocchio = T v: its order, and a free joint's linear velocity in the body's axes."""
        t = np.zeros((self.model.nv, self.model.nv))
        t[self.there, np.arange(self.model.nv)] = 1.0
        for kind, at, velocity in self.joints:
            if kind == "free":  # the root, so its numbers come first in both orders
                assert at == velocity == 0
                t[:3, :3] = rotation(q[3:7]).T
        return t

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Ṫ v = (−ω × Rᵀ v, 0)."""
        d = np.zeros(self.model.nv)
        if any(kind == "free" for kind, _, _ in self.joints):
            d[:3] = -np.cross(v[3:6], rotation(q[3:7]).T @ v[:3])
        return d

    def acceleration(self, q: np.ndarray, v: np.ndarray, torque: np.ndarray) -> np.ndarray:
        t = self.frame(q)
        result = pin.aba(self.model, self.data, self.positions(q), t @ v, t @ torque)
        return t.T @ (result - self.drift(q, v))

    def torque(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        t = self.frame(q)
        return t.T @ pin.rnea(self.model, self.data, self.positions(q), t @ v, t @ a + self.drift(q, v))

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        t = self.frame(q)
        m = pin.crba(self.model, self.data, self.positions(q))
        return t.T @ (np.triu(m) + np.triu(m, 1).T) @ t


def depth_first(bodies: list[Body]) -> list[Body]:
    children: dict[str | None, list[Body]] = {}
    for body in bodies:
        children.setdefault(body.parent, []).append(body)

    def visit(name: str | None) -> list[Body]:
        return [entry for child in children.get(name, []) for entry in (child, *visit(child.name))]

    return visit(None)


def _joint(joint) -> pin.JointModel:
    axis = np.asarray(joint.axis, float)
    return {
        "revolute": lambda: pin.JointModelRevoluteUnaligned(axis),
        "prismatic": lambda: pin.JointModelPrismaticUnaligned(axis),
        "ball": pin.JointModelSpherical,
        "free": pin.JointModelFreeFlyer,
    }[joint.kind]()
