"""Gradients of a loss against its differences, along one direction of each input."""

import pytest
import torch


def compare(loss, values, direction):
    """How many of the inputs have a derivative by differences; each of these is compared with the gradient.

    `loss` takes inputs by name, as `values` are; `direction(name, value)` says along what each is moved.
    """
    variables = {name: value.clone().requires_grad_() for name, value in values.items()}
    gradients = torch.autograd.grad(loss(variables), list(variables.values()))
    compared = 0
    for (name, value), gradient in zip(values.items(), gradients, strict=True):
        along = direction(name, value)
        slopes = []
        for h in (1e-5, 1e-6):
            ends = [float(loss(values | {name: value + sign * h * along})) for sign in (1, -1)]
            slopes.append((ends[0] - ends[1]) / (2 * h))
        if abs(slopes[0] - slopes[1]) > 1e-5 * max(1.0, abs(slopes[1])):
            continue  # the difference has no limit at these steps: a mode changes
        compared += 1
        assert float((gradient * along).sum()) == pytest.approx(slopes[1], rel=2e-5, abs=2e-5), name
    return compared
