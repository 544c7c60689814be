"""Description of a soft body beside its mesh: material, muscles, and the obstacles that it touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from physvision.core import Box, Circle, InputError, Rectangle, Sphere
from physvision.core.mesh import Mesh

LAWS = ("linear", "st_venant_kirchhoff", "neo_hookean")
Numbers = float | Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Material:
    """Elastic material of a body, or several materials with a number for each.

    Attributes:
        youngs_modulus: Young's modulus, Pa; one for all, or one for each material.
        poissons_ratio: Poisson's ratio, above −1 and below 0.5; one for all, or one for each material.
        density: Density at rest, kg/m³; one for all, or one for each material.
        law: Stress law: "linear", "st_venant_kirchhoff" or "neo_hookean", the default, which alone prevents inverted
            elements. The linear law is valid for small rotations. Cloth takes the second one.
        viscous_time: Stiffness-proportional Rayleigh damping: viscosity over stiffness, s.
        velocity_decay: Mass-proportional Rayleigh damping, 1/s.
        plane_stress: If true, a body of the plane is a free sheet (plane stress), otherwise in plane strain.
        thickness: Thickness of cloth, m; None for other bodies.
        bending: Bending stiffness of cloth relative to that of a plate of its thickness.
        regions: Material of each element, counted from zero; None for one material, or for one per element if there
            are as many numbers as elements.
    """

    youngs_modulus: Numbers
    poissons_ratio: Numbers = 0.3
    density: Numbers = 1000.0
    law: str | None = None
    viscous_time: Numbers = 0.0
    velocity_decay: float = 0.0
    plane_stress: bool = False
    thickness: float | None = None
    bending: float = 1.0
    regions: Sequence[int] | np.ndarray | None = None

    @property
    def per_material(self) -> dict[str, Any]:
        """Numbers that each material has of its own."""
        names = ("youngs_modulus", "poissons_ratio", "density", "viscous_time")
        return {name: getattr(self, name) for name in names}

    def law_index(self, mesh: Mesh) -> int:
        """Index of the law in `LAWS`, after a check of the options against the mesh."""
        law = self.law or LAWS[1 if mesh.cloth else 2]
        if law not in LAWS:
            raise InputError(f"law: expected one of {', '.join(LAWS)}, got {law!r}")
        if self.plane_stress and mesh.axes == 3:
            raise InputError("plane_stress: expected a mesh of the plane, got one in space; leave it out")
        if mesh.cloth and law != LAWS[1]:
            raise InputError(f"law: expected {LAWS[1]!r} for cloth, got {law!r}")
        if mesh.cloth != (self.thickness is not None):
            raise InputError(f"thickness: expected a number for cloth, and None for other bodies, got {self.thickness}")
        return LAWS.index(law)

    def element_materials(self, elements: int) -> tuple[np.ndarray, int]:
        """Material of each element, and the number of materials."""
        sequences = (Sequence, np.ndarray, Tensor)
        lengths = {name: len(value) for name, value in self.per_material.items() if isinstance(value, sequences)}
        count = max(lengths.values(), default=1)
        if any(length not in (1, count) for length in lengths.values()):
            raise InputError(f"material: expected one number or {count} numbers for all materials, got {lengths}")
        if self.regions is None:
            if count not in (1, elements):
                raise InputError(f"regions: expected the material of each element, as {count} are given for {elements}")
            return np.arange(elements) if count == elements else np.zeros(elements, dtype=np.int64), count
        regions = np.asarray(self.regions, dtype=np.int64)
        if regions.shape != (elements,) or regions.min() < 0 or (count > 1 and regions.max() >= count):
            raise InputError(f"regions: expected for each of {elements} elements a number from 0 to {count - 1}")
        return regions, max(count, int(regions.max()) + 1)


@dataclass(frozen=True)
class Muscle:
    """Elements with an active tension along their fibers; a control of 1 exerts the full tension.

    Attributes:
        elements: Numbers of elements of the mesh.
        direction: Direction of the fibers at rest.
        tension: Tension at control 1, Pa.
    """

    elements: Sequence[int]
    direction: Sequence[float]
    tension: float


@dataclass(frozen=True)
class Ground:
    """Fixed plane that the body cannot pass.

    Attributes:
        point: Point on the plane, m.
        normal: Normal out of the ground.
        friction: Coefficient of friction.
    """

    point: Sequence[float]
    normal: Sequence[float]
    friction: float = 0.0


@dataclass(frozen=True)
class Collider:
    """Rigid ball, or box with rounded edges, that the body touches; it translates and does not rotate.

    Attributes:
        center: Initial center, m.
        radius: Radius of the ball, or of the box's edges, m; a node that penetrates a box deeper never leaves it.
        half_size: Distances from the center to the faces of the box, less the radius, m; None for a ball.
        mass: Mass, kg.
        friction: Coefficient of friction.
        kinematic: If true, the collider keeps its velocity.
        actuated: If true, controls exert forces on the collider.
    """

    center: Sequence[float]
    radius: float
    half_size: Sequence[float] | None = None
    mass: float = 1.0
    friction: float = 0.0
    kinematic: bool = False
    actuated: bool = False

    def shape(self, axes: int) -> Circle | Sphere | Rectangle | Box:
        """Shape for drawing, with sharp edges."""
        if self.half_size is None:
            return Circle(self.radius) if axes == 2 else Sphere(self.radius)
        sides = [2 * (half + self.radius) for half in self.half_size]
        return Rectangle(sides[0], sides[1]) if axes == 2 else Box((sides[0], sides[1], sides[2]))


@dataclass(frozen=True)
class SoftContact:
    """Penalty contact of a soft body with planes and colliders.

    Attributes:
        grounds: Fixed planes.
        colliders: Rigid balls and boxes.
        stiffness: Pressure per penetration, Pa/m; None for the modulus divided by the size of an element.
        slip_speed: Speed below which friction is smoothed, m/s.
    """

    grounds: Sequence[Ground] = ()
    colliders: Sequence[Collider] = ()
    stiffness: float | None = None
    slip_speed: float = 1e-3


def check_numbers(name: str, values: Sequence[int], count: int) -> tuple[int, ...]:
    """Check that numbers of nodes or elements are in range and unique."""
    numbers = tuple(int(value) for value in values)
    out_of_range = [number for number in numbers if not 0 <= number < count]
    if out_of_range or len(set(numbers)) < len(numbers):
        raise InputError(
            f"{name}: expected different numbers from 0 to {count - 1}, got {out_of_range or list(numbers)}"
        )
    return numbers


def check_vector(name: str, values: Sequence[float], axes: int) -> np.ndarray:
    """Check that a vector has a finite number for each axis."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (axes,) or not np.isfinite(vector).all():
        raise InputError(f"{name}: expected {axes} finite numbers, got {values!r}")
    return vector


def check_direction(name: str, values: Sequence[float], axes: int) -> np.ndarray:
    """Check that a vector is not zero, and normalize it."""
    vector = check_vector(name, values, axes)
    if not vector.any():
        raise InputError(f"{name}: expected a direction, got zeros")
    return vector / np.linalg.norm(vector)
