"""Pairs of bodies' round points and the world's planes, and their numbers from an engine's properties."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
from torch import Tensor

from physvision.core import Box, Capsule, Placed, Plane, Shape, Sphere, UnsupportedError
from physvision.physics.articulated.layout import CONTACT_PARAMETERS
from physvision.physics.articulated.model import Model
from physvision.physics.articulated.packing import Packing, Parameters, expanded
from physvision.physics.articulated.properties import TreeProperties

_CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))
# Of each shape: the centres of the balls that can touch a plane, as shares of its sizes, and the radius' share.
_POINTS: dict[type[Shape], tuple[np.ndarray, float]] = {
    Sphere: (np.zeros((1, 3)), 1.0),
    Capsule: (np.array([[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]]), 1.0),
    Box: (_CORNERS, 0.0),
}
MOST_CONTACTS = 24  # that may take part at once


class Pairs:
    """All pairs that may touch: every ball of every shape of a moving body with every plane that stands still.

    Attributes:
        count: number of pairs.
        link: of each pair, (count,).
        shape: row in the engine's geometry of each pair's shape, (count,).
        plane: row of each pair's plane, (count,).
        capacity: contacts that may take part at once.
    """

    def __init__(self, model: Model, geometry: Sequence[Placed]) -> None:
        planes = [row for row, placed in enumerate(geometry) if placed.body is None]
        moving = [row for row, placed in enumerate(geometry) if placed.body is not None]
        for row in planes:
            _refuse_unless(isinstance(geometry[row].shape, Plane), geometry[row], "stands still; only planes may")
        found: list[tuple[int, int, int, np.ndarray, float]] = []
        for row in moving:
            placed = geometry[row]
            assert placed.body is not None
            link = int(model.body_link[placed.body])
            _refuse_unless(link >= 0, placed, "is fixed to the world; only planes of the scenery stand still")
            _refuse_unless(type(placed.shape) in _POINTS, placed, "touches planes; spheres, capsules and boxes can")
            points, share = _POINTS[type(placed.shape)]
            found += [(link, row, plane, point, share) for plane in planes for point in points]
        self.count = len(found)
        self.capacity = min(self.count, MOST_CONTACTS)
        self.link = np.array([each[0] for each in found], np.int32)
        self.shape, self.plane = (np.array([each[k] for each in found], np.int64) for k in (1, 2))
        self.body = np.array([geometry[row].body for row in self.shape], np.int64)
        self._point = np.array([each[3] for each in found]).reshape(-1, 3)
        self._share = np.array([each[4] for each in found])

    def pack(self, properties: TreeProperties, packing: Packing, batch: int) -> Parameters:
        """The numbers of all pairs, by the names of `layout.CONTACT_PARAMETERS`."""
        p = properties
        pose, size = p.shape_pose[..., self.shape, :, :], p.shape_size[..., self.shape, :]
        point, share = torch.as_tensor(self._point).to(size), torch.as_tensor(self._share).to(size)
        rotation, offset = packing.bodies_in_links(p)
        in_body = (pose[..., :3, :3] @ (point * size).unsqueeze(-1)).squeeze(-1) + pose[..., :3, 3]
        turned = (rotation[..., self.body, :, :] @ in_body.unsqueeze(-1)).squeeze(-1)
        plane = p.shape_pose[..., self.plane, :, :]

        def of_pair(values: Tensor) -> Tensor:
            return (values[..., self.shape] + values[..., self.plane]) / 2

        made = {
            "point": turned + offset[..., self.body, :],
            "radius": size[..., 0] * share,
            "frame": plane[..., :3, [2, 0, 1]].mT,
            "origin": plane[..., :3, 3],
            "friction": of_pair(p.friction),
            "restitution": of_pair(p.restitution),
        }
        return {name: expanded(made[name], batch, field) for name, field in CONTACT_PARAMETERS.items()}


def _refuse_unless(fits: bool, placed: Placed, why: str) -> None:
    if not fits:
        raise UnsupportedError(
            f"contact: {type(placed.shape).__name__.lower()} {placed.name or 'without a name'!r} {why}"
        )
