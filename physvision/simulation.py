"""`physvision simulate`: a model file and its controls in, a film of the motion out."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from physvision.core import InputError, State, load_states, save_states
from physvision.core.checks import check_positive
from physvision.core.tables import read_table
from physvision.physics import articulated
from physvision.physics.articulated import Articulation, scenes
from physvision.report import OutputFolder, render_video

# What is shown where neither controls nor an option say how long, s.
_SECONDS = 5.0


def simulate(
    scene: str,
    controls: str | None = None,
    seconds: float | None = None,
    dt: float = 0.01,
    start: str | None = None,
    out: str | None = None,
    ignore: str | None = None,
    restitution: float | None = None,
    separate: bool = False,
) -> int:
    """Simulate a mechanism and film its motion in real time.

    Args:
        scene: an MJCF or URDF file, or the name of a scene that comes with physvision.
        controls: a table with a column for each control that is not zero, by name. Its rows are held for a step each,
            or, with a column t, from then on.
        seconds: how long to simulate; as long as the controls, or 5 s, if not given.
        dt: seconds a step.
        start: where to begin: a keyframe of the file by name, or states written by `save_states`; as the file places
            its bodies if not given.
        out: the film, an MP4 file; the states go beside it as .safetensors. out/NAME.mp4 of the scene if not given.
        ignore: what the file may hold that is not simulated, as contact,limit.
        restitution: of every shape that may touch; the scene's own, or 0 for a file, if not given.
        separate: push apart what overlaps at the start; without it such a world fails.
    """
    path = Path(out) if out else Path("out") / f"{Path(scene).stem}.mp4"
    left_out = [word.strip() for word in (ignore or "").split(",") if word.strip()]
    if scene in scenes.names() and not Path(scene).exists():
        engine = scenes.load(scene, dt, left_out, restitution)
    else:
        engine = articulated.load(scene, dt, ignore=left_out, restitution=restitution or 0.0)
    table = None if controls is None else read_controls(engine, controls, seconds)
    steps = math.ceil((_SECONDS if seconds is None else check_positive("seconds", seconds)) / dt - 1e-9)
    begin = _beginning(engine, start)
    if separate:
        begin = engine.separated(begin)
    trajectory = engine.rollout(begin, steps if table is None else table.shape[1], table)
    good = torch.nonzero(trajectory.q[0].isfinite().all(-1)).flatten()
    with OutputFolder(path.parent):
        print(render_video(engine, trajectory[: int(good[-1]) + 1], path))
        print(save_states(path.with_suffix(".safetensors"), trajectory))
    failed = trajectory.status is not None and not bool(trajectory.status.converged.all())
    return 1 if failed else 0


def read_controls(engine: Articulation, path: str, seconds: float | None = None) -> Tensor:
    """The controls (1, steps, nu) that a table holds.

    Args:
        engine: whose controls they are.
        path: the table: a column for each control that is not zero, by name, and perhaps one of times, `t`, s.
        seconds: how long they are wanted; the last row is held. As long as the table if not given.
    """
    names, values = read_table(path)
    names = [name.strip() for name in names]
    timed = next((column for column, name in enumerate(names) if name.lower() in ("t", "time")), None)
    strange = [name for column, name in enumerate(names) if column != timed and name not in engine.control_names]
    if strange:
        known = ", ".join(engine.control_names) or "none"
        raise InputError(f"{path}: there is no control {strange[0]!r}; there are {known}")
    if not len(values) or not np.isfinite(values).all():
        raise InputError(f"{path}: expected rows without empty fields, got {len(values)} rows")
    times = np.arange(len(values)) * engine.dt if timed is None else values[:, timed]
    if timed is not None and (times[0] > 0.0 or (np.diff(times) <= 0.0).any()):
        raise InputError(f"{path}: expected times that begin at 0 and grow")
    end = seconds if seconds is not None else times[-1] + engine.dt
    moments = np.arange(math.ceil(end / engine.dt - 1e-9)) * engine.dt
    rows = np.searchsorted(times, moments + 1e-9 * engine.dt, side="right") - 1
    held = torch.zeros(1, len(moments), engine.nu, dtype=torch.float64)
    for column, name in enumerate(names):
        if column != timed:
            held[0, :, engine.control_names.index(name)] = torch.tensor(values[rows, column])
    return held


def _beginning(engine: Articulation, start: str | None) -> State:
    if start is None:
        return engine.initial_state(dtype=torch.float64)
    if start in engine.keyframes:
        return engine.keyframes[start]
    if not Path(start).is_file():
        known = ", ".join(engine.keyframes) or "none"
        raise InputError(f"start: expected a keyframe (there are {known}) or a file of states, got {start!r}")
    states = load_states(start)
    return (states if isinstance(states, State) else states.final).to(torch.float64)
