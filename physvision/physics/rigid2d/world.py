"""The world of rigid bodies in the plane: an `Engine`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from physvision.core import InputError, Placed, State, Status, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.kernels.batched_function import apply, is_followed
from physvision.physics.engine import MechanicalEngine, Overrides
from physvision.physics.properties import Properties
from physvision.physics.rigid2d import energy as mechanics
from physvision.physics.rigid2d.assembly import Assembly, build
from physvision.physics.rigid2d.bodies import Body, Circle, Number, _numbers
from physvision.physics.rigid2d.joints import Joint
from physvision.physics.rigid2d.overlap import separate
from physvision.physics.rigid2d.properties import WorldProperties, pack
from physvision.physics.rigid2d.rollout import Kernels, Rollout

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


class World(MechanicalEngine):
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
        max_contacts: contacts that may touch at one moment for events to be followed; None for 16.
        max_events: impacts, ends of slip and stretches between them that are followed in one step.
        max_milliseconds: what following them may cost in one step, about, on one core; counted in operations, not by
            the clock; None for 2, or 16 where nothing can touch. Beyond any of these bounds the rest of the step is
            crowded: one problem over all contacts at once, see `Status.fallback_steps`.
        substeps: how many steps of the scheme make one of the engine; bounds and `Status.fallback_steps` count them.
    """

    takes_forces = True

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
        max_milliseconds: Number | None = None,
        substeps: int = 1,
    ) -> None:
        super().__init__()
        self.dt = check_positive("dt", dt)
        self.substeps = check_count("substeps", substeps)
        fine = self.dt / self.substeps
        self.assembly = Assembly(bodies, joints, exempt)
        self._q: Tensor
        self._gravity: Tensor
        self._v: Tensor
        self.body_names = tuple(self.assembly.names)
        self.joint_names = tuple(joint.label for joint, _ in self.assembly.joints)
        self.geometry = self._drawn()
        movers = [self.assembly.names[i] for i in self.assembly.moving]
        standing = [self.assembly.names[i] for i in self.assembly.static]
        springs = [spring.label for spring, _ in self.assembly.springs]
        self.rows = {
            "moving": movers,
            "bodies": self.body_names,
            "static": standing,
            "joints": self.joint_names,
            "springs": springs,
        }
        self._keep_properties(self.assembly.properties(_numbers("gravity", gravity, 2)))
        moving = len(self.assembly.moving)
        motors = sum(motor >= 0 for motor in self.assembly.motors)
        self.nq = self.nv = 3 * moving
        self.nu = 3 * moving + motors
        most = self.assembly.most_contacts
        capacity = 1 + min(most, 16 if max_contacts is None else check_count("max_contacts", max_contacts))
        tolerance = 1e-9 * self.assembly.size
        if max_milliseconds is None:
            max_milliseconds = 2.0 if self.assembly.pairs else 16.0
        self._settings = {
            "capacity": capacity,
            "crowd": max(capacity, min(most, 6 * len(bodies) + 2 * sum(self.assembly.limited))),
            "remembered": max(1, min(most, 3 * len(bodies))),
            "effort": round(1000 * check_positive("max_milliseconds", max_milliseconds)),
            "operations": check_count("max_events", max_events, 4) + 18,
            "dt": fine,
            "tolerance": tolerance,
            "rest_speed": 1e-2 * tolerance / fine,
            "size": self.assembly.size,
            "slop": max(10 * tolerance, 2e-4 * self.assembly.smallest),
        }
        start = [self.assembly.pose(i) for i in self.assembly.moving]
        if overlap not in ("refuse", "push"):
            raise InputError(f"overlap: expected 'refuse' or 'push', got {overlap!r}")
        start = separate(self.assembly, start, tolerance, overlap == "push")
        rates = [(*map(float, bodies[i].velocity), bodies[i].spin) for i in self.assembly.moving]
        self._keep("q", torch.tensor(start, dtype=torch.float64).reshape(1, -1))
        self._keep("v", torch.tensor(rates, dtype=torch.float64).reshape(1, -1))

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """The state that the bodies were given."""
        check_count("batch", batch)
        return State(self._q.to(dtype).repeat(batch, 1), self._v.to(dtype).repeat(batch, 1))

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        theta = self._theta(properties, state)
        length = truncate or steps
        q, v = state.q.double(), state.v.double()
        u = q.new_zeros(1, 1, self.nu).expand(state.batch, steps, -1) if controls is None else controls.double()
        fine, parts = self.substeps, []
        for start in range(0, steps, length):
            count = min(length, steps - start)
            held = u[:, start : start + count]
            if fine > 1 and controls is not None:
                held = held.repeat_interleave(fine, 1)
            elif fine > 1:
                held = held[:, :1].expand(-1, fine * count, -1)
            operation = Rollout(self._on(q.device), fine * count, is_followed(q, v, held, theta))
            outputs = apply(operation, q, v, held, theta)
            parts.append((outputs[0][:, ::fine], outputs[1][:, ::fine], *outputs[2:]))
            q, v = outputs[0][:, -1].detach(), outputs[1][:, -1].detach()
        return _join(parts, length, fine, state.q.dtype, self.dt)

    def _pushed(self, state: State, force: Tensor, control: Tensor | None, properties: Overrides) -> Trajectory:
        # The first controls are the forces and torques on the bodies that move, as a generalised force is.
        given = state.v.new_zeros(state.batch, self.nu) if control is None else control
        pushed = given + pad(force, (0, self.nu - self.nv))
        return self._simulate(state, 1, pushed.unsqueeze(1), properties, None)

    def __repr__(self) -> str:
        bodies = self.assembly.bodies
        kinds = Counter(type(body).__name__ for body in bodies)
        parts = [f"{count} {kind}{'s' * (count > 1)}" for kind, count in kinds.items()]
        parts += (
            [f"{sum(body.static for body in bodies)} of them static"] if any(body.static for body in bodies) else []
        )
        joints = Counter(type(joint).__name__ for joint, _ in (*self.assembly.joints, *self.assembly.springs))
        parts += [f"{count} {kind}{'s' * (count > 1)}" for kind, count in joints.items()]
        gravity = ", ".join(f"{number:g}" for number in self._gravity.tolist())
        return f"World({', '.join(parts)}; gravity=({gravity}), dt={self.dt:g}, nq={self.nq}, nu={self.nu})"

    def _cure(self) -> str:
        return (
            "A state or control was not finite, numbers ran away, or a body crosses the world 10⁵ times in a step: see "
            f"to forces and speeds that are out of scale, or try a smaller dt (it is {self.dt:g}) or more substeps "
            f"(now {self.substeps}). "
        )

    def _on(self, device: torch.device) -> Kernels:
        if device not in self._prepared:
            own = self.properties
            assert isinstance(own, WorldProperties)
            parts, kept = build(self.assembly, own, self._settings, device)
            self._prepared[device] = Kernels(parts, kept, device)
        return self._prepared[device]

    def _theta(self, properties: Overrides, state: State) -> Tensor:
        """All numbers of the properties, a row for each world."""
        key = ("numbers", state.q.device)
        if properties is None and key in self._prepared:
            return self._prepared[key].expand(state.batch, -1)
        own, known = self.properties, self.checked(properties, state.batch, state.q.device)
        assert isinstance(own, WorldProperties)
        assert isinstance(known, WorldProperties)
        if not self._are_own(known):
            return pack(known, own, state.batch, self.assembly.ordering.lists)
        if key not in self._prepared:
            self._prepared[key] = pack(own, own, 1, self.assembly.ordering.lists)
        return self._prepared[key].expand(state.batch, -1)

    def _drawn(self) -> tuple[Placed, ...]:
        """The shape of every body, static ones included."""
        placed, colored = [], 0
        for i, body in enumerate(self.assembly.bodies):
            color = body.color or (_STATIC if body.static else _PALETTE[colored % len(_PALETTE)])
            colored += not body.static
            placed.append(Placed(body.shape, i, color=color, name=self.assembly.names[i]))
        return tuple(placed)

    def _poses(self, state: State, properties: Properties) -> Float[Tensor, "batch bodies 4 4"]:
        """The frame of every body in the world, in the order given."""
        assert isinstance(properties, WorldProperties)
        return mechanics.poses(self.assembly, state, properties)

    def _appearance(
        self, state: State, properties: Properties
    ) -> tuple[Float[Tensor, "batch shapes 4 4"], Float[Tensor, "batch shapes 3"]]:
        assert isinstance(properties, WorldProperties)
        poses = mechanics.poses(self.assembly, state, properties)
        fixed = poses.new_tensor([placed.shape.sizes for placed in self.geometry])
        radius = properties.radius.to(poses)
        round_ones = torch.stack([radius, torch.zeros_like(radius), torch.zeros_like(radius)], -1)
        circles = torch.tensor([isinstance(body, Circle) for body in self.assembly.bodies], device=poses.device)
        return poses, torch.where(circles[:, None], round_ones, fixed).expand(state.batch, -1, -1)

    def _energy(self, state: State, properties: Properties) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        assert isinstance(properties, WorldProperties)
        return mechanics.energy(self.assembly, state, properties)


