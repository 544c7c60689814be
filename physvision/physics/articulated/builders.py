"""Builders of common trees, each with a pure function from tensors to properties, through which gradients flow."""

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
from physvision.physics.articulated.contact import Contact, ContactSettings
from physvision.physics.articulated.engine import Articulation
from physvision.physics.articulated.model.actuators import Actuators
from physvision.physics.articulated.model.bodies import Body, Joint
from physvision.physics.articulated.model.mechanism import EARTH_GRAVITY, Fluid, LoopJoint, Mechanism
from physvision.physics.articulated.model.transmissions import Transmission
from physvision.physics.articulated.settings import SETTINGS

_COLORS = ((0.84, 0.37, 0.30), (0.95, 0.71, 0.31), (0.36, 0.66, 0.55), (0.30, 0.50, 0.75), (0.55, 0.42, 0.68))

Numbers = Sequence[float] | np.ndarray | Tensor


def tree(
    bodies: Sequence[Body],
    *,
    dt: float = 0.01,
    gravity: Sequence[float] = EARTH_GRAVITY,
    integrator: str = "semi_implicit_euler",
    substeps: int = 1,
    static_shapes: Sequence[Placed] = (),
    contact: Contact | ContactSettings = None,
    transmissions: Sequence[Transmission] = (),
    loop_joints: Sequence[LoopJoint] = (),
    fluid: Fluid | None = None,
) -> Articulation:
    """Make an engine from a description of bodies.

    Args:
        bodies: Bodies of the tree, in any order.
        dt: Length of a step, s.
        gravity: Gravity in the world's axes, m/s².
        integrator: Time integrator: "semi_implicit_euler" or "runge_kutta_4".
        substeps: Number of integrator steps in a step of the engine.
        static_shapes: Shapes that are fixed to the world.
        contact: Contact method: "event" for hard contact between shapes of bodies that no joint connects, "compliant"
            for MuJoCo's contact by either integrator, None for no contact; or `ContactSettings` with the method,
            friction and restitution. Another `ContactLaw` steps by a fixed time with kernels of its own.
        transmissions: Servos, dry friction and equality constraints along combinations of joints. There is a control
            for each velocity, then one for each transmission.
        loop_joints: Equality constraints that close kinematic loops.
        fluid: Fluid that exerts drag; None for none.
    """
    mechanism = Mechanism(bodies, gravity, static_shapes, None, transmissions, (), loop_joints, fluid)
    return Articulation(mechanism, dt=dt, integrator=integrator, substeps=substeps, contact=contact)


def chain(
    lengths: Numbers,
    masses: Numbers | None = None,
    *,
    dt: float = 0.01,
    damping: float = 0.0,
    integrator: str = "semi_implicit_euler",
    substeps: int = 1,
) -> Articulation:
    """Make a compound pendulum of uniform rods that hangs along −z at zero and rotates about y, with relative angles.

    A single rod swings like a point mass on a string of two thirds of its length.

    Args:
        lengths: Lengths of the rods, m.
        masses: Masses of the rods, kg; 1 kg each by default.
        dt: Length of a step, s.
        damping: Viscous damping of every joint, N m s/rad.
        integrator: Time integrator: "semi_implicit_euler" or "runge_kutta_4".
        substeps: Number of integrator steps in a step of the engine.
    """
    lengths, masses = _check_rods(lengths, masses)
    bodies = [
        Body(f"rod {k}", f"rod {k - 1}" if k else None, [Joint("revolute", (0.0, 1.0, 0.0), damping=damping)])
        for k in range(len(lengths))
    ]
    bodies = _with_shapes(bodies, chain_properties(lengths, masses))
    return Articulation(Mechanism(bodies), dt=dt, integrator=integrator, substeps=substeps)


def chain_properties(
    lengths: Float[Tensor, "*worlds rods"], masses: Float[Tensor, "*worlds rods"] | None = None
) -> dict[str, Tensor]:
    """Leaves of `chain`'s properties that depend on lengths (m) and masses (kg); a pure function."""
    masses = torch.ones_like(lengths) if masses is None else masses
    return _rod_properties(lengths, masses, direction=-1.0)


