"""Gradients: against finite differences of frames of 256 rays a pixel, by gradcheck, and in special cases."""

# pyright: reportAttributeAccessIssue=false

from dataclasses import replace

import pytest
import torch
from camera import scenes

from physvision.camera import Camera, RayCaster
from physvision.core import Box, Capsule, Cylinder, Disc, Polygon, Rectangle, Sphere
from physvision.kernels import launching

PIXELS = 64
# Meters and radians that move what is in the middle of a scene by a pixel.
METER = 6.0 / (1.6 * PIXELS)
RADIAN = METER / 0.9


def weights(seed: int) -> torch.Tensor:
    """White noise, blurred by a Gaussian of 2 pixels."""
    noise = torch.randn(3, 1, PIXELS, PIXELS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    kernel = torch.exp(-(torch.arange(-8, 9, dtype=torch.float64) ** 2) / 8)
    kernel = kernel / kernel.sum()
    blur = torch.nn.functional.conv2d
    return blur(blur(noise, kernel.view(1, 1, 1, -1), padding=(0, 8)), kernel.view(1, 1, -1, 1), padding=(8, 0))[:, 0]


def changed_window(first: torch.Tensor, second: torch.Tensor) -> tuple[int, int, int, int]:
    """The rows and columns in which two frames differ, and two more on every side."""
    changed = (first - second).abs().sum((0, 1)) > 0
    limits = []
    for axis in (1, 0):
        at = changed.any(axis).nonzero().flatten()
        low, high = (int(at.min()), int(at.max())) if len(at) else (0, 0)
        limits += [max(low - 2, 0), min(high + 3, PIXELS)]
    return limits[0], limits[1], limits[2], limits[3]


def relative_errors(seed: int, step: float = 0.25) -> tuple[float, float, float]:
    """Errors of the gradient of Σ w·I to all poses, in pixels, relative to the norm of what it is compared with.

    The first is beside central differences of ± `step` pixels of frames of 256 rays a pixel. They are means of the
    derivative over the step, and Σ w·I has a kink wherever a straight side passes from one row of pixels to the next or
    a face turns into view. So the second is beside the derivative itself, from differences of ±0.02 pixels of frames
    four times as fine, and the third is that of this derivative beside the first differences.
    """
    scene, w = scenes.pinhole_scene(seed, (PIXELS, PIXELS), apart=True), weights(seed)
    scale = torch.tensor([METER] * 3 + [RADIAN] * 3, dtype=torch.float64)
    units = torch.eye(6 * len(scene.shapes), dtype=torch.float64)

    def moved(amounts: torch.Tensor) -> torch.Tensor:
        return scenes.twist(scene.poses, scale * amounts.view(1, -1, 6))

    @torch.no_grad()
    def difference(unit: torch.Tensor, amount: float, edges: str, finer: int) -> torch.Tensor:
        ahead, behind = moved(amount * unit), moved(-amount * unit)
        window = changed_window(scene.render(ahead), scene.render(behind))
        top, bottom, left, right = window
        change = scene.render(ahead, edges, finer, window) - scene.render(behind, edges, finer, window)
        return (w[:, top:bottom, left:right] * change).sum() / (2 * amount)

    differences = torch.stack([difference(unit, step, "hard", 16) for unit in units])
    derivative = torch.stack([difference(unit, 0.02, "soft", 4) for unit in units])
    change = torch.zeros(len(units), dtype=torch.float64, requires_grad=True)
    (w * scene.render(moved(change))).sum().backward()
    assert change.grad is not None

    def error(own: torch.Tensor, reference: torch.Tensor) -> float:
        return float((own - reference).norm() / reference.norm())

    return error(change.grad, differences), error(change.grad, derivative), error(derivative, differences)


@pytest.mark.parametrize("seed", [1, 13])
def test_gradients_are_differences_of_frames_of_256_rays_a_pixel(seed):
    beside_differences, beside_derivative, _ = relative_errors(seed)
    assert beside_differences < 0.03
    assert beside_derivative < 0.03


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_gradients_of_200_scenes():
    """The aim is 3 % in every scene; docs/camera.md says what misses it."""
    errors = torch.tensor([relative_errors(seed) for seed in range(200)])
    names = ("gradient beside differences", "gradient beside derivative", "derivative beside differences")
    for name, column in zip(names, errors.T, strict=True):
        quantiles = [round(float(column.quantile(q)), 4) for q in (0.5, 0.75, 0.9, 0.95, 1.0)]
        below = int((column < 0.03).sum())
        print(f"{name}: median, 75 %, 90 %, 95 %, largest error {quantiles}; {below} of 200 below 3 %")
    beside_differences, beside_derivative, limit = errors.T
    assert beside_differences.quantile(0.75) < 0.03
    assert beside_differences.quantile(0.9) < 0.055
    assert beside_derivative.quantile(0.9) < 0.03
    # As many scenes are below 3 % as are with the derivative itself, but for one in fifty.
    assert (beside_differences < 0.03).sum() >= (limit < 0.03).sum() - 4


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
    """The coverage of polygons is exact, also where one hides another: of poses, sizes, colors and background."""
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


@pytest.mark.parametrize("seed", [21, 51, 234, 654, 714, 1239])
def test_what_is_hidden_has_no_gradient(seed):
    """Beside a limb depths tell of crossings that are not there; each scene had a gradient, of up to 24."""
    scene = scenes.hiding_scene(seed)
    fine = torch.tensor([[4.0, 0, 1.5], [0, 4, 1.5], [0, 0, 1]], dtype=torch.float64)
    camera = replace(scene.camera, intrinsics=fine @ scene.camera.intrinsics, height=128, width=128)
    oracle = RayCaster(camera, scene.shapes, edges="hard")

    def visible_shapes(change: torch.Tensor) -> set[int]:
        return set(oracle.inspect(scenes.twist(scene.poses, change)).shapes.unique().tolist())

    moves = 0.02 * torch.cat([torch.eye(18), -torch.eye(18)]).double().view(36, 1, 3, 6)
    hidden = {0, 1, 2} - set().union(*(visible_shapes(move) for move in moves))
    assert hidden
    poses = scene.poses.clone().requires_grad_()
    w = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(seed)).double()
    (w * scene.render(poses)).sum().backward()
    assert poses.grad is not None
    assert (poses.grad[0, list(hidden)] == 0).all()


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
    for shared_leaf, own_leaf in zip(shared, own, strict=True):
        torch.testing.assert_close(shared_leaf.grad, own_leaf.grad.sum(0))


@pytest.mark.parametrize("textured", [False, True])
def test_lines_of_a_frame_are_drawn_on_several_cores(textured, monkeypatch):
    """The frame and its gradient are the same, to the last bit, as on one; a texture is one core's alone."""
    scene, w = scenes.pinhole_scene(3, (PIXELS, PIXELS)), weights(3)
    textures = [texture.clone().requires_grad_(textured) for texture in scene.textures]
    leaves = [scene.poses.clone().requires_grad_(), *(textures if textured else ())]
    caster = RayCaster(scene.camera, scene.shapes, background=scene.background)

    def render_on(cores: int) -> tuple[list[int], torch.Tensor, tuple[torch.Tensor, ...]]:
        given = []
        monkeypatch.setattr(launching, "_threads", lambda batch, _: given.append(min(cores, batch)) or given[-1])
        frame = caster(leaves[0], textures)
        return given, frame.detach(), torch.autograd.grad((w * frame).sum(), leaves)

    (_, frame, slopes), (given, reference, reference_slopes) = render_on(1), render_on(3)
    assert given == [3, 1 if textured else 3]
    assert torch.equal(frame, reference)
    assert all(torch.equal(a, b) for a, b in zip(slopes, reference_slopes, strict=True))
