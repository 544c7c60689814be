"""Frames against a second camera in plain torch that averages many rays a pixel."""

# pyright: reportAttributeAccessIssue=false

import pytest
import torch
from camera import oracle, scenes

from physvision.camera import Camera, RayCaster
from physvision.core import Circle, Plane, Sphere

FINE = 8


def reference(scene: scenes.Scene, samples: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    camera, light = scene.camera, scene.light
    return oracle.render(
        scene.shapes,
        scene.poses[0],
        [texture if texture.dim() == 3 else texture[:, None, None] for texture in scene.textures],
        scene.background,
        camera.intrinsics,
        camera.extrinsics,
        (camera.height, camera.width),
        pinhole=not camera.orthographic,
        samples=samples,
        light=None if light is None else (light.direction, light.ambient, light.diffuse),
    )


@pytest.mark.parametrize("make", [scenes.pinhole_scene, scenes.table_scene])
@pytest.mark.parametrize("seed", range(6))
def test_hard_frames_are_those_of_the_oracle(make, seed):
    scene = make(seed)
    frame = scene.render(edges="hard")[0]
    expected, shapes, depth = reference(scene, 1)
    visible = RayCaster(scene.camera, scene.shapes).inspect(scene.poses)
    # The two cameras may disagree where a ray passes an edge within rounding: at most one pixel in a thousand.
    same = visible.shapes[0] == shapes
    assert (~same).sum() <= 1
    torch.testing.assert_close(frame[:, same], expected[:, same], atol=1e-9, rtol=0)
    torch.testing.assert_close(
        visible.depth[0][same & (shapes >= 0)], depth[same & (shapes >= 0)], atol=1e-9, rtol=1e-9
    )
    assert torch.isinf(visible.depth[0][same & (shapes < 0)]).all()


@pytest.mark.parametrize("make", [scenes.pinhole_scene, scenes.table_scene])
@pytest.mark.parametrize("seed", range(6))
def test_soft_frames_are_averages_of_many_rays(make, seed):
    scene = make(seed)
    if any(isinstance(shape, Plane) for shape in scene.shapes):
        # Near the horizon no number of taps is enough for a texture: a plane of one color.
        scene.textures[-1] = scene.textures[-1].reshape(3, -1).mean(1)
    scene.textures = [texture if texture.dim() == 1 else texture[:, ::3, ::3] for texture in scene.textures]
    frame = scene.render()[0]
    expected, *_ = reference(scene, FINE)
    # An edge across FINE² samples is wrong by about 1/FINE of a row of them where it runs along one.
    error = (frame - expected).abs()
    assert error.mean() < 0.1 / FINE**2
    assert error.max() < 2.0 / FINE


def test_the_area_of_a_circle_is_seen_exactly_wherever_it_is():
    camera = Camera.table(16, 16, y_down=True)
    caster = RayCaster(camera, [Circle(4.0)], background=(0.0,))
    poses = torch.eye(4, dtype=torch.float64).repeat(50, 1, 1, 1)
    poses[:, 0, :2, 3] = 8 + torch.rand(50, 2, dtype=torch.float64)
    area = caster(poses, [torch.ones(1, dtype=torch.float64)]).sum((1, 2, 3))
    # Tangents lie outside the circle, by at most (1 px)² / 8 / radius, on average a third of that.
    torch.testing.assert_close(area, torch.full_like(area, torch.pi * 16), rtol=0.005, atol=0)


def test_masks_are_the_shares_of_the_pixels():
    scene = scenes.pinhole_scene(2)
    caster = RayCaster(scene.camera, scene.shapes)
    masks = caster.masks(scene.poses)[0]
    hard = RayCaster(scene.camera, scene.shapes, edges="hard").inspect(scene.poses).shapes[0]
    assert masks.min() >= 0
    assert masks.sum(0).max() <= 1 + 1e-12
    for index in range(len(scene.shapes)):
        sure = masks[index] > 0.999
        assert (hard[sure] == index).all()
        assert (masks[index][hard == index] > 0).all()


def test_worlds_of_a_batch_do_not_touch_each_other():
    scene = scenes.pinhole_scene(5)
    twisted = scenes.twist(scene.poses, 0.1 * torch.ones(1, len(scene.shapes), 6, dtype=torch.float64))
    frames = scene.render(torch.cat([scene.poses, twisted]))
    torch.testing.assert_close(frames[0], scene.render()[0], atol=0, rtol=0)
    torch.testing.assert_close(frames[1], scene.render(twisted)[0], atol=0, rtol=0)


def test_float32_agrees_with_float64():
    scene = scenes.pinhole_scene(4)
    caster = RayCaster(scene.camera, scene.shapes, background=scene.background)
    exact = caster(scene.poses, scene.textures)
    single = caster(scene.poses.float(), [texture.float() for texture in scene.textures])
    assert single.dtype == torch.float32
    # Edges are placed within 1e-4 pixels by float32 at these distances. Only where three outlines meet on the limb of a
    # sphere that another shape passes through, a pixel or two depend on the last digit.
    error = (single.double() - exact).abs().amax((0, 1))
    assert (error > 2e-3).sum() <= 2
    assert error.max() < 0.1


def test_of_two_shapes_at_the_same_depth_the_later_one_is_seen():
    caster = RayCaster(Camera.table(8, 8), [Circle(9.0), Circle(9.0)])
    poses = torch.eye(4).repeat(1, 2, 1, 1)
    for edges in ("soft", "hard"):
        caster.edges = edges
        frame = caster(poses, [torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0])])
        torch.testing.assert_close(frame[0].mean((1, 2)), torch.tensor([0.0, 1.0, 0.0]))


def test_from_inside_a_sphere_its_far_side_is_seen():
    camera = Camera.pinhole(6, 6, position=(0, 0, 0), target=(1, 0, 0), fov=1.0)
    caster = RayCaster(camera, [Sphere(2.0)])
    poses = torch.eye(4, dtype=torch.float64)[None, None]
    assert (caster.inspect(poses).shapes == 0).all()
    color = torch.tensor([0.2, 0.4, 0.6], dtype=torch.float64)
    torch.testing.assert_close(caster(poses, [color]), color[None, :, None, None].expand(1, 3, 6, 6))
