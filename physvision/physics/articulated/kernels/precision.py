"""Precision, vector types and compile-time options of these kernels.

`physvision.kernels.precision.load` sets the globals that are read here before it runs this module; the defaults serve a
plain import.
"""

import warp as wp

scalar = globals().get("scalar", wp.float64)
DOUBLE = scalar is wp.float64

# If true, pairs of general convex shapes are supported; kernels without them compile in less time.
convex_pairs = globals().get("convex_pairs", False)
# If true, the friction cone is replaced by a pyramid.
pyramidal = globals().get("pyramidal", False)
# If true, contact points lie midway between the surfaces, with MuJoCo's tangents, instead of on the second surface.
midway = globals().get("midway", False)

vec2 = wp.types.vector(length=2, dtype=scalar)
vec3 = wp.types.vector(length=3, dtype=scalar)
vec4 = wp.types.vector(length=4, dtype=scalar)
mat33 = wp.types.matrix(shape=(3, 3), dtype=scalar)
mat43 = wp.types.matrix(shape=(4, 3), dtype=scalar)

Array1d, Array2d, Array3d, Array4d = (wp.array(dtype=scalar, ndim=n) for n in (1, 2, 3, 4))
IntArray1d, IntArray2d = (wp.array(dtype=wp.int32, ndim=n) for n in (1, 2))
Vec3Array1d, Vec3Array2d, Vec3Array3d = (wp.array(dtype=vec3, ndim=n) for n in (1, 2, 3))
Mat33Array2d = wp.array2d(dtype=mat33)

# Compiler flags of rollouts: fused multiply-add takes a tenth less time, and packing small matrices into vector
# registers costs more in shuffles than it saves.
FUSED = {"cpu_compiler_flags": f"{wp.config.cpu_compiler_flags} -ffp-contract=fast -fno-slp-vectorize"}
