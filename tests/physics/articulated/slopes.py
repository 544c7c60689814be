"""Gradients of a loss against its differences, along one direction of each input."""

import pytest
import torch

OF_A_WORLD = ("q", "v", "u", "controls")
STEPS = (1e-5, 1e-6)


def compare(loss, values, direction):
    """How many of the inputs have a derivative by differences; each of these is compared with the gradient.

    `loss` takes inputs by name, as `values` are, of one world or of many with properties of their own, and returns a
    number a world; all differences are taken in one batch. `direction(name, value)` says along what an input is moved.
    """
    variables = {name: value.clone().requires_grad_() for name, value in values.items()}
    gradients = torch.autograd.grad(loss(variables).sum(), list(variables.values()))
    along = {name: direction(name, value) for name, value in values.items()}
    moves = [(name, sign * h) for name in values for h in STEPS for sign in (1, -1)]
    worlds = {name: _alone(name, value).repeat_interleave(len(moves), 0) for name, value in values.items()}
    for world, (name, distance) in enumerate(moves):
        worlds[name][world] += distance * _alone(name, along[name])[0]
    ends = loss(worlds).view(len(values), len(STEPS), 2)
    slopes = (ends[..., 0] - ends[..., 1]) / (2 * torch.tensor(STEPS, dtype=ends.dtype))
    compared = 0
    for (name, move), gradient, (coarse_steps, fine) in zip(along.items(), gradients, slopes.tolist(), strict=True):
        if abs(coarse_steps - fine) > 1e-5 * max(1.0, abs(fine)):
            continue  # the difference has no limit at these steps: a mode changes
        compared += 1
        assert float((gradient * move).sum()) == pytest.approx(fine, rel=2e-5, abs=2e-5), name
    return compared


def _alone(name, value):
    """The value with a first dimension of worlds, which states and controls have already."""
    return value if name in OF_A_WORLD else value[None]
