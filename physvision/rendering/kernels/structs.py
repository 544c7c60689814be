"""Data of the kernels: view, materials, planes, light and triangles.

Surfaces are ordered by their nearness, which is affine on the screen for every plane and triangle: the inverse depth
through a pinhole, and `far` less the depth for an orthographic camera. The center of a pixel has whole coordinates.
"""

import warp as wp

SKY = wp.constant(-1)  # number of a sample without a surface; plane k has the number −2 − k
SAMPLES = wp.constant(4)  # samples of a pixel in a picture
BLOCK = wp.constant(8)  # texels along a side of a block of the sun's picture


@wp.struct
class View:
    """Camera, of which x points right, y down and z forward."""

    rotation: wp.mat33  # from the world to the camera
    translation: wp.vec3
    eye: wp.vec3  # position in the world
    focal: float  # pixels, for each meter if orthographic
    center_x: float  # pixels
    center_y: float
    orthographic: int
    far: float  # m


@wp.struct
class Material:
    """Color and texture of a surface."""

    color: wp.vec3  # linear
    gloss: float
    texel: int  # first texel of the largest image; −1 for no texture
    width: int  # texels of the largest image
    height: int
    levels: int  # images, each half as large as the one before
    repeat_x: float
    repeat_y: float


@wp.struct
class Plane:
    """Plane or rectangle, drawn without triangles."""

    origin: wp.vec3
    axis_x: wp.vec3
    axis_y: wp.vec3
    normal: wp.vec3
    half_x: float  # m; 0 if infinite
    half_y: float
    grid: float  # side of a square of the grid, m; 0 for none
    nearness: wp.vec3  # nearness = x · px + y · py + z
    material: int


@wp.struct
class Light:
    """Sun, sky and ground; colors are linear."""

    sun: wp.vec3  # unit vector towards the sun
    up: wp.vec3
    sun_color: wp.vec3
    sky_color: wp.vec3  # light from above
    ground_color: wp.vec3  # light from below
    horizon: wp.vec3  # color of the sky at the horizon, and of everything far away
    zenith: wp.vec3
    haze: float  # distance at which a plane has faded by 63 %, m
    backdrop: int  # 1 if the planes are walls of a flat world, which do not fade


@wp.struct
class Shadow:
    """Depth picture from the sun, an orthographic view."""

    view: View
    nearness: wp.array3d(dtype=float)  # (rows, columns, 1)
    highest: wp.array2d(dtype=float)  # largest and smallest nearness in and about every block
    lowest: wp.array2d(dtype=float)
    size: int
    bias: float  # m
    width: float  # growth of the penumbra for each meter between an object and its shadow
    max_radius: float  # texels


@wp.struct
class Frame:
    """Triangles of a frame and what is known of them."""

    world: wp.array(dtype=wp.vec3)  # positions of the vertices
    normals: wp.array(dtype=wp.vec3)
    uv: wp.array(dtype=wp.vec2)
    faces: wp.array2d(dtype=int)  # (faces, 3)
    groups: wp.array(dtype=int)  # number of the smooth piece of a face
    face_materials: wp.array(dtype=int)
    materials: wp.array(dtype=Material)
    texels: wp.array(dtype=wp.vec3)
    planes: wp.array(dtype=Plane)
    plane_count: int
    nearness: wp.array3d(dtype=float)  # (rows, columns, samples)
    ids: wp.array3d(dtype=int)
    offsets: wp.array(dtype=wp.vec2)  # of the samples from the center of the pixel
    width: int
    textured: int  # 1 if a triangle may have a texture


@wp.struct
class Surfel:
    """Point of a surface that is lit."""

    point: wp.vec3
    normal: wp.vec3  # towards the camera
    direction: wp.vec3  # unit vector of the ray
    color: wp.vec3
    gloss: float
    shade: float  # factor of the color
    fade: float  # part that the haze replaces
    material: int
    u: float  # texture coordinates
    v: float
    spread: float  # of the pixel, in texture coordinates
