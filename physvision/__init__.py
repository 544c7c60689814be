"""Video in, physics out: differentiable engines and a differentiable camera between an encoder and a decoder."""

from importlib.metadata import version

from physvision.core import InputError, PhysvisionError, State, Status, Trajectory

__version__ = version("physvision")
__all__ = ["InputError", "PhysvisionError", "State", "Status", "Trajectory", "__version__"]
