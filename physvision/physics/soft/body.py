"""An elastic body on a mesh, as an Engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from physvision.core import Circle, InputError, ModelError, Placed, Sphere, State, Status, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.kernels import batched_function
from physvision.kernels.launching import outside_transforms
from physvision.physics.engine import MechanicalEngine, Overrides
from physvision.physics.properties import Claim, Properties
from physvision.physics.soft.energy import strain_energy
from physvision.physics.soft.mesh import Mesh
from physvision.physics.soft.ordering import pattern
from physvision.physics.soft.properties import SoftProperties, edges, pack
from physvision.physics.soft.rollout import Launches, Rollout
from physvision.physics.stretches import first_step, in_stretches

LAWS = ("linear", "st_venant_kirchhoff", "neo_hookean")
INTEGRATORS = ("backward_euler", "symplectic_euler")
Numbers = float | Sequence[float]

EARTH = 9.81  # m/s²


@dataclass(frozen=True)
class Muscle:
    """Elements that pull themselves shorter; a control of 1 makes the whole tension.

    Attributes:
        elements: of the mesh.
        direction: of its fibres, at rest.
        tension: Pa, at control 1.
    """

    elements: Sequence[int]
    direction: Sequence[float]
    tension: float


@dataclass(frozen=True)
class Ground:
    """A plane that bodies stay before, and everything behind it.

    Attributes:
        point: a place on the plane, m.
        normal: out of the ground.
        friction: the largest share of the load that holds against slipping.
    """

    point: Sequence[float]
    normal: Sequence[float]
    friction: float = 0.0


class SoftBody(MechanicalEngine):
    """An elastic body of triangles in the plane, or of tetrahedra in space.

    A position is the places of all nodes, node after node, and a velocity theirs. Held nodes keep the velocity that
    they have. A control is the activation of each muscle, at least zero, then the force on each pushed node, N, held
    over a step. All arithmetic is in float64, whatever the dtype of the state.

    `backward_euler` is stable at any step, and a step of 1e6 s is the body's equilibrium; `symplectic_euler` keeps
    energy, at steps that are short against the time that sound takes through an element.

    Args:
        mesh: at rest.
        dt: seconds of a step.
        youngs_modulus: Pa; one for all, or one for each material.
        poissons_ratio: above −1 and below 0.5; one for all, or one for each material.
        density: kg/m³; one for all, or one for each material.
        law: of the stress, `linear`, `st_venant_kirchhoff` or `neo_hookean`. The linear one holds while nothing turns;
            only the last keeps elements from being turned inside out.
        integrator: of the motion, `backward_euler` or `symplectic_euler`.
        materials: of each element its material, counted from zero; each its own if numbers are given for as many
            materials as there are elements, otherwise all of the first.
        plane_stress: whether a body of the plane is a free sheet; otherwise it cannot move out of the plane.
        held: nodes whose velocity is given.
        pushed: nodes that controls push.
        muscles: what pulls.
        grounds: planes that the body touches.
        load: force on each node, N; none if not given.
        gravity: m/s²; 9.81 down along the last axis if not given.
        viscous_time: viscosity over stiffness, s: Rayleigh's share of the stiffness.
        velocity_decay: 1/s: Rayleigh's share of the mass.
        contact_stiffness: pressure by overlap, Pa/m; a pressure of a modulus at an overlap of an element, if not given.
        slip: m/s, below which friction is smooth.
    """

    def __init__(
        self,
        mesh: Mesh,
        *,
        dt: float,
        youngs_modulus: Numbers,
        poissons_ratio: Numbers = 0.3,
        density: Numbers = 1000.0,
        law: str = "neo_hookean",
        integrator: str = "backward_euler",
        materials: Sequence[int] | None = None,
        plane_stress: bool = False,
        held: Sequence[int] = (),
        pushed: Sequence[int] = (),
        muscles: Sequence[Muscle] = (),
        grounds: Sequence[Ground] = (),
        load: Any = None,
        gravity: Sequence[float] | None = None,
        viscous_time: Numbers = 0.0,
        velocity_decay: float = 0.0,
        contact_stiffness: float | None = None,
        slip: float = 1e-3,
    ) -> None:
        super().__init__()
        if law not in LAWS or integrator not in INTEGRATORS:
            raise InputError(f"law, integrator: expected of {LAWS} and {INTEGRATORS}, got {law!r}, {integrator!r}")
        if plane_stress and mesh.axes == 3:
            raise InputError("plane_stress: a body in space has no plane; leave it out")
        self.mesh, self.axes, self.plane_stress = mesh, mesh.axes, plane_stress
        self.law, self.implicit = LAWS.index(law), integrator == "backward_euler"
        self.dt, self.slip = check_positive("dt", dt), check_positive("slip", slip)
        count = len(mesh.nodes)
        self.held, self.pushed = _listed("held", held, count), _listed("pushed", pushed, count)
        self.muscles, self.grounds = tuple(muscles), tuple(grounds)
        self.nq = self.nv = self.axes * count
        self.nu = len(self.muscles) + self.axes * len(self.pushed)
        numbers = {
            "youngs_modulus": youngs_modulus,
            "poissons_ratio": poissons_ratio,
            "density": density,
            "viscous_time": viscous_time,
        }
        self._material, kinds = _materials(materials, len(mesh.elements), numbers)
        down = [0.0] * (self.axes - 1) + [-EARTH]
        modulus = float(np.max(youngs_modulus))
        given = {
            **numbers,
            "rest": mesh.nodes,
            "load": np.zeros((count, self.axes)) if load is None else load,
            "gravity": down if gravity is None else gravity,
            "velocity_decay": velocity_decay,
            "tension": [muscle.tension for muscle in self.muscles],
            "contact_stiffness": modulus / mesh.size if contact_stiffness is None else contact_stiffness,
            "friction": [ground.friction for ground in self.grounds],
        }
        leaves = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in given.items()}
        leaves |= {name: leaves[name].expand(kinds) for name in numbers}
        for name, size in (("load", (count, self.axes)), ("gravity", (self.axes,))):
            if tuple(leaves[name].shape) != size:
                raise InputError(f"{name}: expected shape {size}, got {tuple(leaves[name].shape)}")
        self._number_parts()
        self.body_names = tuple(f"node {k}" for k in range(count))
        self.joint_names = ()
        self.rows = {"muscles": tuple(f"muscle {k}" for k in range(len(self.muscles)))}
        shape = Circle(0.5 * mesh.size) if self.axes == 2 else Sphere(0.5 * mesh.size)
        self.geometry = tuple(Placed(shape, k, name=name) for k, name in enumerate(self.body_names))
        self._keep_properties(SoftProperties(**leaves))

    def _number_parts(self) -> None:
        """What the kernels must know of the mesh, muscles and grounds, in numbers."""
        mesh, count = self.mesh, len(self.mesh.elements)
        muscle, fibre = np.full(count, -1), np.zeros((count, self.axes))
        for k, each in enumerate(self.muscles):
            elements = _listed(f"muscles[{k}].elements", each.elements, count)
            if (muscle[list(elements)] >= 0).any():
                raise ModelError(f"muscles[{k}]: an element belongs to another muscle too; each has one at most")
            muscle[list(elements)] = k
            fibre[list(elements)] = _direction(f"muscles[{k}].direction", each.direction, self.axes)
        normals = [_direction(f"grounds[{k}].normal", each.normal, self.axes) for k, each in enumerate(self.grounds)]
        offsets = [
            np.dot(n, _vector("point", each.point, self.axes)) for n, each in zip(normals, self.grounds, strict=True)
        ]
        free = np.ones(len(mesh.nodes), dtype=bool)
        free[list(self.held)] = False
        self._whole = {
            **vars(pattern(mesh.nodes, mesh.elements, free)),
            "corners": mesh.elements,
            "material": self._material,
            "muscle": muscle,
            "held": ~free,
            "pushed": np.array(self.pushed, dtype=np.int64),
        }
        area = mesh.node_areas if self.grounds else np.zeros(len(mesh.nodes))
        normal = np.array(normals).reshape(-1, self.axes)
        self._real = {"fibre": fibre, "area": area, "normal": normal, "offset": np.array(offsets)}

    def indices(self, name: str, device: torch.device) -> Tensor:
        """Whole numbers that describe the mesh, on a device."""
        key = ("indices", name, device)
        if key not in self._prepared:
            with outside_transforms():
                self._prepared[key] = torch.as_tensor(self._whole[name].astype(np.int64), device=device)
        return self._prepared[key]

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """The mesh at rest."""
        rest = self.get_buffer("_rest").to(dtype).reshape(1, -1).repeat(check_count("batch", batch), 1)
        return State(rest, torch.zeros_like(rest))

    def node_positions(self, state: State | Trajectory) -> Float[Tensor, "batch *times nodes axes"]:
        """Places of the nodes."""
        return state.q.unflatten(-1, (-1, self.axes))

    @override
    def _claims(self, own: Properties, name: str, value: Tensor) -> Sequence[Claim]:
        """As declared; and no element may be flat or inverted at rest."""
        found = list(own.claims(name, value))
        if name == "rest" and bool(torch.isfinite(value).all()):
            volumes = torch.linalg.det(edges(value.double(), self.indices("corners", value.device)))
            found.append(Claim(volumes, "positive", "elements of positive volume"))
        return found

    @override
    def _cure(self) -> str:
        if self.implicit:
            return "Elements may be inside out where it starts, or the step too long for a law that softens. "
        return "Take a smaller dt: sound must not pass an element in a step; or integrator='backward_euler'. "

    def _launches(self, device: torch.device) -> Launches:
        key = ("launches", device)
        if key not in self._prepared:
            constant = self.law == 0 and not self.muscles and not self.grounds
            numbers = {"law": self.law, "implicit": int(self.implicit), "constant": int(constant), "h": self.dt}
            numbers |= {"size": self.mesh.size, "slip": self.slip, "muscles": len(self.muscles)}
            with outside_transforms():
                self._prepared[key] = Launches(self.axes, numbers, self._whole, self._real, device)
        return self._prepared[key]

    @override
    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        known = self.checked(properties, state.batch, state.q.device)
        assert isinstance(known, SoftProperties)
        numbers = vars(pack(known, self, state.batch)).values()
        operation = Rollout(self._launches(state.q.device), len(self.mesh.nodes), self.axes)

        def run(q: Tensor, v: Tensor, u: Tensor) -> tuple[Tensor, ...]:
            return batched_function.apply(operation, q, v, u, *numbers)

        q, v, found, starts = in_stretches(run, state, steps, controls, self.nu, truncate)
        residuals, iterations, bad = zip(*found, strict=True)
        first = first_step(starts, bad)
        residual, most = torch.stack(residuals).amax(0).to(q.dtype), torch.stack(iterations).amax(0).long()
        return Trajectory(q, v, Status(first < 0, residual, most, first), self.dt)

    @override
    def _poses(self, state: State, properties: Properties) -> Float[Tensor, "batch bodies 4 4"]:
        places = torch.nn.functional.pad(self.node_positions(state), (0, 3 - self.axes))
        poses = torch.eye(4).to(places).expand(*places.shape[:2], 4, 4).clone()
        poses[..., :3, 3] = places
        return poses

    @override
    def _appearance(
        self, state: State, properties: Properties
    ) -> tuple[Float[Tensor, "batch shapes 4 4"], Float[Tensor, "batch shapes 3"]]:
        sizes = state.q.new_tensor(self.geometry[0].shape.sizes)
        return self._poses(state, properties), sizes.expand(state.batch, len(self.geometry), 3)

    @override
    def _energy(self, state: State, properties: Properties) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Strain, gravity and loads; what muscles and overlaps hold is left out."""
        assert isinstance(properties, SoftProperties)
        packed = pack(properties, self, state.batch)
        x, v = self.node_positions(state).double(), state.v.double().unflatten(-1, (-1, self.axes))
        deformed = edges(x, self.indices("corners", x.device)) @ packed.inverse
        strained = strain_energy(deformed, self.law, packed.weights[..., 0], packed.weights[..., 1])
        kinetic = (packed.mass.unsqueeze(-1) * v.square()).sum((-1, -2)) / 2
        return kinetic.to(state.q), (strained.sum(-1) - (packed.load * x).sum((-1, -2))).to(state.q)

    def extra_repr(self) -> str:
        """What `print(engine)` says."""
        elements = "triangles" if self.axes == 2 else "tetrahedra"
        method = INTEGRATORS[0 if self.implicit else 1]
        return f"{len(self.mesh.elements)} {elements}, {LAWS[self.law]}, {method}, dt={self.dt:g}"


