"""Quantities of a model's engine besides its states: energy, parameters, outlines of objects in the image."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from physvision.camera import Camera
from physvision.core import Scene, State
from physvision.models import PredictiveAutoencoder
from physvision.prediction.clip_fit import ClipFit
from physvision.report import ParameterRow, Units


def parameter_rows(
    model: PredictiveAutoencoder, units: Units, estimates: Mapping[str, Tensor] | None, fit: ClipFit | None = None
) -> list[ParameterRow]:
    """List the parameters that the scene names, in reported units; equal values appear once.

    Args:
        model: Autoencoder.
        units: Reported units of its scene.
        estimates: Values that the encoder estimates from the video, by name, batches of one. All others are assumed:
            the checkpoint's own, whatever the video shows.
        fit: Fit of the clip, whose parameters come first.
    """
    estimates = estimates or {}
    learned = model.engine.learned_values
    available = {**dict(model.engine.properties.items()), **learned}
    bodies = [item.body for item in units.scene.objects]
    rows = [] if fit is None else _fitted_rows(fit, units)
    fitted = set() if fit is None else {item.leaf for item in fit.parameters}
    for name, unit in units.scene.parameters.items():
        if name not in available or name in fitted:
            continue
        tensor = estimates.get(name, available[name][None])[0].detach().double().cpu()
        if name not in learned and name not in estimates and tensor.dim() == 1 and len(tensor) > len(bodies):
            tensor = tensor[bodies]  # static bodies are left out
        if name in estimates and "present" in estimates and tensor.shape == estimates["present"][0].shape:
            tensor = tensor[estimates["present"][0].cpu() > 0.5]
        values = tensor.flatten().tolist()
        values = values[:1] if len(set(values)) == 1 else values
        source = "learned in training" if name in learned else "given to the checkpoint"
        origin = "estimated from the last window" if name in estimates else f"assumed, {source}"
        rows.append(ParameterRow(name, *units.parameter(values, unit), origin))
    return rows


def _fitted_rows(fit: ClipFit, units: Units) -> list[ParameterRow]:
    """List the parameters of a clip, with the intervals of those that it determines."""
    rows = []
    for item in fit.estimates():
        name, unit = item.parameter.name, item.parameter.unit
        origin, numbers = "assumed, the clip does not determine it", [item.value]
        if item.is_estimated:
            origin, numbers = "estimated from the clip", [item.value, *item.interval()]
        numbers, unit = units.parameter(numbers, unit)
        if item.parameter.leaf == "walls":
            # Places are those in the original image.
            offset = units.crop[0 if name.split()[0] in ("left", "right") else 1] / (units.scale or 1.0)
            numbers = [number + offset for number in numbers]
        interval = (numbers[1], numbers[2]) if len(numbers) > 1 else None
        rows.append(ParameterRow(name, numbers[:1], unit, origin, interval))
    return rows


def energy(model: PredictiveAutoencoder, state: State) -> tuple[np.ndarray, np.ndarray] | None:
    """Compute kinetic and potential energy of a batch of states; None without mechanics."""
    mechanics = model.engine.mechanics
    if mechanics is None:
        return None
    with torch.no_grad():
        kinetic, potential = mechanics.energy(state, model.engine.properties)
    return kinetic.double().cpu().numpy(), potential.double().cpu().numpy()


def outlines(model: PredictiveAutoencoder, scene: Scene, state: State) -> list[np.ndarray]:
    """Project each object's points to the image, (batch, points, 2), px; empty without mechanics."""
    mechanics = model.engine.mechanics
    if mechanics is None:
        return []
    with torch.no_grad():
        poses = mechanics.poses(state, model.engine.properties).double().cpu()
    projected = []
    for item in scene.objects:
        points = torch.tensor([tuple(point) for point in item.points], dtype=torch.float64)
        body = poses[:, item.body]
        projected.append(_project(scene, points @ body[:, :3, :3].mT + body[:, None, :3, 3]).numpy())
    return projected


def _project(scene: Scene, points: Tensor) -> Tensor:
    """Project points (…, 3) of the world to pixels (…, 2)."""
    if scene.view is None:
        return points[..., :2]
    width, height = scene.size
    view = scene.view
    extrinsics = Camera.pinhole(height, width, position=view.position, target=view.target, focal=view.focal).extrinsics
    camera_points = points @ extrinsics[:3, :3].T + extrinsics[:3, 3]
    depth = camera_points[..., 2:].clamp_min(math.ulp(1.0))
    center = torch.tensor([0.5 * width, 0.5 * height], dtype=points.dtype)
    return view.focal * camera_points[..., :2] / depth + center
