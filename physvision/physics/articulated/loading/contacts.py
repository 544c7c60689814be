"""Pairs of geoms of a MuJoCo model that may collide, with their friction, and unsupported contact features."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math

import mujoco
import numpy as np

from physvision.core import UnsupportedError
from physvision.physics.articulated.contact import ShapePair, ShapePairs, supported_pairs
from physvision.physics.articulated.loading.geometry import geom_shape
from physvision.physics.articulated.loading.names import is_disabled, join_names, nonzero_rows, object_name
from physvision.physics.articulated.settings import SETTINGS

_DISABLE = mujoco.mjtDisableBit
# Features of contact that can be ignored; ignoring "contact" ignores them too.
CONTACT_FEATURES = ("pair", "rotational_friction", "surface")
_OVERRIDE = mujoco.mjtEnableBit.mjENBL_OVERRIDE


# Pairs of geoms, with the fields
#   first, second: Numbers of the geoms.
#   condim: Dimension of the contact space: 1 frictionless, 3 sliding, 4 torsional, 6 rolling friction.
#   friction: Friction of an explicit pair; NaN to mix those of the geoms.
#   priority: Geom whose friction is the pair's: 1 for the first, −1 for the second, 0 for both.
#   margin: Separation at which contact begins, m.
#   rotational_friction: Lengths (torsional, rolling) of an explicit pair, m; NaN to mix those of the geoms.
#   is_held: If true, the pair penetrates in the reference pose and is held as it is.
_PAIR = np.dtype(
    [
        *((name, np.int64) for name in ("first", "second", "condim", "priority")),
        *(("friction", float), ("margin", float), ("rotational_friction", float, 2), ("is_held", bool)),
    ]
)
GeomPairs = np.recarray


def no_pairs() -> GeomPairs:
    """Table of pairs of geoms without a pair."""
    return np.recarray(0, _PAIR)


def geom_pairs(model: mujoco.MjModel) -> GeomPairs:
    """All pairs that may collide: explicit ones, and those that pass the collision masks."""
    if is_disabled(model, _DISABLE.mjDSBL_CONTACT, _DISABLE.mjDSBL_CONSTRAINT):
        return no_pairs()
    explicit, filtered = _explicit_pairs(model), _filtered_pairs(model)
    filtered = filtered[~np.isin(_pair_codes(model, filtered), _pair_codes(model, explicit))]
    pairs = np.concatenate([explicit, filtered]).view(np.recarray)
    if model.opt.enableflags & _OVERRIDE.value:
        friction = model.opt.o_friction
        pairs.friction, pairs.margin, pairs.rotational_friction = friction[0], model.opt.o_margin, friction[2:4]
    return pairs


def split_supported(model: mujoco.MjModel, pairs: GeomPairs) -> tuple[GeomPairs, GeomPairs]:
    """Pairs whose collision is supported, and the others."""
    rows, ends = np.unique([pairs.first, pairs.second], return_inverse=True)
    supported = supported_pairs([geom_shape(model, geom) for geom in rows.tolist()], *ends.reshape(2, -1))
    return pairs[supported].view(np.recarray), pairs[~supported].view(np.recarray)


def hold_penetrating(model: mujoco.MjModel, pairs: GeomPairs, max_penetration: float) -> GeomPairs:
    """Mark the pairs that penetrate by more than `max_penetration`, m, in the reference pose."""
    data = mujoco.MjData(model)
    mujoco.mj_fwdPosition(model, data)
    distances: dict[frozenset[int], float] = {}
    for contact in data.contact:
        geoms = frozenset(int(geom) for geom in contact.geom)
        distances[geoms] = min(float(contact.dist), distances.get(geoms, math.inf))
    pairs = pairs.copy()
    for geoms, distance in distances.items():
        first, second = min(geoms), max(geoms)
        rows = (np.minimum(pairs.first, pairs.second) == first) & (np.maximum(pairs.first, pairs.second) == second)
        pairs.is_held |= rows & (distance - pairs.margin < -max_penetration)
    return pairs


def _pair_codes(model: mujoco.MjModel, pairs: GeomPairs) -> np.ndarray:
    """Number of each pair that does not depend on the order of its geoms."""
    return np.minimum(pairs.first, pairs.second) * model.ngeom + np.maximum(pairs.first, pairs.second)


def geom_name(model: mujoco.MjModel, geom: int) -> str:
    """Kind and name of a geom, with its body."""
    kind = mujoco.mjtGeom(int(model.geom_type[geom])).name.removeprefix("mjGEOM_").lower()
    body = object_name(model, "body", int(model.geom_bodyid[geom]))
    return f"{kind} {model.geom(geom).name!r} of {body!r}" if model.geom(geom).name else f"{kind} of {body!r}"


def shape_pairs(pairs: GeomPairs, rows: dict[int, int], rotational_friction: bool) -> ShapePairs:
    """Pairs of shapes of pairs of geoms.

    Args:
        pairs: Pairs of geoms.
        rows: Row of each geom in the engine's geometry.
        rotational_friction: If true, pairs have torsional and rolling friction.
    """
    row = np.full(max(rows, default=0) + 1, -1)
    row[list(rows)] = list(rows.values())
    table = ShapePairs.repeat(len(pairs), ShapePair(0, 0))
    columns = table.rows
    columns.first, columns.second, columns.margin = row[pairs.first], row[pairs.second], pairs.margin
    columns.friction, columns.priority, columns.is_held = pairs.friction, pairs.priority, pairs.is_held
    columns.frictionless = pairs.condim == 1
    columns.has_rotational_friction = rotational_friction & (pairs.condim > 3)
    columns.rotational_friction = pairs.rotational_friction
    columns.rotational_friction[pairs.condim <= 4, 1] = 0.0
    return table


def unsupported_contacts(model: mujoco.MjModel) -> dict[str, str]:
    """Unsupported features of contact, each of `CONTACT_FEATURES` with the names of its geoms."""
    pairs = geom_pairs(model)

    def names(unsupported: GeomPairs) -> str:
        ends = zip(unsupported.first.tolist(), unsupported.second.tolist(), strict=True)
        return join_names(f"{geom_name(model, first)} and {geom_name(model, second)}" for first, second in ends)

    return {"pair": names(split_supported(model, pairs)[1]), "surface": _special_surfaces(model, pairs)}


def _special_surfaces(model: mujoco.MjModel, pairs: GeomPairs) -> str:
    """Names of colliding geoms with adhesion or a surface velocity."""
    colliding = colliding_geoms(pairs)
    special = set(np.flatnonzero(nonzero_rows(model.geom_adhesion) | nonzero_rows(model.geom_surfacevel)).tolist())
    special |= set(model.pair_geom1[nonzero_rows(model.pair_adhesion)].tolist())
    return join_names(geom_name(model, geom) for geom in sorted(colliding & special))


def colliding_geoms(pairs: GeomPairs) -> set[int]:
    """Geoms of all pairs."""
    return set(np.concatenate([pairs.first, pairs.second]).tolist())


def _explicit_pairs(model: mujoco.MjModel) -> GeomPairs:
    pairs = np.recarray(model.npair, _PAIR)
    pairs.first, pairs.second, pairs.condim = model.pair_geom1, model.pair_geom2, model.pair_dim
    pairs.friction, pairs.priority, pairs.margin = model.pair_friction[:, 0], 0, model.pair_margin
    pairs.rotational_friction, pairs.is_held = model.pair_friction[:, 2:4], False
    return pairs


def _filtered_pairs(model: mujoco.MjModel) -> GeomPairs:
    """Pairs that pass the collision masks, with the numbers of the geom of higher priority; of equals the larger."""
    first, second = _filtered_geoms(model)
    pairs = np.recarray(len(first), _PAIR)
    pairs.first, pairs.second, pairs.friction, pairs.rotational_friction = first, second, np.nan, np.nan
    pairs.priority = np.sign(model.geom_priority[first] - model.geom_priority[second])
    condims = np.stack([model.geom_condim[first], model.geom_condim[second]])
    pairs.condim = np.where(pairs.priority == 0, condims.max(0), np.where(pairs.priority > 0, *condims))
    pairs.margin, pairs.is_held = model.geom_margin[first] + model.geom_margin[second], False
    return pairs


def _filtered_geoms(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """First and second geoms of the pairs that pass the collision masks, in increasing order."""
    # Geoms of a body with the same masks are alike; bodies that are welded are one, unless some are excluded.
    bodies = model.geom_bodyid if len(model.exclude_signature) else model.body_weldid[model.geom_bodyid]
    masks = np.stack([model.geom_contype, model.geom_conaffinity, bodies], 1)
    groups, group_of = np.unique(masks.reshape(-1, 3), axis=0, return_inverse=True)
    group_of = group_of.reshape(-1)
    collide, members = _mask_matrix(model, *groups.T), np.bincount(group_of)
    count = int(members @ collide @ members) // 2
    if count > SETTINGS.max_geom_pairs:
        text = f"{count:,} pairs of geoms may collide; expected at most {SETTINGS.max_geom_pairs:,}"
        raise UnsupportedError(f"{text}: leave some out by contype and conaffinity")
    partners = {
        first: first + 1 + np.flatnonzero(collide[group][group_of[first + 1 :]])
        for first, group in enumerate(group_of.tolist())
        if collide[group].any()
    }
    first = np.repeat(list(partners), [len(row) for row in partners.values()])
    return first.astype(int), np.concatenate([np.zeros(0, int), *partners.values()])


def _mask_matrix(model: mujoco.MjModel, types: np.ndarray, affinities: np.ndarray, body: np.ndarray) -> np.ndarray:
    """True for the groups of geoms that may collide by MuJoCo's masks and filters, (groups, groups)."""
    collide = (types[:, None] & affinities[None]) != 0
    collide |= collide.T
    root = model.body_weldid[body]
    collide &= root[:, None] != root[None]
    if not is_disabled(model, _DISABLE.mjDSBL_FILTERPARENT):
        parent = model.body_weldid[model.body_parentid[root]]
        related = parent[:, None] == root[None]
        # In MuJoCo a body collides with the world even where the world is its parent.
        moves = root != 0
        collide &= ~((related | related.T) & moves[:, None] & moves[None])
    if len(model.exclude_signature):
        low, high = np.minimum(body[:, None], body[None]).astype(np.int64), np.maximum(body[:, None], body[None])
        collide &= ~np.isin((low << 16) + high, model.exclude_signature)
    return collide
