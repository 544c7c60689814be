"""Spatial tendons between two sites that limit their distance and have no other effect."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from physvision.core import Placed, Sphere
from physvision.physics.articulated.contact import ShapePair
from physvision.physics.articulated.loading.geometry import pose_tuple
from physvision.physics.articulated.loading.names import YIELDING, is_disabled

_DISABLE = mujoco.mjtDisableBit
_OTHER_EFFECTS = ("stiffness", "damping", "frictionloss", "armature", "stiffnesspoly", "dampingpoly", *YIELDING)


@dataclass(frozen=True)
class SiteTendon:
    """A tendon between two sites with a limited length.

    Attributes:
        first: Number of the first site.
        second: Number of the second site.
        min_length: Smallest distance of the sites, m; zero for no limit.
        max_length: Largest distance of the sites, m.
        number: Number of the tendon.
    """

    first: int
    second: int
    min_length: float
    max_length: float
    number: int

    @property
    def limits(self) -> int:
        """Number of limits of the length."""
        return 2 if self.min_length > 0 else 1


def site_tendons(model: mujoco.MjModel) -> list[SiteTendon]:
    """All tendons of this kind that have an effect."""
    if is_disabled(model, _DISABLE.mjDSBL_LIMIT, _DISABLE.mjDSBL_CONSTRAINT):
        return []
    return [_site_tendon(model, t) for t in range(model.ntendon) if is_site_tendon(model, t)]


def is_site_tendon(model: mujoco.MjModel, t: int) -> bool:
    """If true, tendon t limits the distance of two sites and has no other effect."""
    first, count = int(model.tendon_adr[t]), int(model.tendon_num[t])
    on_sites = bool((model.wrap_type[first : first + count] == mujoco.mjtWrap.mjWRAP_SITE.value).all())
    has_other_effect = any(np.any(getattr(model, f"tendon_{name}")[t]) for name in _OTHER_EFFECTS)
    return bool(model.tendon_limited[t]) and count == 2 and on_sites and not has_other_effect


def _site_tendon(model: mujoco.MjModel, t: int) -> SiteTendon:
    first = int(model.tendon_adr[t])
    low, high = (float(length) for length in model.tendon_range[t])
    return SiteTendon(int(model.wrap_objid[first]), int(model.wrap_objid[first + 1]), max(low, 0.0), high, t)


def tendon_sites(model: mujoco.MjModel, tendons: Sequence[SiteTendon], body: int) -> list[int]:
    """Sites of a body at which tendons end."""
    ends = {site for tendon in tendons for site in (tendon.first, tendon.second)}
    return sorted(site for site in ends if model.site_bodyid[site] == body)


def site_marker(model: mujoco.MjModel, site: int) -> Placed:
    """Sphere that marks a site and collides with nothing."""
    red, green, blue = (float(value) for value in model.site_rgba[site, :3])
    return Placed(
        Sphere(float(model.site_size[site, 0])),
        pose=pose_tuple(model.site_pos[site], model.site_quat[site]),
        color=(red, green, blue),
        name=model.site(site).name,
    )


def tendon_pairs(tendons: Sequence[SiteTendon], rows: dict[int, int]) -> list[ShapePair]:
    """Distance constraints of tendons, given the row of each site in the engine's geometry."""
    pairs = []
    for tendon in tendons:
        ends = rows[tendon.first], rows[tendon.second]
        pairs.append(ShapePair(*ends, frictionless=True, margin=-tendon.max_length, tendon="max_length"))
        if tendon.min_length > 0:
            pairs.append(ShapePair(*ends, frictionless=True, margin=tendon.min_length, tendon="min_length"))
    return pairs
