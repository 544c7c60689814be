"""Position of a ball from one picture, by the gradient of the ray-cast camera.

python examples/pose_from_picture.py
"""

import sys

import matplotlib.pyplot as plt
import torch

from physvision.camera import Camera, RayCaster
from physvision.core import Sphere


def main(out: str = "pose.png") -> None:
    """Move the ball until its picture is the one that is given."""
    camera = Camera.pinhole(48, 64, position=(0, -5, 1), target=(0, 0, 0), fov=0.7)
    caster = RayCaster(camera, [Sphere(0.5)], background=(0.1, 0.2, 0.3))
    texture = [torch.tensor([0.9, 0.4, 0.2])[:, None, None].expand(3, 2, 2)]

    def picture(place: torch.Tensor) -> torch.Tensor:
        poses = torch.eye(4).repeat(1, 1, 1, 1)
        poses[0, 0, :3, 3] = place
        return caster(poses, texture)[0]

    given = picture(torch.tensor([0.6, 0.0, -0.3]))
    place = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    first = picture(place).detach()
    optimizer = torch.optim.Adam([place], lr=0.03)
    for _ in range(150):
        loss = (picture(place) - given).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("place, m:", [round(value, 3) for value in place.tolist()])

    _, axes = plt.subplots(1, 3)
    for axis, (name, frame) in zip(
        axes, {"given": given, "first guess": first, "found": picture(place)}.items(), strict=True
    ):
        axis.imshow(frame.detach().permute(1, 2, 0))
        axis.set_title(name)
        axis.axis("off")
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
