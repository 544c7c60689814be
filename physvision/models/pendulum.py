"""Pendulums of links, and cameras in front of them; lengths, masses, damping and width may belong to the trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from physvision.camera import BoundCamera, Camera
from physvision.core import State
from physvision.core.checks import check_count, check_positive
from physvision.core.registry import register
from physvision.core.shapes import Appearance
from physvision.physics import articulated
from physvision.physics.articulated import Articulation
from physvision.physics.engine import Overrides


class PendulumCamera(BoundCamera):
    """A pinhole camera in front of an n-link pendulum, whose rods have one learned radius."""

    def __init__(
        self,
        links: int,
        size: int,
        distance: float,
        focal: float,
        radius: float = 0.35,
        lengths: Sequence[float] | None = None,
    ) -> None:
        """Bind a camera to the rods of `articulated.chain`.

        Args:
            links: Number of rods.
            size: Side of the image, px.
            distance: Distance of the camera from the plane of motion, m.
            focal: Focal length, px.
            radius: Initial radius of the rods, m.
            lengths: Lengths of the rods where a call gives no properties, m; 1 each if not given.
        """
        camera = Camera.pinhole(size, size, position=(0, -distance, 0), target=(0, 0, 0), focal=focal)
        super().__init__(camera, articulated.chain(list(lengths or [1.0] * links), dt=0.05))
        self.log_radius = nn.Parameter(torch.tensor(check_positive("radius", radius)).log())

    def appearance(self, state: State, properties: Overrides = None) -> Appearance:
        """Poses and sizes of the rods, with the learned radius."""
        bodies = super().appearance(state, properties)
        radius = self.log_radius.exp().to(bodies.sizes).expand(*bodies.sizes.shape[:-1], 1)
        return Appearance(bodies.poses, torch.cat([radius, bodies.sizes[..., 1:]], -1))


# Geometry of the data set `swing`: longest link and half width, m; distance of the camera and half the visible height,
# in lengths of the longest pendulum.
_LENGTH, _HALF_WIDTH = 1.0, 0.18
_DISTANCE, _VISIBLE = 4.0, 1.08
# The chain hangs along −z and rotates about y; the data's world has x to the right, y down and z away from the camera.
_FROM_CHAIN = ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, -1.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))


def swing(links: int = 2, dt: float = 1 / 30, length: float = 0.8, mass: float = 1.25) -> Articulation:
    """Build a pendulum of equal links, by Runge–Kutta steps of fourth order.

    Two steps a frame leave 3e-4 rad after 2 s on the validation trials of `swing`, one step leaves 1e-2 rad.

    Args:
        links: Number of links.
        dt: Time step, s.
        length: Length of each link until properties of a trial replace it, m.
        mass: Mass of each link until properties of a trial replace it, kg.
    """
    check_count("links", links)
    return articulated.chain(
        [length] * links, [mass] * links, dt=dt, damping=0.05, integrator="runge_kutta_4", substeps=2
    )


@register("physvision.models.swing_leaves")
def swing_leaves(properties: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Turn the properties of trials into leaves of the chain's properties, one row a trial.

    Args:
        properties: `length`, `mass` and `joint_damping` (batch, links), and `half_width` (batch,); the half width may
            be missing where nothing is rendered.
    """
    leaves = articulated.chain_properties(properties["length"], properties["mass"])
    damping = properties["joint_damping"]
    # Clamped values keep their gradient, or they could not come back.
    leaves["joint_damping"] = damping + (damping.clamp_min(0.0) - damping).detach()
    if "half_width" in properties:
        size = leaves["shape_size"]
        radius = properties["half_width"][:, None, None].expand(-1, size.shape[1], 1)
        leaves["shape_size"] = torch.cat([radius, size[..., 1:]], -1)
    return leaves


class LinkCamera(BoundCamera):
    """A pinhole camera that shows the links of `swing` as capsules, in the axes of its data set."""

    def __init__(self, links: int = 2, size: int = 64) -> None:
        """Bind a camera to the links of a `swing` of the same size.

        Args:
            links: Number of links.
            size: Side of the image, px.
        """
        reach = check_count("links", links) * _LENGTH + _HALF_WIDTH
        camera = Camera.pinhole(
            size,
            size,
            position=(0.0, 0.0, -_DISTANCE * reach),
            target=(0.0, 0.0, 0.0),
            up=(0, -1, 0),
            focal=0.5 * size * _DISTANCE / _VISIBLE,
        )
        super().__init__(camera, swing(links))

    def appearance(self, state: State, properties: Overrides = None) -> Appearance:
        """Poses and sizes of the links; x right, y down, z away from the camera."""
        chain = super().appearance(state, properties)
        return Appearance(chain.poses.new_tensor(_FROM_CHAIN) @ chain.poses, chain.sizes)
