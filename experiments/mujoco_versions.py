"""MuJoCo 3 and 4: what differs between them, for tests and benchmarks that compare with either."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np

IS_4 = int(mujoco.__version__.split(".")[0]) >= 4
# Attributes and elements of MJCF that only one of them has.
ADDED_IN_4 = {"springyield", "castshadow", "speculative"}
REMOVED_IN_4 = ("body/composite", "equality/flexvert")


def runge_kutta_steps(model: mujoco.MjModel, data: mujoco.MjData, steps: int) -> None:
    """Take steps of fourth order: MuJoCo 4's own, or the same of MuJoCo 3's accelerations and positions.

    `mj_step` of MuJoCo 3 adds the angular velocities of the stages, although each belongs to another orientation, which
    is of second order only. MuJoCo 4 adds rates u̇ = J_r(u)⁻¹ ω of the rotation vector u since the start of the step.
    With activations of actuators, the steps of MuJoCo 3 are its own.
    """
    if IS_4 or model.na:
        mujoco.mj_step(model, data, steps)
        return
    h = model.opt.timestep
    for _ in range(steps):
        q, v = data.qpos.copy(), data.qvel.copy()
        rates, accelerations = [], []
        for fraction in (0.0, 0.5, 0.5, 1.0):
            turn = np.zeros(model.nv)
            if rates:
                turn = fraction * h * rates[-1]
                data.qpos[:], data.qvel[:] = q, v + fraction * h * accelerations[-1]
                mujoco.mj_integratePos(model, data.qpos, turn, 1.0)
            mujoco.mj_forward(model, data)
            rates.append(_rate(model, turn, data.qvel))
            accelerations.append(data.qacc.copy())
        weights = np.array([1.0, 2.0, 2.0, 1.0]) / 6
        data.qpos[:], data.qvel[:] = q, v + h * weights @ np.array(accelerations)
        mujoco.mj_integratePos(model, data.qpos, weights @ np.array(rates), h)


def _rate(model: mujoco.MjModel, turn: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Rate of `turn`, which holds the rotation vectors of ball and free joints in the places of their velocities."""
    result = velocity.copy()
    for kind, first in zip(model.jnt_type, model.jnt_dofadr, strict=True):
        if kind in (mujoco.mjtJoint.mjJNT_BALL.value, mujoco.mjtJoint.mjJNT_FREE.value):
            at = slice(first + 3, first + 6) if kind == mujoco.mjtJoint.mjJNT_FREE.value else slice(first, first + 3)
            u, w = turn[at], velocity[at]
            angle = float(np.linalg.norm(u))
            # The inverse of the right Jacobian of the exponential map, whose last factor tends to 1/12.
            factor = 1 / 12 if angle < 1e-3 else 1 / angle**2 - 1 / (2 * angle * np.tan(angle / 2))
            result[at] = w + 0.5 * np.cross(u, w) + factor * np.cross(u, np.cross(u, w))
    return result
