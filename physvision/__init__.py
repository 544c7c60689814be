"""Video in, physics out: differentiable engines and a differentiable camera between an encoder and a decoder.

The verbs and the basic types are here; everything else is in the package of its field, such as `physvision.physics`.
Names are imported when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from physvision import (
        camera as camera,
        control as control,
        core as core,
        datasets as datasets,
        envs as envs,
        estimation as estimation,
        identification as identification,
        learning as learning,
        losses as losses,
        models as models,
        perception as perception,
        physics as physics,
        prediction as prediction,
        report as report,
        trainers as trainers,
        video as video,
    )
    from physvision.core import (
        InputError as InputError,
        PhysvisionError as PhysvisionError,
        State as State,
        Status as Status,
        Trajectory as Trajectory,
    )
    from physvision.identification.pipeline import identify as identify
    from physvision.models import load as load
    from physvision.prediction import predict as predict
    from physvision.simulation import simulate as simulate

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

_PACKAGES = ("camera", "control", "core", "datasets", "envs", "estimation", "identification", "learning", "losses")
_PACKAGES += ("models", "perception", "physics", "prediction", "report", "trainers", "video")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value = version("physvision")
    elif name in _SYMBOLS:
        value = getattr(importlib.import_module(_SYMBOLS[name]), name)
    elif name in _PACKAGES:
        value = importlib.import_module(f"physvision.{name}")
    else:
        raise AttributeError(f"module 'physvision' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_SYMBOLS, *_PACKAGES, "__version__"})
