"""Checkpoint files of policies that act on camera frames."""

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
    """Write a policy to a file, usually NAME.safetensors."""
    return write_weights(path, policy.state_dict(), policy.configuration, FORMAT)


def load_policy(name: str | os.PathLike[str] = "pendulum-pixels") -> FramePolicy:
    """Load a policy that comes with physvision, by its name, or a .safetensors file, by its path.

    Raises:
        FileError: There is no such file.
        CheckpointError: The file is damaged or holds another kind of model.
    """
    path = find(name, "models")
    tensors, configuration = read_weights(path, FORMAT)
    return build_policy(str(path), configuration, tensors)


def build_policy(path: str, configuration: dict[str, Any], tensors: dict[str, Tensor]) -> FramePolicy:
    """Build a policy from its configuration and weights; errors name the path that they come from."""
    try:
        policy = FramePolicy(**configuration)
        policy.load_state_dict(tensors)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: expected weights that fit the configuration ({error})") from error
    return policy.eval()
