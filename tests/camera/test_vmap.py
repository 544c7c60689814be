"""Cameras under torch.func: vmap, gradients of single scenes, Jacobians."""

# pyright: reportAttributeAccessIssue=false

import pytest
import torch
from camera import scenes
from torch.func import functional_call, grad, jacrev, vmap

from physvision.camera import RayCaster

SIZE = (12, 10)


def scene_and_caster(seed: int = 2) -> tuple[scenes.Scene, RayCaster]:
    scene = scenes.pinhole_scene(seed, SIZE)
    return scene, RayCaster(scene.camera, scene.shapes, background=scene.background, light=scene.light)


def twisted_poses(scene: scenes.Scene, count: int) -> torch.Tensor:
    """That many slightly different poses of everything, (count, 1, shapes, 4, 4)."""
    generator = torch.Generator().manual_seed(0)
    change = 0.1 * torch.randn(count, len(scene.shapes), 6, generator=generator, dtype=torch.float64)
    return scenes.twist(scene.poses.expand(count, -1, -1, -1), change)[:, None]


@pytest.mark.parametrize("edges", ["soft", "hard"])
def test_vmap_is_a_loop(edges):
    scene, _ = scene_and_caster()
    caster = RayCaster(scene.camera, scene.shapes, background=scene.background, edges=edges)
    poses = twisted_poses(scene, 3)
    frames = vmap(lambda pose: caster(pose, scene.textures))(poses)
    torch.testing.assert_close(frames, torch.stack([caster(pose, scene.textures) for pose in poses]), rtol=0, atol=0)


def test_gradients_of_every_scene_of_a_vmap():
    """Also with respect to what the scenes share: each has a gradient of its own."""
    scene, caster = scene_and_caster()
    poses, w = twisted_poses(scene, 3), torch.randn(3, *SIZE, dtype=torch.float64)

    def loss(pose: torch.Tensor, textures: list[torch.Tensor]) -> torch.Tensor:
        return (w * caster(pose, textures)[0]).sum()

    by_pose, by_texture = vmap(grad(loss, argnums=(0, 1)), in_dims=(0, None))(poses, scene.textures)
    for index, pose in enumerate(poses):
        pose_bar, texture_bar = grad(loss, argnums=(0, 1))(pose, scene.textures)
        torch.testing.assert_close(by_pose[index], pose_bar)
        for many, single in zip(by_texture, texture_bar, strict=True):
            torch.testing.assert_close(many[index], single)


def test_jacobian_of_a_frame():
    """`jacrev` is a vmap over the backward pass; to textures the frame is linear."""
    scene, caster = scene_and_caster()

    def frame(textures: list[torch.Tensor]) -> torch.Tensor:
        return caster(scene.poses, textures)[0, 0]

    jacobian = jacrev(frame)(scene.textures)
    w = torch.randn(*SIZE, dtype=torch.float64)
    gradients = grad(lambda textures: (w * frame(textures)).sum())(scene.textures)
    for matrix, gradient in zip(jacobian, gradients, strict=True):
        torch.testing.assert_close(torch.einsum("ij,ij...->...", w, matrix), gradient)


def test_functional_call_replaces_the_background():
    scene, caster = scene_and_caster()
    ground = torch.zeros_like(scene.background).requires_grad_()
    functional_call(caster, {"background": ground}, (scene.poses, scene.textures)).sum().backward()
    assert ground.grad is not None
    assert ground.grad.max() == 1.0
