"""Mobility of bodies and joints in the initial position, which scales the stiffness of compliant contacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from physvision.physics.articulated.compiler.link_parameters import Parameters, rotation_matrix
from physvision.physics.articulated.model.bodies import JOINT_KINDS
from physvision.physics.articulated.model.kinematic_tree import KinematicTree


class Mobilities(NamedTuple):
    """Accelerations by unit forces and unit moments in the initial position.

    Attributes:
        bodies: Acceleration of each body's center of mass by a force, (bodies,), 1/kg.
        rotations: Angular acceleration of each body by a moment, (bodies,), 1/(kg m²).
        joints: Acceleration of each link's joint, (links,), 1/kg or 1/(kg m²).
        inverse: Inverse of the mass matrix, (nv, nv).
    """

    bodies: np.ndarray
    rotations: np.ndarray
    joints: np.ndarray
    inverse: np.ndarray

    def along(self, velocities: np.ndarray, coefficients: np.ndarray) -> float:
        """Acceleration of a combination of velocities by a force along it."""
        return float(coefficients @ self.inverse[np.ix_(velocities, velocities)] @ coefficients)


def compute_mobilities(tree: KinematicTree, parameters: Parameters) -> Mobilities:
    """Compute the acceleration of each body by a unit force and moment, and of each joint by a unit moment.

    That of a body is the mean over three directions at its center of mass; that of a joint the mean over its axes.
    With the Jacobian J_b of each body, M = Σ J_bᵀ diag(I, m) J_b + armature, and J M⁻¹ Jᵀ follows.

    Args:
        tree: Kinematic tree, in its initial position.
        parameters: Parameters of the links, as of `LinkParameters.pack`, for at least one world.
    """
    values = {name: value[0].double().cpu().numpy() for name, value in parameters.items()}
    rotations, origins, axes = _link_frames(tree, values)
    inertia = np.diag(values["armature"])
    for link in range(tree.links):
        # In the world's axes, about the link's origin.
        angular, linear = _jacobian(tree, axes, origins, link, origins[link])
        moment = rotations[link] @ values["first_moment"][link]
        rotational_inertia = rotations[link] @ values["inertia"][link] @ rotations[link].T
        cross = np.cross(angular, moment, axis=0)  # columns of ω × (m c)
        inertia += angular.T @ rotational_inertia @ angular + values["mass"][link] * linear.T @ linear
        inertia += linear.T @ cross + cross.T @ linear
    inverse = np.linalg.inv(inertia) if tree.nv else inertia
    bodies, rotational = np.zeros(tree.bodies), np.zeros(tree.bodies)
    for body, link in enumerate(tree.body_link.tolist()):
        if link >= 0:
            center = origins[link] + rotations[link] @ values["center"][body]
            angular, linear = _jacobian(tree, axes, origins, link, center)
            bodies[body] = np.trace(linear @ inverse @ linear.T) / 3
            rotational[body] = np.trace(angular @ inverse @ angular.T) / 3
    diagonal = inverse.diagonal()
    bounds = zip(tree.first_velocity[:-1], tree.first_velocity[1:], strict=True)
    return Mobilities(bodies, rotational, np.array([diagonal[start:end].mean() for start, end in bounds]), inverse)


def _link_frames(
    tree: KinematicTree, values: dict[str, np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Rotation and origin of each link in the initial position, and the axes of all velocities.

    The axes are columns of (3, nv), angular and linear.
    """
    rotations: list[np.ndarray] = []
    origins: list[np.ndarray] = []
    angular, linear = np.zeros((3, tree.nv)), np.zeros((3, tree.nv))
    for link in range(tree.links):
        rotation, offset = values["rotation"][link].T, values["offset"][link]
        parent, q = tree.parent[link], tree.initial_q[tree.first_position[link] :]
        parent_rotation = rotations[parent] if parent >= 0 else np.eye(3)
        parent_origin = origins[parent] if parent >= 0 else np.zeros(3)
        kind, columns = tree.kind[link], slice(tree.first_velocity[link], tree.first_velocity[link + 1])
        joint_rotation = parent_rotation @ rotation
        link_rotation = joint_rotation
        if kind == JOINT_KINDS["revolute"].code:
            link_rotation = joint_rotation @ _matrix((np.cos(q[0] / 2), 0.0, 0.0, np.sin(q[0] / 2)))
        elif kind == JOINT_KINDS["prismatic"].code:
            offset = offset + rotation @ np.array([0.0, 0.0, q[0]])
        elif kind == JOINT_KINDS["ball"].code:
            link_rotation = joint_rotation @ _matrix(q[:4])
        else:
            offset = offset + rotation @ q[:3]
            link_rotation = joint_rotation @ _matrix(q[3:7])
        rotations.append(link_rotation)
        origins.append(parent_origin + parent_rotation @ offset)
        angular[:, columns] = link_rotation @ tree.motion_subspace[columns, :3].T
        # A free joint's linear velocity is in the axes of the frame that it moves in.
        is_free = kind == JOINT_KINDS["free"].code
        linear[:, columns] = (joint_rotation if is_free else link_rotation) @ tree.motion_subspace[columns, 3:].T
    return rotations, origins, (angular, linear)


def _jacobian(
    tree: KinematicTree,
    axes: tuple[np.ndarray, np.ndarray],
    origins: list[np.ndarray],
    link: int,
    point: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Angular Jacobian of a link and linear Jacobian of a point of it, (3, nv) each."""
    angular, linear = np.zeros((3, tree.nv)), np.zeros((3, tree.nv))
    while link >= 0:
        columns = slice(tree.first_velocity[link], tree.first_velocity[link + 1])
        angular[:, columns] = axes[0][:, columns]
        lever = (point - origins[link])[:, None]
        linear[:, columns] = axes[1][:, columns] + np.cross(axes[0][:, columns], lever, axis=0)
        link = int(tree.parent[link])
    return angular, linear


def _matrix(quaternion: Sequence[float] | np.ndarray) -> np.ndarray:
    return rotation_matrix(torch.as_tensor(quaternion, dtype=torch.float64)).numpy()
