"""A clip and a kind of motion in; physical parameters with intervals out."""

from physvision.identify.identification import HeldOut, Identification
from physvision.identify.identify import identify
from physvision.identify.model import Known
from physvision.identify.own_motion import OwnMotion
from physvision.identify.parameters import Parameter

__all__ = ["HeldOut", "Identification", "Known", "OwnMotion", "Parameter", "identify"]
