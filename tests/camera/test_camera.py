"""Conventions of cameras, and cameras that are bound to engines."""

# pyright: reportAttributeAccessIssue=false

import copy

import pytest
import torch
from kornia.geometry.camera import PinholeCamera

from physvision.camera import Camera, RayCaster
from physvision.core import Circle, Sphere, State
from physvision.core.errors import InputError
from physvision.physics import articulated, rigid2d


def middle(mask: torch.Tensor) -> torch.Tensor:
    """Center of mass of a (height, width) image: x, y in pixels."""
    y, x = torch.meshgrid(*(torch.arange(n, dtype=mask.dtype) for n in mask.shape), indexing="ij")
    return torch.stack([(x * mask).sum(), (y * mask).sum()]) / mask.sum()


def sphere_at(place: torch.Tensor, camera: Camera) -> torch.Tensor:
    pose = torch.eye(4, dtype=torch.float64)
    pose[:3, 3] = place
    return RayCaster(camera, [Sphere(0.15)]).masks(pose[None, None])[0, 0]


def test_points_are_seen_where_kornia_projects_them():
    camera = Camera.pinhole(40, 60, position=(1.0, -5.0, 2.0), target=(0.2, 0.1, 0.0), fov=0.6)
    size = [torch.tensor([float(value)]) for value in (camera.height, camera.width)]
    intrinsics = torch.eye(4, dtype=torch.float64)[None].clone()
    intrinsics[0, :3, :3] = camera.intrinsics
    kornia = PinholeCamera(intrinsics, camera.extrinsics[None], *size)
    place = torch.tensor([0.4, -0.3, 0.5], dtype=torch.float64)
    expected = kornia.project(place[None])[0]
    # The image of a sphere is an ellipse whose center is that of the sphere to second order in its angular radius.
    torch.testing.assert_close(middle(sphere_at(place, camera)), expected, atol=0.02, rtol=0)


@pytest.mark.parametrize(("y_down", "expected"), [(True, (9.5, 5.5)), (False, (41.5, 27.5))])
def test_a_table_has_y_down_or_up(y_down, expected):
    camera = Camera.table(48, 64, y_down=y_down, scale=2.0 if y_down else 1.0)
    pose = torch.eye(4, dtype=torch.float64)
    pose[:2, 3] = torch.tensor([5.0, 3.0]) if y_down else torch.tensor([10.0, -4.0])
    mask = RayCaster(camera, [Circle(1.5)]).masks(pose[None, None])[0, 0]
    torch.testing.assert_close(middle(mask), torch.tensor(expected, dtype=torch.float64), atol=1e-6, rtol=0)


def test_a_bound_camera_shows_an_articulated_engine_and_has_its_gradient():
    engine = articulated.cartpole(links=1)
    bound = Camera.pinhole(48, 64, position=(0, -5, 0), target=(0, 0, 0), fov=0.7).bind(engine)
    q = torch.tensor([[0.2, 0.4], [-0.3, 0.1]], dtype=torch.float64, requires_grad=True)
    frames = bound(State(q, torch.zeros_like(q)))
    assert frames.shape == (2, 3, 48, 64)
    weights = torch.linspace(0, 1, 64, dtype=torch.float64)
    (frames[:, 0] * weights).sum().backward()
    assert q.grad is not None
    assert (q.grad.abs() > 0.1).all()


def test_a_bound_camera_shows_a_rigid_world():
    balls = [rigid2d.Circle(4.0, (10.0, 12.0)), rigid2d.Circle(3.0, (30.0, 20.0))]
    world = rigid2d.World(bodies=balls, gravity=(0.0, 0.0))
    bound = Camera.table(32, 48, y_down=True).bind(world)
    masks = bound.caster.masks(bound.appearance(world.initial_state()).poses)[0]
    for mask, ball in zip(masks, balls, strict=True):
        expected = torch.tensor(ball.position, dtype=masks.dtype) - 0.5
        torch.testing.assert_close(middle(mask), expected, atol=1e-3, rtol=0)
        torch.testing.assert_close(float(mask.sum()), torch.pi * ball.shape.radius**2, rtol=0.01, atol=0)


def test_what_is_bound_must_belong_to_the_engine():
    engine = articulated.cartpole(links=1)
    camera = Camera.table(8, 8)
    with pytest.raises(InputError, match="numbers below 3, of the engine's geometry, got 7"):
        camera.bind(engine, [7])
    with pytest.raises(InputError, match="got -2"):
        camera.bind(engine, [-2])


def test_a_used_camera_can_be_copied():
    caster = RayCaster(Camera.table(8, 8), [Circle(2.0)])
    poses = torch.eye(4)[None, None]
    torch.testing.assert_close(copy.deepcopy(caster)(poses), caster(poses))
