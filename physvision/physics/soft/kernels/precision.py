"""Dimension, types and compile-time options of the kernels of elastic bodies.

`physvision.kernels.precision.load` sets the option `solid` or `cloth` for bodies in space; the default is the plane.
"""

import warp as wp

D = 3 if globals().get("solid") or globals().get("cloth") else 2
CORNERS = 3 if globals().get("cloth") else D + 1
real = wp.float64
AXES = wp.constant(wp.float64(D))
Vec = wp.types.vector(D, wp.float64)
Mat = wp.types.matrix((D, D), wp.float64)
Reals = wp.array(dtype=wp.float64)
Nodes = wp.array(dtype=Vec)
Nodes2d = wp.array2d(dtype=Vec)
Nodes3d = wp.array3d(dtype=Vec)
Reals3d = wp.array3d(dtype=wp.float64)
Integers = wp.array(dtype=wp.int32)
