"""What a model's engine knows beyond its states: energy, parameters, and where its bodies are in the picture."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from physvision.camera import Camera
from physvision.core import Scene, State
from physvision.models import PredictiveAutoencoder
from physvision.report import ParameterRow, Units


def parameters(model: PredictiveAutoencoder, scene: Scene, units: Units) -> list[ParameterRow]:
    """The parameters that the scene names, in the units of a report; of equal values there is one.

    They are assumed: the checkpoint's own, whatever the video shows.
    """
    learned = model.engine.learned_values
    known = {**dict(model.engine.properties.items()), **learned}
    found = []
    for name, unit in scene.parameters.items():
        if name not in known:
            continue
        numbers = known[name].detach().double().cpu()
        rows = [each.body for each in scene.objects]
        if name not in learned and numbers.dim() == 1 and len(numbers) > len(rows):
            numbers = numbers[rows]  # what stands still is left out
        values = numbers.flatten().tolist()
        same = len(set(values)) == 1
        origin = f"assumed, {'learned in training' if name in learned else 'given to the checkpoint'}"
        found.append(ParameterRow(name, *units.parameter(values[:1] if same else values, unit), origin))
    return found


def energy(model: PredictiveAutoencoder, state: State) -> tuple[np.ndarray, np.ndarray] | None:
    """Kinetic and potential energy of a batch of states; None if the model knows none."""
    mechanics = model.engine.mechanics
    if mechanics is None:
        return None
    with torch.no_grad():
        kinetic, potential = mechanics.energy(state, model.engine.properties)
    return kinetic.double().cpu().numpy(), potential.double().cpu().numpy()


def outlines(model: PredictiveAutoencoder, scene: Scene, state: State) -> list[np.ndarray]:
    """Where each object's points are seen, (batch, points, 2) pixels from a frame's corner; none without physics."""
    mechanics = model.engine.mechanics
    if mechanics is None:
        return []
    with torch.no_grad():
        poses = mechanics.poses(state, model.engine.properties).double().cpu()
    seen = []
    for each in scene.objects:
        points = torch.tensor([tuple(point) for point in each.points], dtype=torch.float64)
        body = poses[:, each.body]
        seen.append(_picture(scene, points @ body[:, :3, :3].mT + body[:, None, :3, 3]).numpy())
    return seen


def _picture(scene: Scene, points: Tensor) -> Tensor:
    """Pixels (…, 2) of points (…, 3) of the world."""
    if scene.view is None:
        return points[..., :2]
    wide, high = scene.size
    view = Camera.pinhole(
        high, wide, position=scene.view.position, target=scene.view.target, focal=scene.view.focal
    ).extrinsics
    places = points @ view[:3, :3].T + view[:3, 3]
    depth = places[..., 2:].clamp_min(math.ulp(1.0))
    middle = torch.tensor([0.5 * wide, 0.5 * high], dtype=points.dtype)
    return scene.view.focal * places[..., :2] / depth + middle
