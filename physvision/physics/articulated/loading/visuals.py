"""Looks of a model file, which have no influence: meshes, skins, materials with textures, visual elements of URDF."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from physvision.core import FileError, ModelError, Placed
from physvision.core.visuals import NO_VISUALS, Look, Surface, Visuals
from physvision.physics.articulated.loading.geometry import geom_shape, matrix, placed_geom
from physvision.physics.articulated.loading.model_files import compile_model, is_urdf, read_source
from physvision.physics.articulated.loading.mujoco_compiler import MESH_FILES, reads_collada

# Geoms of these groups and above are hidden in MuJoCo's own viewer: they are there to collide.
FIRST_HIDDEN_GROUP = 3
_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)


def read_visuals(
    source: str | os.PathLike[str], packages: Sequence[str | os.PathLike[str]], rows: Mapping[int, int], bodies: int
) -> Visuals:
    """Read the looks of a model file again, which happens when they are first drawn.

    Args:
        source: Path of the file, or the XML itself.
        packages: Folders that hold the packages of meshes.
        rows: Row of each geom in the engine's geometry, as the file compiles without visual elements of URDF.
        bodies: Number of bodies of the engine.
    """
    try:
        urdf = is_urdf(read_source(source))
        model, _ = compile_model(source, packages=packages, visual=True)
    except (FileError, ModelError) as error:
        warnings.warn(f"visual elements are not drawn: {error}", stacklevel=2)
        return NO_VISUALS
    if model.nbody != bodies + 1:
        warnings.warn("visual elements are not drawn: the file has changed since it was loaded", stacklevel=2)
        return NO_VISUALS
    if urdf:
        _warn_of_formats(read_source(source))
    return _urdf_visuals(model, rows) if urdf else _mjcf_visuals(model, rows)


def _warn_of_formats(content: str) -> None:
    """Warn of meshes whose format is not read, in place of which collision shapes are drawn."""
    formats = (*MESH_FILES, *([".dae"] if reads_collada() else []))
    files = re.findall(r"""<mesh\s[^>]*filename\s*=\s*["']([^"']+)""", content)
    unread = sorted({file for file in files if not file.lower().endswith(formats)})
    if unread:
        warnings.warn(
            f"{len(unread)} meshes are not drawn, such as {unread[0]}: expected one of {', '.join(formats)}. Collision "
            'shapes are drawn in their place; pip install "physvision[viewer]" to read .dae',
            stacklevel=2,
        )


def _mjcf_visuals(model: mujoco.MjModel, rows: Mapping[int, int]) -> Visuals:
    surfaces: list[Surface] = []
    shapes: list[tuple[Placed, Look]] = []
    looks: dict[int, Look] = {}
    hidden: set[int] = set()
    all_hidden = model.ngeom > 0 and bool((model.geom_group >= FIRST_HIDDEN_GROUP).all())
    for geom in range(model.ngeom):
        row, look = rows.get(geom), geom_look(model, geom)
        if model.geom_group[geom] >= FIRST_HIDDEN_GROUP and not all_hidden:
            hidden.update(() if row is None else (row,))
        elif model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH:
            hidden.update(() if row is None else (row,))
            surfaces.append(_mesh_surface(model, geom, look))
        elif row is not None:
            looks[row] = look
        elif geom_shape(model, geom) is not None:
            shapes.append((_placed(model, geom), look))
    skins = np.flatnonzero(model.skin_group < FIRST_HIDDEN_GROUP).tolist()
    surfaces.extend(_skin_surface(model, skin) for skin in skins)
    return Visuals(tuple(surfaces), frozenset(hidden), looks, tuple(shapes))


def _urdf_visuals(model: mujoco.MjModel, rows: Mapping[int, int]) -> Visuals:
    """Visual elements of all links; collision shapes stay where a link has none."""
    visual = [geom for geom in range(model.ngeom) if not (model.geom_contype[geom] or model.geom_conaffinity[geom])]
    dressed = {int(model.geom_bodyid[geom]) for geom in visual}
    # Collision geoms come in the order in which they are compiled alone.
    colliding = [geom for geom in range(model.ngeom) if geom not in set(visual)]
    hidden = {
        rows[number]
        for number, geom in enumerate(colliding)
        if int(model.geom_bodyid[geom]) in dressed and number in rows
    }
    meshes = [geom for geom in visual if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH]
    surfaces = tuple(_mesh_surface(model, geom, geom_look(model, geom)) for geom in meshes)
    others = [geom for geom in visual if geom not in meshes and geom_shape(model, geom) is not None]
    shapes = tuple((_placed(model, geom), geom_look(model, geom)) for geom in others)
    return Visuals(surfaces, frozenset(hidden), {}, shapes)


def _placed(model: mujoco.MjModel, geom: int) -> Placed:
    placed, body = placed_geom(model, geom), int(model.geom_bodyid[geom])
    return Placed(placed.shape, body - 1 if body else None, placed.pose, placed.color, placed.name)


def geom_look(model: mujoco.MjModel, geom: int) -> Look:
    """Color and texture of a geom, by MuJoCo's rules."""
    material = int(model.geom_matid[geom])
    look = _look(model, material, model.geom_rgba[geom])
    is_plane = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE
    if look.texture is None or not is_plane or model.mat_texuniform[material]:
        return look
    size = model.geom_size[geom][:2]
    along_x, along_y = np.array(look.repeat) / np.where(size > 0, 2 * size, 1.0)
    return replace(look, repeat=(float(along_x), float(along_y)))


def _look(model: mujoco.MjModel, material: int, color: NDArray[np.float32]) -> Look:
    """Look of a material, −1 for none, and the color set on the geom or skin."""
    use_set_color = material < 0 or not np.allclose(color, _DEFAULT_RGBA)
    red, green, blue, opacity = map(float, color if use_set_color else model.mat_rgba[material])
    texture = -1 if material < 0 else int(model.mat_texid[material, mujoco.mjtTextureRole.mjTEXROLE_RGB])
    if texture < 0:
        return Look((red, green, blue), opacity=opacity)
    image = _image(model, texture)
    if model.tex_type[texture] != mujoco.mjtTexture.mjTEXTURE_2D:
        return Look(Look((red, green, blue), image).mean_color, opacity=opacity)
    along_x, along_y = map(float, model.mat_texrepeat[material])
    return Look((red, green, blue), image, (along_x, along_y), opacity)


def _image(model: mujoco.MjModel, texture: int) -> NDArray[np.uint8]:
    """Texture in RGB; the six sides of a cube lie below one another."""
    height, width, channels = (
        int(values[texture]) for values in (model.tex_height, model.tex_width, model.tex_nchannel)
    )
    start = int(model.tex_adr[texture])
    pixels = model.tex_data[start : start + height * width * channels].reshape(height, width, channels)
    return np.ascontiguousarray(pixels[..., [0, 0, 0]] if channels < 3 else pixels[..., :3])


def _mesh_surface(model: mujoco.MjModel, geom: int, look: Look) -> Surface:
    """Mesh of a geom in the frame of its body."""
    mesh = int(model.geom_dataid[geom])
    part = slice(int(model.mesh_faceadr[mesh]), int(model.mesh_faceadr[mesh] + model.mesh_facenum[mesh]))
    has_uv = int(model.mesh_texcoordadr[mesh]) >= 0 and look.texture is not None
    corners = [model.mesh_face[part], model.mesh_facenormal[part]]
    corners += [model.mesh_facetexcoord[part]] if has_uv else []
    index = np.stack(corners, -1).reshape(-1, len(corners))
    unique, faces = np.unique(index, axis=0, return_inverse=True)
    rotation = matrix(model.geom_quat[geom])
    vertices = model.mesh_vert[int(model.mesh_vertadr[mesh]) + unique[:, 0]].astype(float) @ rotation.T
    normals = model.mesh_normal[int(model.mesh_normaladr[mesh]) + unique[:, 1]].astype(float) @ rotation.T
    uv = model.mesh_texcoord[int(model.mesh_texcoordadr[mesh]) + unique[:, 2]].astype(float) if has_uv else None
    bodies = np.full(len(vertices), int(model.geom_bodyid[geom]) - 1)
    faces = faces.reshape(-1, 3)
    return Surface(vertices + model.geom_pos[geom], faces, bodies, look, normals, uv, model.geom(geom).name)


def _skin_surface(model: mujoco.MjModel, skin: int) -> Surface:
    """Skin, each vertex of which is carried by the bone that has the most weight there."""
    part = _slice(model.skin_vertadr, model.skin_vertnum, skin)
    placed = model.skin_vert[part].astype(float)
    vertices, bodies, largest = placed.copy(), np.full(len(placed), -1), np.zeros(len(placed))
    for bone in range(model.nskinbone)[_slice(model.skin_boneadr, model.skin_bonenum, skin)]:
        own = _slice(model.skin_bonevertadr, model.skin_bonevertnum, bone)
        rows, weights = model.skin_bonevertid[own], model.skin_bonevertweight[own]
        rows, weights = rows[weights > largest[rows]], weights[weights > largest[rows]]
        largest[rows], bodies[rows] = weights, int(model.skin_bonebodyid[bone]) - 1
        vertices[rows] = (placed[rows] - model.skin_bonebindpos[bone]) @ matrix(model.skin_bonebindquat[bone])
    faces = model.skin_face[_slice(model.skin_faceadr, model.skin_facenum, skin)]
    look, start = _look(model, int(model.skin_matid[skin]), model.skin_rgba[skin]), int(model.skin_texcoordadr[skin])
    has_uv = start >= 0 and look.texture is not None
    uv = model.skin_texcoord[start : start + len(placed)].astype(float) if has_uv else None
    return Surface(vertices, faces, bodies, look, uv=uv, name=model.skin(skin).name)


def _slice(starts: NDArray[np.int32], counts: NDArray[np.int32], number: int) -> slice:
    return slice(int(starts[number]), int(starts[number] + counts[number]))
