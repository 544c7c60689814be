"""Open a model file, compile it with MuJoCo, refuse what cannot be simulated, build the engine."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from physvision.core import FileError, InputError, ModelError, UnsupportedError
from physvision.physics.articulated.compiler.struct_cache import MOST_OVERLAP
from physvision.physics.articulated.contact import Contact
from physvision.physics.articulated.engine import Articulation
from physvision.physics.articulated.loading import translate
from physvision.physics.articulated.loading.compliance import compliance, move_stops
from physvision.physics.articulated.loading.connections import connections
from physvision.physics.articulated.loading.contacts import CONTACT_KINDS, GeomPair, by_rule, geom_pairs, touching
from physvision.physics.articulated.loading.geometry import geoms_of, matrix, placed
from physvision.physics.articulated.loading.packages import find_meshes
from physvision.physics.articulated.loading.sizes import check_sizes
from physvision.physics.articulated.loading.strings import knot, pulling, sites_of, strings
from physvision.physics.articulated.loading.unsupported import IGNORABLE, findings, friction_holds, limits_hold
from physvision.physics.articulated.model.fluid import Medium

BASES = ("auto", "fixed", "free")
OVERLAPPING = ("touch", "pass")
INLINE = "the given XML"


def load(
    source: str | os.PathLike[str],
    dt: float = 0.01,
    base: str = "auto",
    ignore: Sequence[str] = (),
    *,
    integrator: str = "semi_implicit_euler",
    substeps: int = 1,
    restitution: float = 0.0,
    servo_speed: float = math.inf,
    packages: Sequence[str | os.PathLike[str]] = (),
    overlapping: str = "touch",
    contact: Contact = "event",
    friction_model: str = "cone",
) -> Articulation:
    """The engine of an MJCF or URDF model.

    Defaults, includes and inertias from geometry are MuJoCo's own. Bodies behind fixed joints keep their names and
    poses; the file's keyframes are in `engine.keyframes`, its sites in `engine.sites`. Its time step and integrator
    are not used, and its sensors are not read. What may touch does, by MuJoCo's rules, as hard contact unless
    another method is asked for.
    `docs/articulated.md` lists all of MJCF.

    Args:
        source: a path, or the XML itself.
        dt: seconds a step.
        base: of a root body without a joint: "fixed" to the world, "free" to move, or "auto", which frees the root of
            a URDF that has inertia and leaves MJCF as it is written.
        ignore: names of what may be left out of the simulation: "contact" (all of it), "pair" (of shapes that
            have no rule), "turning_friction" (against spinning and rolling), "surface" (that sticks or moves by
            itself), "limit" (of joints), "equality", "tendon", "actuator", "fluid", "gravity_compensation",
            "friction_loss", "nonlinear" (polynomial springs and dampers), "plasticity" (springs that yield), "flex",
            "sleep", "plugin". Without it, what cannot be simulated raises.
        integrator: "semi_implicit_euler" or "runge_kutta_4".
        substeps: how many steps of the integrator make one of the engine.
        restitution: of every shape that may touch.
        servo_speed: that position actuators with a damper (`kv`) and a largest force ask for at most, rad/s or m/s.
        packages: folders that hold the packages of meshes called `package://NAME/…`; those around the file are found.
        overlapping: what pairs of shapes do that overlap by more than 1 cm in the file's start: "touch", so that
            `engine.separated` must push them apart before anything is simulated, or "pass" through each other.
        contact: the method, as in `tree`; to simulate without contact is to ignore it. "compliant" has the file's
            `solref`, `solimp` and margins of joints.
        friction_model: "cone" or "pyramid", as in `tree`; that of the file is not used.

    Raises:
        FileError: there is no such file or mesh, or it cannot be read.
        ModelError: MuJoCo cannot compile it.
        UnsupportedError: it holds what the engine cannot simulate; the message names it.
    """
    if overlapping not in OVERLAPPING:
        raise InputError(f"overlapping: expected one of {', '.join(OVERLAPPING)}, got {overlapping!r}")
    if base not in BASES:
        raise InputError(f"base: expected one of {', '.join(BASES)}, got {base!r}")
    if isinstance(ignore, str) or set(ignore) - set(IGNORABLE):
        raise InputError(f"ignore: expected some of {', '.join(IGNORABLE)} in a tuple, got {ignore!r}")
    model, name = _compiled(source, base, packages)
    _refuse_unsupported(model, name, ignore)
    pairs = [] if "contact" in ignore else by_rule(model, geom_pairs(model))[0]
    if contact == "compliant":
        move_stops(model)
    options: dict[str, Any] = {"dt": dt, "integrator": integrator, "substeps": substeps, "restitution": restitution}
    options |= {"contact": contact, "friction_model": friction_model}
    engine, rows = _engine(model, pairs, ignore, servo_speed, options)
    if overlapping == "pass" and pairs:
        deep = engine.contacts(engine.initial_state(1, torch.float64), within=-MOST_OVERLAP)
        inside = set(zip(deep.first[0].tolist(), deep.second[0].tolist(), strict=True))
        apart = [p for p in pairs if not {(rows[p.first], rows[p.second]), (rows[p.second], rows[p.first])} & inside]
        if len(apart) < len(pairs):
            engine, _ = _engine(model, apart, ignore, servo_speed, options)
    return engine


def _compiled(
    source: str | os.PathLike[str], base: str, packages: Sequence[str | os.PathLike[str]]
) -> tuple[mujoco.MjModel, str]:
    """MuJoCo's model of the file, and what to call it in messages."""
    specification, name, urdf = _open(source)
    specification.compiler.fusestatic = False
    find_meshes(specification, None if name == INLINE else Path(name), packages, name)
    _free_roots(specification, base, urdf)
    try:
        return specification.compile(), name
    except ValueError as error:
        raise ModelError(f"{name}: {error}") from error


