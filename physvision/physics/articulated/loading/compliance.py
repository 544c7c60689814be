"""Laws of compliant contact that a MuJoCo model asks for."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from physvision.core import UnsupportedError
from physvision.physics.articulated.contact import Compliant, CompliantConstraints, CompliantLaws, CompliantRow
from physvision.physics.articulated.loading.contacts import GeomPairs
from physvision.physics.articulated.loading.names import is_disabled, nonzero_rows
from physvision.physics.articulated.loading.tendons import SiteTendon
from physvision.physics.articulated.loading.transmissions import FileTransmission, active_equalities, is_loop
from physvision.physics.articulated.model.bodies import JOINT_KINDS
from physvision.physics.articulated.model.mechanism import Mechanism

_OVERRIDE = mujoco.mjtEnableBit.mjENBL_OVERRIDE.value
_MIN_IMPEDANCE, _MAX_IMPEDANCE = 1e-4, 0.9999  # mjMINIMP and mjMAXIMP
_MIN_FRICTION = 1e-5  # mjMINMU
_MIN_WIDTH = 1e-15  # mjMINVAL
_DEFAULT_SOLREF, _DEFAULT_SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)


def compliant_law(
    model: mujoco.MjModel,
    pairs: GeomPairs,
    tendons: Sequence[SiteTendon],
    mechanism: Mechanism,
    transmissions: Sequence[FileTransmission],
    dt: float,
) -> CompliantLaws:
    """Laws of all constraints of a model, in the order of the engine.

    Args:
        model: Model of the file.
        pairs: Pairs of geoms that may collide.
        tendons: Tendons between sites.
        mechanism: Translated model.
        transmissions: Transmissions of the mechanism with their elements of the file.
        dt: Length of an integrator step, s; time constants are at least twice as long where MuJoCo's are.

    Raises:
        UnsupportedError: The model uses features of contact that `Compliant` lacks.
    """
    _check_pairs(model)
    shortest = 0.0 if is_disabled(model, mujoco.mjtDisableBit.mjDSBL_REFSAFE) else 2 * dt

    def row(solref: np.ndarray, solimp: np.ndarray, *mobilities: float) -> CompliantRow:
        return CompliantRow(_law(solref, solimp, shortest), *mobilities)

    joints = [joint for body in mechanism.bodies for joint in body.joints]
    limited = [number for number, joint in enumerate(joints) if joint.limits is not None]
    friction = [
        velocity
        for number, joint in enumerate(joints)
        for velocity in range(model.jnt_dofadr[number], model.jnt_dofadr[number] + JOINT_KINDS[joint.kind].nv)
        if joint.friction_loss
    ]
    # Accelerations of velocities by a force of one; MuJoCo's leave out the armature of bodies on their own.
    inverse_masses = model.dof_invweight0
    loops = [e for e in active_equalities(model) if mechanism.loop_joints and is_loop(model, e)]
    return CompliantLaws(
        CompliantConstraints(
            pairs=[row(*_pair_numbers(model, pair), _pair_mobility(model, pair)) for pair in pairs]
            + [
                row(model.tendon_solref_lim[t], model.tendon_solimp_lim[t], float(model.tendon_invweight0[t]))
                for tendon in tendons
                for t in [tendon.number] * tendon.limits
            ],
            limits=[
                row(model.jnt_solref[joint], model.jnt_solimp[joint], float(inverse_masses[model.jnt_dofadr[joint]]))
                for joint in limited
            ],
            transmissions=[
                *(row(model.dof_solref[d], model.dof_solimp[d], float(inverse_masses[d])) for d in friction),
                *(row(*_transmission_numbers(model, element)) for element in transmissions),
            ],
            loops=[row(model.eq_solref[e], model.eq_solimp[e], *_loop_mobilities(model, e)) for e in loops],
            is_elliptic=bool(model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC),
            friction_ratio=float(model.opt.impratio),
        )
    )


def shift_limits(model: mujoco.MjModel) -> None:
    """Shift limits of joints and tendons inwards by their margins, where MuJoCo's constraints begin."""
    for limits, margin in ((model.jnt_range, model.jnt_margin), (model.tendon_range, model.tendon_margin)):
        limits[:, 0] += margin
        limits[:, 1] -= margin


