"""A clip and a kind of motion in; physical parameters with intervals out."""

from physvision.identification.identification import HeldOut, Identification
from physvision.identification.identify import identify
from physvision.identification.model import Known
from physvision.identification.own_motion import OwnMotion
from physvision.identification.parameters import Parameter

__all__ = ["HeldOut", "Identification", "Known", "OwnMotion", "Parameter", "identify"]
