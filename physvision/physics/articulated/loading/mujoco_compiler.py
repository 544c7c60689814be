"""MuJoCo's compiler of model files, and the process that runs it for files that are not physvision's own.

Nothing of physvision is imported here, so that the process is ready in a fraction of a second.
"""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import mujoco
import numpy as np

MESH_FILES = (".stl", ".obj", ".msh")
_PREFIX = "package://"
# Longest wait for a model, in units of the processor time that it may take: a busy machine gives it a small share.
_WAITING = 8


@dataclass(frozen=True)
class CompilerRequest:
    """Model to be compiled.

    Attributes:
        source: Path of the file, or the XML itself.
        is_inline: If true, `source` is the XML.
        content: XML of a URDF whose visual elements are kept; None otherwise.
        base: Base of a root body without a joint, as in `load`.
        packages: Folders that hold the packages of meshes.
    """

    source: str
    is_inline: bool
    content: str | None = None
    base: str = "auto"
    packages: tuple[str, ...] = ()


def compile_request(request: CompilerRequest) -> mujoco.MjModel:
    """Compile the model of a request.

    Raises:
        OSError: A mesh of a package does not exist.
        ValueError: The file is not a model.
    """
    file = None if request.is_inline else Path(request.source)
    if request.content is not None:
        specification = mujoco.MjSpec.from_string(_with_visual_elements(request.content))
        specification.modelfiledir = "" if file is None else str(file.resolve().parent)
    elif file is None:
        specification = mujoco.MjSpec.from_string(request.source)
    else:
        specification = mujoco.MjSpec.from_file(request.source)
    specification.compiler.fusestatic = False
    _resolve_meshes(specification, file, request.packages)
    if request.content is not None:
        _read_collada_meshes(specification)
        _delete_unreadable_meshes(specification)
    if request.base in ("free", "ground"):
        for root in specification.worldbody.bodies:
            if not root.joints:
                root.add_freejoint()
    if request.base == "ground":
        _add_ground(specification)
    return specification.compile()


def _add_ground(specification: mujoco.MjSpec) -> None:
    """Add the plane z = 0, unless the world has a plane, and lift free bodies that reach below it."""
    world, plane = specification.worldbody, mujoco.mjtGeom.mjGEOM_PLANE
    if not any(geom.type == plane for geom in world.geoms):
        world.add_geom(type=plane, size=[0, 0, 0.05])
    free = [root for root in world.bodies if any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in root.joints)]
    lowest = _lowest_points(specification.compile())
    for root in free:
        root.pos[2] -= min(lowest[root.id], 0.0)


def _lowest_points(model: mujoco.MjModel) -> np.ndarray:
    """Height of the lowest corner of the boxes around the colliding geoms of each root body's tree, (bodies,)."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    lowest = np.full(model.nbody, np.inf)
    for geom in range(model.ngeom):
        root = model.body_rootid[model.geom_bodyid[geom]]
        if not (model.geom_contype[geom] or model.geom_conaffinity[geom]):
            continue
        center, half = model.geom_aabb[geom].reshape(2, 3)
        rotation = data.geom_xmat[geom].reshape(3, 3)
        height = data.geom_xpos[geom, 2] + rotation[2] @ center - np.abs(rotation[2]) @ half
        lowest[root] = min(height, lowest[root])
    return lowest


def _with_visual_elements(content: str) -> str:
    """Return URDF with an option of MuJoCo's by which its compiler keeps visual elements."""
    option = 'discardvisual="false"'
    if "<compiler" in content:
        return re.sub(r'\sdiscardvisual\s*=\s*"\w+"', " ", content).replace("<compiler", f"<compiler {option}", 1)
    return re.sub(r"(<robot[^>]*>)", rf"\1<mujoco><compiler {option}/></mujoco>", content, count=1)


def _resolve_meshes(specification: mujoco.MjSpec, file: Path | None, packages: Sequence[str]) -> None:
    """Replace the package path of every mesh by its path on this machine.

    A package is a folder of its name in one of `packages`, among the parents of the model file, or beside one of them.
    """
    parents = [] if file is None else list(file.resolve().parents)
    for mesh in specification.meshes:
        if not mesh.file.startswith(_PREFIX):
            continue
        package, _, rest = mesh.file.removeprefix(_PREFIX).partition("/")
        folders = [Path(folder) / package for folder in packages]
        folders += [parent for parent in parents if parent.name == package] + [parent / package for parent in parents]
        path = next((folder / rest for folder in folders if (folder / rest).is_file()), None)
        if path is None:
            raise FileNotFoundError(
                f"mesh {mesh.file!r} does not exist; name the folder that holds {package!r} in packages=(…)"
            )
        mesh.file = str(path.resolve())


