"""The gradient of a pendulum's motion through camera, network and physics, beside finite differences.

One episode from hanging; the weights of the policy move in ten random directions. A difference converges where it is
the same to 0.2 % for three step sizes in a row: frames, pooling and rectifiers have kinks, near which it is
not.

    python experiments/pixels_gradient.py [--policy FILE] [--seconds 3] [--directions 10] [--height 32] [--width 96]
"""

from __future__ import annotations

from pathlib import Path

import torch
from jsonargparse import auto_cli
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from physvision.control.pixels import FramePolicy, PixelCartPoleTask, StartDistribution, load_policy
from physvision.control.policies import rollout_policy

STEPS = tuple(2e-3 / 2**k for k in range(12))
CONVERGES, BAR = 0.002, 0.01


def converged(differences: list[float]) -> float | None:
    """The middle one of the first three in a row that agree; None where none do."""
    for three in zip(differences, differences[1:], differences[2:], strict=False):
        if max(three) - min(three) <= CONVERGES * abs(three[1]):
            return three[1]
    return None


def compared(task: PixelCartPoleTask, policy: FramePolicy, count: int) -> tuple[int, float]:
    """Print slopes beside differences; in how many directions these converge, and how far slopes are off at most."""
    generator = torch.Generator().manual_seed(0)
    start, goal = task.reset(1, generator)
    start, goal = start.to(torch.float64), torch.zeros(1, 6, dtype=torch.float64)
    weights = list(policy.parameters())
    vector = parameters_to_vector(weights).detach()

    def cost(at: Tensor) -> Tensor:
        vector_to_parameters(at, weights)
        return rollout_policy(task, policy, start, goal).losses.mean()

    gradient = torch.cat([entry.flatten() for entry in torch.autograd.grad(cost(vector), weights)])
    results = []
    for number in range(count):
        direction = vector.abs().mean() * torch.randn(len(vector), generator=generator, dtype=torch.float64)
        slope, differences = float(gradient @ direction), []
        with torch.no_grad():
            for h in STEPS:
                differences.append(float(cost(vector + h * direction) - cost(vector - h * direction)) / (2 * h))
                if converged(differences) is not None:
                    break
        limit = converged(differences)
        if limit is None:
            print(f"{number:>3}{slope:>14.6f}   differences do not converge: {differences[-3:]}", flush=True)
            continue
        results.append(abs(slope - limit) / abs(limit))
        print(f"{number:>3}{slope:>14.6f}{limit:>14.6f}{100 * results[-1]:>9.3f} %", flush=True)
    return len(results), max(results, default=float("nan"))


def main(
    policy: Path | None = None, seconds: float = 3.0, directions: int = 10, height: int = 32, width: int = 96
) -> bool:
    """Compare the gradients with finite differences.

    Args:
        policy: a file that training wrote; random weights if not given.
        seconds: Duration of the episode, s.
        directions: in which the weights move.
        height: Height of frames for random weights, pixels.
        width: Width of frames, pixels.

    Returns:
        Whether all slopes are within 1 % where differences converge.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = FramePolicy(height, width) if policy is None else load_policy(policy)
    _, height, width = network.shape
    task = PixelCartPoleTask(height, width, round(seconds / 0.02), variation_fraction=0.0)
    task.starts = StartDistribution()
    print(f"{'':>3}{'gradient':>14}{'differences':>14}")
    count, worst = compared(task, network.double(), directions)
    print(f"{count} of {directions} converge; the largest error is {100 * worst:.3f} %")
    return count > 0 and worst <= BAR


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
