"""Common trees, each with a pure twin from tensors to properties, through which gradients pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Box, Capsule, InputError, Placed, Plane
from physvision.core.checks import check_count
from physvision.core.shapes import IDENTITY
from physvision.physics.articulated.contact import Contact
from physvision.physics.articulated.engine import Articulation
from physvision.physics.articulated.model.fluid import Medium
from physvision.physics.articulated.model.kinematic_tree import Body, Joint
from physvision.physics.articulated.model.loop_joints import Connection
from physvision.physics.articulated.model.transmissions import Transmission
from physvision.physics.articulated.tree_engine import EARTH, Actuators

_SLENDERNESS = 0.05  # radius of a rod over its length: gives it an inertia about itself, which pendulums do not feel
_COLORS = ((0.84, 0.37, 0.30), (0.95, 0.71, 0.31), (0.36, 0.66, 0.55), (0.30, 0.50, 0.75), (0.55, 0.42, 0.68))

Numbers = Sequence[float] | np.ndarray | Tensor


def tree(
    bodies: Sequence[Body],
    *,
    dt: float = 0.01,
    gravity: Sequence[float] = EARTH,
    integrator: str = "semi_implicit_euler",
    substeps: int = 1,
    scenery: Sequence[Placed] = (),
    contact: Contact = None,
    exempt: Sequence[tuple[str, str]] = (),
    friction: float = 0.0,
    restitution: float = 0.0,
    turning_friction: Sequence[float] = (0.0, 0.0),
    transmissions: Sequence[Transmission] = (),
    medium: Medium | None = None,
    connections: Sequence[Connection] = (),
    friction_model: str = "cone",
) -> Articulation:
    """An engine from a description of bodies.

    Args:
        bodies: the tree, in any order.
        dt: seconds a step.
        gravity: m/s², in the world's axes.
        integrator: "semi_implicit_euler" or "runge_kutta_4".
        substeps: how many steps of the integrator make one of the engine.
        scenery: what stands still in the world.
        contact: "event" lets shapes of bodies touch those of other bodies and of the scenery, but for bodies that a
            joint connects; None lets everything pass. "compliant", or a `Compliant` with its numbers, is MuJoCo's
            contact, by either integrator; another `ContactLaw` steps by a fixed time with kernels of its own.
        exempt: pairs of names of bodies that pass through each other; "world" is what stands still.
        friction: coefficient of every shape, where `properties` say no other.
        restitution: of every shape.
        turning_friction: lengths of every shape, m: times the normal force they are the greatest moments against
            spinning about the contact's normal, and against rolling.
        transmissions: servos, friction and ties along combinations of joints. With transmissions there is a control for
            each velocity, and then one for each of these.
        medium: what drags the bodies.
        connections: points and frames of bodies that stay together.
        friction_model: "cone", alike in all directions, or "pyramid": along each of two tangents by itself.
    """
    return Articulation(
        bodies,
        dt=dt,
        gravity=gravity,
        integrator=integrator,
        substeps=substeps,
        scenery=scenery,
        contact=contact,
        exempt=exempt,
        friction=friction,
        restitution=restitution,
        turning_friction=turning_friction,
        transmissions=transmissions,
        medium=medium,
        connections=connections,
        friction_model=friction_model,
    )


def chain(
    lengths: Numbers,
    masses: Numbers | None = None,
    *,
    dt: float = 0.01,
    damping: float = 0.0,
    integrator: str = "semi_implicit_euler",
    substeps: int = 1,
) -> Articulation:
    """A compound pendulum of uniform rods that hangs along −z and turns about y, each angle against the rod before.

    Args:
        lengths: of the rods, m.
        masses: of the rods, kg; one each where not given.
        dt: seconds a step.
        damping: of every hinge, N m s/rad.
        integrator: "semi_implicit_euler" or "runge_kutta_4".
        substeps: how many steps of the integrator make one of the engine.
    """
    lengths, masses = _rods(lengths, masses)
    bodies = [
        Body(f"rod {k}", f"rod {k - 1}" if k else None, [Joint("revolute", (0.0, 1.0, 0.0), damping=damping)])
        for k in range(len(lengths))
    ]
    bodies = _with_values(bodies, chain_properties(lengths, masses))
    return Articulation(bodies, dt=dt, integrator=integrator, substeps=substeps)


def chain_properties(
    lengths: Float[Tensor, "*worlds rods"], masses: Float[Tensor, "*worlds rods"] | None = None
) -> dict[str, Tensor]:
    """The leaves of `chain`'s properties that depend on lengths (m) and masses (kg); a pure function."""
    masses = torch.ones_like(lengths) if masses is None else masses
    return _rod_leaves(lengths, masses, direction=-1.0)