def cartpole(
    links: int = 1,
    *,
    cart_mass: float = 1.0,
    lengths: Numbers | None = None,
    masses: Numbers | None = None,
    dt: float = 0.01,
    integrator: str = "semi_implicit_euler",
    substeps: int = 1,
) -> Articulation:
    """Make a cart on a rail along x with a chain of rods on it, upright at zero; its one control is a force, N.

    Args:
        links: Number of rods, at most 10,000.
        cart_mass: Mass of the cart, kg.
        lengths: Lengths of the rods, m; 1 m each by default.
        masses: Masses of the rods, kg; 0.1 kg each by default.
        dt: Length of a step, s.
        integrator: Time integrator: "semi_implicit_euler" or "runge_kutta_4".
        substeps: Number of integrator steps in a step of the engine.
    """
    check_count("links", links, maximum=SETTINGS.max_links)
    lengths = [1.0] * links if lengths is None else lengths
    lengths, masses = _check_rods(lengths, [0.1] * links if masses is None else masses)
    if len(lengths) != links:
        raise InputError(f"lengths: expected {links}, one for each link, got {len(lengths)}")
    cart = Body("cart", None, [Joint("prismatic", (1.0, 0.0, 0.0), name="slider")])
    rods = [
        Body(f"rod {k}", f"rod {k - 1}" if k else "cart", [Joint("revolute", (0.0, 1.0, 0.0))]) for k in range(links)
    ]
    leaves = cartpole_properties(torch.tensor(float(cart_mass), dtype=torch.float64), lengths, masses)
    bodies = _with_shapes([cart, *rods], leaves)
    push = Actuators(np.eye(1, links + 1), np.array([-np.inf]), np.array([np.inf]), ("push",))
    mechanism = Mechanism(bodies, static_shapes=(_FLOOR,), actuators=push)
    return Articulation(mechanism, dt=dt, integrator=integrator, substeps=substeps)


def cartpole_properties(
    cart_mass: Float[Tensor, "*worlds"], lengths: Float[Tensor, "*worlds rods"], masses: Float[Tensor, "*worlds rods"]
) -> dict[str, Tensor]:
    """Leaves of `cartpole`'s properties that depend on masses (kg) and lengths (m); a pure function."""
    rods = _rod_properties(lengths, masses, direction=1.0)
    cart = cart_mass.unsqueeze(-1)
    zeros = torch.zeros_like(rods["position"][..., :1, :])
    identity = torch.eye(3, dtype=cart.dtype, device=cart.device)
    cart_inertia = cart[..., None, None] * SETTINGS.cart_inertia * identity
    return {
        "mass": torch.cat([cart.expand(*masses.shape[:-1], 1), rods["mass"]], -1),
        "center_of_mass": torch.cat([zeros, rods["center_of_mass"]], -2),
        "inertia": torch.cat([cart_inertia.expand(*rods["inertia"].shape[:-3], 1, 3, 3), rods["inertia"]], -3),
        "position": torch.cat([zeros, rods["position"]], -2),
        # The floor and the cart come before the rods.
        "shape_pose": torch.cat([_expand(rods["shape_pose"], [_FLOOR.pose, IDENTITY]), rods["shape_pose"]], -3),
        "shape_size": torch.cat(
            [_expand(rods["shape_size"], [_FLOOR.shape.sizes, _CART.sizes]), rods["shape_size"]], -2
        ),
    }


_CART = Box((0.4, 0.3, 0.2))
_FLOOR = Placed(
    Plane(),
    None,
    ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, -0.1), (0.0, 0.0, 0.0, 1.0)),
    (0.9, 0.9, 0.9),
    "floor",
)


def from_dh(
    a: Numbers,
    alpha: Numbers,
    d: Numbers,
    theta: Numbers | None = None,
    *,
    kinds: str | None = None,
    masses: Numbers | None = None,
    dt: float = 0.01,
    gravity: Sequence[float] = EARTH_GRAVITY,
    integrator: str = "semi_implicit_euler",
    substeps: int = 1,
) -> Articulation:
    """Make an arm from Denavit–Hartenberg parameters, with the transform Rz(θ) Tz(d) Tx(a) Rx(α) of each link.

    Body `link k` rotates about (or slides along) the z of the previous frame; body `tip` is the last frame.

    Args:
        a: Link lengths along x, m.
        alpha: Link twists about x, rad.
        d: Link offsets along z, m.
        theta: Offsets of the joint angles, rad; zero by default.
        kinds: One letter for each joint, R (revolute) or P (prismatic); R by default.
        masses: Masses of the links, kg, spread along straight rods from frame to frame; 1 kg each by default.
        dt: Length of a step, s.
        gravity: Gravity in the world's axes, m/s².
        integrator: Time integrator: "semi_implicit_euler" or "runge_kutta_4".
        substeps: Number of integrator steps in a step of the engine.
    """
    table = [torch.as_tensor(values, dtype=torch.float64) for values in (a, alpha, d)]
    count = len(table[0])
    zeros, ones = torch.zeros(count, dtype=torch.float64), torch.ones(count, dtype=torch.float64)
    table.append(zeros if theta is None else torch.as_tensor(theta, dtype=torch.float64))
    weights = ones if masses is None else torch.as_tensor(masses, dtype=torch.float64)
    kinds = "R" * count if kinds is None else kinds
    if any(values.shape != (count,) for values in (*table, weights)) or len(kinds) != count or count == 0:
        raise InputError(
            "from_dh: a, alpha, d, theta, masses and kinds: expected one entry for each joint, at least one, got "
            f"{[len(values) for values in (*table, weights)]} and {len(kinds)}"
        )
    if set(kinds) - set("RP"):
        raise InputError(f"kinds: expected letters R and P, got {kinds!r}")
    names = [f"link {k}" for k in range(count)]
    joints = [Joint("revolute" if kind == "R" else "prismatic", (0.0, 0.0, 1.0)) for kind in kinds]
    bodies = [Body(names[k], names[k - 1] if k else None, [joints[k]]) for k in range(count)]
    bodies.append(Body("tip", names[-1], (), mass=0.0, inertia=(0.0, 0.0, 0.0)))
    leaves = from_dh_properties(*table, masses=weights)
    mechanism = Mechanism(_with_properties(bodies, leaves), gravity)
    return Articulation(mechanism, dt=dt, integrator=integrator, substeps=substeps)


