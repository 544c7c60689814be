"""Properties of an articulated mechanism: the numbers that a call may override and that gradients reach."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from physvision.physics.properties import Properties, leaf, register_properties


@register_properties
@dataclass(frozen=True)
class TreeProperties(Properties):
    """Masses, geometry, friction and other properties of a kinematic tree."""

    mass: Tensor = leaf("bodies", unit="kg", range="not negative", meaning="mass")
    center_of_mass: Tensor = leaf("bodies", 3, unit="m", meaning="center of mass in the body's frame")
    inertia: Tensor = leaf(
        "bodies", 3, 3, unit="kg m²", meaning="inertia about the center of mass in the body's axes, positive definite"
    )
    position: Tensor = leaf("bodies", 3, unit="m", meaning="origin of the body's frame in its parent's")
    orientation: Tensor = leaf(
        "bodies",
        4,
        meaning="orientation of the body's frame in its parent's, quaternion (w, x, y, z), normalized on entry",
    )
    joint_stiffness: Tensor = leaf(
        "joints", unit="N m/rad or N/m", range="not negative", meaning="stiffness of the joint's spring"
    )
    joint_damping: Tensor = leaf(
        "nv", unit="N m s/rad or N s/m", range="not negative", meaning="viscous damping of a joint axis"
    )
    friction_loss: Tensor = leaf("nv", unit="N m or N", range="not negative", meaning="dry friction of a joint axis")
    armature: Tensor = leaf("nv", unit="kg m² or kg", range="not negative", meaning="rotor inertia of a joint axis")
    spring_reference: Tensor = leaf("nq", unit="rad or m", meaning="positions at which the springs are at rest")
    joint_limits: Tensor = leaf(
        "joints", 2, unit="rad or m", range="not nan", meaning="lower and upper limit; infinite for none"
    )
    transmission_stiffness: Tensor = leaf(
        "transmissions", unit="N m/rad or N/m", range="not negative", meaning="stiffness of a servo"
    )
    transmission_damping: Tensor = leaf(
        "transmissions", unit="N m s/rad or N s/m", range="not negative", meaning="damping of a servo"
    )
    transmission_rest_position: Tensor = leaf(
        "transmissions", unit="rad or m", meaning="combined position of a spring at rest, or of an equality"
    )
    transmission_force_range: Tensor = leaf(
        "transmissions",
        2,
        unit="N m or N",
        range="not nan",
        meaning="lower and upper limit of the force; infinite for none",
    )
    transmission_max_speed: Tensor = leaf(
        "transmissions", unit="rad/s or m/s", range="not nan", meaning="largest commanded velocity; infinite for none"
    )
    fluid: Tensor = leaf(2, unit="kg/m³ and Pa s", range="not negative", meaning="density and viscosity of the fluid")
    drag_size: Tensor = leaf("bodies", 3, unit="m", range="not negative", meaning="sizes of the box for fluid drag")
    gravity: Tensor = leaf(3, unit="m/s²", meaning="gravity in the world's axes")
    friction: Tensor = leaf(
        "shapes", range="not negative", meaning="sliding friction; that of a pair is the mean of both"
    )
    rotational_friction: Tensor = leaf(
        "shapes", 2, unit="m", range="not negative", meaning="torsional and rolling friction; mixed as friction is"
    )
    restitution: Tensor = leaf(
        "shapes", range="unit interval", meaning="coefficient of restitution; that of a pair is the mean of both"
    )
    shape_pose: Tensor = leaf("shapes", 4, 4, unit="m", meaning="pose of the shape in its body's frame")
    shape_size: Tensor = leaf("shapes", 3, unit="m", range="not negative", meaning="sizes of the shape")
