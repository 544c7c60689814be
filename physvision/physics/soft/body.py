"""An elastic body on a mesh, as an Engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from physvision.core import Circle, InputError, ModelError, Placed, Sphere, State, Status, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.core.mesh import Mesh
from physvision.kernels import batched_function
from physvision.kernels.launching import outside_transforms
from physvision.physics.engine import MechanicalEngine, Overrides
from physvision.physics.properties import Constraint, Properties
from physvision.physics.soft.bending import Links, flattened, links_of
from physvision.physics.soft.energy import strain_energy
from physvision.physics.soft.ordering import pattern
from physvision.physics.soft.parts import (
    Ground,
    Muscle,
    Solid,
    direction_of,
    drawn,
    listed,
    materials_of,
    vector_of,
)
from physvision.physics.soft.properties import SoftProperties, at_rest, edges, pack
from physvision.physics.soft.rollout import Launches, Rollout
from physvision.physics.truncation import first_marked_step, truncated_rollout

LAWS = ("linear", "st_venant_kirchhoff", "neo_hookean")
INTEGRATORS = ("backward_euler", "symplectic_euler")
Numbers = float | Sequence[float]
EARTH = 9.81  # m/s²


class SoftBody(MechanicalEngine):
    """An elastic body of triangles in the plane, of tetrahedra in space, or cloth: of triangles in space.

    A position is the places of all nodes, node after node, then of all solids, and a velocity theirs. What is held
    keeps the velocity that it has. A control is the activation of each muscle, at least zero, then the force on each
    pushed node and solid, N, held over a step. All arithmetic is in float64, whatever the dtype of the state.

    `backward_euler` is stable at any step, and a step of 1e6 s is the body's equilibrium; `symplectic_euler` keeps
    energy, at steps that are short against the time that sound takes through an element.

    Args:
        mesh: at rest.
        dt: seconds of a step.
        youngs_modulus: Pa; one for all, or one for each material.
        poissons_ratio: above −1 and below 0.5; one for all, or one for each material.
        density: kg/m³; one for all, or one for each material.
        law: of the stress, `linear`, `st_venant_kirchhoff` or `neo_hookean`. The linear one holds while nothing turns;
            only the last, taken if none is given, keeps elements from being turned inside out. Cloth takes the second.
        integrator: of the motion, `backward_euler` or `symplectic_euler`.
        materials: of each element its material, counted from zero; each its own if numbers are given for as many
            materials as there are elements, otherwise all of the first.
        plane_stress: whether a body of the plane is a free sheet; otherwise it cannot move out of the plane.
        held: nodes whose velocity is given.
        pushed: nodes that controls push.
        muscles: what pulls.
        grounds: planes that the body touches.
        solids: balls and boxes that it touches.
        load: force on each node, N; none if not given.
        gravity: m/s²; 9.81 down along the last axis if not given.
        viscous_time: viscosity over stiffness, s: Rayleigh's share of the stiffness.
        velocity_decay: 1/s: Rayleigh's share of the mass.
        contact_stiffness: pressure by overlap, Pa/m; a pressure of a modulus at an overlap of an element, if not given.
        slip: m/s, below which friction is smooth.
        thickness: of cloth, m.
        bending: stiffness of cloth in bending, over that of a plate so thick.
    """

    def __init__(
        self,
        mesh: Mesh,
        *,
        dt: float,
        youngs_modulus: Numbers,
        poissons_ratio: Numbers = 0.3,
        density: Numbers = 1000.0,
        law: str | None = None,
        integrator: str = "backward_euler",
        materials: Sequence[int] | None = None,
        plane_stress: bool = False,
        held: Sequence[int] = (),
        pushed: Sequence[int] = (),
        muscles: Sequence[Muscle] = (),
        grounds: Sequence[Ground] = (),
        solids: Sequence[Solid] = (),
        load: Any = None,
        gravity: Sequence[float] | None = None,
        viscous_time: Numbers = 0.0,
        velocity_decay: float = 0.0,
        contact_stiffness: float | None = None,
        slip: float = 1e-3,
        thickness: float | None = None,
        bending: float = 1.0,
    ) -> None:
        super().__init__()
        law = law or LAWS[1 if mesh.cloth else 2]
        if law not in LAWS or integrator not in INTEGRATORS:
            raise InputError(f"law, integrator: expected of {LAWS} and {INTEGRATORS}, got {law!r}, {integrator!r}")
        if plane_stress and mesh.axes == 3:
            raise InputError("plane_stress: a body in space has no plane; leave it out")
        if mesh.cloth and LAWS.index(law) != 1:
            raise InputError(f"law: expected {LAWS[1]!r} of cloth, got {law!r}")
        if mesh.cloth != (thickness is not None):
            raise InputError(f"thickness: expected a number for cloth, and for cloth alone, got {thickness}")
        self.mesh, self.axes, self.plane_stress = mesh, mesh.axes, plane_stress or mesh.cloth
        self.law, self.implicit = LAWS.index(law), integrator == "backward_euler"
        self.dt, self.slip = check_positive("dt", dt), check_positive("slip", slip)
        count = len(mesh.nodes)
        self.muscles, self.grounds, self.solids = tuple(muscles), tuple(grounds), tuple(solids)
        self.held, self.pushed = (
            listed(name, given, count) + tuple(count + k for k, each in enumerate(self.solids) if getattr(each, name))
            for name, given in (("held", held), ("pushed", pushed))
        )
        self.nq = self.nv = self.axes * (count + len(self.solids))
        self.nu = len(self.muscles) + self.axes * len(self.pushed)
        numbers = {
            "youngs_modulus": youngs_modulus,
            "poissons_ratio": poissons_ratio,
            "density": density,
            "viscous_time": viscous_time,
        }
        self._material, kinds = materials_of(materials, len(mesh.elements), numbers)
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
            "friction": [each.friction for each in (*self.grounds, *self.solids)],
            "radius": [solid.radius for solid in self.solids],
            "solid_mass": [solid.mass for solid in self.solids],
            "thickness": [thickness] * mesh.cloth,
            "bending": [bending] * mesh.cloth,
        }
        leaves = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in given.items()}
        leaves |= {name: leaves[name].expand(kinds) for name in numbers}
        for name, size in (("load", (count, self.axes)), ("gravity", (self.axes,))):
            if tuple(leaves[name].shape) != size:
                raise InputError(f"{name}: expected shape {size}, got {tuple(leaves[name].shape)}")
        self._number_parts()
        nodes = tuple(f"node {k}" for k in range(count))
        self.rows = {"muscles": tuple(f"muscle {k}" for k in range(len(self.muscles)))}
        self.rows["solids"] = tuple(f"solid {k}" for k in range(len(self.solids)))
        self.body_names, self.joint_names = nodes + self.rows["solids"], ()
        dot = Circle(0.5 * mesh.size) if self.axes == 2 else Sphere(0.5 * mesh.size)
        shapes = [dot] * count + [drawn(solid, self.axes) for solid in self.solids]
        names = enumerate(zip(shapes, self.body_names, strict=True))
        self.geometry = tuple(Placed(shape, k, name=name) for k, (shape, name) in names)
        self.set_properties(SoftProperties(**leaves))

    def _number_parts(self) -> None:
        """What the kernels must know of the mesh, muscles and grounds, in numbers."""
        mesh, count = self.mesh, len(self.mesh.elements)
        muscle, fibre = np.full(count, -1), np.zeros((count, self.axes))
        for k, each in enumerate(self.muscles):
            elements = listed(f"muscles[{k}].elements", each.elements, count)
            if (muscle[list(elements)] >= 0).any():
                raise ModelError(f"muscles[{k}]: an element belongs to another muscle too; each has one at most")
            muscle[list(elements)] = k
            fibre[list(elements)] = self._along(
                elements, direction_of(f"muscles[{k}].direction", each.direction, self.axes)
            )
        axes, count = self.axes, len(mesh.nodes)
        normals = [direction_of(f"grounds[{k}].normal", each.normal, axes) for k, each in enumerate(self.grounds)]
        points = [vector_of(f"grounds[{k}].point", each.point, axes) for k, each in enumerate(self.grounds)]
        centres = [vector_of(f"solids[{k}].centre", each.centre, axes) for k, each in enumerate(self.solids)]
        halves = [vector_of("half_size", each.half_size or [0.0] * axes, axes) for each in self.solids]
        if any((half < 0).any() for half in halves):
            raise InputError(f"half_size: expected numbers of at least zero, got {[each.tolist() for each in halves]}")
        self._store("centres", np.array(centres).reshape(-1, axes))
        free = np.ones(count + len(halves), dtype=bool)
        free[list(self.held)] = False
        planes, solids = len(normals), np.arange(len(halves))
        area = np.append(mesh.node_areas * bool(planes + len(solids)), 0.0 * solids)
        self.links = links_of(mesh) if mesh.cloth else Links.none()
        # Which nodes may touch which solids: all at the surface.
        solid, node = (each.ravel() for each in np.meshgrid(solids, np.flatnonzero(area), indexing="ij"))
        pairs = np.concatenate([self.links.pairs, np.stack([node, count + solid], 1)])
        found = vars(pattern(mesh.nodes, mesh.elements, pairs, free))
        shared = np.full((planes + len(solids), count), -1)
        shared[planes + solid, node] = found["pairs"][len(self.links.pairs) :]
        self._whole = {
            **found,
            "link": self.links.pairs,
            "link_block": found["pairs"][: len(self.links.pairs)],
            "links": self.links.of_element,
            "opposites": self.links.opposites,
            "touch_block": shared,
            "partner": np.append(np.full(planes, -1), count + solids),
            "corners": mesh.elements,
            "material": self._material,
            "muscle": muscle,
            "held": ~free,
            "pushed": np.array(self.pushed, dtype=np.int64),
        }
        self._real = {
            "fibre": fibre,
            "area": area,
            "normal": np.array([*normals, *np.zeros((len(solids), axes))]).reshape(-1, axes),
            "point": np.array(points).reshape(-1, axes),
            "half": np.array([*np.zeros((planes, axes)), *halves]).reshape(-1, axes),
        }

    def _along(self, elements: tuple[int, ...], direction: np.ndarray) -> np.ndarray:
        """A direction along the axes of each element, which cloth has of its own."""
        if not self.mesh.cloth:
            return direction
        spread = edges(torch.from_numpy(self.mesh.nodes), torch.from_numpy(self.mesh.elements[list(elements)]))
        found = direction @ (spread @ torch.linalg.inv(flattened(spread))).numpy()
        length = np.linalg.norm(found, axis=1, keepdims=True)
        if length.min() < 1e-9:
            raise InputError("muscles: expected fibres along the cloth, got a direction across it")
        return np.pad(found / length, ((0, 0), (0, 1)))

    def indices(self, name: str, device: torch.device) -> Tensor:
        """Whole numbers that describe the mesh, on a device."""
        key = ("indices", name, device)
        if key not in self._cached:
            with outside_transforms():
                self._cached[key] = torch.as_tensor(self._whole[name].astype(np.int64), device=device)
        return self._cached[key]

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """The mesh at rest, and solids at their centres."""
        places = torch.cat([self.get_buffer("_rest"), self.get_buffer("_centres")])
        q = places.to(dtype).reshape(1, -1).repeat(check_count("batch", batch), 1)
        return State(q, torch.zeros_like(q))

    def node_positions(self, state: State | Trajectory) -> Float[Tensor, "batch *times nodes axes"]:
        """Places of the mesh's nodes."""
        return state.q.unflatten(-1, (-1, self.axes))[..., : len(self.mesh.nodes), :]

    def solid_positions(self, state: State | Trajectory) -> Float[Tensor, "batch *times solids axes"]:
        """Places of the solids' centres."""
        return state.q.unflatten(-1, (-1, self.axes))[..., len(self.mesh.nodes) :, :]

    @override
    def _constraints(self, own: Properties, name: str, value: Tensor) -> Sequence[Constraint]:
        """As declared; and no element may be flat or inverted at rest."""
        found = list(own.constraints(name, value))
        if name == "rest" and bool(torch.isfinite(value).all()):
            volumes = torch.linalg.det(at_rest(value.double(), self.indices("corners", value.device)))
            found.append(Constraint(volumes, "positive", "elements of positive volume"))
        return found

    @override
    def _failure_advice(self) -> str:
        if self.implicit:
            return "Elements may be inside out where it starts, or the step too long for a law that softens. "
        return "Take a smaller dt: sound must not pass an element in a step; or integrator='backward_euler'. "

    def _launches(self, device: torch.device) -> Launches:
        key = ("launches", device)
        if key not in self._cached:
            constant = self.law == 0 and not self.muscles and not self.grounds and not self.solids
            numbers = {"law": self.law, "implicit": int(self.implicit), "constant": int(constant), "h": self.dt}
            numbers |= {"size": self.mesh.size, "slip": self.slip, "muscles": len(self.muscles)}
            with outside_transforms():
                parts = ("cloth",) if self.mesh.cloth else ("solid",) if self.axes == 3 else ()
                self._cached[key] = Launches(parts, numbers, self._whole, self._real, device)
        return self._cached[key]

    @override
    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        known = self.checked(properties, state.batch, state.q.device)
        assert isinstance(known, SoftProperties)
        numbers = vars(pack(known, self, state.batch)).values()
        operation = Rollout(self._launches(state.q.device), self.nq // self.axes, self.axes)

        def run(q: Tensor, v: Tensor, u: Tensor) -> tuple[Tensor, ...]:
            return batched_function.apply(operation, q, v, u, *numbers)

        q, v, found, starts = truncated_rollout(run, state, steps, controls, self.nu, truncate)
        residuals, iterations, bad = zip(*found, strict=True)
        first = first_marked_step(starts, bad)
        residual, most = torch.stack(residuals).amax(0).to(q.dtype), torch.stack(iterations).amax(0).long()
        return Trajectory(q, v, Status(first < 0, residual, most, first), self.dt)

    @override
    def _poses(self, state: State, properties: Properties) -> Float[Tensor, "batch bodies 4 4"]:
        places = torch.nn.functional.pad(state.q.unflatten(-1, (-1, self.axes)), (0, 3 - self.axes))
        poses = torch.eye(4).to(places).expand(*places.shape[:2], 4, 4).clone()
        poses[..., :3, 3] = places
        return poses

    @override
    def _appearance(
        self, state: State, properties: Properties
    ) -> tuple[Float[Tensor, "batch shapes 4 4"], Float[Tensor, "batch shapes 3"]]:
        assert isinstance(properties, SoftProperties)
        sizes = state.q.new_tensor([each.shape.sizes for each in self.geometry]).expand(state.batch, -1, 3).clone()
        balls = [k for k, solid in enumerate(self.solids) if solid.half_size is None]
        sizes[:, [len(self.mesh.nodes) + k for k in balls], 0] = properties.radius[..., balls].to(sizes)
        return self._poses(state, properties), sizes

    @override
    def _energy(self, state: State, properties: Properties) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Strain, bending, gravity and loads; what muscles and overlaps hold is left out."""
        assert isinstance(properties, SoftProperties)
        packed = pack(properties, self, state.batch)
        x, v = (each.double().unflatten(-1, (-1, self.axes)) for each in (state.q, state.v))
        edge = edges(x, self.indices("corners", x.device))
        deformed = edge @ packed.inverse[..., : edge.shape[-1], : edge.shape[-1]]
        strained = strain_energy(deformed, self.law, packed.weights[..., 0], packed.weights[..., 1]).sum(-1)
        apart = x[:, self.indices("link", x.device)].diff(dim=2).squeeze(2)
        bent = (packed.bending * apart.square().sum(-1)).sum(-1) / 2
        kinetic = (packed.mass.unsqueeze(-1) * v.square()).sum((-1, -2)) / 2
        return kinetic.to(state.q), (strained + bent - (packed.load * x).sum((-1, -2))).to(state.q)

    def extra_repr(self) -> str:
        """What `print(engine)` says."""
        elements = "tetrahedra" if self.mesh.elements.shape[1] == 4 else "triangles"
        method = INTEGRATORS[0 if self.implicit else 1]
        return f"{len(self.mesh.elements)} {elements}, {LAWS[self.law]}, {method}, dt={self.dt:g}"
