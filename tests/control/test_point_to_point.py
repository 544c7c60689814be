"""Plans to a target against closed forms: a cart on a rail, 1 kg, from rest to rest."""

import math

import pytest
import torch

from physvision import State
from physvision.control import PointToPointSettings, Target, minimum_effort, minimum_time
from physvision.core import InputError
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint

DT, DEFAULT = 0.01, PointToPointSettings()


def rail():
    cart = Body("cart", None, [Joint("prismatic", (1.0, 0.0, 0.0), name="rail")], mass=1.0)
    return articulated.tree([cart], dt=DT)


def there(place):
    return Target(lambda state: torch.cat([state.q, state.v], 1), torch.tensor([place, 0.0]).double(), 1e-6)


def at_rest():
    return State(torch.zeros(1, 1).double(), torch.zeros(1, 1).double())


def test_the_least_effort_is_that_of_the_closed_form():
    """Of all forces that end at rest at d after n steps those on a straight line through their middle have the least
    squares: with q′ = q + h v′ the place is h² Σ (n − k) u_k, so u_k = c (m − k) with m = (n − 1) / 2, and the
    effort is h Σ u² = d² / (h³ Σ (m − k)²)."""
    steps, place = 100, 0.7
    result = minimum_effort(rail(), at_rest(), torch.zeros(1, steps, 1).double(), there(place))
    line = (steps - 1) / 2 - torch.arange(steps).double()
    target = place * line / (DT**2 * line.square().sum())
    assert bool(result.reached.all())
    # The end is asked for to 1e-6, of 0.7.
    torch.testing.assert_close(result.policy.feedforward[0, :, 0], target, rtol=0, atol=1e-5 * float(target.max()))
    assert float(result.effort[0]) == pytest.approx(float(DT * target.square().sum()), rel=1e-5)


def test_settings_change_the_way_and_not_the_optimum():
    """A stiffer schedule ends at the same forces; penalties that may not grow miss the target."""
    steps, initial = 50, torch.zeros(1, 50, 1).double()
    stiff = PointToPointSettings(
        initial_penalty=1.0,
        penalty_growth=100.0,
        max_penalty_ratio=1e9,
        iterations=80,
        tolerance=1e-9,
        tie_breaker=1e-7,
    )
    plan, reference = (
        minimum_effort(rail(), at_rest(), initial, there(0.7), settings=entry) for entry in (stiff, DEFAULT)
    )
    assert plan.policy.feedforward.shape == (1, steps, 1)
    torch.testing.assert_close(plan.policy.feedforward, reference.policy.feedforward, rtol=0, atol=1e-4 * 10)
    weak = PointToPointSettings(max_penalty_ratio=1.0)
    assert not bool(minimum_effort(rail(), at_rest(), initial, there(0.7), settings=weak).reached.any())


@pytest.mark.parametrize("place", [0.25, 0.5])
def test_the_least_time_is_that_of_full_force_and_full_brakes(place):
    """2 √(d / u), rounded up to a step: in steps of h, full force and brakes for n / 2 each lead to u h² (n / 2)²."""
    start = torch.zeros(1, 200, 1).double()
    result = minimum_time(rail(), at_rest(), start, there(place), (-1.0, 1.0))
    exact = 2 * math.sqrt(place)
    assert exact <= result.seconds + 1e-9 < exact + 2 * DT
    assert float(result.policy.feedforward.abs().max()) <= 1.0
    assert bool(result.reached[result.best()])


def test_what_cannot_be_reached_is_told():
    with pytest.raises(InputError, match="no plan of 50 steps reaches the target"):
        minimum_time(rail(), at_rest(), torch.zeros(2, 50, 1).double(), there(1.0), (-1.0, 1.0))
