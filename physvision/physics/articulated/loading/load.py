"""Loading of MJCF and URDF files: compile with MuJoCo, reject unsupported features, build the engine."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import mujoco
import numpy as np
import torch

from physvision.core import InputError, UnsupportedError
from physvision.physics.articulated.contact import Contact, ContactSettings, contact_settings
from physvision.physics.articulated.engine import Articulation
from physvision.physics.articulated.loading import translate
from physvision.physics.articulated.loading.compliance import compliant_law, raise_friction, shift_limits
from physvision.physics.articulated.loading.contacts import (
    CONTACT_FEATURES,
    GeomPairs,
    colliding_geoms,
    geom_name,
    geom_pairs,
    hold_penetrating,
    no_pairs,
    shape_pairs,
    split_supported,
)
from physvision.physics.articulated.loading.geometry import body_geoms, matrix, placed_geom
from physvision.physics.articulated.loading.loop_joints import loop_joints
from physvision.physics.articulated.loading.model_files import compile_model
from physvision.physics.articulated.loading.names import is_disabled
from physvision.physics.articulated.loading.tendons import (
    SiteTendon,
    site_marker,
    site_tendons,
    tendon_pairs,
    tendon_sites,
)
from physvision.physics.articulated.loading.transmissions import DEFAULT_SERVOS, FileTransmission, ServoSettings
from physvision.physics.articulated.loading.unsupported import IGNORABLE, unsupported_features
from physvision.physics.articulated.loading.visuals import read_visuals
from physvision.physics.articulated.model.mechanism import Fluid, Mechanism
from physvision.physics.articulated.settings import SETTINGS

_DISABLE = mujoco.mjtDisableBit
BASES = ("auto", "fixed", "free", "ground")
INITIAL_PENETRATION = ("hold", "keep", "exclude")


def load(
    source: str | os.PathLike[str],
    dt: float | None = 0.01,
    base: str = "auto",
    ignore: Sequence[str] = (),
    *,
    integrator: str = "semi_implicit_euler",
    substeps: int = 1,
    contact: Contact | ContactSettings = "event",
    servos: ServoSettings = DEFAULT_SERVOS,
    initial_penetration: str = "hold",
    packages: Sequence[str | os.PathLike[str]] = (),
) -> Articulation:
    """Load the engine of an MJCF or URDF model.

    Defaults, includes and inertias from geometry are MuJoCo's own. Bodies behind fixed joints keep their names and
    poses; the file's keyframes are in `engine.keyframes`, its sites in `engine.sites`. Its integrator and sensors
    are not used. Geoms collide by MuJoCo's rules, with hard contact unless another method is given.
    `docs/articulated.md` lists all features of MJCF.

    Args:
        source: Path of the file, or the XML itself.
        dt: Length of a step, s; None for the file's own.
        base: Base of a root body without a joint: "fixed" to the world, "free" to move, "ground", free to move on the
            plane z = 0, which is added if the file has no plane, or "auto", MuJoCo's choice, which is "fixed".
        ignore: Features that may be left out of the simulation: "contact" (all of it), "pair" (collisions that are
            not supported), "rotational_friction" (torsional and rolling), "surface" (adhesion and surface velocity),
            "limit" (of joints), "equality", "tendon", "actuator", "fluid", "gravity_compensation", "friction_loss",
            "nonlinear" (polynomial springs and dampers), "plasticity" (springs that yield), "flex", "sleep", "plugin".
            Other unsupported features raise.
        integrator: Time integrator: "semi_implicit_euler" or "runge_kutta_4".
        substeps: Number of integrator steps in a step of the engine.
        contact: Contact method as in `tree`, or `ContactSettings` with the method, restitution and friction model;
            friction and excluded pairs are those of the file. "compliant" uses the file's `solref`, `solimp` and joint
            margins. To simulate without contact, ignore it.
        servos: Largest commanded speed, and saturation, of actuators with feedback and a limited force, under any
            contact.
        initial_penetration: Treatment of pairs of shapes that penetrate by more than 1 cm in the file's reference pose:
            "hold", so that by events they stay as they are, get no deeper, and collide as others do once they have
            separated (`engine.held_pairs` names them); "keep", so that `engine.resolve_penetration` must be called
            before a simulation; or "exclude" from collision.
        packages: Folders that hold the packages of meshes called `package://NAME/…`, beside those around the file.

    Raises:
        FileError: The file or a mesh does not exist or cannot be read.
        ModelError: MuJoCo cannot compile the model.
        UnsupportedError: The model has features that the engine cannot simulate; the message names them.
    """
    if initial_penetration not in INITIAL_PENETRATION:
        raise InputError(
            f"initial_penetration: expected one of {', '.join(INITIAL_PENETRATION)}, got {initial_penetration!r}"
        )
    if base not in BASES:
        raise InputError(f"base: expected one of {', '.join(BASES)}, got {base!r}")
    if isinstance(ignore, str) or set(ignore) - set(IGNORABLE):
        raise InputError(f"ignore: expected some of {', '.join(IGNORABLE)} in a tuple, got {ignore!r}")
    settings = contact_settings(contact)
    if np.any(settings.friction) or np.any(settings.rotational_friction) or settings.exclude:
        raise InputError("contact: friction, rotational_friction and exclude are those of the file; leave them out")
    model, name = compile_model(source, base, packages)
    _check_supported(model, name, ignore)
    pairs = no_pairs() if "contact" in ignore else split_supported(model, geom_pairs(model))[0]
    if settings.method == "compliant":
        shift_limits(model)
        raise_friction(model)
    if initial_penetration == "hold" and settings.by_events:
        pairs = hold_penetrating(model, pairs, SETTINGS.max_initial_penetration)
    step = model.opt.timestep if dt is None else dt
    builder = _EngineBuilder(model, ignore, servos, settings, step, integrator, substeps)
    engine, rows = builder.build(pairs)
    visual_source = partial(read_visuals, source, tuple(packages), rows, model.nbody - 1)
    engine.visual_source = visual_source
    if initial_penetration == "exclude" and len(pairs):
        state = engine.initial_state(1, torch.float64)
        penetrating = engine.contacts(state, max_separation=-SETTINGS.max_initial_penetration)
        penetrating_rows = {
            frozenset(row) for row in zip(penetrating.first[0].tolist(), penetrating.second[0].tolist(), strict=True)
        }
        is_penetrating = [frozenset((rows[pair.first], rows[pair.second])) in penetrating_rows for pair in pairs]
        remaining = pairs[~np.array(is_penetrating)].view(np.recarray)
        if len(remaining) < len(pairs):
            engine, _ = builder.build(remaining)
            engine.visual_source = visual_source
    return engine


def _check_supported(model: mujoco.MjModel, name: str, ignore: Sequence[str]) -> None:
    """Raise for unsupported features that are not ignored."""
    ignored = {*ignore, *(CONTACT_FEATURES if "contact" in ignore else ())}
    features = unsupported_features(model).items()
    unsupported = {feature: occurrences for feature, occurrences in features if feature not in ignored}
    if unsupported:
        details = "; ".join(f"{feature}: {occurrences}" for feature, occurrences in unsupported.items())
        names = ", ".join(repr(feature) for feature in unsupported)
        omissions = ", and ".join(IGNORABLE[feature] for feature in unsupported)
        raise UnsupportedError(
            f"{name} has features that cannot be simulated ({details}); ignore=({names},) leaves out {omissions}"
        )


@dataclass(frozen=True)
class _EngineBuilder:
    """Builder of engines from a compiled model, for different pairs of colliding geoms."""

    model: mujoco.MjModel
    ignore: Sequence[str]
    servos: ServoSettings
    contact: ContactSettings
    dt: float
    integrator: str
    substeps: int

    def build(self, pairs: GeomPairs) -> tuple[Articulation, dict[int, int]]:
        """Build the engine in which these pairs collide, and return the row of each geom in its geometry."""
        model, ignore = self.model, self.ignore
        colliding = colliding_geoms(pairs)
        tendons = [] if "tendon" in ignore else site_tendons(model)
        elements: list[tuple[str, int]] = []  # rows of the engine's geometry: geoms, and sites of tendons
        for body in range(model.nbody):
            elements += [("geom", geom) for geom in body_geoms(model, body, colliding)]
            elements += [("site", site) for site in tendon_sites(model, tendons, body)]
        rows = {
            kind: {number: row for row, (row_kind, number) in enumerate(elements) if row_kind == kind}
            for kind in ("geom", "site")
        }
        mechanism, transmissions = self._mechanism(colliding, tendons)
        settings = self._contact_settings(mechanism, pairs, elements, tendons, transmissions)
        rotational = "rotational_friction" not in ignore
        engine = Articulation(
            mechanism,
            dt=self.dt,
            integrator=self.integrator,
            substeps=self.substeps,
            contact=settings,
            shape_pairs=shape_pairs(pairs, rows["geom"], rotational).join(tendon_pairs(tendons, rows["site"])),
        )
        held_pairs = pairs[pairs.is_held]
        engine.held_pairs = tuple(
            (geom_name(model, first), geom_name(model, second))
            for first, second in zip(held_pairs.first.tolist(), held_pairs.second.tolist(), strict=True)
        )
        engine.keyframes = translate.keyframes(model)
        engine.sites = translate.sites(model)
        return engine, rows["geom"]

    @property
    def _has_limits(self) -> bool:
        disabled = is_disabled(self.model, _DISABLE.mjDSBL_LIMIT, _DISABLE.mjDSBL_CONSTRAINT)
        return "limit" not in self.ignore and not disabled

    def _mechanism(
        self, colliding: set[int], tendons: Sequence[SiteTendon]
    ) -> tuple[Mechanism, list[FileTransmission]]:
        """Mechanism of the file, and its transmissions with their elements."""
        model, ignore = self.model, self.ignore
        frictionless = is_disabled(model, _DISABLE.mjDSBL_FRICTIONLOSS, _DISABLE.mjDSBL_CONSTRAINT)
        has_friction = "friction_loss" not in ignore and not frictionless
        bodies = translate.bodies(model, colliding, self._has_limits, has_friction, tendons)
        transmissions = translate.all_transmissions(model, bodies, ignore, self.servos, self._has_limits)
        step = self.dt / self.substeps if self.integrator == "semi_implicit_euler" else None
        states = translate.actuator_states(model, len(transmissions), step)
        mechanism = Mechanism(
            bodies,
            gravity=translate.gravity(model),
            static_shapes=[placed_geom(model, geom) for geom in body_geoms(model, 0, colliding)]
            + [site_marker(model, site) for site in tendon_sites(model, tendons, 0)],
            actuators=translate.actuators(model, len(transmissions), states),
            transmissions=[item.transmission for item in transmissions],
            actuator_states=states,
            loop_joints=[] if "equality" in ignore else loop_joints(model, [body.name for body in bodies]),
            fluid=None if "fluid" in ignore else _fluid(model),
            drag_axes=np.array([matrix(quaternion) for quaternion in model.body_iquat[1:]]).reshape(-1, 3, 3),
        )
        return mechanism, transmissions

    def _contact_settings(
        self,
        mechanism: Mechanism,
        pairs: GeomPairs,
        elements: Sequence[tuple[str, int]],
        tendons: Sequence[SiteTendon],
        transmissions: Sequence[FileTransmission],
    ) -> ContactSettings:
        """Contact settings with the friction of the file, and without contact where there is nothing to solve."""
        model, method = self.model, self.contact.method
        friction = np.array(
            [model.geom_friction[number] if kind == "geom" else np.zeros(3) for kind, number in elements]
        )
        friction = friction.reshape(-1, 3)
        if method == "compliant":
            method = compliant_law(model, pairs, tendons, mechanism, transmissions, self.dt / self.substeps)
        joints = [joint for body in mechanism.bodies for joint in body.joints]
        constrained = any(joint.limits is not None or joint.friction_loss for joint in joints)
        if not (len(pairs) or constrained or mechanism.transmissions or tendons or mechanism.loop_joints):
            method = None
        return replace(
            self.contact, method=method, friction=friction[:, 0].tolist(), rotational_friction=friction[:, 1:]
        )


def _fluid(model: mujoco.MjModel) -> Fluid | None:
    density, viscosity = float(model.opt.density), float(model.opt.viscosity)
    return Fluid(density, viscosity) if density or viscosity else None
