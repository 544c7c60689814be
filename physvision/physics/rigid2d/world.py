"""World of rigid bodies in the plane: an `Engine`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn.functional import pad

from physvision.core import Appearance, InputError, Placed, State, Status, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.kernels.batched_function import apply, is_traced
from physvision.kernels.launching import outside_transforms
from physvision.physics.energy_check import first_energy_gain, path_energy
from physvision.physics.engine import Energies, MechanicalEngine, Overrides
from physvision.physics.failures import FailureTexts, is_known_negative
from physvision.physics.lcp import SolverSettings
from physvision.physics.rigid2d.bodies import Body, Circle, Number, _numbers
from physvision.physics.rigid2d.compiler import Model, compile_model
from physvision.physics.rigid2d.joints import Joint
from physvision.physics.rigid2d.penetration import separate
from physvision.physics.rigid2d.properties import WorldProperties, pack
from physvision.physics.rigid2d.rollout import Kernels, Rollout
from physvision.physics.rigid2d.settings import StepSettings
from physvision.physics.truncation import first_marked_step, truncated_rollout

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
    """Rigid bodies in the plane with joints, contacts and friction, stepped from event to event.

    Method: RATTLE with contacts, of second order, between events; impacts by Newton's law of restitution; in steps with
    too many events one complementarity problem over all contacts. Gradients are exact through contact, the times of
    impact included. Use it for mechanisms, billiards, bouncing and sliding bodies, and piles of tens of bodies. Bodies
    are circles and convex polygons, rigid, with Coulomb friction.

    A state holds x, y and angle of every moving body in the order given, and their rates. A control holds, constant
    over a step, force x, force y and torque of every moving body, then the torque of every motor. All arithmetic is in
    float64; states of another dtype are converted on the way in and out.

    Args:
        bodies: Circles, polygons and rectangles; static ones are obstacles.
        joints: Joints and springs.
        gravity: Acceleration (x, y), in m/s².
        dt: Duration of a step, in seconds. Impacts happen at their own times, whatever it is.
        exempt: Pairs of bodies that pass through each other. Bodies that share a joint do, unless it says otherwise.
        initial_penetration: Treatment of bodies that penetrate at the start: "raise" an error, or "separate" them.
        substeps: Number of steps of the scheme in one of the engine; limits and `Status.fallback_steps` count them.
        settings: Limits and tolerances of a step; None for the defaults.
        solver_settings: Limits and tolerances of the contact solver; None for the defaults.
    """

    takes_forces = True

    def __init__(
        self,
        bodies: Sequence[Body],
        joints: Sequence[Joint] = (),
        gravity: Sequence[Number] = (0.0, 9.81),
        dt: Number = 1 / 30,
        exempt: Sequence[tuple] = (),
        initial_penetration: Literal["raise", "separate"] = "raise",
        substeps: int = 1,
        settings: StepSettings | None = None,
        solver_settings: SolverSettings | None = None,
    ) -> None:
        super().__init__()
        self.dt = check_positive("dt", dt)
        self.substeps = check_count("substeps", substeps)
        self.model = Model(bodies, joints, exempt)
        self.settings, self.solver_settings = settings or StepSettings(), solver_settings or SolverSettings()
        self._limits = self.model.limits(self.settings, self.dt / self.substeps)
        self._q: Tensor
        self._gravity: Tensor
        self._v: Tensor
        self.body_names = tuple(self.model.names)
        self.joint_names = tuple(joint.label for joint, _ in self.model.joints)
        self.geometry = self._placed_shapes()
        moving = [self.model.names[i] for i in self.model.moving]
        springs = [spring.label for spring, _ in self.model.springs]
        self.rows = {
            "moving": moving,
            "bodies": self.body_names,
            "static": [self.model.names[i] for i in self.model.static],
            "joints": self.joint_names,
            "springs": springs,
        }
        self.set_properties(self.model.properties(_numbers("gravity", gravity, 2)))
        self.nq = self.nv = 3 * len(moving)
        self.nu = self.nv + sum(motor >= 0 for motor in self.model.motors)
        if initial_penetration not in ("raise", "separate"):
            raise InputError(f"initial_penetration: expected 'raise' or 'separate', got {initial_penetration!r}")
        start = [self.model.pose(i) for i in self.model.moving]
        start = separate(self.model, start, self._limits["tolerance"], initial_penetration == "separate")
        rates = [(*map(float, bodies[i].velocity), bodies[i].spin) for i in self.model.moving]
        self._store("q", torch.tensor(start, dtype=torch.float64).reshape(1, -1))
        self._store("v", torch.tensor(rates, dtype=torch.float64).reshape(1, -1))

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """Return the state that the bodies were given."""
        check_count("batch", batch)
        return State(self._q.to(dtype).repeat(batch, 1), self._v.to(dtype).repeat(batch, 1))

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        theta, kernels, substeps = self._theta(properties, state), self._kernels_on(state.q.device), self.substeps

        def run(q: Tensor, v: Tensor, u: Tensor) -> tuple[Tensor, ...]:
            control = u[:, :, None].expand(-1, -1, substeps, -1).flatten(1, 2)
            operation = Rollout(kernels, control.shape[1], is_traced(q, v, control, theta))
            all_q, all_v, *report = apply(operation, q, v, control, theta)
            return all_q[:, ::substeps], all_v[:, ::substeps], *report

        q, v, reports, starts = truncated_rollout(run, state, steps, controls, self.nu, truncate)
        operations, residuals, iterations, *marks, _ = zip(*reports, strict=True)
        if substeps > 1:  # step k ends with substep k · substeps; −1 stays
            marks = [[torch.where(mark < 0, mark, (mark - 1) // substeps + 1) for mark in part] for part in marks]
        failed, underresolved = (first_marked_step(starts, part) for part in marks)

        def make() -> Status:
            status = Status(
                converged=failed < 0,
                residual=torch.stack(residuals).amax(0).to(q.dtype),
                iterations=torch.stack(iterations).amax(0).long(),
                first_failed_step=failed,
                fallback_steps=(torch.cat(operations, 1) < 0).sum(1),
                first_underresolved_step=underresolved,
            )
            return status if check is None else status.with_energy_check(check)

        check = None
        if self._conserves_energy and not is_functorch_wrapped_tensor(failed):
            path = Trajectory(q.detach(), v.detach(), None, self.dt)
            # The status may outlive the motion: it keeps numbers, not the graph behind them.
            check = partial(self._first_energy_gain, path, None if controls is None else controls.detach(), properties)
        is_good = is_known_negative(failed) and is_known_negative(underresolved)
        return Trajectory(q, v, Status.deferred(make) if is_good else make(), self.dt)

    @property
    def _conserves_energy(self) -> bool:
        """If true, the world has joints, and nothing but forces on bodies gives it energy."""
        model = self.model
        if not model.joints:
            return False
        return not any(motor >= 0 for motor in model.motors) and not any(body.kinematic for body in model.bodies)

    @torch.no_grad()
    def _first_energy_gain(self, path: Trajectory, controls: Tensor | None, properties: Overrides) -> Tensor:
        """First step after which the energy has grown beyond the work of forces, -1 for none, (batch,)."""
        kinetic, potential = path_energy(lambda part: self.energy(part, properties), path)
        work = 0.0 if controls is None else (controls[..., : self.nv] * path.q.diff(dim=1)).abs().sum(-1)
        resting = 0.5 * self._limits["restitution_threshold"] ** 2 * float(self.properties.mass.sum())  # pyright: ignore
        return first_energy_gain(kinetic, potential, work, resting)

    def _step_with_force(
        self, state: State, force: Tensor, control: Tensor | None, properties: Overrides
    ) -> Trajectory:
        # The first controls are the forces and torques on the bodies that move, as a generalized force is.
        controls = state.v.new_zeros(state.batch, self.nu) if control is None else control
        total_controls = controls + pad(force, (0, self.nu - self.nv))
        return self._simulate(state, 1, total_controls.unsqueeze(1), properties, None)

    def __repr__(self) -> str:
        bodies, static = self.model.bodies, sum(body.static for body in self.model.bodies)
        counts = Counter(type(body).__name__ for body in bodies)
        texts = [f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts.items()]
        texts += [f"{static} of them static"] * (static > 0)
        joints = Counter(type(joint).__name__ for joint, _ in (*self.model.joints, *self.model.springs))
        texts += [f"{count} {kind}{'s' * (count > 1)}" for kind, count in joints.items()]
        gravity = ", ".join(f"{number:g}" for number in self._gravity.tolist())
        return f"World({', '.join(texts)}; gravity=({gravity}), dt={self.dt:g}, nq={self.nq}, nu={self.nu})"

    def _explain_failure(self, trajectory: Trajectory, properties: Overrides) -> FailureTexts:
        return FailureTexts(
            advice="A state or control was not finite, numbers ran away, or a body crosses the world 10⁵ times in a "
            f"step: see to forces and speeds that are out of scale, or try a smaller dt (it is {self.dt:g}) or more "
            f"substeps (now {self.substeps}). "
        )

    def _kernels_on(self, device: torch.device) -> Kernels:
        if device not in self._cached:
            properties = self.properties
            assert isinstance(properties, WorldProperties)
            model, arrays = compile_model(
                self.model, self.settings, self.solver_settings, self._limits, properties, device
            )
            self._cached[device] = Kernels(model, arrays, device)
        return self._cached[device]

    def _theta(self, properties: Overrides, state: State) -> Tensor:
        """Return all numbers of the properties, one row for each world."""
        key = ("numbers", state.q.device)
        if properties is None and key in self._cached:
            return self._cached[key].expand(state.batch, -1)
        defaults, checked = self.properties, self.checked(properties, state.batch, state.q.device)
        assert isinstance(defaults, WorldProperties)
        assert isinstance(checked, WorldProperties)
        lists = self.model.order.lists
        if key not in self._cached:
            with outside_transforms():
                self._cached[key] = pack(defaults, defaults, 1, lists)
        if self._are_own(checked):
            return self._cached[key].expand(state.batch, -1)
        return pack(checked, defaults, state.batch, lists, self._cached[key])

    def _placed_shapes(self) -> tuple[Placed, ...]:
        """Return the shape of every body, static ones included."""
        placed, colored = [], 0
        for i, body in enumerate(self.model.bodies):
            color = body.color or (_STATIC if body.static else _PALETTE[colored % len(_PALETTE)])
            colored += not body.static
            placed.append(Placed(body.shape, i, color=color, name=self.model.names[i]))
        return tuple(placed)

    def _poses(self, state: State, properties: WorldProperties) -> Float[Tensor, "batch bodies 4 4"]:
        """Return the frame of every body in the world, in the order given, z out of the plane."""
        pose = planar_poses(self.model, state, properties)[:, :-1]
        c, s = torch.cos(pose[..., 2]), torch.sin(pose[..., 2])
        zero, unit = torch.zeros_like(c), torch.ones_like(c)
        rows = [c, -s, zero, pose[..., 0], s, c, zero, pose[..., 1], zero, zero, unit, zero, zero, zero, zero, unit]
        return torch.stack(rows, -1).unflatten(-1, (4, 4))

    def _appearance(self, state: State, properties: WorldProperties) -> Appearance:
        poses = self._poses(state, properties)
        shape_sizes = poses.new_tensor([placed.shape.sizes for placed in self.geometry])
        radius = properties.radius.to(poses)
        circle_sizes = torch.stack([radius, torch.zeros_like(radius), torch.zeros_like(radius)], -1)
        circles = torch.tensor([isinstance(body, Circle) for body in self.model.bodies], device=poses.device)
        sizes = torch.where(circles[:, None], circle_sizes, shape_sizes)
        return Appearance(poses, sizes.expand(state.batch, -1, -1))

    def _energy(self, state: State, properties: WorldProperties) -> Energies:
        """Return the kinetic energy, and that of gravity, joint springs and springs."""
        p = properties.to(state.q)
        q, v = state.q.unflatten(1, (-1, 3)), state.v.unflatten(1, (-1, 3))
        inertia = torch.stack([p.mass, p.mass, p.mass * p.gyration.square()], -1)
        kinetic = 0.5 * (inertia * v.square()).sum((1, 2))
        potential = -(p.mass * (q[..., :2] * p.gravity.unsqueeze(-2)).sum(-1)).sum(-1)
        pose = planar_poses(self.model, state, p)
        if self.model.joints:
            first, second = zip(*(ends for _, ends in self.model.joints), strict=True)
            error = pose[:, list(first), 2] - pose[:, list(second), 2] - p.joint_angle
            potential = potential + 0.5 * (p.joint_stiffness * error.square()).sum(-1)
        if self.model.springs:
            first, second = zip(*(ends for _, ends in self.model.springs), strict=True)
            ends = [
                points_in_world(pose[:, list(side)], p.spring_anchors[..., k, :])
                for k, side in enumerate((first, second))
            ]
            stretch = (ends[0] - ends[1]).norm(dim=-1) - p.spring_length
            potential = potential + 0.5 * (p.spring_stiffness * stretch.square()).sum(-1)
        return kinetic, potential


def planar_poses(model: Model, state: State, properties: WorldProperties) -> Float[Tensor, "batch bodies_and_world 3"]:
    """Return x, y and angle of every body, the world last."""
    batch = state.batch
    # The world, the body after the last, is at the origin.
    bodies = list(state.q.new_zeros(batch, len(model.bodies) + 1, 3).unbind(1))
    static = properties.static_pose.to(state.q).expand(batch, -1, -1)
    for slot, number in enumerate(model.static):
        bodies[number] = static[:, slot]
    for slot, number in enumerate(model.moving):
        bodies[number] = state.q[:, 3 * slot : 3 * slot + 3]
    return torch.stack(bodies, 1)


def points_in_world(pose: Tensor, anchors: Tensor) -> Tensor:
    """Return points in the world, given in the frames of bodies."""
    c, s = torch.cos(pose[..., 2]), torch.sin(pose[..., 2])
    x, y = anchors[..., 0], anchors[..., 1]
    return torch.stack([pose[..., 0] + c * x - s * y, pose[..., 1] + s * x + c * y], -1)