def cartpole(
    links: int = 1,
    *,
    cart_mass: float = 1.0,
    lengths: Numbers | None = None,
    masses: Numbers | None = None,
    dt: float = 0.01,
    damping: float = 0.0,
    integrator: str = "semi_implicit_euler",
    substeps: int = 1,
) -> Articulation:
    """A cart on a rail along x with a chain of rods on it, upright at zero; the one control pushes the cart, N.

    Args:
        links: number of rods.
        cart_mass: kg.
        lengths: of the rods, m; one each where not given.
        masses: of the rods, kg; 0.1 each where not given.
        dt: seconds a step.
        damping: of every hinge, N m s/rad.
        integrator: "semi_implicit_euler" or "runge_kutta_4".
        substeps: how many steps of the integrator make one of the engine.
    """
    check_count("links", links)
    lengths, masses = _rods([1.0] * links if lengths is None else lengths, [0.1] * links if masses is None else masses)
    if len(lengths) != links:
        raise InputError(f"lengths: expected {links}, one for each link, got {len(lengths)}")
    cart = Body("cart", None, [Joint("prismatic", (1.0, 0.0, 0.0), name="slider")])
    rods = [
        Body(f"rod {k}", f"rod {k - 1}" if k else "cart", [Joint("revolute", (0.0, 1.0, 0.0), damping=damping)])
        for k in range(links)
    ]
    values = cartpole_properties(torch.tensor(float(cart_mass), dtype=torch.float64), lengths, masses)
    bodies = _with_values([cart, *rods], values)
    push = Actuators(np.eye(1, links + 1), np.array([-np.inf]), np.array([np.inf]), ("push",))
    return Articulation(bodies, dt=dt, integrator=integrator, substeps=substeps, actuators=push, scenery=(_FLOOR,))


def cartpole_properties(
    cart_mass: Float[Tensor, "*worlds"], lengths: Float[Tensor, "*worlds rods"], masses: Float[Tensor, "*worlds rods"]
) -> dict[str, Tensor]:
    """The leaves of `cartpole`'s properties that depend on masses (kg) and lengths (m); a pure function."""
    rods = _rod_leaves(lengths, masses, direction=1.0)
    cart = cart_mass.unsqueeze(-1)
    zeros = torch.zeros_like(rods["position"][..., :1, :])
    cart_inertia = (cart[..., None, None] * _CART_INERTIA * torch.eye(3, dtype=cart.dtype, device=cart.device)).expand(
        *rods["inertia"].shape[:-3], 1, 3, 3
    )
    return {
        "mass": torch.cat([cart.expand(*masses.shape[:-1], 1), rods["mass"]], -1),
        "center_of_mass": torch.cat([zeros, rods["center_of_mass"]], -2),
        "inertia": torch.cat([cart_inertia, rods["inertia"]], -3),
        "position": torch.cat([zeros, rods["position"]], -2),
        # The rail's floor and the cart come before the rods.
        "shape_pose": torch.cat([_like(rods["shape_pose"], [_FLOOR.pose, IDENTITY]), rods["shape_pose"]], -3),
        "shape_size": torch.cat([_like(rods["shape_size"], [_FLOOR.shape.sizes, _CART.sizes]), rods["shape_size"]], -2),
    }


_CART = Box((0.4, 0.3, 0.2))
_FLOOR = Placed(
    Plane(),
    None,
    ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, -0.1), (0.0, 0.0, 0.0, 1.0)),
    (0.9, 0.9, 0.9),
    "floor",
)
_CART_INERTIA = 0.01  # kg m² a kilogram; the cart never turns


