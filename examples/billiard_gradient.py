"""A cue ball drives another one into a corner: the direction is found by gradients through both impacts.

python examples/billiard_gradient.py
"""

import sys

import matplotlib.pyplot as plt
import torch

from physvision import State, Trajectory
from physvision.physics import rigid2d

CORNER = torch.tensor([190.0, 10.0])


def table() -> rigid2d.World:
    """A table of 200 × 100 with two balls and four walls."""
    balls = [rigid2d.Circle(5, (30, 50), restitution=1.0, friction=0.0, color=(0.9, 0.9, 0.9), name="cue")]
    balls.append(rigid2d.Circle(5, (120, 40), restitution=1.0, friction=0.0, color=(0.9, 0.3, 0.2), name="target"))
    sides = [((400, 10), (100, -5)), ((400, 10), (100, 105)), ((10, 400), (-5, 50)), ((10, 400), (205, 50))]
    walls = [rigid2d.Rectangle(size, at, static=True, restitution=1.0, friction=0.0) for size, at in sides]
    return rigid2d.World([*balls, *walls], gravity=(0, 0), dt=1 / 60)


def shot(world: rigid2d.World, start: State, angle: torch.Tensor) -> Trajectory:
    """Motion after a shot in a direction."""
    push = 150.0 * torch.stack([angle.cos(), angle.sin(), *torch.zeros(4, dtype=torch.float64)])
    return world.rollout(State(start.q, push[None]), steps=100)


def distance(path: Trajectory) -> torch.Tensor:
    """Least distance of the target ball from the corner."""
    return (path.q[0, :, 3:5] - CORNER).norm(dim=1).min()


def main(out: str = "billiard.png") -> None:
    """Turn the shot by the gradient of the target ball's path, and draw the best one."""
    world = table()
    start = world.initial_state(dtype=torch.float64)
    angle = torch.tensor(-0.09, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([angle], lr=2e-3)
    for _ in range(60):
        optimizer.zero_grad()
        distance(shot(world, start, angle)).backward()
        optimizer.step()
    path = shot(world, start, angle.detach())
    print(f"direction {angle.item():.4f} rad, the ball passes the corner at {distance(path).item():.3f}")
    axis = rigid2d.plot(world, path.final)
    for ball in (0, 3):
        axis.plot(*path.q[0, :, ball : ball + 2].T)
    axis.set(xlim=(-12, 212), ylim=(112, -12))
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
