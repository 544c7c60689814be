"""Which geoms of a MuJoCo model may touch, with whose friction, and what of that cannot be simulated."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from physvision.physics.articulated.contact import Touching, features
from physvision.physics.articulated.loading.geometry import shape_of
from physvision.physics.articulated.loading.names import any_in_row, disabled, listed, named

_DISABLE = mujoco.mjtDisableBit
# What of contact may be refused; to leave contact out leaves these out too.
CONTACT_KINDS = ("pair", "turning_friction", "surface")
_OVERRIDE = mujoco.mjtEnableBit.mjENBL_OVERRIDE


@dataclass(frozen=True)
class GeomPair:
    """Two geoms that may touch, by MuJoCo's rules.

    Attributes:
        first: number of one geom.
        second: number of the other.
        directions: 1 without friction, 3 with it, more where it resists turning.
        friction: of an explicit pair; None where the geoms' own mix.
        prevails: 1 where only the first geom's friction counts, −1 where only the second's.
        margin: m apart at which they touch.
        turning: lengths of an explicit pair against spinning and rolling, m; None where the geoms' own mix.
    """

    first: int
    second: int
    directions: int
    friction: float | None
    prevails: int
    margin: float
    turning: tuple[float, float] | None = None


def geom_pairs(model: mujoco.MjModel) -> list[GeomPair]:
    """All pairs that may touch: those that the file names, and those that its masks let through."""
    if disabled(model, _DISABLE.mjDSBL_CONTACT) or disabled(model, _DISABLE.mjDSBL_CONSTRAINT):
        return []
    named_pairs = list(_explicit(model))
    taken = {frozenset((pair.first, pair.second)) for pair in named_pairs}
    return named_pairs + [pair for pair in _by_masks(model) if frozenset((pair.first, pair.second)) not in taken]


def by_rule(model: mujoco.MjModel, pairs: Sequence[GeomPair]) -> tuple[list[GeomPair], list[GeomPair]]:
    """The pairs of whose shapes there is a rule, and the others."""
    shapes = {geom: shape_of(model, geom) for geom in {geom for pair in pairs for geom in (pair.first, pair.second)}}
    found: tuple[list[GeomPair], list[GeomPair]] = ([], [])
    for pair in pairs:
        first, second = shapes[pair.first], shapes[pair.second]
        ruled = first is not None and second is not None and features(first, second) is not None
        found[0 if ruled else 1].append(pair)
    return found


def touching(pairs: Sequence[GeomPair], rows: dict[int, int], turns: bool) -> list[Touching]:
    """Pairs by the rows that their geoms have in the engine's geometry; friction against turning where `turns`."""
    return [
        Touching(
            rows[each.first],
            rows[each.second],
            each.friction,
            each.prevails,
            each.directions == 1,
            each.margin,
            turns and each.directions > 3,
            _turning(each),
        )
        for each in pairs
    ]


def _turning(pair: GeomPair) -> tuple[float, float]:
    """Lengths against spinning and rolling: not a number where the geoms' mix, no rolling in four directions."""
    torsion, rolling = pair.turning or (np.nan, np.nan)
    return torsion, rolling if pair.directions > 4 else 0.0


def contact_findings(model: mujoco.MjModel) -> dict[str, str]:
    """What of contact cannot be simulated: of each of `CONTACT_KINDS` the geoms by name."""
    pairs = geom_pairs(model)

    def names(chosen: Iterable[GeomPair]) -> str:
        return listed(f"{_geom_name(model, each.first)} and {_geom_name(model, each.second)}" for each in chosen)

    return {
        "pair": names(by_rule(model, pairs)[1]),
        "surface": _driven_surfaces(model, pairs),
    }


def _driven_surfaces(model: mujoco.MjModel, pairs: Sequence[GeomPair]) -> str:
    """Geoms that stick, or whose surface moves by itself."""
    touch = {geom for pair in pairs for geom in (pair.first, pair.second)}
    special = set(np.flatnonzero(any_in_row(model.geom_adhesion) | any_in_row(model.geom_surfacevel)).tolist())
    special |= set(model.pair_geom1[any_in_row(model.pair_adhesion)].tolist())
    return listed(_geom_name(model, geom) for geom in sorted(touch & special))


def _explicit(model: mujoco.MjModel) -> Iterator[GeomPair]:
    for k in range(model.npair):
        first, second = int(model.pair_geom1[k]), int(model.pair_geom2[k])
        given = model.pair_friction[k]
        friction, margin, turning = _overridden(model, given, float(model.pair_margin[k]))
        yield GeomPair(first, second, int(model.pair_dim[k]), friction, 0, margin, turning)


def _by_masks(model: mujoco.MjModel) -> Iterator[GeomPair]:
    excluded = {int(signature) for signature in model.exclude_signature}
    filters_parents = not disabled(model, _DISABLE.mjDSBL_FILTERPARENT)
    for first in range(model.ngeom):
        for second in range(first + 1, model.ngeom):
            if _may_touch(model, first, second, excluded, filters_parents):
                yield _mixed(model, first, second)


def _mixed(model: mujoco.MjModel, first: int, second: int) -> GeomPair:
    """The geom of higher priority decides; of equals the larger numbers do."""
    higher = int(np.sign(model.geom_priority[first] - model.geom_priority[second]))
    condim = [int(model.geom_condim[geom]) for geom in (first, second)]
    directions = {1: condim[0], -1: condim[1], 0: max(condim)}[higher]
    margin = float(model.geom_margin[first] + model.geom_margin[second])
    friction, margin, turning = _overridden(model, None, margin)
    return GeomPair(first, second, directions, friction, higher, margin, turning)


def _overridden(
    model: mujoco.MjModel, friction: np.ndarray | None, margin: float
) -> tuple[float | None, float, tuple[float, float] | None]:
    """A pair's own friction, margin and lengths of turning friction, or those that the options give all pairs."""
    if model.opt.enableflags & _OVERRIDE.value:
        friction, margin = model.opt.o_friction, float(model.opt.o_margin)
    if friction is None:
        return None, margin, None
    return float(friction[0]), margin, (float(friction[2]), float(friction[3]))


def _may_touch(model: mujoco.MjModel, first: int, second: int, excluded: set[int], filters_parents: bool) -> bool:
    types, affinities = model.geom_contype, model.geom_conaffinity
    if not (types[first] & affinities[second] or types[second] & affinities[first]):
        return False
    bodies = sorted((int(model.geom_bodyid[first]), int(model.geom_bodyid[second])))
    roots = [int(model.body_weldid[body]) for body in bodies]
    if roots[0] == roots[1] or (bodies[0] << 16) + bodies[1] in excluded:
        return False
    carriers = [int(model.body_weldid[model.body_parentid[root]]) for root in roots]
    related = carriers[0] == roots[1] or carriers[1] == roots[0]
    # MuJoCo lets a body touch the world even where the world is its parent.
    return not (filters_parents and related and 0 not in roots)


def _geom_name(model: mujoco.MjModel, geom: int) -> str:
    kind = mujoco.mjtGeom(int(model.geom_type[geom])).name.removeprefix("mjGEOM_").lower()
    body = named(model, "body", int(model.geom_bodyid[geom]))
    return f"{kind} {model.geom(geom).name!r} of {body!r}" if model.geom(geom).name else f"{kind} of {body!r}"
