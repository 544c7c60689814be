"""Flow networks as files."""

from __future__ import annotations

import os
from pathlib import Path

from physvision.core import CheckpointError
from physvision.core.registry import register
from physvision.core.resources import find
from physvision.core.weights import read_weights, write_weights
from physvision.perception.flow import PyramidFlow

FORMAT = "physvision flow 1"


def save_flow(path: str | os.PathLike[str], network: PyramidFlow) -> Path:
    """Write `network` to a file, usually NAME.safetensors."""
    return write_weights(path, network.state_dict(), {"levels": network.levels, "width": network.width}, FORMAT)


@register("physvision.perception.load_flow")
def load_flow(name: str = "flow") -> PyramidFlow:
    """The flow network `name`: one that comes with physvision ("flow"), or the path of a .safetensors file.

    Raises:
        FileError: there is no such file.
        CheckpointError: it is damaged, or holds something else.
    """
    path = find(f"{name}.safetensors" if Path(name).suffix == "" else str(name), "models")
    tensors, configuration = read_weights(path, FORMAT)
    try:
        network = PyramidFlow(**configuration)
        network.load_state_dict(tensors)
    except (TypeError, RuntimeError) as error:
        raise CheckpointError(f"{path}: its weights do not fit its configuration ({error})") from error
    return network.eval()