def from_dh(
    a: Numbers,
    alpha: Numbers,
    d: Numbers,
    theta: Numbers | None = None,
    *,
    kinds: str | None = None,
    masses: Numbers | None = None,
    dt: float = 0.01,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    integrator: str = "semi_implicit_euler",
    substeps: int = 1,
) -> Articulation:
    """An arm from Denavit–Hartenberg parameters, link k's transform being Rz(θ) Tz(d) Tx(a) Rx(α).

    Body `link k` turns (or slides) about the z of the frame before it; body `tip` is the last frame.

    Args:
        a: along x, m.
        alpha: about x, rad.
        d: along z, m.
        theta: offsets of the joint angles, rad; zero where not given.
        kinds: one letter a joint, R or P; all R where not given.
        masses: of the links, kg, spread along straight rods from frame to frame; one each where not given.
        dt: seconds a step.
        gravity: m/s².
        integrator: "semi_implicit_euler" or "runge_kutta_4".
        substeps: how many steps of the integrator make one of the engine.
    """
    table = [torch.as_tensor(values, dtype=torch.float64) for values in (a, alpha, d)]
    count = len(table[0])
    table.append(
        torch.zeros(count, dtype=torch.float64) if theta is None else torch.as_tensor(theta, dtype=torch.float64)
    )
    weights = torch.ones(count, dtype=torch.float64) if masses is None else torch.as_tensor(masses, dtype=torch.float64)
    kinds = "R" * count if kinds is None else kinds
    if any(values.shape != (count,) for values in (*table, weights)) or len(kinds) != count or count == 0:
        raise InputError("from_dh: a, alpha, d, theta, masses and kinds need one entry for each joint, at least one")
    if set(kinds) - set("RP"):
        raise InputError(f"from_dh: kinds are letters R and P, got {kinds!r}")
    names = [f"link {k}" for k in range(count)]
    joints = [Joint("revolute" if kind == "R" else "prismatic", (0.0, 0.0, 1.0)) for kind in kinds]
    bodies = [Body(names[k], names[k - 1] if k else None, [joints[k]]) for k in range(count)]
    bodies.append(Body("tip", names[-1], (), mass=0.0, inertia=(0.0, 0.0, 0.0)))
    leaves = from_dh_properties(*table, masses=weights)
    return Articulation(_with_leaves(bodies, leaves), dt=dt, gravity=gravity, integrator=integrator, substeps=substeps)


def from_dh_properties(
    a: Float[Tensor, "*worlds links"],
    alpha: Float[Tensor, "*worlds links"],
    d: Float[Tensor, "*worlds links"],
    theta: Float[Tensor, "*worlds links"] | None = None,
    *,
    masses: Float[Tensor, "*worlds links"] | None = None,
) -> dict[str, Tensor]:
    """The leaves of `from_dh`'s properties that depend on its table; a pure function."""
    theta = torch.zeros_like(a) if theta is None else theta
    masses = torch.ones_like(a) if masses is None else masses
    none = torch.zeros_like(a[..., :1])
    reach = torch.stack([a, torch.zeros_like(a), d], -1)
    # Body k stands where the link before it ends, turned by its own offset; the tip ends the last link.
    before, turn = torch.cat([none, alpha], -1) / 2, torch.cat([theta, none], -1) / 2
    cx, sx, cz, sz = before.cos(), before.sin(), turn.cos(), turn.sin()
    identity = torch.eye(3, dtype=a.dtype, device=a.device)
    square = (reach * reach).sum(-1)[..., None, None]
    rods = square * (identity * (1 + 2 * _SLENDERNESS**2)) - reach.unsqueeze(-1) * reach.unsqueeze(-2)
    inertia = masses[..., None, None] * (rods / 12 + _LEAST_GYRATION**2 * identity)
    no_point = torch.zeros_like(reach[..., :1, :])
    return {
        "mass": torch.cat([masses, none], -1),
        "center_of_mass": torch.cat([reach / 2, no_point], -2),
        "inertia": torch.cat([inertia, torch.zeros_like(inertia[..., :1, :, :])], -3),
        "position": torch.cat([no_point, reach], -2),
        "orientation": torch.stack([cx * cz, sx * cz, -sx * sz, cx * sz], -1),
    }