def raise_friction(model: mujoco.MjModel) -> None:
    """Raise coefficients of friction to MuJoCo's smallest ones, which keep its friction cone open."""
    for friction in (model.geom_friction, model.pair_friction, model.opt.o_friction):
        np.maximum(friction, _MIN_FRICTION, out=friction)


def _check_pairs(model: mujoco.MjModel) -> None:
    """Raise for explicit pairs with numbers that change MuJoCo's forces."""
    unsupported = {
        "anisotropic friction": (model.pair_friction[:, 0] != model.pair_friction[:, 1])
        | (model.pair_friction[:, 3] != model.pair_friction[:, 4]),
        "solreffriction": nonzero_rows(model.pair_solreffriction),
    }
    names = [name for name, rows in unsupported.items() if np.any(rows)]
    if names:
        raise UnsupportedError(
            f"contact: explicit pairs have {' and '.join(names)}, which compliant contact lacks; pass "
            "contact=Compliant(…), or ignore=('contact',)"
        )


def _pair_numbers(model: mujoco.MjModel, pair: np.record) -> tuple[np.ndarray, np.ndarray]:
    """Parameters solref and solimp of a pair of geoms."""
    if model.opt.enableflags & _OVERRIDE:
        return model.opt.o_solref, model.opt.o_solimp
    for k in range(model.npair):
        if (model.pair_geom1[k], model.pair_geom2[k]) == (pair.first, pair.second):
            return model.pair_solref[k], model.pair_solimp[k]
    return _mix(model, pair)


def _pair_mobility(model: mujoco.MjModel, pair: np.record) -> float:
    """Sum of the accelerations of two geoms' bodies by a force of one."""
    return float(model.body_invweight0[model.geom_bodyid[[pair.first, pair.second]], 0].sum())


def _transmission_numbers(model: mujoco.MjModel, element: FileTransmission) -> tuple[np.ndarray, np.ndarray, float]:
    """Parameters solref and solimp of a transmission, and its mobility; a servo needs none."""
    number = element.number
    if element.kind == "equality":
        is_joint = model.eq_type[number] == mujoco.mjtEq.mjEQ_JOINT.value
        sides = [int(side) for side in (model.eq_obj1id[number], model.eq_obj2id[number]) if side >= 0]
        weights = [
            float(model.dof_invweight0[model.jnt_dofadr[side]] if is_joint else model.tendon_invweight0[side])
            for side in sides
        ]
        return model.eq_solref[number], model.eq_solimp[number], sum(weights)
    if element.kind == "limit":
        return model.tendon_solref_lim[number], model.tendon_solimp_lim[number], float(model.tendon_invweight0[number])
    if element.kind == "friction":
        return model.tendon_solref_fri[number], model.tendon_solimp_fri[number], float(model.tendon_invweight0[number])
    return np.array(_DEFAULT_SOLREF), np.array(_DEFAULT_SOLIMP), 1.0


def _loop_mobilities(model: mujoco.MjModel, e: int) -> tuple[float, float]:
    """Accelerations of both bodies of a loop constraint by a force and by a moment of one."""
    bodies = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
    if model.eq_objtype[e] == mujoco.mjtObj.mjOBJ_SITE.value:
        bodies = [int(model.site_bodyid[site]) for site in bodies]
    linear, angular = model.body_invweight0[bodies].sum(0)
    return float(linear), float(angular)


def _mix(model: mujoco.MjModel, pair: np.record) -> tuple[np.ndarray, np.ndarray]:
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
    if (solref[0] > 0) != (solref[1] > 0):
        solref = np.array(_DEFAULT_SOLREF)  # as MuJoCo does, with a warning
    low, high, midpoint = (float(np.clip(solimp[k], _MIN_IMPEDANCE, _MAX_IMPEDANCE)) for k in (0, 1, 3))
    width, power = float(solimp[2]), max(float(solimp[4]), 1.0)
    shape = ((low, high), width if width > _MIN_WIDTH else 0.0, midpoint, power)
    if solref[0] > 0:
        return Compliant(max(float(solref[0]), shortest), float(solref[1]), *shape)
    return Compliant(*_DEFAULT_SOLREF, *shape, stiffness=-float(solref[0]), damping=-float(solref[1]))
