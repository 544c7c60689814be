"""Gradients: against finite differences of frames of 256 rays a pixel, by gradcheck, and in special cases."""

from dataclasses import replace

import pytest
import torch
from camera import scenes

from physvision.camera import Camera, RayCaster
from physvision.core import Box, Capsule, Cylinder, Disc, Polygon, Rectangle, Sphere

PIXELS = 64
# Metres and radians that move what is in the middle of a scene by a pixel.
METRE = 6.0 / (1.6 * PIXELS)
RADIAN = METRE / 0.9


def weights(seed: int) -> torch.Tensor:
    """White noise, blurred by a Gaussian of 2 pixels."""
    noise = torch.randn(3, 1, PIXELS, PIXELS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    kernel = torch.exp(-(torch.arange(-8, 9, dtype=torch.float64) ** 2) / 8)
    kernel = kernel / kernel.sum()
    blur = torch.nn.functional.conv2d
    return blur(blur(noise, kernel.view(1, 1, 1, -1), padding=(0, 8)), kernel.view(1, 1, -1, 1), padding=(8, 0))[:, 0]


def relative_errors(seed: int, step: float = 0.25) -> tuple[float, float]:
    """Errors of the gradient of Σ w·I to all poses, in pixels, beside central differences of ± `step` pixels.

    A difference is the mean of the derivative over its step, and differs from the derivative at the middle: Σ w·I has a
    kink wherever a side of a box passes from one row of pixels to the next. So there are two errors: that of the
    gradient at the middle, and that of the mean of the gradient over four places of the step.
    """
    scene, w = scenes.pinhole_scene(seed, (PIXELS, PIXELS), apart=True), weights(seed)
    scale = torch.tensor([METRE] * 3 + [RADIAN] * 3, dtype=torch.float64)
    count = 6 * len(scene.shapes)

    def moved(amounts: torch.Tensor) -> torch.Tensor:
        return scenes.twist(scene.poses, scale * amounts.view(1, -1, 6))

    def gradient(at: torch.Tensor) -> torch.Tensor:
        at = at.clone().requires_grad_()
        (w * scene.render(moved(at))).sum().backward()
        assert at.grad is not None
        return at.grad

    unit = torch.eye(count, dtype=torch.float64)
    means = torch.stack(
        [sum(gradient(s * step * e)[i] for s in (-0.75, -0.25, 0.25, 0.75)) / 4 for i, e in enumerate(unit)]
    )
    with torch.no_grad():
        frames = [[scene.render(moved(s * step * e), "hard", 16) for s in (1, -1)] for e in unit]
    differences = torch.stack([(w * (ahead - behind)).sum() / (2 * step) for ahead, behind in frames])
    size = differences.norm()
    here = gradient(torch.zeros(count, dtype=torch.float64))
    return float((here - differences).norm() / size), float((means - differences).norm() / size)


@pytest.mark.parametrize("seed", [1, 13])
def test_gradients_are_differences_of_frames_of_256_rays_a_pixel(seed):
    at_the_middle, mean = relative_errors(seed)
    assert mean < 0.03
    assert at_the_middle < 0.05


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_gradients_of_200_scenes():
    errors = torch.tensor([relative_errors(seed) for seed in range(200)])
    for name, column in zip(("at the middle of the step", "mean over the step"), errors.T, strict=True):
        quantiles = [round(float(column.quantile(q)), 4) for q in (0.5, 0.9, 0.95, 1.0)]
        print(f"gradient {name}: median, 90 %, 95 %, largest error {quantiles}; {int((column < 0.03).sum())} below 3 %")
    # The aim is 3 % in every scene; docs/camera.md says which miss it.
    assert (errors.median(0).values < 0.03).all()


@pytest.mark.parametrize("seed", range(4))
def test_gradcheck_inside_of_surfaces(seed):
    """With hard edges a frame is smooth until an edge passes a ray: textures, light, poses, sizes and the camera."""
    scene = scenes.pinhole_scene(seed, (7, 9))
    caster = RayCaster(scene.camera, scene.shapes, background=scene.background, edges="hard", light=scene.light)
    change = torch.zeros(1, len(scene.shapes), 6, dtype=torch.float64, requires_grad=True)
    intrinsics = scene.camera.intrinsics.clone().requires_grad_()
    extrinsics = scene.camera.extrinsics.clone().requires_grad_()
    sizes = caster.sizes.clone().requires_grad_()
    textures = [texture.clone().requires_grad_() for texture in scene.textures]

    def render(change, intrinsics, extrinsics, sizes, *textures):
        camera = replace(scene.camera, intrinsics=intrinsics, extrinsics=extrinsics)
        return caster(scenes.twist(scene.poses, change), textures, sizes=sizes, camera=camera)

    assert torch.autograd.gradcheck(
        render, (change, intrinsics, extrinsics, sizes, *textures), eps=1e-7, atol=1e-5, rtol=1e-3, fast_mode=True
    )


def test_gradcheck_of_straight_edges():
    """The coverage of polygons is exact, also where one hides another: of poses, sizes, colours and background."""
    camera = Camera.table(9, 9, y_down=True)
    shapes = [Rectangle(4.0, 3.0), Polygon(((-2.0, -1.0), (2.0, -1.5), (0.5, 2.0)))]
    change = torch.zeros(2, 2, 6, dtype=torch.float64)
    change[..., 0], change[..., 1], change[..., 5] = torch.tensor([4.1, 5.3]), torch.tensor([4.2, 4.9]), 0.4
    change[1, :, 5] = -0.7
    colors = torch.rand(2, 3, dtype=torch.float64)
    ground = torch.rand(3, 9, 9, dtype=torch.float64)
    caster = RayCaster(camera, shapes, background=(0.0, 0.0, 0.0))
    sizes = caster.sizes.clone()

    def render(change, sizes, colors, ground):
        flat = change * change.new_tensor([1, 1, 0, 0, 0, 1])
        poses = scenes.twist(torch.eye(4, dtype=torch.float64).expand(2, 2, 4, 4), flat)
        return caster(poses, list(colors), sizes=sizes, background=ground)

    inputs = tuple(value.requires_grad_() for value in (change, sizes, colors, ground))
    assert torch.autograd.gradcheck(render, inputs, eps=1e-6, atol=1e-5, rtol=1e-3, fast_mode=True)


@pytest.mark.parametrize("shape", [Sphere(0.7), Box((0.8, 0.9, 1.0)), Capsule(0.4, 0.8), Cylinder(0.5, 0.9), Disc(0.8)])
def test_gradients_of_sizes_and_focal_length(shape):
    """Σ w·I with soft edges, to the sizes and the focal length, beside differences of finely sampled frames."""
    scene, w = scenes.pinhole_scene(1, (PIXELS, PIXELS), apart=True), weights(1)
    caster = RayCaster(scene.camera, [shape], background=scene.background)
    pose, color = scene.poses[:, :1].clone(), scene.textures[0]
    pose[:, :, 1, 3] = 0.0

    def value(edges: str, finer: int, sizes: torch.Tensor, zoom: torch.Tensor) -> torch.Tensor:
        matrix = scene.camera.intrinsics * torch.stack([zoom, zoom, torch.ones_like(zoom)])[:, None]
        matrix = torch.cat([matrix[:, :2], scene.camera.intrinsics[:, 2:]], 1)
        fine = torch.tensor([[finer, 0, (finer - 1) / 2], [0, finer, (finer - 1) / 2], [0, 0, 1]]).double()
        camera = replace(scene.camera, intrinsics=fine @ matrix, height=PIXELS * finer, width=PIXELS * finer)
        ground = scene.background.repeat_interleave(finer, 1).repeat_interleave(finer, 2)
        frame = RayCaster(camera, [shape], background=ground, edges=edges)(pose, [color], sizes=sizes)
        return (w * frame[0].unflatten(2, (PIXELS, finer)).unflatten(1, (PIXELS, finer)).mean((2, 4))).sum()

    sizes, zoom = caster.sizes.clone().requires_grad_(), torch.ones((), dtype=torch.float64, requires_grad=True)
    value("soft", 1, sizes, zoom).backward()
    assert sizes.grad is not None
    assert zoom.grad is not None
    with torch.no_grad():
        for index in torch.nonzero(sizes[0]).flatten().tolist():
            step = torch.zeros_like(sizes)
            step[0, index] = 0.02
            difference = (value("hard", 8, sizes + step, zoom) - value("hard", 8, sizes - step, zoom)) / 0.04
            assert abs(sizes.grad[0, index] - difference) < 0.05 * sizes.grad.norm()
        difference = (value("hard", 8, sizes, zoom + 0.02) - value("hard", 8, sizes, zoom - 0.02)) / 0.04
    assert abs(zoom.grad - difference) < 0.05 * zoom.grad.abs() + 0.1


def test_a_shared_texture_gets_the_sum_over_the_worlds():
    scene = scenes.pinhole_scene(2)
    poses = scenes.twist(scene.poses.expand(3, -1, -1, -1), 0.05 * torch.randn(3, 3, 6, dtype=torch.float64))
    caster = RayCaster(scene.camera, scene.shapes, background=scene.background)
    shared = [texture.clone().requires_grad_() for texture in scene.textures]
    own = [texture.expand(3, *texture.shape).clone().requires_grad_() for texture in scene.textures]
    w = torch.randn(3, 3, 32, 32, dtype=torch.float64)
    (w * caster(poses, shared)).sum().backward()
    (w * caster(poses, own)).sum().backward()
    for one, many in zip(shared, own, strict=True):
        torch.testing.assert_close(one.grad, many.grad.sum(0))
