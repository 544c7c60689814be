"""What cannot be seen is background; what cannot be understood is a typed error; nothing is NaN."""

# pyright: reportCallIssue=false

import math

import pytest
import torch

from physvision.camera import Camera, Light, RayCaster
from physvision.core import Box, Capsule, Circle, Cylinder, Disc, Plane, Polygon, Rectangle, Sphere
from physvision.core.errors import DtypeError, InputError, ShapeError

BLUE = (0.1, 0.2, 0.9)
ALL = [
    Sphere(0.5),
    Box((0.5, 0.6, 0.7)),
    Capsule(0.2, 0.5),
    Cylinder(0.3, 0.6),
    Disc(0.5),
    Rectangle(0.5, 0.7),
    Circle(0.4),
    Polygon(((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))),
]
NOTHING = [
    Sphere(0.0),
    Box((0.0, 0.0, 0.0)),
    Capsule(0.0, 0.0),
    Cylinder(0.0, 0.0),
    Disc(0.0),
    Rectangle(0.0, 0.0),
    Circle(0.0),
    Polygon(((0.0, 0.0), (0.0, 0.0), (0.0, 0.0))),
]


def camera(height: int = 9, width: int = 11) -> Camera:
    return Camera.pinhole(height, width, position=(0, -4, 0), target=(0, 0, 0), fov=0.8)


