"""A ball is thrown so that it lies at 3 m after several bounces: Newton's method through the impacts.

python examples/throw_through_bounces.py
"""

import sys

import matplotlib.pyplot as plt
import torch

from physvision import State
from physvision.core import Placed, Plane, Sphere
from physvision.physics import articulated

TARGET = 3.0


def main(out: str = "throw.png") -> None:
    """Correct the throw by the gradient of where the ball ends, and draw every flight."""
    joint = articulated.Joint("free")
    ball = articulated.Body("ball", None, [joint], 0.5, inertia=(5e-4,) * 3, shapes=[Placed(Sphere(0.05))])
    contact = articulated.ContactSettings(friction=0.4, restitution=0.6)
    engine = articulated.tree([ball], static_shapes=[Placed(Plane())], contact=contact, dt=0.01)
    start = engine.initial_state(dtype=torch.float64)
    start.q[0, 2] = 1.0

    speed = torch.tensor(1.0, dtype=torch.float64)
    for attempt in range(8):
        speed = speed.detach().requires_grad_()
        push = torch.nn.functional.one_hot(torch.tensor([0]), 6).double()  # forward
        flight = engine.rollout(State(start.q, start.v + speed * push), 300)
        end = flight.final.q[0, 0]
        plt.plot(*flight.q[0].detach()[:, [0, 2]].T, label=f"{speed.item():.3f} m/s")
        print(f"throw {attempt + 1}: {speed.item():.4f} m/s, ends at {end.item():.4f} m")
        if abs(end.item() - TARGET) < 1e-3:
            break
        (slope,) = torch.autograd.grad(end, speed)
        speed = speed + (TARGET - end.detach()) / slope

    plt.axvline(TARGET, color="gray", linestyle="dashed")
    plt.xlabel("x, m")
    plt.ylabel("height, m")
    plt.legend()
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
