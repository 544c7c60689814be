"""Kernels of the rasterizer, which draw triangles into buffers of several samples a pixel and light them."""

from .rasterize import find_extremes, find_rows, project, rasterize, transform
from .shade import shade
from .structs import BLOCK, Frame, Light, Material, Plane, Shadow, View