def reads_collada() -> bool:
    """Return True if pycollada is installed, which reads meshes in .dae."""
    return importlib.util.find_spec("collada") is not None


def _read_collada_meshes(specification: mujoco.MjSpec) -> None:
    """Read the triangles of meshes in .dae, whose format MuJoCo does not know, if pycollada is installed.

    Lengths are brought to meters by the unit that the file states; as ROS does, its upward axis is not turned.
    """
    meshes = [mesh for mesh in specification.meshes if Path(mesh.file).suffix.lower() == ".dae"]
    if not meshes or not reads_collada():
        return
    collada: Any = importlib.import_module("collada")
    for mesh in meshes:
        path = Path(specification.modelfiledir, specification.meshdir, mesh.file)
        try:
            ignored = [collada.common.DaeUnsupportedError, collada.common.DaeBrokenRefError]
            document = collada.Collada(str(path), ignore=ignored)
        except (collada.common.DaeError, SyntaxError) as error:
            raise ValueError(f"mesh {mesh.file!r} is no COLLADA file: {error}") from error
        bound = [] if document.scene is None else document.scene.objects("geometry")
        primitives = [primitive for geometry in bound for primitive in geometry.primitives()]
        sets = [item.triangleset() if isinstance(item, collada.polylist.BoundPolylist) else item for item in primitives]
        sets = [item for item in sets if isinstance(item, collada.triangleset.BoundTriangleSet)]
        corners = [item.vertex[item.vertex_index].reshape(-1, 3) for item in sets]
        if not corners:
            continue
        vertices, faces = np.unique(np.concatenate(corners), axis=0, return_inverse=True)
        mesh.uservert = (vertices * (document.assetInfo.unitmeter or 1.0)).ravel().tolist()
        mesh.userface = faces.ravel().tolist()
        mesh.file = ""


def _delete_unreadable_meshes(specification: mujoco.MjSpec) -> None:
    """Delete visual meshes of formats that MuJoCo does not read, with their geoms."""
    files = {mesh.name: mesh.file for mesh in specification.meshes if mesh.file}
    unreadable = {name for name, file in files.items() if Path(file).suffix.lower() not in MESH_FILES}
    for geom in [geom for geom in specification.geoms if geom.meshname in unreadable]:
        specification.delete(geom)
    for mesh in [mesh for mesh in specification.meshes if mesh.name in unreadable]:
        specification.delete(mesh)


def encode_request(request: CompilerRequest) -> bytes:
    """Request as a line of bytes."""
    return json.dumps(asdict(request)).encode() + b"\n"


def _answer(line: bytes) -> bytes:
    """Answer to a request: a line with the name of an error, or the number of bytes of the model, which follow."""
    fields = json.loads(line)
    try:
        model = compile_request(CompilerRequest(**fields))
        binary = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, binary)
    except (OSError, ValueError, MemoryError, RecursionError, mujoco.FatalError) as error:
        kind = next(name for name in (OSError, MemoryError, Exception) if isinstance(error, name)).__name__
        return json.dumps({"error": kind, "message": str(error)}).encode() + b"\n"
    return json.dumps({"size": binary.size}).encode() + b"\n" + binary.tobytes()


def serve(requests: BinaryIO, answers: BinaryIO, seconds: int) -> None:
    """Compile one model after the other; the process ends if one takes more than `seconds` of processor time.

    A file that waits for something takes none; it ends after a multiple of that time.
    """
    for line in requests:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(_WAITING * seconds)
        answers.write(_answer(line))
        answers.flush()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def _limit_memory(max_bytes: int) -> None:
    """Limit the address space of this process, and let it write no files."""
    import resource

    for kind, limit in ((resource.RLIMIT_AS, max_bytes), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        resource.setrlimit(kind, (limit, limit))


def main() -> None:
    """Serve the process that began this one, through standard input and output, until it closes them."""
    max_bytes, seconds = map(int, sys.argv[1:])
    # MuJoCo may print: its lines must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit_memory(max_bytes)
    serve(sys.stdin.buffer, answers, seconds)


if __name__ == "__main__":
    main()