def poses(count: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.eye(4, dtype=dtype).repeat(1, count, 1, 1)


def assert_background(caster: RayCaster, where: torch.Tensor, frame: torch.Tensor) -> None:
    expected = torch.tensor(BLUE, dtype=frame.dtype)[None, :, None, None].expand_as(frame)
    torch.testing.assert_close(frame, expected, atol=0, rtol=0)
    assert (caster.inspect(where).shapes == -1).all()


@pytest.mark.parametrize("edges", ["soft", "hard"])
@pytest.mark.parametrize("shape", ALL)
def test_what_is_behind_the_camera_is_not_seen(shape, edges):
    caster = RayCaster(camera(), [shape], background=BLUE, edges=edges)
    behind = poses(1)
    behind[..., 1, 3] = -8.0
    assert_background(caster, behind, caster(behind))


@pytest.mark.parametrize("edges", ["soft", "hard"])
@pytest.mark.parametrize("shape", NOTHING)
def test_what_has_no_size_is_not_seen(shape, edges):
    caster = RayCaster(camera(), [shape], background=BLUE, edges=edges)
    where = poses(1).requires_grad_()
    frame = caster(where)
    assert_background(caster, where.detach(), frame.detach())
    frame.sum().backward()
    assert where.grad is not None
    assert torch.isfinite(where.grad).all()


@pytest.mark.parametrize("edges", ["soft", "hard"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e30])
def test_poses_that_are_not_finite_hide_their_shape_alone(bad, edges):
    caster = RayCaster(camera(), [Sphere(0.8), *ALL], background=BLUE, edges=edges, light=Light())
    where = poses(1 + len(ALL))
    where[0, 1:, 0, 3] = bad
    where.requires_grad_()
    frame = caster(where)
    assert torch.isfinite(frame).all()
    alone = RayCaster(camera(), [Sphere(0.8)], background=BLUE, edges=edges, light=Light())
    torch.testing.assert_close(frame, alone(poses(1)))
    frame.sum().backward()
    assert where.grad is not None
    assert torch.isfinite(where.grad).all()


@pytest.mark.parametrize("edges", ["soft", "hard"])
def test_an_empty_scene_is_background(edges):
    caster = RayCaster(camera(), [], background=BLUE, edges=edges)
    assert_background(caster, poses(0), caster(poses(0)))


def test_no_frames_are_drawn_of_no_states():
    where = poses(1)[:0].requires_grad_()
    frames = RayCaster(camera(), [Sphere(0.1)])(where)
    frames.sum().backward()
    assert frames.shape[0] == 0
    assert where.grad is not None


@pytest.mark.parametrize("edges", ["soft", "hard"])
@pytest.mark.parametrize("shape", [*ALL, Plane()])
def test_an_image_of_one_pixel(shape, edges):
    caster = RayCaster(camera(1, 1), [shape], background=BLUE, edges=edges)
    where = poses(1).requires_grad_()
    frame = caster(where, [torch.rand(3, 4, 4, dtype=torch.float64)])
    assert frame.shape == (1, 3, 1, 1)
    frame.sum().backward()
    assert where.grad is not None
    assert torch.isfinite(frame).all()
    assert torch.isfinite(where.grad).all()


@pytest.mark.parametrize("edges", ["soft", "hard"])
@pytest.mark.parametrize("shape", [*ALL, Plane()])
def test_from_within_and_at_grazing_angles_nothing_is_nan(shape, edges):
    caster = RayCaster(camera(), [shape], edges=edges, light=Light())
    where = poses(12)[0][:, None].repeat(1, 1, 1, 1)
    where[:, 0, 1, 3] = torch.linspace(-6.0, 1.0, 12, dtype=torch.float64)
    where.requires_grad_()
    frame = caster(where, [torch.rand(3, 3, 5, dtype=torch.float64)])
    assert torch.isfinite(frame).all()
    frame.sum().backward()
    assert where.grad is not None
    assert torch.isfinite(where.grad).all()


SIZES = (0.0, 1e-30, 1e-12, 1e-6, 0.5, 1e6, 1e12)


@pytest.mark.parametrize("edges", ["soft", "hard"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("light", [None, Light((0.3, -0.5, 0.8))])
@pytest.mark.parametrize("kind", [Capsule, Cylinder, Sphere, Box, Rectangle])
def test_no_size_makes_a_gradient_that_is_not_finite(kind, light, dtype, edges):
    """From nothing over what rounding loses to what overflows, textured, before a camera, next to it and around it."""
    pairs = [(a, b) for a in (SIZES[:1] if kind is Sphere else SIZES) for b in SIZES]
    shapes = [kind(b) if kind is Sphere else kind((a, b, 0.7)) if kind is Box else kind(a, b) for a, b in pairs]
    cases = [(shape, depth) for shape in shapes for depth in (0.0, -3.999, -4.0)]
    where = poses(1, dtype).repeat(len(cases), 1, 1, 1)
    where[:, 0, 1, 3] = torch.tensor([depth for _, depth in cases])
    sizes = torch.tensor([[shape.sizes] for shape, _ in cases], dtype=dtype)
    random = torch.Generator().manual_seed(3)
    texture = torch.rand(len(cases), 3, 3, 5, generator=random, dtype=dtype)
    inputs = [value.requires_grad_() for value in (where, sizes, texture)]
    frames = RayCaster(camera(), shapes[:1], edges=edges, light=light)(where, [texture], sizes=sizes)
    for value in (frames, *torch.autograd.grad(frames.square().sum(), inputs)):
        bad = [case for case, gradient in zip(cases, value, strict=True) if not torch.isfinite(gradient).all()]
        assert not bad


@pytest.mark.parametrize("size", [(4,), (2, 8, 8), (3, 0, 4), (5, 3, 4, 4), (1, 1, 3, 4, 4)])
def test_textures_of_the_wrong_size(size):
    caster = RayCaster(camera(), [Sphere(1.0)])
    with pytest.raises(ShapeError, match=r"textures\[0\]: expected"):
        caster(poses(1), [torch.zeros(size, dtype=torch.float64)])


def test_textures_of_the_wrong_kind_or_number():
    caster = RayCaster(camera(), [Sphere(1.0)])
    with pytest.raises(DtypeError, match="textures"):
        caster(poses(1), [torch.rand(3)])
    with pytest.raises(ShapeError, match="one for each of 1 shapes, got 2"):
        caster(poses(1), [torch.rand(3).double()] * 2)


def test_poses_and_backgrounds_of_the_wrong_size():
    caster = RayCaster(camera(), [Sphere(1.0)])
    with pytest.raises(ShapeError, match="poses"):
        caster(poses(2))
    with pytest.raises(DtypeError, match="poses"):
        caster(poses(1).half())
    with pytest.raises(ShapeError, match="background"):
        RayCaster(camera(), [], background=torch.rand(3, 4, 4))
    with pytest.raises(ShapeError, match="background: expected a batch of 1"):
        caster(poses(1), background=torch.rand(2, 3, 9, 11).double())
    with pytest.raises(ShapeError, match="camera: expected an image of 9 × 11"):
        caster(poses(1), camera=camera(4, 4))


def test_options_that_do_not_exist():
    with pytest.raises(InputError, match="edges"):
        RayCaster(camera(), [], edges="blurred")
    with pytest.raises(InputError, match="not negative"):
        RayCaster(camera(), [Sphere(-1.0)])
    with pytest.raises(InputError, match="convex"):
        RayCaster(camera(), [Polygon(((0, 0), (2, 0), (0.5, 0.5), (0, 2)))])
    with pytest.raises(InputError, match="height"):
        camera(0, 4)
    with pytest.raises(InputError, match="parallel"):
        Camera.pinhole(4, 4, position=(0, 0, 1), target=(0, 0, 0), fov=1.0)
