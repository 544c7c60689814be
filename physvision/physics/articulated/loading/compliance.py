"""Laws of compliant contact that a MuJoCo model asks for."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from physvision.core import UnsupportedError
from physvision.physics.articulated.contact import Compliant, CompliantPairs
from physvision.physics.articulated.loading.contacts import GeomPair
from physvision.physics.articulated.loading.names import is_disabled

_OVERRIDE = mujoco.mjtEnableBit.mjENBL_OVERRIDE.value
_MIN_IMPEDANCE, _MAX_IMPEDANCE = 1e-4, 0.9999  # mjMINIMP and mjMAXIMP
_MIDPOINT_AND_POWER = (0.5, 2.0)  # of the curve of impedance over penetration


def compliant_law(model: mujoco.MjModel, pairs: Sequence[GeomPair], limits: bool, dt: float) -> CompliantPairs:
    """Laws of all pairs of geoms, and of the joint limits in the order of the model.

    Args:
        model: Model of the file.
        pairs: Pairs of geoms that may collide.
        limits: If true, joints have limits.
        dt: Length of an integrator step, s; time constants are at least twice as long where MuJoCo's are.

    Raises:
        UnsupportedError: The model uses features of contact that `Compliant` lacks.
    """
    _check_options(model, pairs)
    shortest = 0.0 if is_disabled(model, mujoco.mjtDisableBit.mjDSBL_REFSAFE) else 2 * dt
    explicit = {(int(model.pair_geom1[k]), int(model.pair_geom2[k])): k for k in range(model.npair)}
    laws = []
    for pair in pairs:
        k = explicit.get((pair.first, pair.second))
        if model.opt.enableflags & _OVERRIDE:
            numbers = model.opt.o_solref, model.opt.o_solimp
        elif k is not None:
            numbers = model.pair_solref[k], model.pair_solimp[k]
        else:
            numbers = _mix(model, pair)
        laws.append(_law(*numbers, shortest))
    limited = [joint for joint in range(model.njnt) if limits and model.jnt_limited[joint]]
    limit_laws = (_law(model.jnt_solref[joint], model.jnt_solimp[joint], shortest) for joint in limited)
    return CompliantPairs(tuple(laws), tuple(limit_laws))


def shift_joint_limits(model: mujoco.MjModel) -> None:
    """Shift joint limits inwards by their margins, where MuJoCo's constraints begin."""
    model.jnt_range[:, 0] += model.jnt_margin
    model.jnt_range[:, 1] -= model.jnt_margin


def _check_options(model: mujoco.MjModel, pairs: Sequence[GeomPair]) -> None:
    """Raise for options of contact that change MuJoCo's forces."""
    unsupported = []
    if pairs and model.opt.impratio != 1.0:
        unsupported.append(f"impratio {model.opt.impratio:g}")
    if pairs and model.opt.cone != mujoco.mjtCone.mjCONE_PYRAMIDAL:
        unsupported.append("an elliptic cone")
    if any(model.pair_friction[k, 0] != model.pair_friction[k, 1] for k in range(model.npair)):
        unsupported.append("a pair with anisotropic friction")
    if unsupported:
        raise UnsupportedError(
            f"contact: compliant contact has a pyramidal cone with isotropic friction and impratio 1, the file has "
            f"{', '.join(unsupported)}; pass contact=Compliant(…) to ignore it"
        )


def _mix(model: mujoco.MjModel, pair: GeomPair) -> tuple[np.ndarray, np.ndarray]:
    """Parameters solref and solimp of two geoms: those of the higher priority, or the mean by their weights."""
    first, second = pair.first, pair.second
    weights = np.array([model.geom_solmix[first], model.geom_solmix[second]])
    weight = weights[0] / weights.sum() if weights.sum() > 0 else 0.5
    weight = {1: 1.0, -1: 0.0, 0: weight}[pair.priority]
    solref, solimp = (
        weight * values[first] + (1 - weight) * values[second] for values in (model.geom_solref, model.geom_solimp)
    )
    if pair.priority == 0 and (model.geom_solref[[first, second], 0] <= 0).any():
        # Stiffness and damping in SI units do not mix; MuJoCo takes the smaller values.
        solref = model.geom_solref[[first, second]].min(0)
    return solref, solimp


def _law(solref: np.ndarray, solimp: np.ndarray, shortest: float) -> Compliant:
    """Law with a time constant of at least `shortest`, s."""
    low, high = (float(np.clip(impedance, _MIN_IMPEDANCE, _MAX_IMPEDANCE)) for impedance in solimp[:2])
    in_range = solref[0] > 0 and solref[1] > 0 and low <= high and solimp[2] > 0
    if not in_range or tuple(solimp[3:]) != _MIDPOINT_AND_POWER:
        raise UnsupportedError(
            "contact: compliant contact needs a positive time constant and damping ratio, and an impedance with "
            f"midpoint 0.5 and power 2; the file has solref {solref.tolist()}, solimp {solimp.tolist()}"
        )
    return Compliant(max(float(solref[0]), shortest), float(solref[1]), (low, high), float(solimp[2]))
