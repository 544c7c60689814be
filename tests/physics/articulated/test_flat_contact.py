"""Flat contact: the gradient is a one-sided derivative of the motion, or between both (docs/contact.md)."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def flat(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
    return import_module("flat_contact")


# Pairs of boxes need kernels that are compiled on demand.
@pytest.mark.parametrize(
    "kind", ["slide", *(pytest.param(kind, marks=pytest.mark.extended) for kind in ("stack", "push"))]
)
def test_gradients_are_one_sided_derivatives(flat, kind):
    """Boxes that slide flat, stacks of three, and boxes pushed by an arm, along directions that tilt them too.

    Each step takes a side of its own, so that over many steps few gradients are outside of what both sides have.
    """
    seeds = [seed for seed in range(24) if list(flat.KINDS)[seed % len(flat.KINDS)] == kind]
    verdicts = [
        flat.verdict(gradient, slopes)
        for seed in seeds
        for gradient, slopes in flat.one_sided(flat.scene(seed), seed).values.values()
    ]
    smooth = len(verdicts) - verdicts.count("jump")
    assert smooth > 0.5 * len(verdicts)
    assert verdicts.count("derivative") > 0.85 * smooth
    assert verdicts.count("neither") < 0.05 * smooth


@pytest.mark.extended
@pytest.mark.parametrize("seed", [1, 4])
def test_stacks_have_derivatives(flat, seed):
    """Without friction, where only the normal of flat sides says where a tilt leads, and with it; none is named."""
    result = flat.one_sided(flat.scene(seed), seed)
    assert not result.is_named
    assert {flat.verdict(*value) for value in result.values.values()} == {"derivative"}


def test_verdicts(flat):
    """A verdict can be wrong: a gradient that equals no side, and is not between them."""
    sides = np.array([[1.0, 2.0], [1.0, 2.0]])
    assert flat.verdict(1.0, sides) == "one side"
    assert flat.verdict(1.5, sides) == "between"
    assert flat.verdict(2.5, sides) == "neither"
    assert flat.verdict(2.5, np.array([[10.0, -10.0], [100.0, -100.0]])) == "jump"
