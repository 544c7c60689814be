"""Penetration of shapes and joints beyond their limits, in numbers and in words, for worlds that fail."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import State, Trajectory
from physvision.physics.articulated.contact.shape_pairs import shape_name
from physvision.physics.articulated.dynamics import TreeDynamics
from physvision.physics.articulated.model.bodies import JOINT_KINDS
from physvision.physics.articulated.settings import SETTINGS
from physvision.physics.engine import Overrides
from physvision.physics.failures import FailureTexts

MAX_NAMED_PENETRATIONS = 4  # pairs and joints in a message


class Penetration(NamedTuple):
    """Penetration in the worlds of a batch; −∞ for pairs and limits that the reference pose of a model violates.

    Attributes:
        pairs: Penetration of each pair of features, m; negative where they are separate.
        limits: Excess of each joint with limits beyond the nearer of them, rad or m; negative within the limits.
    """

    pairs: Float[Tensor, "batch pairs"]
    limits: Float[Tensor, "batch limits"]


@torch.no_grad()
def penetration(engine: TreeDynamics, state: State, properties: Overrides = None) -> Penetration:
    """Compute the penetration of all pairs and joints of an engine with contact."""
    pairs = engine._pairs
    assert pairs is not None
    joints, is_held = pairs.limited_joints, torch.as_tensor(pairs.is_held != 0, device=state.q.device)
    pair_is_held, limit_is_held = is_held[: pairs.count], is_held[pairs.count :][: 2 * len(joints)].reshape(-1, 2)
    depth, cast_properties = state.q.new_empty(state.batch, 0), engine._cast(state, properties)
    if pairs.count:
        depth = -engine._pair_geometry(state, cast_properties)["separation"]
    limits = cast_properties.joint_limits[..., joints, :]
    position = _joint_positions(engine, state.q, joints)
    excess = torch.stack([limits[..., 0] - position, position - limits[..., 1]], -1)
    excess = excess.masked_fill(limit_is_held, -torch.inf).amax(-1)
    return Penetration(depth.masked_fill(pair_is_held, -torch.inf), excess)


def _joint_positions(engine: TreeDynamics, q: Tensor, joints: np.ndarray) -> Tensor:
    """Positions of joints with limits; of ball joints their angle, (batch, joints)."""
    first = engine.model.first_position[joints]
    position = q[:, first].clone()
    for column in np.flatnonzero(engine.model.kind[joints] == JOINT_KINDS["ball"].code).tolist():
        quaternion = q[:, first[column] : first[column] + 4]
        position[:, column] = 2 * torch.atan2(quaternion[:, 1:].norm(dim=1), quaternion[:, 0].abs())
    return position


def fill_in_penetration(engine: TreeDynamics, trajectory: Trajectory, properties: Overrides) -> Trajectory:
    """Put the penetration of worlds that fail at their start into the status of a trajectory."""
    status = trajectory.status
    assert status is not None
    at_start = status.first_failed_step == 0
    if not bool(at_start.any()):
        return trajectory
    depth = penetration(engine, trajectory.state(0), properties).pairs
    largest = torch.cat([depth, depth.new_zeros(len(depth), 1)], 1).nan_to_num(0.0, neginf=0.0).amax(1)
    status = status.with_penetration(torch.where(at_start, largest, status.penetration))
    return Trajectory(trajectory.q, trajectory.v, status, trajectory.dt)


def explain_start(engine: TreeDynamics, trajectory: Trajectory, properties: Overrides) -> FailureTexts:
    """Explain the failure of the first failed world if contact by events rejects its start."""
    status = trajectory.status
    assert status is not None
    world = status.failed()[0]
    if int(status.first_failed_step[world]) != 0:
        return FailureTexts()
    start = State(trajectory.q[world : world + 1, 0], trajectory.v[world : world + 1, 0])
    known = engine._cast(trajectory.state(0), properties).select_worlds(torch.tensor([world]), engine.properties)
    cause = describe_penetration(engine, start, properties=known)
    if not cause:
        return FailureTexts()
    limit = 1e3 * SETTINGS.max_initial_penetration
    return FailureTexts(
        f"where {cause}, more than the {limit:g} mm or mrad with which a world may start",
        "engine.resolve_penetration(state) pushes shapes apart and moves joints into their limits; if steps of "
        "earlier calls led there, a shorter dt helps. ",
    )


def describe_penetration(
    engine: TreeDynamics, state: State, smallest: float = SETTINGS.max_initial_penetration, properties: Overrides = None
) -> str:
    """Describe which shapes overlap and which joints are beyond their limits, worst first; empty if none are.

    Args:
        engine: Engine with or without contact.
        state: State of one world.
        smallest: Smallest penetration that is named, m or rad.
        properties: Properties of this world.
    """
    pairs = engine._pairs
    if pairs is None:
        return ""
    depth, excess = (values[0].tolist() for values in penetration(engine, state, properties))
    depths: dict[str, float] = {}
    for pair in np.flatnonzero(np.array(depth) > smallest).tolist():
        shapes = [engine.geometry[rows[pair]] for rows in (pairs.first, pairs.second)]
        names = " and ".join(shape_name(engine.model, placed) for placed in shapes)
        depths[names] = max(depth[pair], depths.get(names, 0.0))
    violations = [(value, f"{names} overlap by {1e3 * value:.3g} mm") for names, value in depths.items()]
    for joint, value in zip(pairs.limited_joints.tolist(), excess, strict=True):
        if value > smallest:
            unit = "m" if engine.model.kind[joint] == JOINT_KINDS["prismatic"].code else "rad"
            name = engine.joint_names[joint]
            violations.append((value, f"joint {name!r} is beyond its limit by {value:.3g} {unit}"))
    texts = [text for _, text in sorted(violations, reverse=True)]
    more = len(texts) - MAX_NAMED_PENETRATIONS
    return ", ".join(texts[:MAX_NAMED_PENETRATIONS] + ([f"and {more} more"] if more > 0 else []))
