"""Spatial tendons that are strings or struts: between two sites, with a greatest or a least length and nothing else."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from physvision.core import Placed, Sphere
from physvision.physics.articulated.contact import Touching
from physvision.physics.articulated.loading.geometry import matrix
from physvision.physics.articulated.loading.names import disabled

_DISABLE = mujoco.mjtDisableBit
_OTHER_EFFECTS = ("stiffness", "damping", "frictionloss", "armature", "stiffnesspoly", "dampingpoly", "springyield")


@dataclass(frozen=True)
class TwoSites:
    """A tendon that keeps two sites at most, and at least, so far apart.

    Attributes:
        first: number of one site.
        second: number of the other.
        least: m; zero for none.
        most: m.
    """

    first: int
    second: int
    least: float
    most: float


def strings(model: mujoco.MjModel) -> list[TwoSites]:
    """All tendons of this kind that have an effect."""
    if disabled(model, _DISABLE.mjDSBL_LIMIT) or disabled(model, _DISABLE.mjDSBL_CONSTRAINT):
        return []
    return [two_sites(model, t) for t in range(model.ntendon) if is_string(model, t)]


def is_string(model: mujoco.MjModel, t: int) -> bool:
    """Whether tendon t is limited in length between two sites, and has no other effect."""
    first, count = int(model.tendon_adr[t]), int(model.tendon_num[t])
    on_sites = bool((model.wrap_type[first : first + count] == mujoco.mjtWrap.mjWRAP_SITE.value).all())
    plain = not any(np.any(getattr(model, f"tendon_{name}")[t]) for name in _OTHER_EFFECTS)
    return bool(model.tendon_limited[t]) and count == 2 and on_sites and plain


def two_sites(model: mujoco.MjModel, t: int) -> TwoSites:
    """The ends of tendon t."""
    first = int(model.tendon_adr[t])
    low, high = (float(length) for length in model.tendon_range[t])
    return TwoSites(int(model.wrap_objid[first]), int(model.wrap_objid[first + 1]), max(low, 0.0), high)


def sites_of(model: mujoco.MjModel, found: list[TwoSites], body: int) -> list[int]:
    """The sites of a body on which strings hang."""
    ends = {site for each in found for site in (each.first, each.second)}
    return sorted(site for site in ends if model.site_bodyid[site] == body)


def knot(model: mujoco.MjModel, site: int) -> Placed:
    """A site as a small ball; it touches nothing."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = matrix(model.site_quat[site]), model.site_pos[site]
    red, green, blue = (float(value) for value in model.site_rgba[site, :3])
    return Placed(
        Sphere(float(model.site_size[site, 0])),
        pose=tuple(map(tuple, pose.tolist())),
        color=(red, green, blue),
        name=model.site(site).name,
    )


def pulling(found: list[TwoSites], rows: dict[int, int]) -> list[Touching]:
    """The strings as pairs without friction, by the rows that their sites have in the engine's geometry."""
    made = []
    for each in found:
        ends = rows[each.first], rows[each.second]
        made.append(Touching(*ends, slippery=True, margin=-each.most, string=True))
        if each.least > 0:
            made.append(Touching(*ends, slippery=True, margin=each.least, strut=True))
    return made
