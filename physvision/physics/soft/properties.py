"""What an elastic body is made of."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.physics.properties import Properties, leaf, register_properties

if TYPE_CHECKING:
    from physvision.physics.soft.body import SoftBody


@register_properties
@dataclass(frozen=True)
class SoftProperties(Properties):
    """Numbers of materials, muscles and planes, and the shape at rest; a body of the plane is one metre deep."""

    youngs_modulus: Tensor = leaf("materials", unit="Pa", range="positive", meaning="stiffness in tension")
    poissons_ratio: Tensor = leaf("materials", range="poisson", meaning="how much narrower what is drawn becomes")
    density: Tensor = leaf("materials", unit="kg/m³", range="positive", meaning="at rest")
    viscous_time: Tensor = leaf("materials", unit="s", range="not negative", meaning="viscosity over stiffness")
    rest: Tensor = leaf("nodes", "axes", unit="m", meaning="where nodes are when nothing is strained")
    load: Tensor = leaf("nodes", "axes", unit="N", meaning="force on each node, of constant direction")
    gravity: Tensor = leaf("axes", unit="m/s²", meaning="acceleration")
    velocity_decay: Tensor = leaf(unit="1/s", range="not negative", meaning="rate at which velocity fades")
    tension: Tensor = leaf("muscles", unit="Pa", range="not negative", meaning="of a muscle at control 1")
    contact_stiffness: Tensor = leaf(unit="Pa/m", range="positive", meaning="pressure of planes by overlap")
    friction: Tensor = leaf("planes", range="not negative", meaning="of each plane")


@dataclass(frozen=True)
class Packed:
    """Numbers as the kernels see them, in float64, a row a world; the names are those of `NumbersStruct`."""

    weights: Float[Tensor, "batch elements 4"]
    inverse: Float[Tensor, "batch elements axes axes"]
    mass: Float[Tensor, "batch nodes"]
    load: Float[Tensor, "batch nodes axes"]
    whole: Float[Tensor, "batch numbers"]


def edges(places: Float[Tensor, "*batch nodes axes"], elements: Tensor) -> Float[Tensor, "*batch elements axes axes"]:
    """Edges of each element from its first corner, as columns."""
    corners = places[..., elements, :]
    return (corners[..., 1:, :] - corners[..., :1, :]).mT


def lame(p: SoftProperties, plane_stress: bool) -> tuple[Tensor, Tensor]:
    """μ and λ; in plane stress the λ with which the plane's law is that of a sheet that may become thinner."""
    shear = p.youngs_modulus / (2 * (1 + p.poissons_ratio))
    first = 2 * shear * p.poissons_ratio / (1 - (1 if plane_stress else 2) * p.poissons_ratio)
    return shear, first


def pack(p: SoftProperties, body: SoftBody, batch: int) -> Packed:
    """The kernels' numbers; leaves that worlds share stay shared in memory."""
    device = p.rest.device
    corners, material = body.indices("corners", device), body.indices("material", device)
    at_rest = edges(p.rest.double(), corners)
    volume = torch.linalg.det(at_rest) / factorial(body.axes)
    shear, first = (each.double()[..., material] * volume for each in lame(p, body.plane_stress))
    muscle = body.indices("muscle", device)
    known = torch.nn.functional.pad(p.tension.double(), (0, 1))  # the last is that of no muscle
    pull, slow = known[..., muscle] * volume, p.viscous_time.double()[..., material]
    weights = torch.stack(torch.broadcast_tensors(shear, first, slow, pull), -1)
    share = (p.density.double()[..., material] * volume / (body.axes + 1)).unsqueeze(-1)
    share = share.expand(*share.shape[:-1], body.axes + 1).flatten(-2)
    mass = share.new_zeros(*share.shape[:-1], len(body.mesh.nodes)).index_add(-1, corners.flatten(), share)
    load = p.load.double() + mass.unsqueeze(-1) * p.gravity.double().unsqueeze(-2)
    friction = p.friction.double()
    singles = [each.double().unsqueeze(-1) for each in (p.velocity_decay, p.contact_stiffness)]
    whole = torch.cat([each.expand(batch, -1) for each in (*singles, friction)], -1)
    inverse = torch.linalg.inv(at_rest).contiguous()
    return Packed(
        weights.expand(batch, *weights.shape[-2:]),
        inverse.expand(batch, *inverse.shape[-3:]),
        mass.expand(batch, -1),
        load.expand(batch, *load.shape[-2:]),
        whole,
    )
