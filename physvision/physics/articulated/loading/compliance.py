"""The numbers of compliant contact that a MuJoCo model asks for."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from physvision.core import UnsupportedError
from physvision.physics.articulated.contact import Compliant, CompliantEach
from physvision.physics.articulated.loading.contacts import GeomPair
from physvision.physics.articulated.loading.names import disabled

_OVERRIDE = mujoco.mjtEnableBit.mjENBL_OVERRIDE.value
_LEAST, _MOST = 1e-4, 0.9999  # of shares, in MuJoCo
_CURVE = (0.5, 2.0)  # middle and power of the curve along which the share grows


def compliance(model: mujoco.MjModel, pairs: Sequence[GeomPair], limits: bool, dt: float) -> CompliantEach:
    """The numbers of all pairs of geoms, and of the stops of joints in the order of the model.

    Args:
        model: of the file.
        pairs: that may touch.
        limits: whether joints have stops.
        dt: seconds a step of the integrator; time constants are at least twice as long, where MuJoCo's are.

    Raises:
        UnsupportedError: it asks for what `Compliant` has not.
    """
    _check_options(model, pairs)
    least = 0.0 if disabled(model, mujoco.mjtDisableBit.mjDSBL_REFSAFE) else 2 * dt
    explicit = {(int(model.pair_geom1[k]), int(model.pair_geom2[k])): k for k in range(model.npair)}
    found = []
    for pair in pairs:
        k = explicit.get((pair.first, pair.second))
        if model.opt.enableflags & _OVERRIDE:
            numbers = model.opt.o_solref, model.opt.o_solimp
        elif k is not None:
            numbers = model.pair_solref[k], model.pair_solimp[k]
        else:
            numbers = _mixed(model, pair)
        found.append(_law(*numbers, least))
    stops = [joint for joint in range(model.njnt) if limits and model.jnt_limited[joint]]
    of_stops = (_law(model.jnt_solref[joint], model.jnt_solimp[joint], least) for joint in stops)
    return CompliantEach(tuple(found), tuple(of_stops))


def move_stops(model: mujoco.MjModel) -> None:
    """Move the stops of joints inwards by the margins at which MuJoCo's reference is reached."""
    model.jnt_range[:, 0] += model.jnt_margin
    model.jnt_range[:, 1] -= model.jnt_margin


def _check_options(model: mujoco.MjModel, pairs: Sequence[GeomPair]) -> None:
    """Raise for options of contact that change MuJoCo's forces."""
    asked = []
    if pairs and model.opt.impratio != 1.0:
        asked.append(f"impratio {model.opt.impratio:g}")
    if pairs and model.opt.cone != mujoco.mjtCone.mjCONE_PYRAMIDAL:
        asked.append("an elliptic cone")
    if any(model.pair_friction[k, 0] != model.pair_friction[k, 1] for k in range(model.npair)):
        asked.append("a pair with two frictions")
    if asked:
        raise UnsupportedError(
            f"contact: compliant contact has a pyramid with one friction for each pair and impratio 1, the file "
            f"{', '.join(asked)}; give contact=Compliant(…) to go without"
        )


def _mixed(model: mujoco.MjModel, pair: GeomPair) -> tuple[np.ndarray, np.ndarray]:
    """What two geoms have together: that of the one of higher priority, or the mean by their weights."""
    first, second = pair.first, pair.second
    weights = np.array([model.geom_solmix[first], model.geom_solmix[second]])
    share = weights[0] / weights.sum() if weights.sum() > 0 else 0.5
    share = {1: 1.0, -1: 0.0, 0: share}[pair.prevails]
    reference, shares = (
        share * each[first] + (1 - share) * each[second] for each in (model.geom_solref, model.geom_solimp)
    )
    if pair.prevails == 0 and (model.geom_solref[[first, second], 0] <= 0).any():
        # Stiffness and damping told directly do not mix; the smaller ones count.
        reference = model.geom_solref[[first, second]].min(0)
    return reference, shares


def _law(reference: np.ndarray, shares: np.ndarray, shortest: float) -> Compliant:
    """The numbers with a time constant that is not below the shortest."""
    least, most = (float(np.clip(each, _LEAST, _MOST)) for each in shares[:2])
    if reference[0] <= 0 or reference[1] <= 0 or least > most or shares[2] <= 0 or tuple(shares[3:]) != _CURVE:
        raise UnsupportedError(
            "contact: compliant contact has a time constant, a damping ratio, and a share that grows by squares about "
            f"the middle of a width; the file has solref {reference.tolist()}, solimp {shares.tolist()}"
        )
    return Compliant(max(float(reference[0]), shortest), float(reference[1]), (least, most), float(shares[2]))
