"""MuJoCo model of the n-link compound pendulum."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco

# Moment of inertia about a rod's own axis, kg m²; it does not matter to motion in a plane but must not be zero.
_AXIAL_INERTIA = 1e-3


@dataclass(frozen=True)
class Links:
    """Rods in a chain, each hinged about y at the end of the one before; at rest they hang down along −z.

    Attributes:
        lengths: Lengths of the rods, m.
        masses: Masses, evenly along the rods, kg.
        damping: Damping of each hinge, N m s/rad.
        radius: Radius of the rods in the picture, m.
        gravity: Gravitational acceleration, m/s².
    """

    lengths: tuple[float, ...]
    masses: tuple[float, ...]
    damping: tuple[float, ...]
    radius: float
    gravity: float


def build(links: Links, timestep: float, view_distance: float, view_angle: float) -> mujoco.MjModel:
    """Build the model, with a camera named `side` that looks along +y at the origin.

    Args:
        links: Rods of the chain.
        timestep: Length of MuJoCo's Runge–Kutta steps, s.
        view_distance: Distance of the camera from the plane of motion, m.
        view_angle: Angle of view from the upper to the lower edge of the picture, rad.
    """
    bodies, closing = "", ""
    below = 0.0
    for index, (length, mass, damping) in enumerate(zip(links.lengths, links.masses, links.damping, strict=True)):
        transverse = mass * length**2 / 12.0
        bodies += (
            f'<body name="link{index}" pos="0 0 {-below!r}">'
            f'<joint name="joint{index}" type="hinge" axis="0 1 0" damping="{damping!r}"/>'
            f'<inertial pos="0 0 {-0.5 * length!r}" mass="{mass!r}" '
            f'diaginertia="{transverse!r} {transverse!r} {_AXIAL_INERTIA}"/>'
            f'<geom name="rod{index}" type="capsule" fromto="0 0 0 0 0 {-length!r}" size="{links.radius!r}"/>'
        )
        closing += "</body>"
        below = length
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco>
          <compiler angle="radian" inertiafromgeom="false"/>
          <option timestep="{timestep!r}" gravity="0 0 {-links.gravity!r}" integrator="RK4">
            <flag contact="disable"/>
          </option>
          <worldbody>
            <camera name="side" pos="0 {-view_distance!r} 0" xyaxes="1 0 0 0 0 1" fovy="{math.degrees(view_angle)!r}"/>
            {bodies}{closing}
          </worldbody>
        </mujoco>"""
    )
