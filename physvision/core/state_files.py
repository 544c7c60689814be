"""Save and load states and trajectories as safetensors; nothing is unpickled."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from physvision.core.checks import check_positive, check_shape
from physvision.core.errors import CheckpointError, InputError
from physvision.core.resources import StrPath
from physvision.core.serialization import build_dataclass
from physvision.core.state import State, Status, Trajectory
from physvision.core.weights import read_weights, write_weights

FORMAT = "physvision states 1"
_STATUS = tuple(field.name for field in fields(Status))


@dataclass(frozen=True)
class _Grid:
    """Time grid of a saved trajectory, stored beside its tensors."""

    dt: float | None = None

    def __post_init__(self) -> None:
        if self.dt is not None:
            check_positive("dt", self.dt)


def save_states(path: StrPath, states: State | Trajectory) -> Path:
    """Save a state, or a trajectory with its time step and status, to a file NAME.safetensors."""
    tensors, about = {"q": states.q, "v": states.v}, {}
    if isinstance(states, Trajectory):
        about = {"dt": states.dt}
        if states.status is not None:
            tensors |= {f"status.{name}": getattr(states.status, name) for name in _STATUS}
    return write_weights(path, tensors, about, FORMAT)


def load_states(path: StrPath) -> State | Trajectory:
    """Load a state or trajectory that `save_states` wrote.

    Raises:
        FileError: There is no such file.
        CheckpointError: The file is damaged, or does not contain states.
    """
    tensors, about = read_weights(path, FORMAT)
    status = {name: tensors.pop(key) for name in _STATUS if (key := f"status.{name}") in tensors}
    times = 1 if about else 0
    if set(tensors) != {"q", "v"} or status.keys() not in (set(), set(_STATUS)):
        raise CheckpointError(f"{path}: expected tensors q and v, got {', '.join(tensors) or 'nothing'}")
    q, v = tensors["q"], tensors["v"]
    try:
        dt = build_dataclass(_Grid, about, "configuration").dt
        check_shape("v", v, (*check_shape("q", q, (None,) * (2 + times)).shape[:-1], None))
        for name, value in status.items():
            check_shape(name, value, (len(q),))
    except InputError as error:
        raise CheckpointError(f"{path}: {error}") from error
    return Trajectory(q, v, Status(**status) if status else None, dt) if times else State(q, v)
