"""Identification of a custom scene: an engine or model file, its unknown properties, and the tracked bodies."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import torch
from torch import Tensor

from physvision.core import InputError, State, StrPath
from physvision.estimation import SampledState, Setup, Unknown, Unknowns
from physvision.estimation.unknowns import Values
from physvision.identification import scene_names
from physvision.identification.custom_starts import StartSearch
from physvision.identification.initial_guesses import informative_duration
from physvision.identification.kind_settings import CustomSceneSettings
from physvision.identification.model import Evidence, KnownTensors, KnownValue, MotionModel, ParameterValues
from physvision.identification.view import rotate
from physvision.physics import articulated
from physvision.physics.engine import MechanicalEngine

UnknownProperties = Mapping[str, "Unknown | tuple[float | None, float | None] | None"]


@dataclass(frozen=True)
class CustomScene:
    """Custom scene with planar motion that is tracked in a clip, passed to `identify` as `motion`.

    Attributes:
        scene: Engine with bodies, or the path of an MJCF or URDF file.
        unknown: Bounds (low, high) of each unknown by name. None in place of a bound, or of the pair, means the
            property's own bounds. Names are property names (see `property_names`); with `property_function`, they are
            its arguments, and the values are `Unknown` objects.
        follow: Names of the tracked bodies, shapes or sites; if None, all moving bodies are candidates. Every
            assignment of tracks to these is evaluated, unless the tracks have the bodies' names.
        plane: Axes of the scene that point right and up in the picture, such as "xz"; see `TrackedPoints.plane`.
        property_function: Function from the unknowns, by name, to leaves of the engine's properties, such as
            `articulated.chain_properties`; None where the unknowns are property names.
        ignore: Features of a model file that are left out; see `articulated.load`.
    """

    scene: MechanicalEngine | StrPath
    unknown: UnknownProperties
    follow: Sequence[str] | None = None
    plane: str | None = None
    property_function: Callable[..., Mapping[str, Tensor]] | None = None
    ignore: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Name of the scene in reports."""
        return Path(self.scene).stem if isinstance(self.scene, str | os.PathLike) else "custom scene"

    def load_engine(self, dt: float, substeps: int) -> MechanicalEngine:
        """Return the given engine, or load the model file for frames that are `dt` seconds apart."""
        if not isinstance(self.scene, str | os.PathLike):
            return self.scene
        try:
            return articulated.load(
                self.scene, dt=dt, ignore=self.ignore, integrator="runge_kutta_4", substeps=substeps
            )
        except InputError:  # scenes with contact have their own integrator
            return articulated.load(self.scene, dt=dt / substeps, ignore=self.ignore)

    def count_objects(self, available: int, settings: CustomSceneSettings) -> int:
        """Return the number of available tracks that the scene uses."""
        if self.follow is not None:
            return len(self.follow)
        engine = self.load_engine(0.01, self._max_substeps(0.01, settings))
        return min(available, len(scene_names.moving_body_names(engine)))

    def candidate_models(self, evidence: Evidence) -> list[MotionModel]:
        """Return the models of the most promising assignments of tracks to bodies."""
        settings, dt = evidence.settings.custom, evidence.dt
        engine = self.load_engine(dt, self._max_substeps(dt, settings))
        # Random starts are simulated without substeps; an engine whose dt is a fraction of a frame has a fixed step.
        substepped = self._max_substeps(engine.dt, settings) > 1 and engine.dt == dt
        unsubstepped_engine = self.load_engine(dt, 1) if substepped else engine
        bodies = list(self.follow or scene_names.moving_body_names(engine))
        names = tuple(track.name for track in evidence.tracks)
        assignments = [names] if set(names) <= set(bodies) else list(permutations(bodies, len(names)))
        if not assignments or len(assignments) > settings.max_assignments:
            raise InputError(
                f"{self.name}: {len(names)} objects move in the clip and {len(bodies)} in the scene; name the tracked "
                f"ones with follow, from {', '.join(bodies)}"
            )
        models = [_model(self, evidence, engine, unsubstepped_engine, assignment) for assignment in assignments]
        models.sort(key=lambda pair: pair[1])
        return [model for model, _ in models[: settings.fitted_assignments]]

    def reduce_substeps(
        self,
        engine: MechanicalEngine,
        unsubstepped_engine: MechanicalEngine,
        observe: Callable[[MechanicalEngine], Tensor],
        settings: CustomSceneSettings,
    ) -> MechanicalEngine:
        """Return the engine with the fewest substeps that shift no observed point by more than the accepted error.

        Args:
            engine: Engine with all substeps.
            unsubstepped_engine: Engine with one substep.
            observe: Function from an engine to the observed points of its motions, pixels.
            settings: Settings with the steps per second and the accepted error.
        """
        max_substeps = self._max_substeps(engine.dt, settings)
        if max_substeps == 1:
            return engine
        exact = observe(engine)
        for substeps in range(1, max_substeps // 2 + 1):
            is_loaded = substeps == 1 and unsubstepped_engine is not engine
            candidate = unsubstepped_engine if is_loaded else self.load_engine(engine.dt, substeps)
            if bool(((observe(candidate) - exact).abs() < settings.max_substep_error).all()):
                return candidate
        return engine

    def _max_substeps(self, dt: float, settings: CustomSceneSettings) -> int:
        """Return the largest number of substeps in a step of `dt` seconds; one if the scene is an engine."""
        return max(1, math.ceil(dt * settings.steps_per_second)) if isinstance(self.scene, str | os.PathLike) else 1


def _model(
    scene: CustomScene,
    evidence: Evidence,
    engine: MechanicalEngine,
    unsubstepped_engine: MechanicalEngine,
    names: Sequence[str],
) -> tuple[MotionModel, float]:
    """Return the model that assigns the tracks to the named points, and the error of its best start, pixels."""
    settings = evidence.settings.custom
    indices, _, _ = evidence.samples(settings.min_samples)
    first, end = int(indices[0]), int(indices[-1]) + 1
    points = scene_names.TrackedPoints(unsubstepped_engine, names, settings)
    plane = points.plane(scene.plane)
    is_top_view = float((plane @ points.gravity).norm()) < 1e-9  # then nothing determines the camera's roll
    unknowns, reported, property_values = _property_unknowns(scene, engine, evidence.known_values)
    search = StartSearch(evidence, points, plane, unknowns, property_values, is_top_view)
    times, observed = evidence.times[first:end], evidence.observed[first:end]
    horizon = informative_duration(times.numpy(), observed.numpy())
    masks = search.observable_coordinates(horizon)  # of the positions, and of the velocities
    starts, error = search.best_starts(first, end, horizon, masks[0])
    for name, mask in zip(("displacement", "velocities"), masks, strict=True):
        starts[name] = starts[name][:, mask]
    position_basis, velocity_basis = (torch.eye(engine.nv, dtype=torch.float64)[mask] for mask in masks)
    unknowns = [
        *unknowns,
        *_camera_unknowns(evidence, float(starts["scale"][0]), is_top_view),
        # The prior keeps unobservable coordinates near the scene's own.
        Unknown("displacement", [0.0] * len(position_basis), scale=0.3, std=10.0, unit="m or rad"),
        Unknown("velocities", [0.0] * len(velocity_basis), scale=1.0, std=100.0, unit="m/s or rad/s"),
    ]
    reference = engine.initial_state(1, torch.float64)

    def setup(values: Values) -> Setup:
        displacement = values["displacement"] @ position_basis
        q = engine.integrate(reference.q.expand(len(displacement), -1), displacement)
        return Setup(State(q, values["velocities"] @ velocity_basis), property_values(values))

    def observe(sampled: SampledState) -> Tensor:
        return _project(points.positions(sampled.state, sampled.properties) @ plane.T, sampled.values).flatten(1)

    def parameters(values: Values, known_values: KnownTensors) -> ParameterValues:
        parameters: ParameterValues = {unknown.name: values[unknown.name] for unknown in reported}
        return parameters if "scale" in known_values else {**parameters, "scale": values["scale"]}

    transformation = Unknowns(unknowns)
    initial = transformation.values(transformation.unconstrain(starts))
    steps = math.ceil(float(times[-1] - times[0]) / engine.dt)

    def observed_points(candidate: MechanicalEngine) -> Tensor:
        return float(initial["scale"].max()) * _simulate_points(candidate, points, setup(initial), steps)

    return MotionModel(
        scene.name, scene.reduce_substeps(engine, unsubstepped_engine, observed_points, settings), unknowns, setup,
        observe, parameters, {**{unknown.name: unknown.unit for unknown in reported}, "scale": "px/m"}, first, end,
        starts, horizon=horizon, length_powers=None, scale=lambda values, known_values: values["scale"],
        bounds={**{unknown.name: (unknown.low, unknown.high) for unknown in reported}, "scale": (0.0, math.inf)},
    ), error  # fmt: skip


def _simulate_points(engine: MechanicalEngine, points: scene_names.TrackedPoints, setup: Setup, steps: int) -> Tensor:
    """Return the positions of the points in every state of a simulated motion, m."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # simulations from rough starts may diverge
        motion = engine.rollout(setup.state, steps, properties=setup.properties or None)
        states = State(motion.q.flatten(0, 1), motion.v.flatten(0, 1))
        leaves = {name: leaf.repeat_interleave(steps + 1, 0) for name, leaf in setup.properties.items()}
        return points.positions(states, leaves)


def _project(plane_positions: Tensor, values: Values) -> Tensor:
    """Project positions in the plane, (worlds, points, 2), m, to pixels: flip y, then apply roll, scale and origin."""
    flipped = plane_positions * plane_positions.new_tensor([1.0, -1.0])
    return values["origin"][:, None] + values["scale"][:, None, None] * rotate(flipped, values["roll"][:, None])


def _camera_unknowns(evidence: Evidence, scale: float, is_top_view: bool) -> list[Unknown]:
    """Return the unknown scale, roll and origin of the picture."""
    known_value, roll_std = evidence.known_values.get("scale"), evidence.view.settings.careful.roll
    scale_unknown = Unknown("scale", scale, low=0.0, unit="px/m")
    if known_value is not None:
        # A known scale is never exactly that of the plane of motion, so its standard deviation has a lower bound.
        std = max(known_value.std, evidence.settings.parameters.min_scale_error * known_value.value)
        scale_unknown = Unknown("scale", known_value.value, 0.0, std=std, unit="px/m")
    return [
        scale_unknown,
        Unknown("roll", 0.0, scale=roll_std, std=None if is_top_view else roll_std, unit="rad"),
        Unknown("origin", [0.0, 0.0], scale=20.0, unit="px"),
    ]


def _property_unknowns(
    scene: CustomScene, engine: MechanicalEngine, known_values: Mapping[str, KnownValue]
) -> tuple[list[Unknown], list[Unknown], Callable[[Values], dict[str, Tensor]]]:
    """Return all unknown properties, those to report, and the function from values to property leaves.

    Known properties without an uncertainty are constants; those with one are unreported unknowns with a prior.
    """
    known_properties = {name: known_value for name, known_value in known_values.items() if name != "scale"}
    entries = {name: scene_names.find_entry(engine, name) for name in known_properties}
    constants = {name: known_value.value for name, known_value in known_properties.items() if not known_value.std}
    priors = [
        Unknown(name, known_value.value, entries[name].low, entries[name].high, known_value.std, std=known_value.std,
                unit=entries[name].unit)
        for name, known_value in known_properties.items() if known_value.std
    ]  # fmt: skip
    reported = []
    for name, bounds in scene.unknown.items():
        if scene.property_function is None:
            entries[name] = scene_names.find_entry(engine, name)
        if isinstance(bounds, Unknown):
            reported.append(bounds)
        elif scene.property_function is not None:
            raise InputError(f"unknown: {name}: expected an Unknown beside a property_function, got {bounds!r}")
        else:
            reported.append(scene_names.bounded_unknown(entries[name], name, *(bounds or ())))
    if not reported:
        raise InputError("unknown: expected at least one unknown property of the scene, such as mass:cart=1..5")
    initial_properties = dict(engine.properties.items())

    def property_values(values: Values) -> dict[str, Tensor]:
        properties: dict[str, Tensor] = {}
        if scene.property_function is not None:
            properties = dict(scene.property_function(**{unknown.name: values[unknown.name] for unknown in reported}))
        batch = len(next(iter(values.values())))
        # The inertia of a body scales with its mass; a named inertia comes last and overrides this.
        for name, entry in sorted(entries.items(), key=lambda item: item[1].leaf == "inertia"):
            leaf = properties.get(entry.leaf, initial_properties[entry.leaf])
            number = values[name] if name in values else torch.full((batch,), constants[name], dtype=torch.float64)
            properties[entry.leaf] = scene_names.replace_entry(leaf, entry, number)
            if entry.leaf == "mass" and scene.property_function is None and "inertia" in initial_properties:
                ratio = (number / entry.value)[:, None, None, None]
                inertia = properties.get("inertia", initial_properties["inertia"])
                properties["inertia"] = torch.where(entry.mask[:, None, None], ratio * inertia, inertia)
        return properties

    return [*reported, *priors], reported, property_values