_LEAST_GYRATION = 0.03  # m; a link whose frames coincide still has an inertia


def _rods(lengths: Numbers, masses: Numbers | None) -> tuple[Tensor, Tensor]:
    lengths = torch.as_tensor(lengths, dtype=torch.float64).detach().clone()
    masses = torch.ones_like(lengths) if masses is None else torch.as_tensor(masses, dtype=torch.float64).detach()
    if lengths.dim() != 1 or len(lengths) == 0 or masses.shape != lengths.shape:
        raise InputError(
            f"lengths and masses: expected one number for each rod, got shapes {tuple(lengths.shape)} "
            f"and {tuple(masses.shape)}"
        )
    if not bool((torch.isfinite(lengths) & (lengths > 0)).all()):
        raise InputError(f"lengths: expected positive numbers, got {lengths.tolist()}")
    return lengths, masses


def _rod_leaves(lengths: Tensor, masses: Tensor, direction: float) -> dict[str, Tensor]:
    """Rods end to end along z: centre in the middle, inertia m l²/12 across and that of a cylinder along."""
    lengths, masses = torch.broadcast_tensors(lengths, masses)
    zero = torch.zeros_like(lengths)
    across = masses * lengths**2 / 12
    along = masses * (_SLENDERNESS * lengths) ** 2 / 2
    reached = torch.cat([zero[..., :1], lengths[..., :-1]], -1)
    middle = torch.stack([zero, zero, direction * lengths / 2], -1)
    placed = torch.eye(4, dtype=lengths.dtype, device=lengths.device).repeat(*lengths.shape, 1, 1)
    radius = (_SLENDERNESS * lengths.mean(-1, keepdim=True)).expand_as(lengths)
    return {
        "mass": masses,
        "center_of_mass": middle,
        "inertia": torch.diag_embed(torch.stack([across, across, along], -1)),
        "position": torch.stack([zero, zero, direction * reached], -1),
        "shape_pose": torch.cat([placed[..., :3], torch.cat([middle, placed[..., 0, 3:] + 1], -1).unsqueeze(-1)], -1),
        "shape_size": torch.stack([radius, zero, lengths], -1),
    }


def _with_leaves(bodies: Sequence[Body], leaves: dict[str, Tensor]) -> list[Body]:
    """The bodies with numbers from the leaves that have a row for each of them."""
    return [
        replace(
            body,
            **{
                name: value[row].numpy() if value.dim() > 1 else float(value[row])
                for name, value in leaves.items()
                if not name.startswith("shape_")
            },
        )
        for row, body in enumerate(bodies)
    ]


def _with_values(bodies: list[Body], leaves: dict[str, Tensor]) -> list[Body]:
    """The bodies with numbers from `leaves`, and with shapes: a capsule for each rod, and a box for a cart before."""
    shapes = list(zip(leaves["shape_pose"], leaves["shape_size"], strict=True))[-len(bodies) :]
    drawn = []
    for row, (body, (pose, (radius, _, length))) in enumerate(zip(bodies, shapes, strict=True)):
        rod = row - sum(each.name == "cart" for each in bodies)
        shape = _CART if body.name == "cart" else Capsule(float(radius), float(length))
        color = _COLORS[3] if body.name == "cart" else _COLORS[rod % len(_COLORS)]
        drawn.append(replace(body, shapes=[Placed(shape, pose=tuple(map(tuple, pose.tolist())), color=color)]))
    return _with_leaves(drawn, leaves)


def _like(rods: Tensor, rows: Sequence) -> Tensor:
    """Constant rows of shapes, for as many worlds as those of the rods."""
    found = torch.tensor(rows, dtype=rods.dtype, device=rods.device)
    return found.expand(*rods.shape[: -found.dim()], *found.shape)
