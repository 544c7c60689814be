"""Time of frames and their gradients, beside Mitsuba 3 on the same scene in the same run, on one thread.

    python benchmarks/camera.py

The scene: a background image and five textured shapes (sphere, box, cylinder, disc, rectangle) at 288×96 pixels.
Mitsuba casts one ray a pixel with its LLVM variant; it needs `pip install 'physvision[mitsuba]'` and a libLLVM of at
least version 16 (Debian: `apt-get install libllvm19`, and DRJIT_LIBLLVM_PATH=/usr/lib/x86_64-linux-gnu/libLLVM-19.so
where an older one is found first). Runs alternate; the median of the processor time of each is shown.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from physvision.camera import Camera, RayCaster
from physvision.core import Box, Circle, Cylinder, Disc, Rectangle, Shape, Sphere

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from claims import Claim, write_claims

HEIGHT, WIDTH = 96, 288
PLACES = ((-2.4, 0.0, 0.1), (-1.2, 0.4, -0.1), (0.0, -0.3, 0.0), (1.2, 0.2, 0.15), (2.4, 0.0, -0.1))
SHAPES: tuple[Shape, ...] = (
    Sphere(0.6),
    Box((0.9, 0.9, 0.9)),
    Cylinder(0.45, 1.0),
    Disc(0.6),
    Rectangle(1.0, 1.2),
)
EYE, FIELD = (0.0, 0.0, 6.0), 0.4


def scene() -> tuple[Tensor, list[Tensor], Tensor]:
    """Poses, textures and background, float32."""
    generator = torch.Generator().manual_seed(0)
    poses = torch.eye(4).repeat(1, len(SHAPES), 1, 1)
    for pose, place in zip(poses[0], PLACES, strict=True):
        pose[:3, 3] = torch.tensor(place)
    angle = torch.tensor(0.5)
    for index in (1, 2):
        pose = poses[0, index]
        pose[1:3, 1:3] = torch.tensor([[angle.cos(), -angle.sin()], [angle.sin(), angle.cos()]])
    textures = [torch.rand(3, 32, 32, generator=generator) for _ in SHAPES]
    return poses, textures, torch.rand(3, HEIGHT, WIDTH, generator=generator)


def own(edges: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Functions that render, and that render and differentiate with respect to poses and textures."""
    poses, textures, background = scene()
    camera = Camera.pinhole(HEIGHT, WIDTH, position=EYE, target=(0, 0, 0), up=(0, 1, 0), fov=FIELD)
    caster = RayCaster(camera, SHAPES, background=background, edges=edges)
    leaves = [value.clone().requires_grad_() for value in (poses, *textures)]
    weights = torch.randn(1, 3, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(1))

    def backward() -> object:
        for leaf in leaves:
            leaf.grad = None
        return (weights * caster(leaves[0], leaves[1:])).sum().backward()

    return lambda: caster(poses, textures), backward


