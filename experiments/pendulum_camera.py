"""Measure a pendulum model with a camera in its decoder: lengths, angles, and the likeness of each link.

    physvision fit --config trainers/pendulum-camera.yaml
    python experiments/pendulum_camera.py

Held-out windows of `data/pendulum`. The SSIM of each link is its mean over the link's true mask, dilated by 3 px, one
second ahead: of frames that the decoder draws at the true state, and at the state that the model predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from held_out import held_out
from jsonargparse import auto_cli
from swing_predictions import link_likeness
from torchvision.utils import save_image

from physvision.core import Coordinates, State, Trajectory, brightness
from physvision.datasets import WindowShape
from physvision.models import CameraDecoder, load
from physvision.physics import PhysicsLayer
from physvision.trainers import PredictionTraining, Supervision

AHEAD = 20
TRUE_LENGTH = 3.0  # m


@torch.no_grad()
def main(
    model: str = "out/pendulum-camera/checkpoints/last.ckpt",
    data: Path = Path("data/pendulum"),
    batches: int = 12,
    out: Path = Path("out"),
) -> dict[str, list[float]]:
    """Print errors and likeness on held-out windows.

    Args:
        model: Name of a model that comes with physvision, or path of a checkpoint.
        data: Folder of the data set.
        batches: Number of batches of 16 windows.
        out: Folder of the picture.
    """
    trained = load(model)
    assert trained.scene is not None
    assert isinstance(trained.decoder, CameraDecoder)
    links, given = len(trained.scene.objects), trained.scene.frames_in
    angles = Coordinates(links, tuple(range(links)))
    module = PredictionTraining(trained, Supervision(angles)).eval()
    measured: dict[str, list[Sequence[torch.Tensor]]] = {"now": [], "ahead": [], "at true": [], "at predicted": []}
    rows: list[torch.Tensor] = []
    for raw in held_out(data, WindowShape(given, AHEAD, 20), batches, "test"):
        sample = module.prepare(raw)
        forecast = module.forecast(sample, (AHEAD,))
        true = sample.ahead
        assert true is not None
        later = State(true.q[:, AHEAD].float(), true.v[:, AHEAD].float())
        for name, step in (("now", 0), ("ahead", AHEAD)):
            apart = angles.difference(true.q[:, step], forecast.trajectory.q[:, step]).abs()
            measured[name].append(apart.unbind(1))
        target = brightness(sample.frames[:, -1])
        rendered = trained.decode(Trajectory.stack([later], None), (0,))[:, 0]
        coverage = trained.coverage(Trajectory.stack([later], None))
        for name, image in (("at true", rendered), ("at predicted", forecast.frames[:, -1])):
            measured[name].append([link_likeness(image, target, mask) for mask in (coverage > 0.5).unbind(1)])
        if not rows:
            rows = [target[:8], rendered[:8], forecast.frames[:8, -1]]
    results = {
        name: [torch.cat(link).median().item() for link in zip(*parts, strict=True)] for name, parts in measured.items()
    }
    if isinstance(trained.engine, PhysicsLayer):
        lengths = trained.engine.learned_values["lengths"].tolist()
        results["lengths"] = lengths
        results["relative error of lengths"] = [abs(length / TRUE_LENGTH - 1.0) for length in lengths]
    for name, values in results.items():
        print(f"{name:28}" + "".join(f"{value:>10.4f}" for value in values))
    out.mkdir(parents=True, exist_ok=True)
    image = torch.cat([torch.cat(list(row), -1) for row in rows], -2).clamp(0, 1)
    save_image(image, out / "pendulum_camera.png")
    return results


if __name__ == "__main__":
    auto_cli(main)
