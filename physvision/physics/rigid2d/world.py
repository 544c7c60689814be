"""The world of rigid bodies in the plane: an `Engine`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, Placed, State, Status, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.physics.batched_function import apply
from physvision.physics.engine import Engine
from physvision.physics.rigid2d import energy as mechanics
from physvision.physics.rigid2d.bodies import Body, Number, _numbers
from physvision.physics.rigid2d.joints import Joint
from physvision.physics.rigid2d.overlap import separate
from physvision.physics.rigid2d.properties import LEAVES, Properties, merge, pack
from physvision.physics.rigid2d.rollout import Kernels, Rollout
from physvision.physics.rigid2d.scene import Description, build

_PALETTE = (
    (0.12, 0.47, 0.71),
    (1.00, 0.50, 0.05),
    (0.17, 0.63, 0.17),
    (0.84, 0.15, 0.16),
    (0.58, 0.40, 0.74),
    (0.55, 0.34, 0.29),
    (0.89, 0.47, 0.76),
    (0.74, 0.74, 0.13),
    (0.09, 0.75, 0.81),
)
_STATIC = (0.5, 0.5, 0.5)


class World(Engine):
    """Circles and convex polygons with joints, contacts and friction; stepped from event to event.

    A state holds x, y and angle of every moving body in the order given, and their rates. A control holds, held over
    a step, force x, force y and torque of every moving body, then the torque of every motor.

    All arithmetic is in float64; states of another dtype are converted on the way in and out.

    Args:
        bodies: circles, polygons, rectangles; static ones are obstacles.
        joints: joints and springs.
        gravity: acceleration, (x, y).
        dt: seconds between two states. Impacts happen when they happen, whatever it is.
        exempt: pairs of bodies that pass through each other; bodies that share a joint do, unless it says otherwise.
        overlap: what to do with bodies that overlap at the start: "refuse", or "push" them apart.
        max_contacts: contacts that may touch at one moment; None for as many as can, up to 64.
        max_events: impacts, ends of slip and stretches between them in one step; more make the step fail.
    """

    def __init__(
        self,
        bodies: Sequence[Body],
        joints: Sequence[Joint] = (),
        gravity: Sequence[Number] = (0.0, 9.81),
        dt: Number = 1 / 30,
        exempt: Sequence[tuple] = (),
        overlap: Literal["refuse", "push"] = "refuse",
        max_contacts: int | None = None,
        max_events: int = 128,
    ) -> None:
        super().__init__()
        self.dt = check_positive("dt", dt)
        self.description = Description(bodies, joints, exempt)
        own = self.description.properties(_numbers("gravity", gravity, 2))
        self._q: Tensor
        self._v: Tensor
        for field in fields(Properties):
            self.register_buffer(f"_{field.name}", getattr(own, field.name), persistent=False)
        movers = [self.description.names[i] for i in self.description.moving]
        self.names: dict[str, list[str]] = dict.fromkeys(("mass", "gyration", "damping"), movers)
        self.names |= dict.fromkeys(("radius", "restitution", "friction"), self.description.names)
        moving = len(self.description.moving)
        motors = sum(motor >= 0 for motor in self.description.motors)
        self.nq = self.nv = 3 * moving
        self.nu = 3 * moving + motors
        most = self.description.most_contacts
        capacity = 1 + (min(most, 64) if max_contacts is None else check_count("max_contacts", max_contacts))
        tolerance = 1e-9 * self.description.size
        self._settings = {
            "capacity": capacity,
            "operations": check_count("max_events", max_events, 4),
            "dt": self.dt,
            "tolerance": tolerance,
            "rest_speed": 1e-2 * tolerance / self.dt,
        }
        self._kernels: dict[torch.device, Kernels] = {}
        self._packed: tuple[tuple, Tensor] | None = None
        start = [self.description.pose(i) for i in self.description.moving]
        if overlap not in ("refuse", "push"):
            raise InputError(f"overlap: expected 'refuse' or 'push', got {overlap!r}")
        start = separate(self.description, start, tolerance, overlap == "push")
        rates = [(*map(float, bodies[i].velocity), bodies[i].spin) for i in self.description.moving]
        self.register_buffer("_q", torch.tensor(start, dtype=torch.float64).reshape(1, -1), persistent=False)
        self.register_buffer("_v", torch.tensor(rates, dtype=torch.float64).reshape(1, -1), persistent=False)

    @property
    def properties(self) -> Properties:
        """Masses, sizes, friction … in float64."""
        return Properties(**{name: getattr(self, f"_{name}") for name in LEAVES})

    def _apply(self, fn: Any, *args: Any, **kwargs: Any) -> World:
        # Buffers move to another device, but stay in float64, which .float() and .half() would not respect.
        return super()._apply(lambda tensor: fn(tensor).to(tensor.dtype), *args, **kwargs)

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """The state that the bodies were given."""
        check_count("batch", batch)
        return State(self._q.to(dtype).repeat(batch, 1), self._v.to(dtype).repeat(batch, 1))

    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Properties | Mapping[str, Tensor] | None = None,
        truncate: int | None = None,
    ) -> Trajectory:
        """Simulate `steps` steps; see `Engine.rollout`. Every event inside a step is found, and differentiated."""
        self._check_state(state)
        check_count("steps", steps)
        self._check_controls(state, steps, controls)
        theta = self._theta(properties, state.batch)
        length = steps if truncate is None else check_count("truncate", truncate)
        q, v = state.q.double(), state.v.double()
        u = q.new_zeros(1, 1, self.nu).expand(state.batch, steps, -1) if controls is None else controls.double()
        parts = []
        for start in range(0, steps, length):
            count = min(length, steps - start)
            operation = Rollout(self._on(q.device), count)
            outputs = apply(operation, q, v, u[:, start : start + count], theta)
            parts.append(outputs)
            q, v = outputs[0][:, -1].detach(), outputs[1][:, -1].detach()
        trajectory = _join(parts, length, state.q.dtype)
        assert trajectory.status is not None
        self._report(trajectory.status)
        return trajectory

    def _on(self, device: torch.device) -> Kernels:
        if device not in self._kernels:
            scene, kept = build(self.description, self.properties, self._settings, device)
            self._kernels[device] = Kernels(scene, kept, device)
        return self._kernels[device]

    def _theta(self, properties: Properties | Mapping[str, Tensor] | None, batch: int) -> Tensor:
        own = self.properties
        if properties is not None:
            return pack(merge(own, properties, self.names), own, batch)
        key = tuple((id(leaf), leaf._version) for leaf in (getattr(own, name) for name in LEAVES))
        if self._packed is None or self._packed[0] != key:
            self._packed = (key, pack(own, own, 1))
        return self._packed[1].expand(batch, -1)

    @property
    def geometry(self) -> tuple[Placed, ...]:
        """The shape of every body, static ones included, for a camera; rows are those of `poses`."""
        placed, colored = [], 0
        for i, body in enumerate(self.description.bodies):
            color = body.color or (_STATIC if body.static else _PALETTE[colored % len(_PALETTE)])
            colored += not body.static
            placed.append(Placed(body.shape, i, color=color, name=self.description.names[i]))
        return tuple(placed)

    def poses(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Properties | Mapping[str, Tensor] | None = None,
    ) -> Float[Tensor, "batch bodies 4 4"]:
        """The frame of every body in the world, in the order given, static ones included."""
        self._check_state(state)
        return mechanics.poses(self.description, state)

    def energy(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Properties | Mapping[str, Tensor] | None = None,
    ) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Kinetic and potential energy: of gravity and of springs."""
        self._check_state(state)
        return mechanics.energy(self.description, state, merge(self.properties, properties, self.names))

    def acceleration(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Properties | Mapping[str, Tensor] | None = None,
    ) -> Float[Tensor, "batch nv"]:
        """The mean acceleration over the next step, joints, contacts and impacts included: what a step adds to v."""
        return (self.step(state, control, properties).v - state.v) / self.dt


def _join(parts: list[tuple[Tensor, ...]], length: int, dtype: torch.dtype) -> Trajectory:
    """One trajectory from those of consecutive pieces, each of `length` steps but the last."""
    q = torch.cat([parts[0][0], *(part[0][:, 1:] for part in parts[1:])], 1) if len(parts) > 1 else parts[0][0]
    v = torch.cat([parts[0][1], *(part[1][:, 1:] for part in parts[1:])], 1) if len(parts) > 1 else parts[0][1]
    bad = parts[0][5]
    for i, part in enumerate(parts[1:], 1):
        later = torch.where(part[5] >= 0, part[5] + i * length, -1)
        bad = torch.where(bad >= 0, bad, later)
    residual = torch.stack([part[3] for part in parts]).amax(0)
    iterations = torch.stack([part[4] for part in parts]).amax(0)
    status = Status(bad < 0, residual.to(dtype), iterations.long(), bad.long())
    return Trajectory(q.to(dtype), v.to(dtype), status)
