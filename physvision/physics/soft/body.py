"""Engine for an elastic body on a mesh, and its looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from physvision.core import Appearance, Circle, InputError, Placed, Plane, Polygon, Sphere, State, Status, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.core.mesh import Mesh
from physvision.core.visuals import Look, Surface, Visuals
from physvision.kernels import batched_function
from physvision.kernels.launching import outside_transforms
from physvision.physics.engine import Energies, MechanicalEngine, Overrides
from physvision.physics.failures import FailureTexts
from physvision.physics.properties import Constraint, Properties
from physvision.physics.soft.compiler import compile_body
from physvision.physics.soft.description import LAWS, Ground, Material, Muscle, SoftContact, check_numbers
from physvision.physics.soft.elements import element_edges, rest_edges, strain_energy
from physvision.physics.soft.properties import SoftProperties
from physvision.physics.soft.rollout import BodyLauncher, Rollout
from physvision.physics.truncation import first_marked_step, truncated_rollout

INTEGRATORS = ("backward_euler", "symplectic_euler")
EARTH_GRAVITY = 9.81  # m/s²
COLOR = (0.30, 0.55, 0.80)
COLLIDER_COLOR, COLLIDER_SCALE = (0.86, 0.62, 0.30), 0.975  # smaller than it is, since cloth rests on its surface
GROUND_EXTENT = 40.0  # half width of the ground of a flat world, in extents of the mesh
# Sides of a tetrahedron of positive volume, counterclockwise seen from outside.
_SIDES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


class SoftBody(MechanicalEngine):
    """An elastic body of triangles in the plane, of tetrahedra in space, or cloth of triangles in space.

    A position holds the positions of all nodes, then those of all colliders, and a velocity their velocities. A control
    is the activation of each muscle, at least zero, then the force on each actuated node and collider, N, held over a
    step. All arithmetic is in float64, whatever the dtype of the state.

    `backward_euler`, of first order, is stable at any step, and a step of 1e6 s ends in equilibrium: use it for stiff
    bodies and long steps. `symplectic_euler`, of first order and explicit, conserves energy, at steps shorter than
    sound takes through an element. Gradients are adjoints of the steps, at the solution of the implicit ones.

    Args:
        mesh: Mesh at rest.
        material: Elastic material; a body of several has a number for each.
        dt: Length of a step, s.
        integrator: Time integrator, "backward_euler" or "symplectic_euler".
        kinematic: Nodes that keep their velocity.
        actuated: Nodes on which controls exert forces.
        muscles: Groups of elements with an active tension.
        contact: Planes and colliders that the body touches.
        load: Constant force on each node, (nodes, axes), N; None for zero.
        gravity: Gravity, m/s²; None for 9.81 down along the last axis.
    """

    def __init__(
        self,
        mesh: Mesh,
        material: Material,
        *,
        dt: float,
        integrator: str = "backward_euler",
        kinematic: Sequence[int] = (),
        actuated: Sequence[int] = (),
        muscles: Sequence[Muscle] = (),
        contact: SoftContact | None = None,
        load: Any = None,
        gravity: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        if integrator not in INTEGRATORS:
            raise InputError(f"integrator: expected one of {', '.join(INTEGRATORS)}, got {integrator!r}")
        contact = SoftContact() if contact is None else contact
        self.mesh, self.axes, self.law = mesh, mesh.axes, material.law_index(mesh)
        self.implicit, self.dt = integrator == "backward_euler", check_positive("dt", dt)
        self.slip_speed = check_positive("slip_speed", contact.slip_speed)
        self.muscles, self.grounds, self.colliders = tuple(muscles), tuple(contact.grounds), tuple(contact.colliders)
        count, colliders = len(mesh.nodes), len(self.colliders)
        self.kinematic = check_numbers("kinematic", kinematic, count)
        self.kinematic += tuple(count + k for k, collider in enumerate(self.colliders) if collider.kinematic)
        self.actuated = check_numbers("actuated", actuated, count)
        self.actuated += tuple(count + k for k, collider in enumerate(self.colliders) if collider.actuated)
        self.nq = self.nv = self.axes * (count + colliders)
        self.nu = len(self.muscles) + self.axes * len(self.actuated)
        regions, materials = material.element_materials(len(mesh.elements))
        properties = self._make_properties(material, contact, materials, load, gravity)
        plane_stress = material.plane_stress or mesh.cloth
        self._compiled = compile_body(mesh, regions, self.muscles, contact, self.kinematic, self.actuated, plane_stress)
        self._store("centers", self._compiled.centers)
        self.rows = {"muscles": tuple(f"muscle {k}" for k in range(len(self.muscles)))}
        self.rows["colliders"] = tuple(f"collider {k}" for k in range(colliders))
        self.body_names = tuple(f"node {k}" for k in range(count)) + self.rows["colliders"]
        self.joint_names = ()
        node_shape = Circle(0.5 * mesh.size) if self.axes == 2 else Sphere(0.5 * mesh.size)
        shapes = [node_shape] * count + [collider.shape(self.axes) for collider in self.colliders]
        names = enumerate(zip(shapes, self.body_names, strict=True))
        self.geometry = tuple(Placed(shape, k, name=name) for k, (shape, name) in names)
        self.set_properties(properties)

    def _make_properties(
        self, material: Material, contact: SoftContact, materials: int, load: Any, gravity: Sequence[float] | None
    ) -> SoftProperties:
        mesh, shape = self.mesh, (len(self.mesh.nodes), self.axes)
        stiffness = contact.stiffness
        values = {
            **material.per_material,
            "rest": mesh.nodes,
            "load": np.zeros(shape) if load is None else load,
            "gravity": [0.0] * (self.axes - 1) + [-EARTH_GRAVITY] if gravity is None else gravity,
            "velocity_decay": material.velocity_decay,
            "tension": [muscle.tension for muscle in self.muscles],
            "contact_stiffness": float(np.max(material.youngs_modulus)) / mesh.size if stiffness is None else stiffness,
            "friction": [obstacle.friction for obstacle in (*self.grounds, *self.colliders)],
            "radius": [collider.radius for collider in self.colliders],
            "collider_mass": [collider.mass for collider in self.colliders],
            "thickness": [material.thickness] * mesh.cloth,
            "bending": [material.bending] * mesh.cloth,
        }
        leaves = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in values.items()}
        leaves |= {name: leaves[name].expand(materials) for name in material.per_material}
        for name, expected in (("load", shape), ("gravity", (self.axes,))):
            if tuple(leaves[name].shape) != expected:
                raise InputError(f"{name}: expected shape {expected}, got {tuple(leaves[name].shape)}")
        return SoftProperties(**leaves)

    def initial_state(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> State:
        """Mesh at rest, and colliders at their initial centers."""
        positions = torch.cat([self.get_buffer("_rest"), self.get_buffer("_centers")])
        q = positions.to(dtype).reshape(1, -1).repeat(check_count("batch", batch), 1)
        return State(q, torch.zeros_like(q))

    def node_positions(self, state: State | Trajectory) -> Float[Tensor, "batch *times nodes axes"]:
        """Positions of the mesh's nodes, m."""
        return state.q.unflatten(-1, (-1, self.axes))[..., : len(self.mesh.nodes), :]

    def collider_positions(self, state: State | Trajectory) -> Float[Tensor, "batch *times colliders axes"]:
        """Positions of the colliders' centers, m."""
        return state.q.unflatten(-1, (-1, self.axes))[..., len(self.mesh.nodes) :, :]

    def _constraints(self, properties: Properties, name: str, value: Tensor) -> Sequence[Constraint]:
        """Declared ranges, and elements that are neither flat nor inverted at rest."""
        constraints = list(properties.constraints(name, value))
        if name == "rest" and bool(torch.isfinite(value).all()):
            corners = self._compiled.indices("corners", value.device)
            volumes = torch.linalg.det(rest_edges(value.double(), corners))
            constraints.append(Constraint(volumes, "positive", "elements of positive volume"))
        return constraints

    def _explain_failure(self, trajectory: Trajectory, properties: Overrides) -> FailureTexts:
        if self.implicit:
            advice = "Elements may be inverted at the start, or the step too long for a law that softens. "
        else:
            advice = "Reduce dt until sound takes longer through an element, or use integrator='backward_euler'. "
        return FailureTexts(advice=advice)

    def _launcher(self, device: torch.device) -> BodyLauncher:
        if device not in self._cached:
            linear = self.law == 0 and not self.muscles and not self.grounds and not self.colliders
            scalars = {"law": self.law, "implicit": int(self.implicit), "constant": int(linear), "h": self.dt}
            scalars |= {"size": self.mesh.size, "slip": self.slip_speed, "muscles": len(self.muscles)}
            options = ("cloth",) if self.mesh.cloth else ("solid",) if self.axes == 3 else ()
            with outside_transforms():
                self._cached[device] = BodyLauncher(options, scalars, self._compiled, device)
        return self._cached[device]

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        checked = self.checked(properties, state.batch, state.q.device)
        assert isinstance(checked, SoftProperties)
        parameters = vars(self._compiled.pack(checked, state.batch)).values()
        operation = Rollout(self._launcher(state.q.device), self.nq // self.axes, self.axes)

        def run(q: Tensor, v: Tensor, u: Tensor) -> tuple[Tensor, ...]:
            return batched_function.apply(operation, q, v, u, *parameters)

        q, v, reports, starts = truncated_rollout(run, state, steps, controls, self.nu, truncate)
        residuals, iterations, failed = zip(*reports, strict=True)
        first = first_marked_step(starts, failed)
        residual = torch.stack(residuals).amax(0).to(q.dtype)
        return Trajectory(q, v, Status(first < 0, residual, torch.stack(iterations).amax(0).long(), first), self.dt)

    def _poses(self, state: State, properties: Properties) -> Float[Tensor, "batch bodies 4 4"]:
        positions = torch.nn.functional.pad(state.q.unflatten(-1, (-1, self.axes)), (0, 3 - self.axes))
        poses = torch.eye(4).to(positions).expand(*positions.shape[:2], 4, 4).clone()
        poses[..., :3, 3] = positions
        return poses

    def _appearance(self, state: State, properties: SoftProperties) -> Appearance:
        sizes = state.q.new_tensor([placed.shape.sizes for placed in self.geometry])
        sizes = sizes.expand(state.batch, -1, 3).clone()
        balls = [k for k, collider in enumerate(self.colliders) if collider.half_size is None]
        sizes[:, [len(self.mesh.nodes) + k for k in balls], 0] = properties.radius[..., balls].to(sizes)
        return Appearance(self._poses(state, properties), sizes)

    @property
    def visuals(self) -> Visuals:
        """Surface of the mesh in place of its nodes, and the planes that it touches."""
        if "visuals" not in self._cached:
            self._cached["visuals"] = mesh_visuals(self.mesh, self.grounds, len(self.colliders))
        return self._cached["visuals"]

    def _energy(self, state: State, properties: SoftProperties) -> Energies:
        """Kinetic energy, and that of strain, bending, gravity and loads, without muscles and contacts."""
        p = self._compiled.pack(properties, state.batch)
        x, v = (value.double().unflatten(-1, (-1, self.axes)) for value in (state.q, state.v))
        edges = element_edges(x, self._compiled.indices("corners", x.device))
        deformation = edges @ p.inverse[..., : edges.shape[-1], : edges.shape[-1]]
        strain = strain_energy(deformation, self.law, p.weights[..., 0], p.weights[..., 1]).sum(-1)
        stretch = x[:, self._compiled.indices("link", x.device)].diff(dim=2).squeeze(2)
        bending = (p.bending * stretch.square().sum(-1)).sum(-1) / 2
        kinetic = (p.mass.unsqueeze(-1) * v.square()).sum((-1, -2)) / 2
        return kinetic.to(state.q), (strain + bending - (p.load * x).sum((-1, -2))).to(state.q)

    def extra_repr(self) -> str:
        """Elements, law, integrator and step, for `print(engine)`."""
        elements = "tetrahedra" if self.mesh.elements.shape[1] == 4 else "triangles"
        method = INTEGRATORS[0 if self.implicit else 1]
        return f"{len(self.mesh.elements)} {elements}, {LAWS[self.law]}, {method}, dt={self.dt:g}"


def mesh_visuals(mesh: Mesh, grounds: Sequence[Ground], colliders: int) -> Visuals:
    """Draw a mesh by its surface, whose vertices are the nodes, and the grounds as planes.

    Args:
        mesh: Mesh of the body.
        grounds: Planes that it touches.
        colliders: Number of its colliders, which follow the nodes in the geometry.
    """
    count = len(mesh.nodes)
    surface = Surface(np.zeros((count, 3)), outer_triangles(mesh), np.arange(count), Look(COLOR), name="surface")
    extent = float(np.ptp(mesh.nodes, axis=0).max())
    shapes = tuple((_ground_shape(ground, mesh.axes, extent), Look(Placed.color)) for ground in grounds)
    looks = {count + number: Look(COLLIDER_COLOR, scale=COLLIDER_SCALE) for number in range(colliders)}
    return Visuals((surface,), frozenset(range(count)), looks, shapes)


def outer_triangles(mesh: Mesh) -> NDArray[np.int64]:
    """Triangles of the surface of a mesh, counterclockwise seen from outside, (faces, 3)."""
    if mesh.elements.shape[1] == 3:
        return mesh.elements
    boundary = set(map(tuple, mesh.surface.tolist()))
    sides = mesh.elements[:, np.array(_SIDES)].reshape(-1, 3)
    return np.array([side for side in sides.tolist() if tuple(sorted(side)) in boundary])


def _ground_shape(ground: Ground, axes: int, extent: float) -> Placed:
    """Shape of a half space: a plane, or a wide rectangle of a flat world."""
    pose, normal = np.eye(4), np.zeros(3)
    normal[:axes] = np.asarray(ground.normal, float) / np.linalg.norm(np.asarray(ground.normal, float))
    pose[:axes, 3] = np.asarray(ground.point, float)
    if axes == 2:
        width, depth = GROUND_EXTENT * extent, extent
        corners = ((-width, -depth), (width, -depth), (width, 0.0), (-width, 0.0))
        pose[:2, 0], pose[:2, 1] = (normal[1], -normal[0]), normal[:2]
        return Placed(Polygon(corners), None, tuple(map(tuple, pose.tolist())), (0.55, 0.57, 0.6), "ground")
    across = np.cross(normal, [0.0, 1.0, 0.0] if abs(normal[1]) < 0.9 else [1.0, 0.0, 0.0])
    across /= np.linalg.norm(across)
    pose[:3, :3] = np.stack([across, np.cross(normal, across), normal], 1)
    return Placed(Plane(), None, tuple(map(tuple, pose.tolist())), Placed.color, "ground")
