"""The parts that an engine of trees is assembled from: its model, names, shapes, and what fits together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from physvision.core import InputError, Placed
from physvision.physics.articulated.contact import ContactLaw
from physvision.physics.articulated.model.actuators import Activation
from physvision.physics.articulated.model.fluid import Medium, boxes, check
from physvision.physics.articulated.model.kinematic_tree import Body, Model, compile_model
from physvision.physics.articulated.model.loop_joints import Connection
from physvision.physics.articulated.model.transmissions import Transmission

FRICTION_MODELS = ("cone", "pyramid")


def compiled(
    bodies: Sequence[Body], wheels: int, medium: Medium | None, drag_axes: np.ndarray | None
) -> tuple[Model, np.ndarray]:
    """The model, and the boxes by which a medium drags each body; the wheels of activations, the last, have none."""
    model, drag_size = compile_model(bodies), np.zeros((len(bodies), 3))
    if medium is not None:
        check(medium)
        given = None if drag_axes is None else np.concatenate([drag_axes, *[np.eye(3)[None]] * wheels])
        drag_size, axes = boxes(bodies, given)
        drag_size[len(bodies) - wheels :] = 0.0
        model = replace(model, drag_axes=axes)
    return model, drag_size


def check_without_contact(
    model: Model, transmissions: Sequence[Transmission], connections: Sequence[Connection]
) -> None:
    """Raise for what is part of the contact problem."""
    if model.limited.any():
        raise InputError("a joint has limits, which are contacts: make the engine with contact='event'")
    if transmissions or connections:
        raise InputError(
            "transmissions and connections are part of the contact problem: make the engine with contact='event'"
        )


def names_of_rows(
    model: Model, geometry: Sequence[Placed], transmissions: Sequence[Transmission]
) -> dict[str, Sequence[str]]:
    """What the rows of properties belong to, for messages."""
    return {
        "bodies": model.body_names,
        "joints": model.joint_names,
        "nq": _along(model.joint_names, model.first_position),
        "nv": _along(model.joint_names, model.first_velocity),
        "shapes": tuple(placed.name or f"shape {row}" for row, placed in enumerate(geometry)),
        "transmissions": tuple(each.name for each in transmissions),
    }


def _along(names: Sequence[str], first: np.ndarray) -> tuple[str, ...]:
    """The name of the joint of each number of a position or a velocity."""
    return tuple(np.repeat(names, np.diff(first)).tolist())


def coupled(model: Model, activations: Sequence[Activation], rubbing: int) -> Model:
    """The model with what activations push; rows of dry friction stand between velocities and transmissions."""
    source, target, gain = [], [], []
    first = model.nv - len(activations)
    for k, each in enumerate(activations):
        for column in np.flatnonzero(each.push).tolist():
            source.append(first + k)
            target.append(column if column < first else model.nv + rubbing + column - first)
            gain.append(float(each.push[column]))
    return replace(
        model,
        coupling_source=np.array(source, np.int32),
        coupling_target=np.array(target, np.int32),
        coupling_gain=np.array(gain),
    )


def with_none(values: float | Sequence[float] | np.ndarray, count: int, many: bool | None = None) -> Any:
    """Numbers one for each shape, with zeros for more shapes behind them; a number for all stays."""
    if not count or not (np.ndim(values) > 0 if many is None else many):
        return values
    numbers = np.asarray(values, float)
    padded = np.concatenate([numbers, np.zeros((count, *numbers.shape[1:]))])
    return padded if numbers.ndim > 1 else padded.tolist()


def friction_losses(model: Model, bodies: Sequence[Body]) -> np.ndarray:
    """Dry friction along each velocity."""
    losses = [joint.friction_loss for body in bodies for joint in body.joints]
    return np.repeat(np.asarray(losses, float), np.diff(model.first_velocity))


def is_pyramid(friction_model: str, law: ContactLaw | None) -> bool:
    """Return True if friction is a pyramid, and raise for a model that the contact law does not support."""
    if friction_model not in FRICTION_MODELS:
        raise InputError(f"friction_model: expected one of {', '.join(FRICTION_MODELS)}, got {friction_model!r}")
    if friction_model == "pyramid" and law is not None and not law.has_friction_pyramid:
        raise InputError(f"friction_model: 'pyramid' is simulated with contact='event', got {type(law).__name__}")
    return friction_model == "pyramid"


def geometry_of(bodies: Sequence[Body]) -> list[Placed]:
    """The shapes of all bodies, each with the row of its body and a name."""
    return [
        Placed(shape.shape, row, shape.pose, shape.color, shape.name or body.name)
        for row, body in enumerate(bodies)
        for shape in body.shapes
    ]