def mitsuba() -> tuple[Callable[[], object], Callable[[], object]]:
    """Functions of Mitsuba for the same scene: every surface emits its texture, and a path ends at the first."""
    import drjit as dr
    import mitsuba as mi
    import numpy as np

    mi.set_variant("llvm_ad_rgb")
    dr.set_thread_count(1)
    poses, textures, background = scene()

    def shining(image: Tensor) -> dict:
        bitmap = {"type": "bitmap", "data": mi.TensorXf(image.permute(1, 2, 0).contiguous().numpy()), "raw": True}
        return {"type": "area", "radiance": bitmap}

    def placed(index: int, scale: Sequence[float]):
        return mi.ScalarTransform4f(poses[0, index].double().numpy()) @ mi.ScalarTransform4f().scale(list(scale))

    depth = 4.0
    half = float(np.tan(FIELD / 2)) * (EYE[2] + depth)
    behind = mi.ScalarTransform4f().translate([0, 0, -depth]).scale([half * WIDTH / HEIGHT, half, 1])
    view = mi.ScalarTransform4f().look_at(list(EYE), [0, 0, 0], [0, 1, 0])
    film = {"type": "hdrfilm", "width": WIDTH, "height": HEIGHT, "filter": {"type": "box"}, "sample_border": False}
    description = {
        "type": "scene",
        "integrator": {"type": "path", "max_depth": 1},
        "sensor": {
            "type": "perspective",
            "fov": float(np.degrees(FIELD)),
            "fov_axis": "y",
            "to_world": view,
            "film": film,
            "sampler": {"type": "independent", "sample_count": 1},
        },
        "background": {"type": "rectangle", "to_world": behind, "light": shining(background)},
        "sphere": {"type": "sphere", "to_world": placed(0, (0.6, 0.6, 0.6)), "light": shining(textures[0])},
        "box": {"type": "cube", "to_world": placed(1, (0.45, 0.45, 0.45)), "light": shining(textures[1])},
        "cylinder": {
            "type": "cylinder",
            "p0": [0, 0, -0.5],
            "p1": [0, 0, 0.5],
            "radius": 0.45,
            "to_world": placed(2, (1, 1, 1)),
            "light": shining(textures[2]),
        },
        "disc": {"type": "disk", "to_world": placed(3, (0.6, 0.6, 1)), "light": shining(textures[3])},
        "rectangle": {"type": "rectangle", "to_world": placed(4, (0.5, 0.6, 1)), "light": shining(textures[4])},
    }
    loaded = mi.load_dict(description)
    parameters = mi.traverse(loaded)
    keys = [key for key in parameters.keys() if key.endswith(("radiance.data", "to_world"))]  # noqa: SIM118
    keys = [key for key in keys if not key.startswith(("background", "sensor"))] + ["box.vertex_positions"]
    weights = mi.TensorXf(torch.randn(HEIGHT, WIDTH, 3, generator=torch.Generator().manual_seed(1)).numpy())

    def forward() -> object:
        return dr.eval(mi.render(loaded, spp=1)) or dr.sync_thread()

    def backward() -> object:
        for key in keys:
            if key in parameters:
                dr.enable_grad(parameters[key])
                dr.clear_grad(parameters[key])
        parameters.update()
        dr.backward(dr.sum(weights * mi.render(loaded, parameters, spp=1), axis=None))
        dr.eval([dr.grad(parameters[key]) for key in keys if key in parameters])
        return dr.sync_thread()

    return forward, backward


def billiards(batch: int, size: int, edges: str = "soft") -> tuple[Callable[[], object], Callable[[], object]]:
    """Three balls on a table, a batch of frames."""
    generator = torch.Generator().manual_seed(0)
    poses = torch.eye(4).repeat(batch, 3, 1, 1)
    poses[..., :2, 3] = size * (0.15 + 0.7 * torch.rand(batch, 3, 2, generator=generator))
    caster = RayCaster(Camera.table(size, size, y_down=True), [Circle(size / 10)] * 3, edges=edges)
    colors = list(torch.eye(3))
    leaf = poses.clone().requires_grad_()
    weights = torch.randn(batch, 3, size, size, generator=generator)

    def backward() -> object:
        leaf.grad = None
        return (weights * caster(leaf, colors)).sum().backward()

    return lambda: caster(poses, colors), backward


def medians(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Milliseconds of each, run in turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(3):
        for run in runs.values():
            run()
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            run()
            times[name].append(1e3 * (time.process_time() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    cameras = {"soft edges": own("soft"), "hard edges": own("hard")}
    if importlib.util.find_spec("mitsuba"):
        cameras["Mitsuba 3, 1 sample"] = mitsuba()
    else:
        print("Mitsuba 3 is not installed: pip install 'physvision[mitsuba]'")
    forward = medians({name: runs[0] for name, runs in cameras.items()}, rounds)
    backward = medians({name: runs[1] for name, runs in cameras.items()}, rounds)
    print(f"{WIDTH}×{HEIGHT}, background and five textured shapes, ms a frame")
    print(f"{'':24}{'forward':>10}{'forward + backward':>22}")
    claims = []
    for name in cameras:
        claims += [
            Claim(f"{name}, {way}", times[name], "ms a frame")
            for way, times in (("forward", forward), ("both", backward))
        ]
        print(f"{name:24}{forward[name]:10.2f}{backward[name]:22.2f}")
    runs = billiards(64, 64)
    table = medians({"forward": runs[0], "both": runs[1]}, rounds)
    print("billiards, batch 64, 64×64, three balls, ms a frame")
    claims += [Claim(f"billiards, batch 64, {way}", table[way] / 64, "ms a frame") for way in table]
    print(write_claims(__file__, claims))
    print(f"{'soft edges':24}{table['forward'] / 64:10.3f}{table['both'] / 64:22.3f}")


if __name__ == "__main__":
    main()
