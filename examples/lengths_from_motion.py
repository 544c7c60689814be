"""Lengths of a double pendulum, from one second of its motion: the engine's gradient finds them.

python examples/lengths_from_motion.py
"""

import sys

import matplotlib.pyplot as plt
import torch

from physvision import State
from physvision.physics import articulated


def main(out: str = "lengths.png") -> None:
    """Find two lengths and draw how they approach the true ones."""
    engine = articulated.chain([1.0, 1.0], dt=0.02, integrator="runge_kutta_4")
    start, true = State(torch.tensor([[1.0, 0.4]]), torch.zeros(1, 2)), torch.tensor([0.7, 1.2])
    observed = engine.rollout(start, 50, properties=articulated.chain_properties(true)).q

    logarithms = torch.zeros(2, requires_grad=True)  # lengths stay positive
    optimizer, history = torch.optim.Adam([logarithms], lr=0.05), []
    for _ in range(150):
        lengths = logarithms.exp()
        predicted = engine.rollout(start, 50, properties=articulated.chain_properties(lengths)).q
        loss = (predicted - observed).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(lengths.tolist())

    print("lengths, m:", [round(value, 4) for value in history[-1]])
    plt.plot(history)
    plt.hlines(true.tolist(), 0, len(history), colors="gray", linestyles="dashed")
    plt.xlabel("update")
    plt.ylabel("length, m")
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
