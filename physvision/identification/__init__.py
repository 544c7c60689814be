"""Identification of a simple motion in a clip: its kind, and its physical parameters with intervals."""

from physvision.identification.custom_scene import CustomScene as CustomScene
from physvision.identification.diagnostics import Holdout as Holdout
from physvision.identification.model import KnownValue as KnownValue
from physvision.identification.parameters import Parameter as Parameter
from physvision.identification.pipeline import identify as identify
from physvision.identification.result import Identification as Identification
from physvision.identification.settings import IdentificationSettings as IdentificationSettings