def _materials(given: Sequence[int] | None, elements: int, numbers: dict[str, Any]) -> tuple[np.ndarray, int]:
    """The material of each element, and how many there are."""
    lengths = {name: len(value) for name, value in numbers.items() if isinstance(value, (Sequence, np.ndarray, Tensor))}
    kinds = max(lengths.values(), default=1)
    if any(length not in (1, kinds) for length in lengths.values()):
        raise InputError(f"expected numbers of one material or of all {kinds}, got {lengths}")
    if given is None:
        if kinds not in (1, elements):
            raise InputError(f"materials: {kinds} are given for {elements} elements; say which element is of which")
        return np.arange(elements) if kinds == elements else np.zeros(elements, dtype=np.int64), kinds
    found = np.asarray(given, dtype=np.int64)
    if found.shape != (elements,) or found.min() < 0 or (kinds > 1 and found.max() >= kinds):
        raise InputError(f"materials: expected for each of {elements} elements a number from 0 to {kinds - 1}")
    return found, max(kinds, int(found.max()) + 1)


def _listed(name: str, given: Sequence[int], count: int) -> tuple[int, ...]:
    """Numbers of nodes or elements, each once."""
    found = tuple(int(each) for each in given)
    wrong = [each for each in found if not 0 <= each < count]
    if wrong or len(set(found)) < len(found):
        raise InputError(f"{name}: expected different numbers from 0 to {count - 1}, got {wrong or list(found)}")
    return found


def _vector(name: str, given: Sequence[float], axes: int) -> np.ndarray:
    found = np.asarray(given, dtype=np.float64)
    if found.shape != (axes,) or not np.isfinite(found).all():
        raise InputError(f"{name}: expected {axes} finite numbers, got {given!r}")
    return found


def _direction(name: str, given: Sequence[float], axes: int) -> np.ndarray:
    found = _vector(name, given, axes)
    if not found.any():
        raise InputError(f"{name}: expected a direction, got zeros")
    return found / np.linalg.norm(found)
