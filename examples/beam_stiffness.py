"""Stiffness of a beam, from its bending, by the gradient of an elastic body.

python examples/beam_stiffness.py
"""

import sys

import matplotlib.pyplot as plt
import torch

from physvision.physics import soft


def main(out: str = "beam.png") -> None:
    """Find Young's modulus from the place of the beam's tip, by Newton's method."""
    mesh = soft.rectangle((1.0, 0.2), (10, 2))
    clamped = [node for node, (x, _) in enumerate(mesh.nodes) if x == 0.0]
    material = soft.Material(youngs_modulus=5e4, density=1000.0, viscous_time=0.01)
    body = soft.SoftBody(mesh, material, dt=0.01, kinematic=clamped)
    start, tip = body.initial_state(batch=1, dtype=torch.float64), mesh.nearest_node((1.0, 0.1))

    def bent(logarithm: torch.Tensor) -> torch.Tensor:
        motion = body.rollout(start, 40, properties={"youngs_modulus": logarithm.exp()[None]})
        return body.node_positions(motion)[0, -1]

    true = torch.tensor(2e5, dtype=torch.float64).log()
    observed = bent(true)
    logarithm = torch.tensor(8e4, dtype=torch.float64).log()
    for _ in range(3):
        logarithm = logarithm.detach().requires_grad_()
        height = bent(logarithm)[tip, 1]
        (slope,) = torch.autograd.grad(height, logarithm)
        logarithm = logarithm + ((observed[tip, 1] - height.detach()) / slope).clamp(-1.0, 1.0)
        print(f"Young's modulus {logarithm.exp().item():.6g} Pa")
    for places, name in ((bent(true), "observed"), (bent(torch.tensor(8e4).double().log()), "first guess")):
        plt.scatter(*places.detach().T, s=8, label=name)
    plt.axis("equal")
    plt.legend()
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
