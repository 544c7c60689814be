"""A pole on a cart is swung up by a plan through the engine's gradients (iLQR).

python examples/swing_up.py
"""

import sys

import matplotlib.pyplot as plt
import torch

from physvision import State
from physvision.control import Goal, ilqr
from physvision.physics import articulated


def features(state: State) -> torch.Tensor:
    """Place of the cart, height of the pole, and speeds."""
    return torch.cat([state.q[:, :1], state.q[:, 1:].cos(), state.v], 1)


def main(out: str = "swing_up.png") -> None:
    """Plan the forces, and draw the motion."""
    cart = articulated.cartpole(dt=0.04)
    target = torch.tensor([0.0, 1.0, 0.0, 0.0]).double()
    weights = torch.tensor([0.3, 3.0, 0.1, 0.1]).double()
    start = State(torch.tensor([[0.0, 3.1]]).double(), torch.zeros(1, 2).double())
    goal = Goal(features, target, weights, control_weight=1e-3)
    policy, _ = ilqr(cart, start, torch.zeros(1, 60, 1).double(), goal, (-20.0, 20.0))
    states = cart.rollout(start, 60, policy.feedforward)
    print(f"height of the pole at the end: {states.final.q[0, 1].cos().item():.3f}")
    time = cart.dt * torch.arange(61)
    plt.plot(time, states.q[0, :, 0], label="cart, m")
    plt.plot(time, states.q[0, :, 1].cos(), label="height of the pole")
    plt.xlabel("time, s")
    plt.legend()
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
