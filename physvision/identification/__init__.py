"""Identification of a simple motion in a clip: its kind, and its physical parameters with intervals."""

from physvision.identification.custom_scene import CustomScene
from physvision.identification.diagnostics import Holdout
from physvision.identification.model import KnownValue
from physvision.identification.parameters import Parameter
from physvision.identification.pipeline import identify
from physvision.identification.result import Identification
from physvision.identification.settings import IdentificationSettings

__all__ = ["CustomScene", "Holdout", "Identification", "IdentificationSettings", "KnownValue", "Parameter", "identify"]
