"""An unknown friction, learned by a network in the loop with the engine, from the motion alone.

python examples/network_in_the_loop.py
"""

import sys
from collections.abc import Callable

import matplotlib.pyplot as plt
import torch
from torch import nn

from physvision import State
from physvision.physics import articulated

Torque = Callable[[torch.Tensor], torch.Tensor]


def swing(engine: articulated.Articulation, start: State, torque: Torque, steps: int = 60) -> torch.Tensor:
    """Angles of a motion whose torque follows from the speed in every step."""
    state, angles = start, []
    for _ in range(steps):
        state = engine.rollout(state, 1, torque(state.v)[:, None]).final
        angles.append(state.q)
    return torch.stack(angles, 1)


def main(out: str = "friction.png") -> None:
    """Learn the torque as a function of speed, and draw it beside the true one."""
    torch.manual_seed(0)
    engine = articulated.chain([1.0], dt=0.05)  # its control is the torque in the hinge
    start = State(torch.tensor([[2.0], [1.0], [-1.5]]), torch.tensor([[0.0], [2.0], [1.0]]))

    def true(speed: torch.Tensor) -> torch.Tensor:
        return -0.5 * torch.tanh(2.0 * speed)

    observed = swing(engine, start, true)
    network = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    loss = torch.tensor(torch.inf)
    for _ in range(150):
        loss = (swing(engine, start, network) - observed).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"mean squared error of the angles: {loss.item():.2e} rad²")
    speed = torch.linspace(-4, 4, 100)[:, None]
    plt.plot(speed, true(speed), label="true")
    plt.plot(speed, network(speed).detach(), label="learned")
    plt.xlabel("speed, rad/s")
    plt.ylabel("torque, N m")
    plt.legend()
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
