"""Video in, physics out: differentiable engines and a differentiable camera between an encoder and a decoder.

The verbs and the basic types are here; everything else is in the package of its field, such as `physvision.physics`.
Names are imported when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from physvision import (
        camera,
        control,
        core,
        datasets,
        envs,
        estimation,
        identification,
        learning,
        losses,
        models,
        perception,
        physics,
        prediction,
        report,
        trainers,
        video,
    )
    from physvision.core import InputError, PhysvisionError, State, Status, Trajectory
    from physvision.identification.pipeline import identify
    from physvision.models import load
    from physvision.prediction import predict
    from physvision.simulation import simulate

    __version__: str

# Name: module that defines it.
_SYMBOLS = {
    "InputError": "physvision.core",
    "PhysvisionError": "physvision.core",
    "State": "physvision.core",
    "Status": "physvision.core",
    "Trajectory": "physvision.core",
    "identify": "physvision.identification",
    "load": "physvision.models",
    "predict": "physvision.prediction",
    "simulate": "physvision.simulation",
}

__all__ = [
    "InputError",
    "PhysvisionError",
    "State",
    "Status",
    "Trajectory",
    "__version__",
    "camera",
    "control",
    "core",
    "datasets",
    "envs",
    "estimation",
    "identification",
    "identify",
    "learning",
    "load",
    "losses",
    "models",
    "perception",
    "physics",
    "predict",
    "prediction",
    "report",
    "simulate",
    "trainers",
    "video",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value = version("physvision")
    elif name in _SYMBOLS:
        value = getattr(importlib.import_module(_SYMBOLS[name]), name)
    elif name in __all__:
        value = importlib.import_module(f"physvision.{name}")
    else:
        raise AttributeError(f"module 'physvision' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
