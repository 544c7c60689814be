"""What a tree of rigid bodies is to the engine: its model, its properties and what kernels need of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, Placed, State
from physvision.core.checks import check_count, check_positive
from physvision.kernels.launching import inside_map, outside_transforms
from physvision.physics.articulated.compiler.contact_pairs import Pairs
from physvision.physics.articulated.compiler.device_model import Program
from physvision.physics.articulated.compiler.link_parameters import Packing, Parameters
from physvision.physics.articulated.compiler.mechanism import (
    check_without_contact,
    compiled,
    coupled,
    friction_losses,
    geometry_of,
    is_pyramid,
    names_of_rows,
    with_none,
)
from physvision.physics.articulated.compiler.mobility import mobilities
from physvision.physics.articulated.compiler.struct_cache import Prepared, Structs
from physvision.physics.articulated.contact import (
    Compliant,
    CompliantEach,
    Contact,
    Touching,
    all_touching,
    law_of,
)
from physvision.physics.articulated.launch import Actuation
from physvision.physics.articulated.model.actuators import Activation, wheel
from physvision.physics.articulated.model.fluid import Medium
from physvision.physics.articulated.model.integrators import INTEGRATORS
from physvision.physics.articulated.model.kinematic_tree import Body, sorted_bodies
from physvision.physics.articulated.model.loop_joints import Connection, knots, ties_of
from physvision.physics.articulated.model.manifold import Manifold
from physvision.physics.articulated.model.properties import TreeProperties, described, least_minor
from physvision.physics.articulated.model.transmissions import Transmission, rows_of
from physvision.physics.engine import MechanicalEngine, Overrides
from physvision.physics.properties import Claim, Properties

EARTH = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class Actuators:
    """How controls become generalised forces: clamp, then multiply.

    Attributes:
        gain: (nu, nv + transmissions), N m or N a unit of control.
        low: smallest controls, (nu,).
        high: largest controls, (nu,).
        names: one for each control.
    """

    gain: np.ndarray
    low: np.ndarray
    high: np.ndarray
    names: tuple[str, ...]


class TreeEngine(MechanicalEngine):
    """Holds a model and its properties, and has numbers ready for kernels; `Articulation` computes with them."""

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
        contact: Contact = None,
        exempt: Sequence[tuple[str, str]] = (),
        touching: Sequence[Touching] | None = None,
        friction: float | Sequence[float] = 0.0,
        restitution: float = 0.0,
        turning_friction: Sequence[float] | np.ndarray = (0.0, 0.0),
        transmissions: Sequence[Transmission] = (),
        activations: Sequence[Activation] = (),
        connections: Sequence[Connection] = (),
        medium: Medium | None = None,
        drag_axes: np.ndarray | None = None,
        friction_model: str = "cone",
    ) -> None:
        super().__init__()
        if integrator not in INTEGRATORS:
            raise InputError(f"integrator: there is no {integrator!r}; there are {', '.join(INTEGRATORS)}")
        self._law = law_of(contact)
        self._pyramid = is_pyramid(friction_model, self._law)
        self._by_events = contact is not None and self._law is None
        self._compliant = self._law if isinstance(self._law, Compliant | CompliantEach) else None
        self._method: dict[str, Any] = {"law": self._law}
        if self._compliant is not None:
            self._method |= {"integrator": INTEGRATORS[integrator], "substeps": check_count("substeps", substeps)}
            if restitution != 0:
                raise InputError(f"restitution: compliant contact has none, expected 0, got {restitution}")
        elif contact is not None and (integrator != "semi_implicit_euler" or substeps != 1):
            raise InputError("contact steps with a scheme of its own: leave integrator and substeps out")
        bodies = [*sorted_bodies(bodies), *map(wheel, activations)]
        self.model, drag_size = compiled(bodies, len(activations), medium, drag_axes)
        self.dt, self.integrator = check_positive("dt", dt), integrator
        self.substeps = check_count("substeps", substeps)
        self.nq, self.nv = self.model.nq, self.model.nv
        self.nu = self.nv + len(transmissions) if actuators is None else len(actuators.names)
        self.body_names, self.joint_names = self.model.body_names, self.model.joint_names
        pulls = tuple(each.name or f"pull {k}" for k, each in enumerate(transmissions))
        self.control_names = actuators.names if actuators else (*(f"force {k}" for k in range(self.nv)), *pulls)
        shapes = (*scenery, *geometry_of(bodies))
        ends = knots(self.model, connections)
        self.geometry = (*shapes, *ends)
        # Connections touch nothing.
        friction = with_none(friction, len(ends))
        turning_friction = with_none(turning_friction, len(ends), np.ndim(turning_friction) == 2)
        self.keyframes: dict[str, State] = {}
        self._manifold = Manifold(self.model)
        self._keep("start", self.model.start)
        self._pairs = None
        if contact is not None:
            turns = bool(np.any(turning_friction))
            chosen = all_touching(self.model, shapes, exempt, turns) if touching is None else touching
            # Pairs that are given come from a model file, whose friction mixes in MuJoCo's way.
            mixing = "mean" if touching is None else "maximum"
            self._pairs = self._paired(bodies, chosen, mixing, transmissions, connections)
        else:
            check_without_contact(self.model, transmissions, connections)
        rubs = 0 if self._pairs is None else len(self._pairs.beside.rubbing)
        if activations:
            self.model = coupled(self.model, activations, rubs)
        self.rows = names_of_rows(self.model, self.geometry, transmissions)
        self._keep_properties(
            described(
                self.model,
                bodies,
                gravity,
                self.geometry,
                friction,
                restitution,
                turning_friction,
                transmissions,
                medium or Medium(),
                drag_size,
            )
        )
        if self._pairs is not None and self._compliant is not None:
            own = self.properties
            assert isinstance(own, TreeProperties)
            packing = Packing(self.model, own.mass.dtype, own.mass.device)
            self._pairs.weigh(self._compliant, *mobilities(self.model, packing.pack(own, 1)))
        self._actuated = actuators is not None
        if actuators is not None:
            self._keep_actuators(actuators, rubs)

    def _keep_actuators(self, actuators: Actuators, rubs: int) -> None:
        # The pull of a control on a row of dry friction is none.
        gain = np.insert(actuators.gain, [self.nv] * rubs, 0.0, axis=1) if rubs else actuators.gain
        for name, value in (("gain", gain), ("low", actuators.low), ("high", actuators.high)):
            self._keep(f"actuator_{name}", value)

    def _paired(
        self,
        bodies: Sequence[Body],
        chosen: Sequence[Touching],
        mixing: str,
        transmissions: Sequence[Transmission],
        connections: Sequence[Connection],
    ) -> Pairs | None:
        """What the contact problem has rows for, if there is anything."""
        rubbing = np.flatnonzero(friction_losses(self.model, bodies)) if self._by_events else np.zeros(0, int)
        if self._law is not None and (transmissions or connections or any(each.turns for each in chosen)):
            raise InputError("transmissions, connections and turning friction are simulated with contact='event' alone")
        if self._compliant is not None and any(each.string or each.strut for each in chosen):
            raise InputError("strings have no compliant contact; leave tendons out, with ignore=('tendon',)")
        beside = rows_of(self.model, rubbing, transmissions)
        if not (chosen or self.model.limited.any() or beside.count or connections):
            return None
        # The ends of connections are the last of the geometry.
        ties = ties_of(connections, len(self.geometry) - 2 * len(connections))
        compliant = self._compliant is not None
        return Pairs(self.model, self.geometry, chosen, mixing, beside, ties, self._pyramid, self._by_events, compliant)

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
        elif name == "friction_loss" and self._by_events:
            rubbing = torch.zeros(self.nv, dtype=torch.bool, device=value.device)
            if self._pairs is not None:
                rubbing[self._pairs.beside.rubbing] = True
            wanted = "zero where joints were made without: with contact='event' dry friction is a row of its own"
            found.append(Claim(((value == 0) | rubbing).to(value.dtype), "positive", wanted))
        elif name == "restitution" and self._compliant is not None:
            found.append(Claim((value == 0).to(value.dtype), "positive", "zero: compliant contact has none"))
        elif name == "medium" and self.model.drag_axes is None:
            found.append(Claim((value == 0).to(value.dtype), "positive", "zero: the engine was made without a medium"))
        elif name == "transmission_force":
            found.append(Claim((value[..., 1] - value[..., 0]).clamp(max=1.0), "not negative", "the least force first"))
        elif name == "transmission_speed":
            found.append(Claim(value.clamp(max=1.0), "not negative", "speeds from zero on, or infinite"))
        elif name == "orientation":
            found.append(Claim(value.square().sum(-1), "positive", "a quaternion of some length"))
        return found

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """The joints' start positions at rest."""
        start = self.get_buffer("_start").to(dtype)
        return State(start.repeat(check_count("batch", batch), 1), start.new_zeros(batch, self.nv))

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
            with outside_transforms():
                own = self.properties.to(like.device, like.dtype)
                assert isinstance(own, TreeProperties)
                self._prepared[key] = Prepared(self.model, self._pairs, own)
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
        no gradient; but a map has more worlds than these tell apart.
        """
        prepared, batch = self._prepare(state.q), state.batch
        if properties is None:
            return prepared.program, prepared.own, {}
        if isinstance(properties, TreeProperties) and properties.kept and not self._are_repeated(properties, batch):
            structs = prepared.own if self._are_own(properties) else prepared.last(properties, batch)
            if structs is None:
                with outside_transforms():
                    structs = prepared.keep(properties, self._cast(state, properties), batch)
            return prepared.program, structs, {}
        known = self._cast(state, properties)
        touching = prepared.contact_numbers(known, batch) if contacts else {}
        return prepared.program, None, prepared.tree_numbers(known, batch) | touching

    def _are_repeated(self, properties: TreeProperties, batch: int) -> bool:
        """Whether a map repeats the worlds that these properties tell apart."""
        return batch > 1 and inside_map() and bool(properties.per_world(self.properties))

    def _inertial(self, state: State, properties: Overrides) -> tuple[Program, Parameters]:
        """The tree without weight and springs."""
        prepared = self._prepare(state.q)
        parameters = prepared.tree_numbers(self._cast(state, properties), state.batch)
        return prepared.program, parameters | {
            name: torch.zeros_like(parameters[name]) for name in ("gravity", "joint_stiffness")
        }

    def _torque(self, controls: Tensor | None) -> Tensor | None:
        if controls is None:
            return controls
        if not self._actuated:
            rubs = 0 if self._pairs is None else len(self._pairs.beside.rubbing)
            if not rubs:
                return controls
            none = controls.new_zeros(*controls.shape[:-1], rubs)
            return torch.cat([controls[..., : self.nv], none, controls[..., self.nv :]], -1)
        return self._actuation(controls).forces(controls)

    def _actuation(self, like: Tensor) -> Actuation:
        """How controls become forces, in the dtype and on the device of a tensor."""
        key = ("actuation", like.dtype, like.device)
        if key not in self._prepared:
            with outside_transforms():
                none = like.new_full((self.nu,), torch.inf)
                made = torch.eye(self.nu, dtype=like.dtype, device=like.device), -none, none
                if self._actuated:
                    gain, low, high = (
                        self.get_buffer(f"_actuator_{each}").to(like) for each in ("gain", "low", "high")
                    )
                    made = gain, low, high
                alone = self.nu > 0 and bool(((made[0] != 0).sum(0) <= 1).all())
                self._prepared[key] = Actuation(*made, not self._actuated, made[0].abs().argmax(0) if alone else None)
        return self._prepared[key]
