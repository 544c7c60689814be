"""Simulate a mechanism from a model file or a shipped scene; `physvision simulate` also films the motion."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from physvision.core import InputError, State, Trajectory, load_states, save_states
from physvision.core.checks import count_steps
from physvision.core.tables import read_table
from physvision.physics import articulated
from physvision.physics.articulated import Articulation, scenes
from physvision.physics.articulated.penetration import describe_penetration
from physvision.report import OutputFolder, render_video

DEFAULT_SECONDS = 5.0  # s, where neither controls nor an option set the duration
MIN_NAMED_PENETRATION = 1e-4  # m or rad, in messages about failures


def simulate(
    scene: str | Articulation,
    controls: Tensor | None = None,
    seconds: float | None = None,
    dt: float = 0.01,
    start: State | None = None,
    ignore: Sequence[str] = (),
    restitution: float | None = None,
    base: str = "auto",
) -> Trajectory:
    """Simulate a mechanism from a start state.

    Args:
        scene: Path of an MJCF or URDF file, name of a shipped scene, or an engine.
        controls: Controls of the actuators, (batch, steps, nu), held constant within a step; zero by default.
        seconds: Duration, s; as long as the controls, or 5 s, by default.
        dt: Time step, s; that of an engine is its own.
        start: Initial state; the reference pose of the file by default.
        ignore: Elements of the file that are left out although they cannot be simulated, such as "contact" or "limit".
        restitution: Coefficient of restitution of all contacts; that of the scene, or 0 for a file, by default.
        base: Base of a root body without a joint: "fixed" to the world, "free" to move, "ground", free to move on the
            plane z = 0, or "auto", as MuJoCo reads the file, which means fixed for a URDF.
    """
    engine = scene if isinstance(scene, Articulation) else load_engine(scene, dt, ignore, restitution, base)
    state = engine.initial_state(dtype=torch.float64) if start is None else start
    steps = count_steps("seconds", DEFAULT_SECONDS if seconds is None else seconds, engine.dt)
    return engine.rollout(state, steps if controls is None else controls.shape[1], controls)


def load_engine(
    scene: str, dt: float = 0.01, ignore: Sequence[str] = (), restitution: float | None = None, base: str = "auto"
) -> Articulation:
    """Load the engine of a shipped scene by its name, or of an MJCF or URDF file; arguments as in `simulate`."""
    if scene in scenes.names() and not Path(scene).exists():
        return scenes.load(scene, dt, list(ignore), restitution)
    contact = articulated.ContactSettings(restitution=restitution or 0.0)
    return articulated.load(scene, dt, base, list(ignore), contact=contact)


def tell_fixed_base(scene: str, base: str) -> None:
    """Tell the user of a URDF file that its base does not move, which the file itself does not say."""
    if base == "auto" and Path(scene).suffix.lower() == ".urdf":
        text = "the base is fixed to the world; --base free lets it move, --base ground puts it on a ground"
        print(f"physvision: {scene}: {text}", file=sys.stderr)


def command(
    scene: str,
    controls: str | None = None,
    seconds: float | None = None,
    dt: float = 0.01,
    start: str | None = None,
    out: str | None = None,
    ignore: str | None = None,
    restitution: float | None = None,
    separate: bool = False,
    base: str = "auto",
) -> int:
    """Simulate a mechanism and film its motion in real time.

    Args:
        scene: MJCF or URDF file, or the name of a shipped scene.
        controls: Table with a column for every control that is not zero, by name. A row is held for one step or, with a
            column t, until the next time.
        seconds: Duration, s; as long as the controls, or 5 s, by default.
        dt: Time step, s.
        start: Name of a keyframe of the file, or a file of states; the reference pose of the file by default.
        out: Film, an MP4 file; the states are written beside it as .safetensors. Default: out/SCENE.mp4.
        ignore: Elements of the file to leave out although they cannot be simulated, such as contact,limit.
        restitution: Coefficient of restitution of all contacts; that of the scene, or 0 for a file, by default.
        separate: If true, push apart bodies that overlap at the start. Without it, those that overlap in the reference
            pose keep their overlap until they separate, and a world with others fails.
        base: Base of a root body without a joint: "fixed" to the world, "free" to move, "ground", free to move on the
            plane z = 0, or "auto", as MuJoCo reads the file, which means fixed for a URDF.
    """
    path = Path(out) if out else Path("out") / f"{Path(scene).stem}.mp4"
    ignored = [word.strip() for word in (ignore or "").split(",") if word.strip()]
    engine = load_engine(scene, dt, ignored, restitution, base)
    tell_fixed_base(scene, base)
    table = None if controls is None else read_controls(engine, controls, seconds)
    state = _initial_state(engine, start)
    trajectory = simulate(engine, table, seconds, start=engine.resolve_penetration(state) if separate else state)
    finite = torch.nonzero(trajectory.q[0].isfinite().all(-1)).flatten()
    failed = trajectory.status is not None and not bool(trajectory.status.converged.all())
    last = int(finite[-1])
    penetration = describe_penetration(engine, trajectory.state(last), MIN_NAMED_PENETRATION)
    message = f"the simulation fails after {last * engine.dt:g} s{penetration and ': '}{penetration}"
    if failed and last < 1:
        raise InputError(
            f"{message}; push bodies apart with --separate, start elsewhere with --start, or leave contact out "
            "with --ignore contact"
        )
    with OutputFolder(path.parent):
        print(render_video(engine, trajectory[: last + 1], path))
        print(save_states(path.with_suffix(".safetensors"), trajectory))
    if failed:
        print(f"physvision simulate: {message}; a shorter step, --dt {engine.dt / 2:g}, may help", file=sys.stderr)
    return 1 if failed else 0


def read_controls(engine: Articulation, path: str, seconds: float | None = None) -> Tensor:
    """Read the controls of an engine from a table, (1, steps, nu).

    Args:
        engine: Engine whose controls the table names.
        path: Table with a column for every control that is not zero, by name, and optionally one of times `t`, s.
        seconds: Duration, s, for which the last row is held; that of the table by default.
    """
    names, values = read_table(path)
    names = [name.strip() for name in names]
    time_column = next((column for column, name in enumerate(names) if name.lower() in ("t", "time")), None)
    if len(set(names)) < len(names):
        raise InputError(f"{path}: a column stands twice among {', '.join(names)}; expected one for each control")
    unknown = [name for column, name in enumerate(names) if column != time_column and name not in engine.control_names]
    if unknown:
        available = ", ".join(engine.control_names) or "none"
        raise InputError(f"{path}: there is no control {unknown[0]!r}; there are {available}")
    if not len(values) or not np.isfinite(values).all():
        raise InputError(f"{path}: expected rows without empty fields, got {len(values)} rows")
    times = np.arange(len(values)) * engine.dt if time_column is None else values[:, time_column]
    if time_column is not None and (times[0] > 0.0 or (np.diff(times) <= 0.0).any()):
        raise InputError(f"{path}: expected times that begin at 0 and increase")
    end = seconds if seconds is not None else times[-1] + engine.dt
    step_times = np.arange(count_steps("seconds", end, engine.dt)) * engine.dt
    rows = np.searchsorted(times, step_times + 1e-9 * engine.dt, side="right") - 1
    controls = torch.zeros(1, len(step_times), engine.nu, dtype=torch.float64)
    for column, name in enumerate(names):
        if column != time_column:
            controls[0, :, engine.control_names.index(name)] = torch.tensor(values[rows, column])
    return controls


def _initial_state(engine: Articulation, start: str | None) -> State:
    if start is None:
        return engine.initial_state(dtype=torch.float64)
    if start in engine.keyframes:
        return engine.keyframes[start]
    if not Path(start).is_file():
        available = ", ".join(engine.keyframes) or "none"
        raise InputError(f"start: expected a keyframe (there are {available}) or a file of states, got {start!r}")
    states = load_states(start)
    return (states if isinstance(states, State) else states.final).to(torch.float64)
