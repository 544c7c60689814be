"""Engines from a few numbers, and their pure twins."""

import numpy as np
import pytest
import torch

from physvision import State
from physvision.physics import articulated


def test_a_chain_is_the_pendulum_that_it_says():
    """The check of a published comparison: 3 rods, 0.5 m, 1 kg, 1 ms, gradient of the final angles."""
    engine = articulated.chain([0.5] * 3, dt=1e-3)
    for steps, expected in ((20, 0.019973), (1000, 0.176900)):
        v = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
        end = engine.rollout(State(torch.tensor([[0.3, 0.4, 0.5]]).double(), v), steps).final
        (gradient,) = torch.autograd.grad(end.q.sum(), v)
        assert float(gradient[0, -1]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ["chain", "cartpole", "from_dh"])
def test_pure_twins_give_the_properties_that_were_built(kind):
    lengths, masses = torch.tensor([0.5, 0.7]).double(), torch.tensor([1.0, 0.4]).double()
    table = [torch.tensor(row).double() for row in ([0.3, 0.4], [0.1, -0.2], [0.2, 0.1], [0.3, 0.5])]
    built, leaves = {
        "chain": lambda: (articulated.chain(lengths, masses), articulated.chain_properties(lengths, masses)),
        "cartpole": lambda: (
            articulated.cartpole(2, cart_mass=3.0, lengths=lengths, masses=masses),
            articulated.cartpole_properties(torch.tensor(3.0).double(), lengths, masses),
        ),
        "from_dh": lambda: (
            articulated.from_dh(*table, masses=masses),
            articulated.from_dh_properties(*table, masses=masses),
        ),
    }[kind]()
    for name, value in leaves.items():
        torch.testing.assert_close(getattr(built.properties, name), value, rtol=0, atol=0)
    # One a world: the leaves of stacked tensors are stacked leaves.
    if kind == "chain":
        stacked = articulated.chain_properties(torch.stack([lengths, 2 * lengths]), torch.stack([masses, masses]))
        torch.testing.assert_close(stacked["position"][0], leaves["position"])


def test_denavit_hartenberg_puts_the_tip_where_the_table_says():
    a, alpha = np.array([0.3, 0.4, 0.1]), np.array([0.5, -0.2, 1.0])
    d, theta = np.array([0.2, 0.1, 0.0]), np.array([0.3, 0.5, -1.0])
    engine = articulated.from_dh(a, alpha, d, theta, kinds="RPR")
    q = np.array([0.4, 0.25, -0.7])
    expected = np.eye(4)
    for k, kind in enumerate("RPR"):
        angle = theta[k] + (q[k] if kind == "R" else 0.0)
        slide = d[k] + (q[k] if kind == "P" else 0.0)
        ct, st, ca, sa = np.cos(angle), np.sin(angle), np.cos(alpha[k]), np.sin(alpha[k])
        expected = expected @ np.array(
            [
                [ct, -st * ca, st * sa, a[k] * ct],
                [st, ct * ca, -ct * sa, a[k] * st],
                [0, sa, ca, slide],
                [0, 0, 0, 1],
            ]
        )
    state = State(torch.tensor(q)[None], torch.zeros(1, 3).double())
    np.testing.assert_allclose(engine.poses(state)[0, -1], expected, atol=1e-12)
