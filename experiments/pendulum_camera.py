"""Measure a pendulum model with a camera in its decoder: lengths, angles, and the likeness of each link.

    physvision fit --config trainers/pendulum-camera.yaml
    python experiments/pendulum_camera.py

Held-out windows of `data/pendulum`, predicted one second ahead from four starts: the encoder's state, a cubic
polynomial through its positions in all given frames, the engine's motion closest to these, and the engine's motion
whose rendered frames are closest to the given ones (`photometric_motion`). The SSIM of each link is its mean over the
link's true mask, dilated by 3 px, of frames that the decoder draws at the true state, and at the states that the
engine predicts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from held_out import held_out
from jsonargparse import auto_cli
from swing_predictions import link_likeness
from torch import Tensor
from torchvision.utils import save_image

from physvision.core import Coordinates, State, Trajectory, brightness
from physvision.datasets import WindowShape
from physvision.models import CameraDecoder, PhotometricSettings, PredictiveAutoencoder, load
from physvision.physics import PhysicsLayer

AHEAD = 20
TRUE_LENGTH = 3.0  # m
_ORDER = 3


def polynomial_state(angles: Coordinates, q: Tensor, dt: float) -> State:
    """State in the last frame of the polynomial of third order closest to positions in consecutive frames."""
    unwound = torch.cat([q[:, :1], q[:, :1] + angles.difference(q[:, :-1], q[:, 1:]).cumsum(1)], 1)
    powers = torch.linspace(-1.0, 0.0, q.shape[1])[:, None] ** torch.arange(_ORDER + 1)
    coefficients = torch.linalg.lstsq(powers.expand(len(q), -1, -1), unwound).solution
    return State(angles.unwind(coefficients[:, 0]), coefficients[:, 1] / (dt * (q.shape[1] - 1)))


def starts_of(model: PredictiveAutoencoder, photometric: PhotometricSettings) -> dict[str, Callable[[Tensor], State]]:
    """Functions from given frames to the state in the last one, by name."""
    angles = model.encoder.coordinates
    assert angles is not None

    def fitted(settings: PhotometricSettings | None) -> Callable[[Tensor], State]:
        def state(frames: Tensor) -> State:
            model.photometric = settings
            return model.initial_state(model.observe(frames))

        return state

    return {
        "encoder": lambda frames: model.observe(frames, fitted=False).state,
        "polynomial": lambda frames: polynomial_state(
            angles, model.observe(frames, fitted=False).positions, model.engine.dt
        ),
        "positions": fitted(None),
        "frames": fitted(photometric),
    }


def likeness(model: PredictiveAutoencoder, state: State, target: Tensor, coverage: Tensor) -> tuple[Tensor, list]:
    """Frames of a state, and the SSIM of each link with a frame that shows the masks `coverage`."""
    image = model.decode(Trajectory.stack([state], None), (0,))[:, 0]
    return image, [link_likeness(image, target, mask) for mask in (coverage > 0.5).unbind(1)]


@torch.no_grad()
def main(
    model: str = "out/pendulum-camera/checkpoints/last.ckpt",
    data: Path = Path("data/pendulum"),
    batches: int = 12,
    given: int | None = None,
    out: Path = Path("out"),
) -> dict[str, list[float]]:
    """Print medians of errors and likeness on held-out windows, and 5 % and 95 % quantiles of those ahead.

    Args:
        model: Name of a model that comes with physvision, or path of a checkpoint.
        data: Folder of the data set.
        batches: Number of batches of 16 windows.
        given: Number of given frames; that of the model if None.
        out: Folder of the picture.
    """
    trained = load(model).eval()
    scene = trained.scene
    assert scene is not None
    assert isinstance(trained.decoder, CameraDecoder)
    given, links = given or scene.frames_in, len(scene.objects)
    angles = Coordinates(links, tuple(range(links)))
    starts = starts_of(trained, trained.photometric or PhotometricSettings())
    measured: dict[str, list[list[Tensor]]] = {}
    pictures: list[Tensor] = []
    for sample in held_out(data, WindowShape(given, AHEAD, 20), batches, "test"):
        true = sample.ahead
        assert true is not None
        later = State(true.q[:, AHEAD].float(), true.v[:, AHEAD].float())
        target, coverage = brightness(sample.frames[:, -1]), trained.coverage(Trajectory.stack([later], None))
        image, alike = likeness(trained, later, target, coverage)
        measured.setdefault("SSIM ahead, true", []).append(alike)
        rows = [target[:8], image[:8]]
        for name, start in starts.items():
            now = start(sample.observed)
            path = trained.simulate(now, AHEAD)
            image, alike = likeness(trained, path.final, target, coverage)
            rows.append(image[:8])
            rate = (now.v - true.v[:, 0]).abs()
            measured.setdefault(f"now, {name}", []).append(angles.difference(true.q[:, 0], now.q).abs().unbind(1))
            measured.setdefault(f"rate now, {name}", []).append(rate.unbind(1))
            apart = angles.difference(true.q[:, AHEAD], path.q[:, AHEAD]).abs()
            measured.setdefault(f"ahead, {name}", []).append(apart.unbind(1))
            measured.setdefault(f"SSIM ahead, {name}", []).append(alike)
        pictures = pictures or rows
    results: dict[str, list[float]] = {}
    for name, parts in measured.items():
        merged = [torch.cat(link) for link in zip(*parts, strict=True)]
        results[name] = [link.median().item() for link in merged]
        if "ahead" in name:
            worst = 0.05 if "SSIM" in name else 0.95
            results[f"{name}, {worst:.0%}"] = [link.quantile(worst).item() for link in merged]
    if isinstance(trained.engine, PhysicsLayer):
        lengths = trained.engine.learned_values["lengths"].tolist()
        results["lengths"] = lengths
        results["relative error of lengths"] = [abs(length / TRUE_LENGTH - 1.0) for length in lengths]
    for name, values in results.items():
        print(f"{name:32}" + "".join(f"{value:>10.4f}" for value in values))
    out.mkdir(parents=True, exist_ok=True)
    image = torch.cat([torch.cat(list(row), -1) for row in pictures], -2).clamp(0, 1)
    save_image(image, out / "pendulum_camera.png")
    return results


if __name__ == "__main__":
    auto_cli(main)
