"""The numbers of compliant contact that a MuJoCo model asks for."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from physvision.core import UnsupportedError
from physvision.physics.articulated.contact import Compliant
from physvision.physics.articulated.loading.contacts import GeomPair

_OVERRIDE = mujoco.mjtEnableBit.mjENBL_OVERRIDE.value
_SHAPE = (0.5, 2.0)  # middle and power of the curve along which the share grows


def compliance(model: mujoco.MjModel, pairs: Sequence[GeomPair], limits: bool) -> Compliant:
    """The law by which all pairs and stops of a model push, if there is one.

    Args:
        model: of the file.
        pairs: that may touch.
        limits: whether joints have stops.

    Raises:
        UnsupportedError: contacts and stops differ in their numbers, or ask for what `Compliant` has not.
    """
    explicit = {(int(model.pair_geom1[k]), int(model.pair_geom2[k])): k for k in range(model.npair)}
    found: set[tuple[tuple[float, ...], tuple[float, ...]]] = set()
    for pair in pairs:
        if (k := explicit.get((pair.first, pair.second))) is not None:
            found.add((tuple(model.pair_solref[k]), tuple(model.pair_solimp[k])))
        else:
            ends = (pair.first, pair.second)
            found |= {(tuple(model.geom_solref[geom]), tuple(model.geom_solimp[geom])) for geom in ends}
    if model.opt.enableflags & _OVERRIDE and pairs:
        found = {(tuple(model.opt.o_solref), tuple(model.opt.o_solimp))}
    if limits:
        limited = [joint for joint in range(model.njnt) if model.jnt_limited[joint]]
        found |= {(tuple(model.jnt_solref[joint]), tuple(model.jnt_solimp[joint])) for joint in limited}
    if not found:
        return Compliant()
    told = "; ".join(f"solref {list(map(float, one))}, solimp {list(map(float, two))}" for one, two in sorted(found))
    (reference, shares), *others = sorted(found)
    if others:
        raise UnsupportedError(
            f"contact: 'compliant' has the same numbers for all contacts and stops, and the file has several ({told}); "
            f"give contact=Compliant(…) with those that all shall have"
        )
    if reference[0] <= 0 or shares[3:] != _SHAPE or model.opt.impratio != 1.0:
        raise UnsupportedError(
            f"contact: 'compliant' has a time constant, shares that grow by squares about the middle, and impratio 1; "
            f"the file has {told}, impratio {model.opt.impratio:g}; give contact=Compliant(…) to go without"
        )
    return Compliant(float(reference[0]), float(reference[1]), (float(shares[0]), float(shares[1])), float(shares[2]))
