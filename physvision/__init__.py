"""Video in, physics out: differentiable engines and a differentiable camera between an encoder and a decoder."""

from importlib.metadata import version

from physvision.core import neighbours as _neighbours

_neighbours.declare_torchvision_operators()

from physvision.core import (  # noqa: E402  the operators come first
    InputError,
    PhysvisionError,
    State,
    Status,
    Trajectory,
)

__version__ = version("physvision")
__all__ = ["InputError", "PhysvisionError", "State", "Status", "Trajectory", "__version__"]
