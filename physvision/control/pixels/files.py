"""Policies that see, as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from torch import Tensor

from physvision.control.pixels.network import FramePolicy
from physvision.core import CheckpointError
from physvision.core.resources import find
from physvision.core.weights import read_weights, write_weights

FORMAT = "physvision pendulum 1"


def save_policy(path: str | os.PathLike[str], policy: FramePolicy) -> Path:
    """Write `policy` to a file, usually NAME.safetensors."""
    return write_weights(path, policy.state_dict(), policy.configuration, FORMAT)


def load_policy(name: str | os.PathLike[str] = "pendulum-pixels") -> FramePolicy:
    """The policy `name`: one that comes with physvision, or the path of a .safetensors file.

    Raises:
        FileError: there is no such file.
        CheckpointError: it is damaged, or holds something else.
    """
    path = find(f"{name}.safetensors" if Path(name).suffix == "" else str(name), "models")
    return policy_of(str(path), *read_weights(path, FORMAT)[::-1])


def policy_of(path: str, configuration: dict[str, Any], tensors: dict[str, Tensor]) -> FramePolicy:
    """The policy of this configuration with these weights; `path` is where they come from."""
    try:
        policy = FramePolicy(**configuration)
        policy.load_state_dict(tensors)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: its weights do not fit its configuration ({error})") from error
    return policy.eval()
