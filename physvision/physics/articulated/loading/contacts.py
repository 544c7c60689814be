"""Pairs of geoms of a MuJoCo model that may collide, with their friction, and unsupported contact features."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from physvision.physics.articulated.contact import ShapePair, pair_features
from physvision.physics.articulated.loading.geometry import geom_shape
from physvision.physics.articulated.loading.names import is_disabled, join_names, nonzero_rows, object_name

_DISABLE = mujoco.mjtDisableBit
# Features of contact that can be ignored; ignoring "contact" ignores them too.
CONTACT_FEATURES = ("pair", "rotational_friction", "surface")
_OVERRIDE = mujoco.mjtEnableBit.mjENBL_OVERRIDE


@dataclass(frozen=True)
class GeomPair:
    """Two geoms that may collide by MuJoCo's rules.

    Attributes:
        first: Number of the first geom.
        second: Number of the second geom.
        condim: Dimension of the contact space: 1 frictionless, 3 sliding, 4 torsional, 6 rolling friction.
        friction: Friction of an explicit pair; None to mix those of the geoms.
        priority: Geom whose friction is the pair's: 1 for the first, −1 for the second, 0 for both.
        margin: Separation at which contact begins, m.
        rotational_friction: Lengths (torsional, rolling) of an explicit pair, m; None to mix those of the geoms.
        is_held: If true, the pair overlaps in the reference pose and is held as it is.
    """

    first: int
    second: int
    condim: int
    friction: float | None
    priority: int
    margin: float
    rotational_friction: tuple[float, float] | None = None
    is_held: bool = False


def geom_pairs(model: mujoco.MjModel) -> list[GeomPair]:
    """All pairs that may collide: explicit ones, and those that pass the collision masks."""
    if is_disabled(model, _DISABLE.mjDSBL_CONTACT) or is_disabled(model, _DISABLE.mjDSBL_CONSTRAINT):
        return []
    explicit = list(_explicit_pairs(model))
    explicit_geoms = {frozenset((pair.first, pair.second)) for pair in explicit}
    return explicit + [
        pair for pair in _filtered_pairs(model) if frozenset((pair.first, pair.second)) not in explicit_geoms
    ]


def split_supported(model: mujoco.MjModel, pairs: Sequence[GeomPair]) -> tuple[list[GeomPair], list[GeomPair]]:
    """Pairs whose collision is supported, and the others."""
    shapes = {geom: geom_shape(model, geom) for geom in {geom for pair in pairs for geom in (pair.first, pair.second)}}
    supported, unsupported = [], []
    for pair in pairs:
        first, second = shapes[pair.first], shapes[pair.second]
        has_features = first is not None and second is not None and pair_features(first, second) is not None
        (supported if has_features else unsupported).append(pair)
    return supported, unsupported


def hold_penetrating(model: mujoco.MjModel, pairs: Sequence[GeomPair], max_penetration: float) -> list[GeomPair]:
    """Mark the pairs that overlap by more than `max_penetration`, m, in the reference pose."""
    data = mujoco.MjData(model)
    mujoco.mj_fwdPosition(model, data)
    distances: dict[frozenset[int], float] = {}
    for contact in data.contact:
        geoms = frozenset(int(geom) for geom in contact.geom)
        distances[geoms] = min(float(contact.dist), distances.get(geoms, math.inf))

    def is_held(pair: GeomPair) -> bool:
        return distances.get(frozenset((pair.first, pair.second)), math.inf) - pair.margin < -max_penetration

    return [replace(pair, is_held=is_held(pair)) for pair in pairs]


def geom_name(model: mujoco.MjModel, geom: int) -> str:
    """Kind and name of a geom, with its body."""
    kind = mujoco.mjtGeom(int(model.geom_type[geom])).name.removeprefix("mjGEOM_").lower()
    body = object_name(model, "body", int(model.geom_bodyid[geom]))
    return f"{kind} {model.geom(geom).name!r} of {body!r}" if model.geom(geom).name else f"{kind} of {body!r}"


def shape_pairs(pairs: Sequence[GeomPair], rows: dict[int, int], rotational_friction: bool) -> list[ShapePair]:
    """Pairs of shapes of pairs of geoms.

    Args:
        pairs: Pairs of geoms.
        rows: Row of each geom in the engine's geometry.
        rotational_friction: If true, pairs have torsional and rolling friction.
    """
    return [
        ShapePair(
            rows[pair.first],
            rows[pair.second],
            pair.friction,
            pair.priority,
            frictionless=pair.condim == 1,
            margin=pair.margin,
            has_rotational_friction=rotational_friction and pair.condim > 3,
            rotational_friction=_rotational_friction(pair),
            is_held=pair.is_held,
        )
        for pair in pairs
    ]


def _rotational_friction(pair: GeomPair) -> tuple[float, float]:
    """Lengths (torsional, rolling): NaN to mix those of the geoms, no rolling friction with condim 4."""
    torsional, rolling = pair.rotational_friction or (np.nan, np.nan)
    return torsional, rolling if pair.condim > 4 else 0.0


def unsupported_contacts(model: mujoco.MjModel) -> dict[str, str]:
    """Unsupported features of contact, each of `CONTACT_FEATURES` with the names of its geoms."""
    pairs = geom_pairs(model)

    def names(unsupported: Iterable[GeomPair]) -> str:
        return join_names(f"{geom_name(model, pair.first)} and {geom_name(model, pair.second)}" for pair in unsupported)

    return {"pair": names(split_supported(model, pairs)[1]), "surface": _special_surfaces(model, pairs)}


def _special_surfaces(model: mujoco.MjModel, pairs: Sequence[GeomPair]) -> str:
    """Names of colliding geoms with adhesion or a surface velocity."""
    colliding = {geom for pair in pairs for geom in (pair.first, pair.second)}
    special = set(np.flatnonzero(nonzero_rows(model.geom_adhesion) | nonzero_rows(model.geom_surfacevel)).tolist())
    special |= set(model.pair_geom1[nonzero_rows(model.pair_adhesion)].tolist())
    return join_names(geom_name(model, geom) for geom in sorted(colliding & special))


def _explicit_pairs(model: mujoco.MjModel) -> Iterator[GeomPair]:
    for k in range(model.npair):
        first, second = int(model.pair_geom1[k]), int(model.pair_geom2[k])
        friction, margin, rotational = _overridden(model, model.pair_friction[k], float(model.pair_margin[k]))
        yield GeomPair(first, second, int(model.pair_dim[k]), friction, 0, margin, rotational)


def _filtered_pairs(model: mujoco.MjModel) -> Iterator[GeomPair]:
    excluded = {int(signature) for signature in model.exclude_signature}
    filters_parents = not is_disabled(model, _DISABLE.mjDSBL_FILTERPARENT)
    for first in range(model.ngeom):
        for second in range(first + 1, model.ngeom):
            if _may_collide(model, first, second, excluded, filters_parents):
                yield _mixed_pair(model, first, second)


def _mixed_pair(model: mujoco.MjModel, first: int, second: int) -> GeomPair:
    """Pair with the numbers of the geom of higher priority; of equals the larger numbers count."""
    priority = int(np.sign(model.geom_priority[first] - model.geom_priority[second]))
    condims = [int(model.geom_condim[geom]) for geom in (first, second)]
    condim = {1: condims[0], -1: condims[1], 0: max(condims)}[priority]
    margin = float(model.geom_margin[first] + model.geom_margin[second])
    friction, margin, rotational = _overridden(model, None, margin)
    return GeomPair(first, second, condim, friction, priority, margin, rotational)


def _overridden(
    model: mujoco.MjModel, friction: np.ndarray | None, margin: float
) -> tuple[float | None, float, tuple[float, float] | None]:
    """Friction, margin and rotational friction of a pair, or those by which the options override all pairs."""
    if model.opt.enableflags & _OVERRIDE.value:
        friction, margin = model.opt.o_friction, float(model.opt.o_margin)
    if friction is None:
        return None, margin, None
    return float(friction[0]), margin, (float(friction[2]), float(friction[3]))


def _may_collide(model: mujoco.MjModel, first: int, second: int, excluded: set[int], filters_parents: bool) -> bool:
    types, affinities = model.geom_contype, model.geom_conaffinity
    if not (types[first] & affinities[second] or types[second] & affinities[first]):
        return False
    bodies = sorted((int(model.geom_bodyid[first]), int(model.geom_bodyid[second])))
    roots = [int(model.body_weldid[body]) for body in bodies]
    if roots[0] == roots[1] or (bodies[0] << 16) + bodies[1] in excluded:
        return False
    parents = [int(model.body_weldid[model.body_parentid[root]]) for root in roots]
    related = parents[0] == roots[1] or parents[1] == roots[0]
    # In MuJoCo a body collides with the world even where the world is its parent.
    return not (filters_parents and related and 0 not in roots)
