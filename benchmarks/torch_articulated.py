"""The dynamics of a tree in plain batched torch, as one writes it without kernels: a peer for the benchmark.

Newton–Euler in every link's own axes, once for the bias force and once for each column of the mass matrix (folded into
the batch), then a dense solve; autograd does the rest. Read from a Pinocchio model of revolute, prismatic and free
joints.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import pinocchio as pin
import torch
from torch import Tensor


def cross_matrix(vector: Tensor) -> Tensor:
    x, y, z = vector.unbind(-1)
    zero = torch.zeros_like(x)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).unflatten(-1, (3, 3))


def motion_cross(a: Tensor, b: Tensor) -> Tensor:
    """Cross product of two motions (linear, angular)."""
    linear = torch.linalg.cross(a[..., 3:], b[..., :3]) + torch.linalg.cross(a[..., :3], b[..., 3:])
    return torch.cat([linear, torch.linalg.cross(a[..., 3:], b[..., 3:])], -1)


def force_cross(a: Tensor, f: Tensor) -> Tensor:
    """Cross product of a motion and a force (force, torque)."""
    torque = torch.linalg.cross(a[..., 3:], f[..., 3:]) + torch.linalg.cross(a[..., :3], f[..., :3])
    return torch.cat([torch.linalg.cross(a[..., 3:], f[..., :3]), torque], -1)


def quaternion_matrix(quaternion: Tensor) -> Tensor:
    """Rotation matrix of a quaternion x, y, z, w."""
    turn = cross_matrix(quaternion[..., :3])
    return torch.eye(3, dtype=turn.dtype) + 2 * quaternion[..., 3, None, None] * turn + 2 * turn @ turn


class TorchTree:
    """Semi-implicit Euler steps of a Pinocchio model, in Pinocchio's order and conventions."""

    def __init__(self, model: pin.Model) -> None:
        self.nv = model.nv
        self.parents = list(model.parents)[1:]
        self.joints = [(joint.nq, joint.idx_q, joint.idx_v, joint.nv) for joint in list(model.joints)[1:]]
        self.places = [
            (torch.tensor(place.rotation), torch.tensor(place.translation)) for place in list(model.jointPlacements)[1:]
        ]
        self.inertias = [torch.tensor(inertia.matrix()) for inertia in list(model.inertias)[1:]]
        data = model.createData()
        pin.forwardKinematics(model, data, pin.neutral(model))
        self.axes = []
        for (_, _, first, size), joint in zip(self.joints, list(model.joints)[1:], strict=True):
            columns = torch.zeros(model.nv, 6, dtype=torch.float64)
            if size == 6:
                columns[first : first + 6] = torch.eye(6, dtype=torch.float64)
            else:
                pin.computeJointJacobians(model, data, pin.neutral(model))
                own = pin.getJointJacobian(model, data, joint.id, pin.ReferenceFrame.LOCAL)[:, first]
                columns[first] = torch.tensor(own)
            self.axes.append(columns[first : first + size])
        self.gravity = torch.tensor(model.gravity.vector)

    def frames(self, q: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Rotation and position of each joint's frame in its parent's."""
        results = []
        for (numbers, first, _, size), axis, (turn, shift) in zip(self.joints, self.axes, self.places, strict=True):
            if size == 6:
                own, moved = quaternion_matrix(q[:, first + 3 : first + 7]), q[:, first : first + 3]
            else:
                pair = q[:, first : first + 2, None, None]
                angle = q[:, first, None, None]
                cosine, sine = (pair[:, 0], pair[:, 1]) if numbers == 2 else (angle.cos(), angle.sin())
                around = cross_matrix(axis[0, 3:])
                own = torch.eye(3, dtype=q.dtype) + sine * around + (1 - cosine) * around @ around
                moved = q[:, first, None] * axis[0, :3]
            results.append((turn @ own, shift + moved @ turn.T))
        return results

    def inverse_dynamics(self, frames: list, v: Tensor, a: Tensor, gravity: Tensor) -> Tensor:
        """Generalized force of an acceleration."""
        motions, accelerations, forces = [], [], []
        none = torch.zeros(len(v), 6, dtype=v.dtype)
        for link, (parent, (_, _, first, size)) in enumerate(zip(self.parents, self.joints, strict=True)):
            turn, shift = frames[link]
            above = (motions[parent - 1], accelerations[parent - 1]) if parent else (none, none - gravity)
            own = v[:, first : first + size] @ self.axes[link]
            motion = _to_child(turn, shift, above[0]) + own
            acceleration = (
                _to_child(turn, shift, above[1])
                + a[:, first : first + size] @ self.axes[link]
                + motion_cross(motion, own)
            )
            inertia = self.inertias[link]
            motions.append(motion)
            accelerations.append(acceleration)
            forces.append(acceleration @ inertia.T + force_cross(motion, motion @ inertia.T))
        torque: list[Tensor] = [none] * len(self.joints)
        for link in reversed(range(len(self.joints))):
            torque[link] = forces[link] @ self.axes[link].T
            if self.parents[link]:
                turn, shift = frames[link]
                force = (turn @ forces[link][:, :3, None]).squeeze(-1)
                moment = (turn @ forces[link][:, 3:, None]).squeeze(-1) + torch.linalg.cross(shift, force)
                forces[self.parents[link] - 1] = forces[self.parents[link] - 1] + torch.cat([force, moment], -1)
        return torch.cat(torque, -1)

    def acceleration(self, q: Tensor, v: Tensor) -> Tensor:
        """Forward dynamics without control."""
        frames = self.frames(q)
        bias = self.inverse_dynamics(frames, v, torch.zeros_like(v), self.gravity)
        unit = torch.eye(self.nv, dtype=v.dtype).repeat(len(v), 1)
        repeated = [(t.repeat_interleave(self.nv, 0), s.repeat_interleave(self.nv, 0)) for t, s in frames]
        columns = self.inverse_dynamics(repeated, torch.zeros_like(unit), unit, torch.zeros_like(self.gravity))
        return torch.linalg.solve(columns.unflatten(0, (len(v), self.nv)), -bias)

    def rollout(self, q: Tensor, v: Tensor, steps: int, dt: float) -> Tensor:
        """Roll out the last position."""
        for _ in range(steps):
            v = v + dt * self.acceleration(q, v)
            q = self._moved(q, dt * v)
        return q

    def _moved(self, q: Tensor, dv: Tensor) -> Tensor:
        pieces = []
        for numbers, first, at, size in self.joints:
            if size == 1:
                own, moved = q[:, first : first + numbers], dv[:, at : at + 1]
                cosine, sine = own[:, :1], own[:, -1:]
                turned = torch.cat([cosine - sine * moved, sine + cosine * moved], -1)
                pieces.append(own + moved if numbers == 1 else torch.nn.functional.normalize(turned, dim=-1))
                continue
            turn = quaternion_matrix(q[:, first + 3 : first + 7])
            # Small steps: the first order of the rotation, normalized, is enough for a peer's cost.
            quaternion, half = q[:, first + 3 : first + 7], dv[:, at + 3 : at + 6] / 2
            vector = quaternion[:, :3] + quaternion[:, 3:] * half + torch.linalg.cross(quaternion[:, :3], half, dim=-1)
            scalar = quaternion[:, 3:] - (quaternion[:, :3] * half).sum(-1, keepdim=True)
            pieces.append(q[:, first : first + 3] + (turn @ dv[:, at : at + 3, None]).squeeze(-1))
            pieces.append(torch.nn.functional.normalize(torch.cat([vector, scalar], -1), dim=-1))
        return torch.cat(pieces, -1)


def _to_child(turn: Tensor, shift: Tensor, motion: Tensor) -> Tensor:
    """A motion seen from a frame that is turned and shifted."""
    linear = motion[..., :3] + torch.linalg.cross(motion[..., 3:], shift)
    return torch.cat([(turn.mT @ linear[..., None]).squeeze(-1), (turn.mT @ motion[..., 3:, None]).squeeze(-1)], -1)
