"""Order of the objects of an observation: that of labels, of the frame before, or of a scene's colors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.core import State
from physvision.models.interfaces import Observation
from physvision.models.segmentation import match_order

# Coordinates of an object: x, y and its rotation.
_COORDINATES = 3
# A detection without confidence may still take the slot of an object.
_MIN_CONFIDENCE = 0.05
# Larger than the distance of any two colors from 0 to 1, so that every object has a slot.
_MAX_COLOR_DISTANCE = 2.0


def aligned(
    observation: Observation, true: State, present: Tensor, labeled: Tensor, max_distance: float = 20.0
) -> Observation:
    """Reorder the objects of labeled samples, so that each has the slot of the true object nearest to it."""
    estimated, weight = _places(observation.positions[:, -1]), _weight(observation)
    q = torch.where(labeled[:, None], true.q, observation.positions[:, -1])
    order = match_order(_places(q), present.to(weight), estimated, _MIN_CONFIDENCE + weight, max_distance)
    return reordered(observation, torch.where(labeled[:, None], order, torch.arange(order.shape[1]).to(order)))


def with_empty_slots(observation: Observation, true: State, present: Tensor, labeled: Tensor) -> Observation:
    """Let the empty slots of labeled samples take the labels' place, and their presence."""
    empty = (labeled[:, None] & ~present)[..., None].expand(-1, -1, _COORDINATES).flatten(1)[:, None]
    q = torch.where(empty, true.q[:, None], observation.positions)
    v = torch.where(empty, true.v[:, None], observation.velocities)
    values = observation.properties
    if values and "present" in values:
        estimated = torch.where(labeled[:, None], present.to(q), values["present"])
        values = {**values, "present": estimated}
    return replace(observation, positions=q, velocities=v, properties=values)


def chained(
    observation: Observation, earlier: Observation | None, dt: float, max_distance: float = 12.0
) -> Observation:
    """Reorder the objects of consecutive windows, so that each keeps its slot from one window to the next.

    Args:
        observation: Observation of windows that follow each other by one frame, one a row.
        earlier: Observation whose last row is the window before the first one; None at the start of a video.
        dt: Time between two frames, s.
        max_distance: Distance from the place extrapolated from the window before, beyond which it is another object.
    """
    places, weight = _places(observation.positions[:, -1]), _weight(observation)
    expected = _places(observation.positions[:, -1] + dt * observation.velocities[:, -1])
    orders = [torch.arange(places.shape[1], device=places.device)]
    if earlier is not None:
        before = _places(earlier.positions[-1:, -1] + dt * earlier.velocities[-1:, -1]), _weight(earlier)[-1:]
        orders = [match_order(*before, places[:1], _MIN_CONFIDENCE + weight[:1], max_distance)[0]]
    for row in range(1, len(places)):
        before = expected[row - 1 : row, orders[-1]], weight[row - 1 : row, orders[-1]]
        now = places[row : row + 1], _MIN_CONFIDENCE + weight[row : row + 1]
        orders.append(match_order(*before, *now, max_distance)[0])
    return reordered(observation, torch.stack(orders))


def ordered_by_color(observation: Observation, colors: Float[Tensor, "slots 3"]) -> Observation:
    """Reorder the objects of consecutive windows, so that each has the slot whose color is nearest to its own.

    An object's own color is the first three numbers of its appearance code, averaged over the windows.
    """
    assert observation.appearance is not None
    weight = _weight(observation)
    codes = observation.appearance.code.unflatten(1, (len(colors), -1))[..., :3]
    own = (weight[..., None] * codes).sum(0) / weight.sum(0)[:, None].clamp_min(1e-6)
    certain = torch.ones_like(own[None, :, 0])
    order = match_order(colors.to(own)[None], certain, own[None], certain, _MAX_COLOR_DISTANCE)
    return reordered(observation, order.expand(len(weight), -1))


def reordered(observation: Observation, order: Int[Tensor, "batch slots"]) -> Observation:
    """Give the objects of each row another order."""
    slots, rows = order.shape[1], torch.arange(len(order), device=order.device)[:, None]

    def permuted(values: Tensor, width: int) -> Tensor:
        """Reorder the last dimension, of `width` numbers an object."""
        split = values.unflatten(-1, (slots, width)).movedim(-2, 1)
        return split[rows, order].movedim(1, -2).flatten(-2)

    changes: dict[str, Any] = {
        name: permuted(getattr(observation, name), _COORDINATES)
        for name in ("positions", "velocities", "position_std", "velocity_std")
    }
    changes["confidence"] = permuted(_known(observation.confidence), 1)
    for name in ("properties", "property_std"):
        values = getattr(observation, name)
        if values is not None:
            # Walls are of the trial; they happen to be as many numbers as four balls have.
            objects = {key: value for key, value in values.items() if value.dim() == 2 and key != "walls"}
            changes[name] = {**values, **{key: permuted(value, 1) for key, value in objects.items()}}
    if observation.masks is not None:
        changes["masks"] = observation.masks.transpose(1, 2)[rows, order].transpose(1, 2)
    if observation.appearance is not None:
        code = observation.appearance.code
        changes["appearance"] = replace(observation.appearance, code=permuted(code, code.shape[1] // slots))
    return replace(observation, **changes)


def _places(q: Tensor) -> Float[Tensor, "batch slots 2"]:
    return q.unflatten(1, (-1, _COORDINATES))[..., :2]


def _weight(observation: Observation) -> Float[Tensor, "batch slots"]:
    return _known(observation.confidence)[:, -1]


def _known(confidence: Tensor | None) -> Tensor:
    assert confidence is not None
    return confidence
