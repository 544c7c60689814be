"""A scene's motion again in MuJoCo with its contact made hard: does a result live off the simulator?"""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
import torch
from torch import Tensor

from physvision.core import State, Trajectory
from physvision.physics.articulated import scenes
from physvision.physics.articulated.loading.contacts import geom_pairs

STEP = 1e-4  # s
ALONG = 0.01  # s, time constant of contact along surfaces


def replay(
    scene: str,
    start: State,
    steps: int,
    dt: float,
    *,
    step: float = STEP,
    along: float = ALONG,
    change: Callable[[mujoco.MjSpec], None] = lambda model: None,
    adapt: Callable[[mujoco.MjModel], None] = lambda model: None,
    forces: Tensor | None = None,
    controls: Callable[[State], Tensor] | Tensor | None = None,
) -> Trajectory:
    """The motion of one world in MuJoCo, a state each `dt`.

    Across surfaces contact is as stiff as MuJoCo's steps allow, a time constant of two; its cone is round. Along
    surfaces it is softer: were it as stiff, the convex problem that MuJoCo solves would lift off the ground what
    slides fast on it.

    Args:
        scene: one of `scenes.names()`.
        start: Initial state of one world.
        steps: Number of steps of `dt`.
        dt: seconds, a multiple of `step`.
        step: MuJoCo's, s.
        along: time constant of contact along surfaces, s.
        change: makes other changes to the model before it is compiled.
        adapt: makes other changes to the compiled model.
        forces: generalized, held over each step, (steps, nv).
        controls: Controls of the actuators, held over each step, (steps, nu), or a function from the state at the start
            of a step to controls, (1, nu). Servos keep the largest speed of the scene.
    """
    specification = mujoco.MjSpec.from_file(str(scenes.path(scene)))
    change(specification)
    model = _hard(specification, step, along)
    model.opt.timestep, model.opt.cone, model.opt.impratio = step, mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    adapt(model)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = start.q[0].tolist(), start.v[0].tolist()
    q, v = [data.qpos.copy()], [data.qvel.copy()]
    speed, target = scenes.MAX_SERVO_SPEED.get(scene), np.zeros(model.nu)
    # Targets no further ahead than this make no servo, whose gain is kp / kv, ask for more than its largest speed.
    ahead = None if speed is None else speed * model.actuator_biasprm[:, 2] / model.actuator_biasprm[:, 1]
    for count in range(steps):
        if callable(controls):
            target = controls(State(torch.tensor(data.qpos)[None], torch.tensor(data.qvel)[None]))[0].numpy()
        elif controls is not None:
            target = controls[count].numpy()
        if forces is not None:
            data.qfrc_applied[:] = forces[count].tolist()
        if controls is not None and ahead is not None:
            for _ in range(round(dt / step)):
                angle = data.actuator_length
                np.minimum(np.maximum(target, angle - ahead), angle + ahead, out=data.ctrl)
                mujoco.mj_step(model, data)
        else:
            data.ctrl[:] = target
            mujoco.mj_step(model, data, round(dt / step))
        q.append(data.qpos.copy())
        v.append(data.qvel.copy())
    return Trajectory(torch.tensor(np.array(q))[None], torch.tensor(np.array(v))[None], dt=dt)


def _hard(specification: mujoco.MjSpec, step: float, along: float) -> mujoco.MjModel:
    """The model with its contacts listed pair by pair, for only then may they be stiff in one direction alone."""
    loose = specification.compile()
    for pair in geom_pairs(loose):
        first, second = (loose.geom(geom) for geom in (pair.first, pair.second))
        slide = max(first.friction[0], second.friction[0]) if np.isnan(pair.friction) else pair.friction
        specification.add_pair(
            geomname1=first.name,
            geomname2=second.name,
            condim=int(pair.condim),
            friction=[slide, slide, 0, 0, 0],
            solref=[2 * step, 1.0],
            solreffriction=[along, 1.0],
            solimp=[0.99, 0.999, 1e-4, 0.5, 2.0],
        )
    return specification.compile()
