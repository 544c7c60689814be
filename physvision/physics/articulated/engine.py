"""A tree of rigid bodies as an Engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, Placed, State, Status, Trajectory
from physvision.core.checks import check_count, check_like, check_positive, check_shape, check_tensor
from physvision.kernels import batched_function
from physvision.physics.articulated import operations
from physvision.physics.articulated.contact import ContactList, Pairs, Touching, all_touching, nearest
from physvision.physics.articulated.integrators import INTEGRATORS
from physvision.physics.articulated.manifold import Manifold
from physvision.physics.articulated.model import Body, Model, compile_model, sorted_bodies
from physvision.physics.articulated.packing import Parameters
from physvision.physics.articulated.preparation import MOST_OVERLAP, Prepared, Structs
from physvision.physics.articulated.program import Program
from physvision.physics.articulated.properties import TreeProperties, described, least_minor
from physvision.physics.engine import MechanicalEngine, Overrides
from physvision.physics.properties import Claim, Properties

EARTH = (0.0, 0.0, -9.81)
PUSHES = 200  # steps in which `separated` pushes apart


@dataclass(frozen=True)
class Actuators:
    """How controls become generalised forces: clamp, then multiply.

    Attributes:
        gain: (nu, nv), N m or N a unit of control.
        low: smallest controls, (nu,).
        high: largest controls, (nu,).
        names: one for each control.
    """

    gain: np.ndarray
    low: np.ndarray
    high: np.ndarray
    names: tuple[str, ...]


class Articulation(MechanicalEngine):
    """Trees of rigid bodies in reduced coordinates; made by `articulated.tree`, `load`, `chain` and their like.

    Time steps are semi-implicit Euler with drag taken implicitly (`integrator="semi_implicit_euler"`), or the
    classical fourth-order Runge–Kutta method (`"runge_kutta_4"`), `substeps` of them to a step of `dt` seconds.

    Attributes:
        body_names: names of the rows of `poses`.
        joint_names: names of what moves, in the order of positions.
        geometry: what the bodies look like, for the camera.
        control_names: names of the controls.
        keyframes: states of one world by name, float64, where the model's file has some.
    """

    def __init__(
        self,
        bodies: Sequence[Body],
        *,
        dt: float,
        gravity: Sequence[float] = EARTH,
        integrator: str = "semi_implicit_euler",
        substeps: int = 1,
        actuators: Actuators | None = None,
        scenery: Sequence[Placed] = (),
        contact: str | None = None,
        exempt: Sequence[tuple[str, str]] = (),
        touching: Sequence[Touching] | None = None,
        friction: float | Sequence[float] = 0.0,
        restitution: float = 0.0,
    ) -> None:
        super().__init__()
        if integrator not in INTEGRATORS:
            raise InputError(f"integrator: there is no {integrator!r}; there are {', '.join(INTEGRATORS)}")
        if contact not in (None, "event"):
            raise InputError(f"contact: expected 'event' or None, got {contact!r}")
        if contact is not None and (integrator != "semi_implicit_euler" or substeps != 1):
            raise InputError("contact='event' steps with a scheme of its own: leave integrator and substeps out")
        bodies = sorted_bodies(bodies)
        self.model: Model = compile_model(bodies)
        self.dt, self.integrator = check_positive("dt", dt), integrator
        self.substeps = check_count("substeps", substeps)
        self.nq, self.nv = self.model.nq, self.model.nv
        self.nu = self.nv if actuators is None else len(actuators.names)
        self.body_names, self.joint_names = self.model.body_names, self.model.joint_names
        self.control_names = actuators.names if actuators else tuple(f"force {k}" for k in range(self.nv))
        self.geometry = (*scenery, *_geometry(bodies))
        self.keyframes: dict[str, State] = {}
        self._manifold = Manifold(self.model)
        self._keep("start", self.model.start)
        self._pairs: Pairs | None = None
        if contact is not None:
            # Pairs that are given come from a model file, whose friction mixes in MuJoCo's way.
            mixing = "mean" if touching is None else "maximum"
            chosen = all_touching(self.model, self.geometry, exempt) if touching is None else touching
            if chosen or self.model.limited.any():
                self._pairs = Pairs(self.model, self.geometry, chosen, mixing)
        elif self.model.limited.any():
            raise InputError("a joint has limits, which are contacts: make the engine with contact='event'")
        self.rows = {
            "bodies": self.body_names,
            "joints": self.joint_names,
            "nq": _along(self.joint_names, self.model.first_position),
            "nv": _along(self.joint_names, self.model.first_velocity),
            "shapes": tuple(placed.name for placed in self.geometry),
        }
        self._keep_properties(described(self.model, bodies, gravity, self.geometry, friction, restitution))
        if actuators is not None:
            for name in ("gain", "low", "high"):
                self._keep(f"actuator_{name}", getattr(actuators, name))
        self._actuated = actuators is not None

    def _claims(self, own: Properties, name: str, value: Tensor) -> list[Claim]:
        found = [*super()._claims(own, name, value)]
        # Bodies without a joint may be without mass, for they are part of others.
        fixed = self.model.fixed
        if name == "mass":
            heavy = value.where(torch.as_tensor(~fixed, device=value.device), 1.0)
            found.append(Claim(heavy, "positive", "numbers above zero"))
        elif name == "inertia":
            wanted = "a positive definite matrix, its principal minors above zero"
            found.append(Claim(least_minor(value, fixed), "positive", wanted))
        elif name == "joint_limits":
            free = torch.as_tensor(~self.model.limited, device=value.device)
            found.append(Claim((value[..., 1] - value[..., 0]).clamp(max=1.0), "positive", "the lower limit first"))
            kept = value.isinf().all(-1) | ~free
            found.append(Claim(kept.to(value.dtype), "positive", "infinite limits of joints that were made without"))
        elif name == "orientation":
            found.append(Claim(value.square().sum(-1), "positive", "a quaternion of some length"))
        return found

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """The joints' start positions at rest."""
        start = self.get_buffer("_start").to(dtype)
        return State(start.repeat(check_count("batch", batch), 1), start.new_zeros(batch, self.nv))

    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Overrides = None,
        truncate: int | None = None,
        wrenches: Float[Tensor, "batch steps bodies 6"] | None = None,
    ) -> Trajectory:
        """Simulate `steps` steps in one launch.

        Args:
            state: where every world starts; its dtype is that of the computation.
            steps: how many steps, at least 1.
            controls: held over each step, (batch, steps, nu); None for zero.
            properties: leaves that override the engine's own, shared or one a world.
            truncate: backward, the gradient of a state reaches at most so many steps into the past: the chain is cut
                at every step whose number it divides.
            wrenches: force (N) and torque (N m) on each body, at its centre of mass, in the world's axes,
                (batch, steps, bodies, 6).
        """
        self._check_state(state)
        check_count("steps", steps)
        self._check_controls(state, steps, controls)
        horizon = 0 if truncate is None else check_count("truncate", truncate)
        if self._pairs is not None:
            return self._rollout_with_contacts(state, steps, controls, properties, horizon, wrenches)
        program, structs, parameters = self._prepared_for(state, properties)
        operation = operations.Rollout(
            program, structs, steps, INTEGRATORS[self.integrator], self.substeps, self.dt, horizon
        )
        q, v, *found = batched_function.apply(
            operation,
            program.packing.normalized(state.q),
            state.v,
            self._torque(controls),
            _checked_wrenches(self.model, state, steps, wrenches),
            *parameters.values(),
        )
        status = _status(*found)
        self._report(status)
        return Trajectory(q, v, status, self.dt)

    def _rollout_with_contacts(
        self,
        state: State,
        steps: int,
        controls: Tensor | None,
        properties: Overrides,
        horizon: int,
        wrenches: Tensor | None,
    ) -> Trajectory:
        program, structs, parameters = self._prepared_for(state, properties, contacts=True)
        q, v, bad, grazing, crowded, softened, residual, overlap = batched_function.apply(
            operations.ContactRollout(program, structs, steps, self.dt, horizon),
            program.packing.normalized(state.q),
            state.v,
            self._torque(controls),
            _checked_wrenches(self.model, state, steps, wrenches),
            *parameters.values(),
        )
        worst = torch.where(bad < 0, residual, torch.inf)
        told = {"first_grazing_step": grazing, "softened": softened, "overlap": overlap}
        status = Status(bad < 0, worst, torch.ones_like(bad), bad, crowded, **told)
        self._report(status)
        return Trajectory(q, v, status, self.dt)

    @torch.no_grad()
    def separated(self, state: State, properties: Overrides = None) -> State:
        """A state near this one in which shapes do not overlap and joints are within their limits.

        What overlaps is pushed apart without weight, friction and momentum, heavy bodies least; velocities stay as they
        are. Overlaps of less than a thousandth of a millimetre may be left. Without gradients.

        Raises:
            InputError: a world could not be freed of its overlaps.
        """
        if self._pairs is None:
            return state
        self._check_state(state)
        prepared = self._prepare(state.q)
        program, known = prepared.program, self._cast(state, properties)
        none = {name: torch.zeros_like(getattr(known, name)) for name in ("gravity", "friction", "restitution")}
        known = replace(known, **none)
        push, step = (
            operations.ContactRollout(program, None, 1, self.dt, 0, most) for most in (math.inf, MOST_OVERLAP)
        )
        inputs = prepared.tree_numbers(known, state.batch) | prepared.contact_numbers(known, state.batch)
        q, still = program.packing.normalized(state.q), torch.zeros_like(state.v)
        for _ in range(PUSHES):
            q = push.forward(q, still, None, None, *inputs.values())[0][:, -1]
        bad = step.forward(q, still, None, None, *inputs.values())[2]
        if bool((bad >= 0).any()):
            worlds = torch.nonzero(bad >= 0).flatten().tolist()
            raise InputError(f"separated: worlds {worlds} could not be freed of their overlaps; start them elsewhere")
        return State(q, state.v)

    @torch.no_grad()
    def contacts(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Overrides = None,
        within: float = 1e-6,
    ) -> ContactList:
        """What touches in these states, or comes to touch in a step from them; without gradients.

        Args:
            state: where every world is.
            control: held over the step, which the impulses depend on.
            properties: as in `rollout`.
            within: pairs no farther apart than this are listed, m.
        """
        if self._pairs is None or self._pairs.count == 0:
            raise InputError("contacts: nothing can touch in this engine; make it with contact='event' and shapes")
        self._check_state(state)
        controls = None if control is None else control.unsqueeze(1)
        self._check_controls(state, 1, controls)
        prepared = self._prepare(state.q)
        program, known = prepared.program, self._cast(state, properties)
        q = program.packing.normalized(state.q)
        parameters, pairs = (make(known, state.batch) for make in (prepared.tree_numbers, prepared.contact_numbers))
        values = operations.contact_list(program, q, parameters, pairs) | {"friction": pairs["friction"]}
        step = operations.ContactRollout(program, None, 1, self.dt, 0)
        inputs = (*parameters.values(), *pairs.values())
        values["impulse"] = step.impulses(q, state.v, self._torque(controls), None, *inputs)
        rows = {name: row.to(q.device) for name, row in self._pairs.numbers(self.geometry).items()}
        return nearest(within, rows, values)

    def acceleration(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Overrides = None,
        wrenches: Float[Tensor, "batch bodies 6"] | None = None,
    ) -> Float[Tensor, "batch nv"]:
        """Forward dynamics: rad/s² and m/s²."""
        self._check_state(state)
        controls = None if control is None else control.unsqueeze(1)
        self._check_controls(state, 1, controls)
        program, structs, parameters = self._prepared_for(state, properties)
        (acceleration,) = batched_function.apply(
            operations.Acceleration(program, structs),
            program.packing.normalized(state.q),
            state.v,
            self._torque(controls),
            _checked_wrenches(self.model, state, 1, None if wrenches is None else wrenches.unsqueeze(1)),
            *parameters.values(),
        )
        return acceleration

    def inverse_dynamics(
        self,
        state: State,
        acceleration: Float[Tensor, "batch nv"],
        properties: Overrides = None,
        wrenches: Float[Tensor, "batch bodies 6"] | None = None,
    ) -> Float[Tensor, "batch nv"]:
        """The generalised force, N m and N, that this acceleration asks for beside drag, springs and wrenches."""
        self._check_state(state)
        check_shape("acceleration", check_tensor("acceleration", acceleration), (state.batch, self.nv))
        check_like("acceleration", acceleration, "state.q", state.q)
        program, structs, parameters = self._prepared_for(state, properties)
        (torque,) = batched_function.apply(
            operations.InverseDynamics(program, structs),
            program.packing.normalized(state.q),
            state.v,
            acceleration,
            _checked_wrenches(self.model, state, 1, None if wrenches is None else wrenches.unsqueeze(1)),
            *parameters.values(),
        )
        return torque

    def mass_matrix(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch nv nv"]:
        """Inertia M(q) with armature: column k is the force that accelerates velocity k alone, by one."""
        self._check_state(state)
        unit = torch.eye(self.nv, dtype=state.q.dtype, device=state.q.device).repeat(state.batch, 1)
        program, parameters = self._inertial(state, properties)
        repeated = [parameter.repeat_interleave(self.nv, 0) for parameter in parameters.values()]
        q = program.packing.normalized(state.q).repeat_interleave(self.nv, 0)
        (columns,) = batched_function.apply(
            operations.InverseDynamics(program, None), q, torch.zeros_like(unit), unit, None, *repeated
        )
        return columns.reshape(state.batch, self.nv, self.nv).mT

    def _energy(self, state: State, properties: Properties) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        program, parameters = self._inertial(state, properties)
        q = program.packing.normalized(state.q)
        (momentum,) = batched_function.apply(
            operations.InverseDynamics(program, None), q, torch.zeros_like(state.v), state.v, None, *parameters.values()
        )
        kinetic = (momentum * state.v).sum(-1) / 2
        p = self._cast(state, properties)
        poses = self._poses(state, properties)
        centers = poses[..., :3, 3] + (poses[..., :3, :3] @ p.center_of_mass.unsqueeze(-1)).squeeze(-1)
        weight = -(p.mass.unsqueeze(-1) * centers * p.gravity.unsqueeze(-2)).sum((-1, -2))
        away = self._manifold.difference(program.packing.normalized(p.spring_reference).expand_as(q), q)
        counts = torch.as_tensor(np.diff(self.model.first_velocity), device=q.device)
        stiffness = p.joint_stiffness.repeat_interleave(counts, -1)
        return kinetic, weight + (stiffness * away * away).sum(-1) / 2

    def _poses(self, state: State, properties: Properties) -> Float[Tensor, "batch bodies 4 4"]:
        program, structs, parameters = self._prepared_for(state, properties)
        rotation, position = batched_function.apply(
            operations.LinkPoses(program, structs), program.packing.normalized(state.q), *parameters.values()
        )
        return program.packing.body_poses(self._cast(state, properties), rotation, position)

    def _appearance(
        self, state: State, properties: Properties
    ) -> tuple[Float[Tensor, "batch shapes 4 4"], Float[Tensor, "batch shapes 3"]]:
        p = self._cast(state, properties)
        bodies = self._poses(state, properties)
        # Row 0 is the world, the bodies follow.
        world = torch.eye(4, dtype=bodies.dtype, device=bodies.device).expand(state.batch, 1, 4, 4)
        carriers = torch.cat([world, bodies], 1)
        rows = [0 if placed.body is None else placed.body + 1 for placed in self.geometry]
        return carriers[:, rows] @ p.shape_pose, p.shape_size.expand(state.batch, -1, -1)

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """The position reached from `q` by the displacement `dv`; a quaternion turns about its own axes."""
        return self._manifold.integrate(q, dv)

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """The displacement that leads from `q0` to `q1`."""
        return self._manifold.difference(q0, q1)

    def extra_repr(self) -> str:
        """What `print(engine)` says."""
        return (
            f"bodies={self.model.bodies}, nq={self.nq}, nv={self.nv}, nu={self.nu}, dt={self.dt:g}, {self.integrator}"
        )

    def _prepare(self, like: Tensor) -> Prepared:
        """What is ready for calls in the dtype and on the device of a tensor."""
        key = (like.dtype, like.device)
        if key not in self._prepared:
            own = self.properties.to(like)
            assert isinstance(own, TreeProperties)
            self._prepared[key] = Prepared(self.model, self._pairs, own, like)
        return self._prepared[key]

    def _cast(self, state: State, properties: Overrides) -> TreeProperties:
        """The properties in the dtype of the computation; a leaf on another device is refused."""
        found = self.checked(properties, state.batch, state.q.device).to(state.q.dtype)
        assert isinstance(found, TreeProperties)
        return found

    def _prepared_for(
        self, state: State, properties: Overrides, contacts: bool = False
    ) -> tuple[Program, Structs | None, Parameters]:
        """Kernels and numbers for a call: the kernels' structs, where they are at hand, else numbers to make them of.

        They are at hand for the engine's own properties, and for those last given that were checked before and ask for
        no gradient.
        """
        prepared, batch = self._prepare(state.q), state.batch
        if properties is None:
            return prepared.program, prepared.own, {}
        if isinstance(properties, TreeProperties) and properties.kept:
            structs = prepared.own if self._are_own(properties) else prepared.last(properties, batch)
            if structs is None:
                structs = prepared.keep(properties, self._cast(state, properties), batch)
            return prepared.program, structs, {}
        known = self._cast(state, properties)
        touching = prepared.contact_numbers(known, batch) if contacts else {}
        return prepared.program, None, prepared.tree_numbers(known, batch) | touching

    def _inertial(self, state: State, properties: Overrides) -> tuple[Program, Parameters]:
        """The tree without weight and springs."""
        prepared = self._prepare(state.q)
        parameters = prepared.tree_numbers(self._cast(state, properties), state.batch)
        return prepared.program, parameters | {
            name: torch.zeros_like(parameters[name]) for name in ("gravity", "joint_stiffness")
        }

    def _torque(self, controls: Tensor | None) -> Tensor | None:
        if controls is None or not self._actuated:
            return controls
        low, high, gain = (self.get_buffer(f"_actuator_{name}").to(controls) for name in ("low", "high", "gain"))
        return controls.clamp(low, high) @ gain


def _checked_wrenches(model: Model, state: State, steps: int, wrenches: Tensor | None) -> Tensor | None:
    if wrenches is not None:
        check_like("wrenches", check_tensor("wrenches", wrenches), "state.q", state.q)
        check_shape("wrenches", wrenches, (state.batch, steps, model.bodies, 6))
    return wrenches


def _status(bad: Tensor, coarse: Tensor, coarseness: Tensor) -> Status:
    """A world fails where numbers stop being finite; where its steps are too coarse for its motion, that is named."""
    residual = torch.where(bad < 0, coarseness, torch.inf)
    return Status(bad < 0, residual, torch.ones_like(bad), bad, first_coarse_step=coarse)


def _along(names: Sequence[str], first: np.ndarray) -> tuple[str, ...]:
    """The name of the joint of each number of a position or a velocity."""
    return tuple(np.repeat(names, np.diff(first)).tolist())


def _geometry(bodies: Sequence[Body]) -> list[Placed]:
    return [
        Placed(shape.shape, row, shape.pose, shape.color, shape.name or body.name)
        for row, body in enumerate(bodies)
        for shape in body.shapes
    ]