def from_dh_properties(
    a: Float[Tensor, "*worlds links"],
    alpha: Float[Tensor, "*worlds links"],
    d: Float[Tensor, "*worlds links"],
    theta: Float[Tensor, "*worlds links"] | None = None,
    *,
    masses: Float[Tensor, "*worlds links"] | None = None,
) -> dict[str, Tensor]:
    """Leaves of `from_dh`'s properties that depend on its table; a pure function."""
    theta = torch.zeros_like(a) if theta is None else theta
    masses = torch.ones_like(a) if masses is None else masses
    zero = torch.zeros_like(a[..., :1])
    offset = torch.stack([a, torch.zeros_like(a), d], -1)
    # Body k is at the end of the previous link, rotated by its own angle offset; the tip ends the last link.
    twist, angle = torch.cat([zero, alpha], -1) / 2, torch.cat([theta, zero], -1) / 2
    cx, sx, cz, sz = twist.cos(), twist.sin(), angle.cos(), angle.sin()
    identity = torch.eye(3, dtype=a.dtype, device=a.device)
    square = (offset * offset).sum(-1)[..., None, None]
    slenderness = SETTINGS.rod_slenderness
    rods = square * (identity * (1 + 2 * slenderness**2)) - offset.unsqueeze(-1) * offset.unsqueeze(-2)
    inertia = masses[..., None, None] * (rods / 12 + SETTINGS.min_link_gyration**2 * identity)
    origin = torch.zeros_like(offset[..., :1, :])
    return {
        "mass": torch.cat([masses, zero], -1),
        "center_of_mass": torch.cat([offset / 2, origin], -2),
        "inertia": torch.cat([inertia, torch.zeros_like(inertia[..., :1, :, :])], -3),
        "position": torch.cat([origin, offset], -2),
        "orientation": torch.stack([cx * cz, sx * cz, -sx * sz, cx * sz], -1),
    }


def _check_rods(lengths: Numbers, masses: Numbers | None) -> tuple[Tensor, Tensor]:
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


def _rod_properties(lengths: Tensor, masses: Tensor, direction: float) -> dict[str, Tensor]:
    """Rods end to end along z, with inertia m l²/12 across and that of a cylinder along."""
    lengths, masses = torch.broadcast_tensors(lengths, masses)
    zero = torch.zeros_like(lengths)
    across = masses * lengths**2 / 12
    along = masses * (SETTINGS.rod_slenderness * lengths) ** 2 / 2
    previous = torch.cat([zero[..., :1], lengths[..., :-1]], -1)
    center = torch.stack([zero, zero, direction * lengths / 2], -1)
    pose = torch.eye(4, dtype=lengths.dtype, device=lengths.device).repeat(*lengths.shape, 1, 1)
    radius = (SETTINGS.rod_slenderness * lengths.mean(-1, keepdim=True)).expand_as(lengths)
    return {
        "mass": masses,
        "center_of_mass": center,
        "inertia": torch.diag_embed(torch.stack([across, across, along], -1)),
        "position": torch.stack([zero, zero, direction * previous], -1),
        "shape_pose": torch.cat([pose[..., :3], torch.cat([center, pose[..., 0, 3:] + 1], -1).unsqueeze(-1)], -1),
        "shape_size": torch.stack([radius, zero, lengths], -1),
    }


def _with_properties(bodies: Sequence[Body], leaves: dict[str, Tensor]) -> list[Body]:
    """Bodies with the values of leaves that have a row for each of them."""
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


def _with_shapes(bodies: list[Body], leaves: dict[str, Tensor]) -> list[Body]:
    """Bodies with the values of leaves, and with shapes: a capsule for each rod, and a box for a cart before them."""
    shapes = list(zip(leaves["shape_pose"], leaves["shape_size"], strict=True))[-len(bodies) :]
    shaped = []
    carts = sum(body.name == "cart" for body in bodies)
    for row, (body, (pose, (radius, _, length))) in enumerate(zip(bodies, shapes, strict=True)):
        rod = row - carts
        shape = _CART if body.name == "cart" else Capsule(float(radius), float(length))
        color = _COLORS[3] if body.name == "cart" else _COLORS[rod % len(_COLORS)]
        shaped.append(replace(body, shapes=[Placed(shape, pose=tuple(map(tuple, pose.tolist())), color=color)]))
    return _with_properties(shaped, leaves)


def _expand(rods: Tensor, rows: Sequence) -> Tensor:
    """Constant rows of shapes, expanded to the worlds of the rods."""
    constant = torch.tensor(rows, dtype=rods.dtype, device=rods.device)
    return constant.expand(*rods.shape[: -constant.dim()], *constant.shape)
