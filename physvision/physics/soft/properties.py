"""What an elastic body is made of."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.physics.properties import Properties, leaf, register_properties
from physvision.physics.soft.bending import flattened, link_stiffness

if TYPE_CHECKING:
    from physvision.physics.soft.body import SoftBody


@register_properties
@dataclass(frozen=True)
class SoftProperties(Properties):
    """Numbers of materials, muscles and obstacles, and the shape at rest; a body of the plane is one metre deep."""

    youngs_modulus: Tensor = leaf("materials", unit="Pa", range="positive", meaning="stiffness in tension")
    poissons_ratio: Tensor = leaf("materials", range="poisson", meaning="how much narrower what is drawn becomes")
    density: Tensor = leaf("materials", unit="kg/m³", range="positive", meaning="at rest")
    viscous_time: Tensor = leaf("materials", unit="s", range="not negative", meaning="viscosity over stiffness")
    rest: Tensor = leaf("nodes", "axes", unit="m", meaning="where nodes are when nothing is strained")
    load: Tensor = leaf("nodes", "axes", unit="N", meaning="force on each node, of constant direction")
    gravity: Tensor = leaf("axes", unit="m/s²", meaning="acceleration")
    velocity_decay: Tensor = leaf(unit="1/s", range="not negative", meaning="rate at which velocity fades")
    tension: Tensor = leaf("muscles", unit="Pa", range="not negative", meaning="of a muscle at control 1")
    contact_stiffness: Tensor = leaf(unit="Pa/m", range="positive", meaning="pressure of obstacles by overlap")
    friction: Tensor = leaf("obstacles", range="not negative", meaning="of each ground, then of each solid")
    radius: Tensor = leaf("solids", unit="m", range="positive", meaning="of a ball, or of a box's edges")
    solid_mass: Tensor = leaf("solids", unit="kg", range="positive", meaning="of each solid")
    thickness: Tensor = leaf("sheets", unit="m", range="positive", meaning="of cloth")
    bending: Tensor = leaf(
        "sheets", range="not negative", meaning="stiffness of cloth in bending, over that of a plate"
    )


@dataclass(frozen=True)
class Packed:
    """Numbers as the kernels see them, in float64, a row a world; the names are those of `NumbersStruct`."""

    weights: Float[Tensor, "batch elements 4"]
    inverse: Float[Tensor, "batch elements axes axes"]
    mass: Float[Tensor, "batch nodes"]
    load: Float[Tensor, "batch nodes axes"]
    whole: Float[Tensor, "batch numbers"]
    bending: Float[Tensor, "batch links"]


def edges(places: Float[Tensor, "*batch nodes axes"], elements: Tensor) -> Float[Tensor, "*batch elements axes edges"]:
    """Edges of each element from its first corner, as columns."""
    corners = places[..., elements, :]
    return (corners[..., 1:, :] - corners[..., :1, :]).mT


def at_rest(rest: Float[Tensor, "*batch nodes axes"], elements: Tensor) -> Float[Tensor, "*batch elements edges edges"]:
    """Edges of each element, along axes of its own where they are those of cloth."""
    found = edges(rest, elements)
    return found if found.shape[-1] == found.shape[-2] else flattened(found)


def lame(p: SoftProperties, plane_stress: bool) -> tuple[Tensor, Tensor]:
    """μ and λ; in plane stress the λ with which the plane's law is that of a sheet that may become thinner."""
    shear = p.youngs_modulus / (2 * (1 + p.poissons_ratio))
    first = 2 * shear * p.poissons_ratio / (1 - (1 if plane_stress else 2) * p.poissons_ratio)
    return shear, first


def pack(p: SoftProperties, body: SoftBody, batch: int) -> Packed:
    """The kernels' numbers; leaves that worlds share stay shared in memory."""
    device, mesh = p.rest.device, body.mesh
    corners, material = body.indices("corners", device), body.indices("material", device)
    p = p.to(torch.float64)
    flat = at_rest(p.rest, corners)
    volume = torch.linalg.det(flat) / factorial(flat.shape[-1])
    if mesh.cloth:
        volume = volume * p.thickness
    shear, first = (each[..., material] * volume for each in lame(p, body.plane_stress))
    muscle = body.indices("muscle", device)
    known = torch.nn.functional.pad(p.tension, (0, 1))  # the last is that of no muscle
    weights = [shear, first, p.viscous_time[..., material], known[..., muscle] * volume]
    share = (p.density[..., material] * volume / corners.shape[1]).unsqueeze(-1)
    share = share.expand(*share.shape[:-1], corners.shape[1]).flatten(-2)
    mass = share.new_zeros(*share.shape[:-1], len(mesh.nodes)).index_add(-1, corners.flatten(), share)
    mass = torch.cat([mass.expand(batch, -1), p.solid_mass.expand(batch, -1)], -1)
    load = torch.nn.functional.pad(p.load, (0, 0, 0, len(body.solids))) + mass.unsqueeze(-1) * p.gravity.unsqueeze(-2)
    # A plane has no radius.
    singles = (p.velocity_decay.unsqueeze(-1), p.contact_stiffness.unsqueeze(-1))
    numbers = (*singles, p.friction, torch.nn.functional.pad(p.radius, (len(body.grounds), 0)))
    bending = mass.new_zeros(batch, 0)
    if mesh.cloth:
        links = len(body.links.pairs), body.indices("links", device)
        square = p.thickness**2 / 12 * p.bending
        opposites = body.indices("opposites", device)
        bending = link_stiffness(p.rest, corners, opposites, links, square * shear, square * first)
    space = mesh.axes - flat.shape[-1]
    found = (
        (torch.stack(torch.broadcast_tensors(*weights), -1), 2),
        (torch.nn.functional.pad(torch.linalg.inv(flat), (0, space, 0, space)).contiguous(), 3),
        (mass, 1),
        (load, 2),
        (torch.cat([each.expand(batch, -1) for each in numbers], -1), 1),
        (bending, 1),
    )
    return Packed(*(each.expand(batch, *each.shape[-count:]) for each, count in found))