def _refuse_unsupported(model: mujoco.MjModel, name: str, ignore: Sequence[str]) -> None:
    """Raise for what cannot be simulated and may not be left out."""
    refused = {kind: what for kind, what in findings(model).items() if kind not in ignore}
    if "contact" in ignore:
        refused = {kind: what for kind, what in refused.items() if kind not in CONTACT_KINDS}
    if refused:
        listed = "; ".join(f"{kind}: {what}" for kind, what in refused.items())
        allowed = ", ".join(repr(kind) for kind in refused)
        raise UnsupportedError(
            f"{name} holds what cannot be simulated ({listed}). Leave it out with ignore=({allowed},)"
        )


def _engine(
    model: mujoco.MjModel,
    found: Sequence[GeomPair],
    ignore: Sequence[str],
    servo_speed: float,
    options: dict[str, Any],
) -> tuple[Articulation, dict[int, int]]:
    """The engine in which these pairs may touch, with options that it has itself, and its row of each geom's shape."""
    taking_part = {geom for pair in found for geom in (pair.first, pair.second)}
    hanging = [] if "tendon" in ignore else strings(model)
    order: list[tuple[str, int]] = []
    for body in range(model.nbody):
        order += [("geom", geom) for geom in geoms_of(model, body, taking_part)]
        order += [("site", site) for site in sites_of(model, hanging, body)]
    rows = {kind: {number: row for row, (of, number) in enumerate(order) if of == kind} for kind in ("geom", "site")}
    friction = np.array([model.geom_friction[number] if kind == "geom" else np.zeros(3) for kind, number in order])
    limits = "limit" not in ignore and limits_hold(model)
    if options["contact"] == "compliant":
        options = options | {"contact": compliance(model, found, limits, options["dt"] / options["substeps"])}
    rubs = "friction_loss" not in ignore and friction_holds(model)
    bodies = translate.bodies(model, taking_part, limits, rubs, hanging)
    transmissions = translate.transmissions_of(model, bodies, ignore, servo_speed)
    activations = translate.activations(model, len(transmissions))
    tied = [] if "equality" in ignore else connections(model, [body.name for body in bodies])
    joints = [joint for body in bodies for joint in body.joints]
    constrained = any(joint.limits is not None or joint.friction_loss for joint in joints)
    if not (found or constrained or transmissions or hanging or tied):
        options = options | {"contact": None}
    engine = Articulation(
        bodies,
        gravity=translate.gravity(model),
        actuators=translate.actuators(model, len(transmissions), activations),
        scenery=[placed(model, geom) for geom in geoms_of(model, 0, taking_part)]
        + [knot(model, site) for site in sites_of(model, hanging, 0)],
        touching=touching(found, rows["geom"], "turning_friction" not in ignore) + pulling(hanging, rows["site"]),
        friction=friction.reshape(-1, 3)[:, 0].tolist(),
        turning_friction=friction.reshape(-1, 3)[:, 1:],
        transmissions=transmissions,
        activations=activations,
        connections=tied,
        medium=_medium(model) if "fluid" not in ignore else None,
        drag_axes=np.array([matrix(turn) for turn in model.body_iquat[1:]]).reshape(-1, 3, 3),
        **options,
    )
    engine.keyframes = translate.keyframes(model)
    engine.sites = translate.sites(model)
    return engine, rows["geom"]


def _medium(model: mujoco.MjModel) -> Medium | None:
    density, viscosity = float(model.opt.density), float(model.opt.viscosity)
    return Medium(density, viscosity) if density or viscosity else None


def _open(source: str | os.PathLike[str]) -> tuple[mujoco.MjSpec, str, bool]:
    """The specification, what to call it in messages, and whether it is a URDF."""
    text = os.fspath(source)
    inline = text.lstrip().startswith("<")
    name = INLINE if inline else text
    if not inline:
        path = Path(text)
        if not path.is_file():
            raise FileError(f"there is no model file {text!r}")
        try:
            content = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"{text} cannot be read as XML: {error}") from error
    else:
        content = text
    check_sizes(content, None if inline else Path(text).parent, name)
    try:
        specification = mujoco.MjSpec.from_string(text) if inline else mujoco.MjSpec.from_file(text)
    except ValueError as error:
        raise ModelError(f"{name}: {error}") from error
    return specification, name, "<robot" in content and "<mujoco" not in content.split("<robot")[0]


def _free_roots(specification: mujoco.MjSpec, base: str, urdf: bool) -> None:
    if base == "fixed" or (base == "auto" and not urdf):
        return
    for root in specification.worldbody.bodies:
        if not root.joints and (base == "free" or root.mass > 0):
            root.add_freejoint()