def _join(parts: list[tuple[Tensor, ...]], length: int, substeps: int, dtype: torch.dtype, dt: float) -> Trajectory:
    """One trajectory from those of consecutive pieces, each of `length` steps but the last, of so many substeps."""
    q = torch.cat([parts[0][0], *(part[0][:, 1:] for part in parts[1:])], 1) if len(parts) > 1 else parts[0][0]
    v = torch.cat([parts[0][1], *(part[1][:, 1:] for part in parts[1:])], 1) if len(parts) > 1 else parts[0][1]
    status = _status(parts[0], dtype)
    for number, part in enumerate(parts[1:], 1):
        status = status.then(_status(part, dtype), number * length * substeps)
    if substeps > 1:
        # Step k ends with substep k · substeps; −1 stays.
        bad, coarse = (
            torch.where(step >= 0, (step + substeps - 1) // substeps, step)
            for step in (status.first_failed_step, status.first_underresolved_step)
        )
        status = replace(status, first_failed_step=bad, first_underresolved_step=coarse)
    return Trajectory(q.to(dtype), v.to(dtype), status, dt)


def _status(part: tuple[Tensor, ...], dtype: torch.dtype) -> Status:
    """How one piece went, its steps counted in substeps."""
    crowded, residual, iterations, bad, coarse = (part[which] for which in (2, 3, 4, 5, 6))
    return Status(
        converged=bad < 0,
        residual=residual.to(dtype),
        iterations=iterations.long(),
        first_failed_step=bad.long(),
        fallback_steps=(crowded < 0).sum(1),
        first_underresolved_step=coarse.long(),
    )
