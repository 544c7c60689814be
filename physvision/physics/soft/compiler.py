"""Compilation of a mesh, muscles and obstacles to the arrays that the kernels read, and of properties to parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import factorial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, ModelError
from physvision.core.mesh import Mesh
from physvision.kernels.launching import outside_transforms
from physvision.physics.soft.bending import Links, flatten_edges, link_stiffness, mesh_links
from physvision.physics.soft.description import Muscle, SoftContact, check_direction, check_numbers, check_vector
from physvision.physics.soft.elements import element_edges, rest_edges
from physvision.physics.soft.elimination import factor_pattern
from physvision.physics.soft.properties import SoftProperties

MIN_FIBER_LENGTH = 1e-9  # of a fiber's direction in the plane of cloth, relative to its length in space


@dataclass(frozen=True)
class Parameters:
    """Parameters that the kernels read, float64, a row for each world; the names are those of `NumbersStruct`."""

    weights: Float[Tensor, "batch elements 4"]
    inverse: Float[Tensor, "batch elements axes axes"]
    mass: Float[Tensor, "batch nodes"]
    load: Float[Tensor, "batch nodes axes"]
    whole: Float[Tensor, "batch numbers"]
    bending: Float[Tensor, "batch links"]


@dataclass(frozen=True, eq=False)
class CompiledBody:
    """Arrays of a soft body.

    Attributes:
        mesh: Mesh at rest.
        integers: Integer arrays by the names of `BodyStruct`, and others that parameters are computed with.
        reals: Real arrays by the names of `BodyStruct`; a vector is a row.
        links: Number of bending links of cloth.
        grounds: Number of planes.
        centers: Initial centers of the colliders, (colliders, axes), m.
        plane_stress: If true, a body of the plane is a sheet.
    """

    mesh: Mesh
    integers: dict[str, np.ndarray]
    reals: dict[str, np.ndarray]
    links: int
    grounds: int
    centers: np.ndarray
    plane_stress: bool
    _on_device: dict = field(default_factory=dict, repr=False)

    def indices(self, name: str, device: torch.device) -> Tensor:
        """Integer array as a tensor on a device."""
        key = name, device
        if key not in self._on_device:
            with outside_transforms():
                self._on_device[key] = torch.as_tensor(self.integers[name].astype(np.int64), device=device)
        return self._on_device[key]

    def pack(self, p: SoftProperties, batch: int) -> Parameters:
        """Compute the parameters of the kernels; leaves that worlds share stay shared in memory."""
        device, mesh = p.rest.device, self.mesh
        corners, material = self.indices("corners", device), self.indices("material", device)
        p = p.to(torch.float64)
        edges = rest_edges(p.rest, corners)
        volume = torch.linalg.det(edges) / factorial(edges.shape[-1])
        if mesh.cloth:
            volume = volume * p.thickness
        shear, lame_first = (modulus[..., material] * volume for modulus in lame_parameters(p, self.plane_stress))
        tension = torch.nn.functional.pad(p.tension, (0, 1))  # the last is that of elements without a muscle
        muscle_tension = tension[..., self.indices("muscle", device)] * volume
        weights = [shear, lame_first, p.viscous_time[..., material], muscle_tension]
        node_mass = (p.density[..., material] * volume / corners.shape[1]).unsqueeze(-1)
        node_mass = node_mass.expand(*node_mass.shape[:-1], corners.shape[1]).flatten(-2)
        zeros = node_mass.new_zeros(*node_mass.shape[:-1], len(mesh.nodes))
        mass = zeros.index_add(-1, corners.flatten(), node_mass)
        mass = torch.cat([mass.expand(batch, -1), p.collider_mass.expand(batch, -1)], -1)
        load = torch.nn.functional.pad(p.load, (0, 0, 0, len(self.centers)))
        load = load + mass.unsqueeze(-1) * p.gravity.unsqueeze(-2)
        # A plane has a radius of zero.
        radius = torch.nn.functional.pad(p.radius, (self.grounds, 0))
        numbers = (p.velocity_decay.unsqueeze(-1), p.contact_stiffness.unsqueeze(-1), p.friction, radius)
        bending = mass.new_zeros(batch, 0)
        if mesh.cloth:
            links = self.links, self.indices("links", device)
            factor = p.thickness**2 / 12 * p.bending
            opposites = self.indices("opposites", device)
            bending = link_stiffness(p.rest, corners, opposites, links, factor * shear, factor * lame_first)
        padding = mesh.axes - edges.shape[-1]
        values = (
            (torch.stack(torch.broadcast_tensors(*weights), -1), 2),
            (torch.nn.functional.pad(torch.linalg.inv(edges), (0, padding, 0, padding)).contiguous(), 3),
            (mass, 1),
            (load, 2),
            (torch.cat([number.expand(batch, -1) for number in numbers], -1), 1),
            (bending, 1),
        )
        return Parameters(*(value.expand(batch, *value.shape[-count:]) for value, count in values))


def lame_parameters(p: SoftProperties, plane_stress: bool) -> tuple[Tensor, Tensor]:
    """Lamé parameters μ and λ, Pa; in plane stress λ is that of a sheet that may become thinner."""
    shear = p.youngs_modulus / (2 * (1 + p.poissons_ratio))
    lame_first = 2 * shear * p.poissons_ratio / (1 - (1 if plane_stress else 2) * p.poissons_ratio)
    return shear, lame_first


def compile_body(
    mesh: Mesh,
    materials: np.ndarray,
    muscles: Sequence[Muscle],
    contact: SoftContact,
    kinematic: Sequence[int],
    actuated: Sequence[int],
    plane_stress: bool,
) -> CompiledBody:
    """Compile a soft body.

    Args:
        mesh: Mesh at rest.
        materials: Material of each element.
        muscles: Muscles of the body.
        contact: Planes and colliders.
        kinematic: Nodes with a prescribed velocity; colliders count behind the nodes of the mesh.
        actuated: Nodes on which controls exert forces.
        plane_stress: If true, a body of the plane is a sheet.
    """
    axes, nodes = mesh.axes, len(mesh.nodes)
    muscle, fibers = _muscle_arrays(mesh, muscles)
    grounds, colliders = list(enumerate(contact.grounds)), list(enumerate(contact.colliders))
    normals = [check_direction(f"grounds[{k}].normal", ground.normal, axes) for k, ground in grounds]
    points = [check_vector(f"grounds[{k}].point", ground.point, axes) for k, ground in grounds]
    centers = [check_vector(f"colliders[{k}].center", collider.center, axes) for k, collider in colliders]
    half_sizes = [check_vector("half_size", collider.half_size or [0.0] * axes, axes) for _, collider in colliders]
    if any((half < 0).any() for half in half_sizes):
        raise InputError(f"half_size: expected numbers of at least zero, got {[half.tolist() for half in half_sizes]}")
    free = np.ones(nodes + len(half_sizes), dtype=bool)
    free[list(kinematic)] = False
    num_planes, collider_indices = len(normals), np.arange(len(half_sizes))
    area = np.append(mesh.node_areas * bool(num_planes + len(half_sizes)), 0.0 * collider_indices)
    links = mesh_links(mesh) if mesh.cloth else Links.empty()
    # Nodes at the surface may touch every collider.
    collider, node = (grid.ravel() for grid in np.meshgrid(collider_indices, np.flatnonzero(area), indexing="ij"))
    pairs = np.concatenate([links.pairs, np.stack([node, nodes + collider], 1)])
    pattern = vars(factor_pattern(mesh.nodes, mesh.elements, pairs, free))
    contact_blocks = np.full((num_planes + len(half_sizes), nodes), -1)
    contact_blocks[num_planes + collider, node] = pattern["pairs"][len(links.pairs) :]
    integers = {
        **pattern,
        "link": links.pairs,
        "link_block": pattern["pairs"][: len(links.pairs)],
        "links": links.element_links,
        "opposites": links.opposites,
        "touch_block": contact_blocks,
        "partner": np.append(np.full(num_planes, -1), nodes + collider_indices),
        "corners": mesh.elements,
        "material": materials,
        "muscle": muscle,
        "kinematic": ~free,
        "actuated": np.array(actuated, dtype=np.int64),
    }
    reals = {
        "fiber": fibers,
        "area": area,
        "normal": np.array([*normals, *np.zeros((len(half_sizes), axes))]).reshape(-1, axes),
        "point": np.array(points).reshape(-1, axes),
        "half": np.array([*np.zeros((num_planes, axes)), *half_sizes]).reshape(-1, axes),
    }
    collider_centers = np.array(centers).reshape(-1, axes)
    return CompiledBody(mesh, integers, reals, len(links.pairs), num_planes, collider_centers, plane_stress)


def _muscle_arrays(mesh: Mesh, muscles: Sequence[Muscle]) -> tuple[np.ndarray, np.ndarray]:
    """Muscle of each element, −1 for none, and the direction of its fibers."""
    count = len(mesh.elements)
    numbers, fibers = np.full(count, -1), np.zeros((count, mesh.axes))
    for k, muscle in enumerate(muscles):
        elements = list(check_numbers(f"muscles[{k}].elements", muscle.elements, count))
        if (numbers[elements] >= 0).any():
            raise ModelError(f"muscles[{k}]: expected elements without another muscle")
        numbers[elements] = k
        direction = check_direction(f"muscles[{k}].direction", muscle.direction, mesh.axes)
        fibers[elements] = _fiber_directions(mesh, elements, direction) if mesh.cloth else direction
    return numbers, fibers


def _fiber_directions(mesh: Mesh, elements: list[int], direction: np.ndarray) -> np.ndarray:
    """Direction along the axes that each element of cloth has in its own plane."""
    edges = element_edges(torch.from_numpy(mesh.nodes), torch.from_numpy(mesh.elements[elements]))
    directions = direction @ (edges @ torch.linalg.inv(flatten_edges(edges))).numpy()
    length = np.linalg.norm(directions, axis=1, keepdims=True)
    if length.min() < MIN_FIBER_LENGTH:
        raise InputError("muscles: expected fibers along the cloth, got a direction across it")
    return np.pad(directions / length, ((0, 0), (0, 1)))
