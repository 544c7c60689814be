"""How far bodies and joints give way to a force in the start of a tree, on which the hardness of contacts rests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from physvision.physics.articulated.compiler.link_parameters import Parameters, rotation_matrix
from physvision.physics.articulated.model.kinematic_tree import KINDS, Model


def mobilities(model: Model, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
    """By how much a force of 1 N accelerates each body in the tree's start, 1/kg; and a moment each link's joint.

    Of a body the mean over three directions, at its centre of mass; of a joint over its axes: (bodies,), (links,).
    With the columns of a Jacobian J_b of each body, M = Σ J_bᵀ diag(I, m) J_b + armature, and J M⁻¹ Jᵀ follows.

    Args:
        model: the tree.
        parameters: its numbers, as of `Packing.pack`, for at least one world.
    """
    known = {name: value[0].double().cpu().numpy() for name, value in parameters.items()}
    turns, places, axes = _columns(model, known)
    inertia = np.diag(known["armature"])
    for link in range(model.links):
        # In the world's axes, about the link's origin.
        angular, linear = _moved(model, axes, places, link, places[link])
        moment = turns[link] @ known["moment"][link]
        spread = turns[link] @ known["inertia"][link] @ turns[link].T
        cross = np.cross(angular, moment, axis=0)  # of ω × (m c), a column each
        inertia += angular.T @ spread @ angular + known["mass"][link] * linear.T @ linear
        inertia += linear.T @ cross + cross.T @ linear
    response = np.linalg.inv(inertia) if model.nv else inertia
    of_bodies = np.zeros(model.bodies)
    for body, link in enumerate(model.body_link.tolist()):
        if link >= 0:
            _, linear = _moved(model, axes, places, link, places[link] + turns[link] @ known["center"][body])
            of_bodies[body] = np.trace(linear @ response @ linear.T) / 3
    alone = response.diagonal()
    bounds = zip(model.first_velocity[:-1], model.first_velocity[1:], strict=True)
    return of_bodies, np.array([alone[start:end].mean() for start, end in bounds])


def _columns(
    model: Model, known: dict[str, np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Rotation and origin of each link in the start, and the turn and shift of each velocity, columns of (3, nv)."""
    turns: list[np.ndarray] = []
    places: list[np.ndarray] = []
    spun, shifted = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    for link in range(model.links):
        rotation, offset = known["rotation"][link].T, known["offset"][link]
        parent, start = model.parent[link], model.start[model.first_position[link] :]
        carrier = turns[parent] if parent >= 0 else np.eye(3)
        base = places[parent] if parent >= 0 else np.zeros(3)
        kind, columns = model.kind[link], slice(model.first_velocity[link], model.first_velocity[link + 1])
        before = carrier @ rotation
        own = before
        if kind == KINDS["revolute"][0]:
            own = before @ _turned((np.cos(start[0] / 2), 0.0, 0.0, np.sin(start[0] / 2)))
        elif kind == KINDS["prismatic"][0]:
            offset = offset + rotation @ np.array([0.0, 0.0, start[0]])
        elif kind == KINDS["ball"][0]:
            own = before @ _turned(start[:4])
        else:
            offset = offset + rotation @ start[:3]
            own = before @ _turned(start[3:7])
        turns.append(own)
        places.append(base + carrier @ offset)
        spun[:, columns] = own @ model.axes[columns, :3].T
        # A free joint's linear velocity is told in the axes of the frame that it moves in.
        shifted[:, columns] = (before if kind == KINDS["free"][0] else own) @ model.axes[columns, 3:].T
    return turns, places, (spun, shifted)


def _moved(
    model: Model, axes: tuple[np.ndarray, np.ndarray], places: list[np.ndarray], link: int, point: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How each velocity turns a link and moves a point of it, (3, nv) each."""
    angular, linear = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    while link >= 0:
        columns = slice(model.first_velocity[link], model.first_velocity[link + 1])
        angular[:, columns] = axes[0][:, columns]
        arm = (point - places[link])[:, None]
        linear[:, columns] = axes[1][:, columns] + np.cross(axes[0][:, columns], arm, axis=0)
        link = int(model.parent[link])
    return angular, linear


def _turned(quaternion: Sequence[float] | np.ndarray) -> np.ndarray:
    """The matrix of a quaternion (w, x, y, z)."""
    return rotation_matrix(torch.as_tensor(quaternion, dtype=torch.float64)).numpy()
