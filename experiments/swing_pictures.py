"""Pictures of links a second ahead at the true and the predicted state, and what bounds their likeness.

All on held-out trials. The frames have noise and are compressed, and no prediction can know the noise: bounds are the
likeness of the frame that the recipe renders without noise, and without compression either. Likeness is the structural
similarity over the mask of a link, dilated by 3 px.

    physvision generate swing --trials 1250 --out data/swing
    python experiments/swing_pictures.py [--model swing] [--data data/swing]
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from held_out import held_out
from jsonargparse import auto_cli
from panel import save_pictures
from swing_predictions import link_likeness
from torch import Tensor

from physvision.core import brightness
from physvision.datasets import Sample, SwingRecipe, WindowShape
from physvision.datasets.rendering import Sensor
from physvision.models import LinkDecoder, PredictiveAutoencoder, load
from physvision.models.interfaces import ClipContext

GIVEN, AHEAD = 30, 30


class PerfectSensor(SwingRecipe):
    """Trials of the data set, filmed without noise and compression."""

    def random_sensor(self, random: np.random.Generator) -> Sensor:
        """Draw the sensor of the trial, so that all else stays as it is, and replace it."""
        return replace(super().random_sensor(random), noise=0.0, quality=None)


class NoiselessSensor(SwingRecipe):
    """Trials of the data set, filmed without noise, and compressed as they are."""

    def random_sensor(self, random: np.random.Generator) -> Sensor:
        """Draw the sensor of the trial, and take its noise away."""
        return replace(super().random_sensor(random), noise=0.0)


def rendered(recipe: SwingRecipe, sample: Sample, split: str) -> Tensor:
    """The frame a second ahead of each window as the recipe renders it, brightness."""
    cache, frames = {}, []
    for trial, start in zip(sample.trial.tolist(), sample.start.tolist(), strict=True):
        if trial not in cache:
            cache[trial] = recipe.make(split, trial)["frames"]
        frames.append(torch.from_numpy(cache[trial][start + GIVEN - 1 + AHEAD]))
    return torch.stack(frames).permute(0, 3, 1, 2).float() / 255.0


@torch.no_grad()
def pictures(model: PredictiveAutoencoder, sample: Sample) -> dict[str, Tensor]:
    """Pictures a second ahead, by the way that they are made."""
    assert isinstance(model.decoder, LinkDecoder)
    observed = model.observe(sample.observed, ClipContext(sample.extrinsics))
    looks, mine, true = observed.appearance, dict(observed.properties), dict(sample.properties)
    poses = sample.extrinsics[:, [GIVEN - 1 + AHEAD]]
    path = model.simulate(observed.state, AHEAD, None, mine)

    def picture_at(states, values, appearance=looks) -> Tensor:
        return model.decode(states, (AHEAD,), values, appearance, poses)[:, 0]

    ways = {
        "predicted state": picture_at(path, mine),
        "predicted state, true properties": picture_at(model.simulate(observed.state, AHEAD, None, true), true),
        "true state": picture_at(sample.ahead, true),
        "true state, plain colors for textures": picture_at(sample.ahead, true, replace(looks, textures=None)),
        "true state, no shadow": picture_at(sample.ahead, true, replace(looks, shadow=None)),
    }
    network, model.decoder.network = model.decoder.network, None
    ways["true state, no network"] = picture_at(sample.ahead, true)
    ways["predicted state, no network"] = picture_at(path, mine)
    model.decoder.network = network
    ways["background alone"] = looks.background
    ways["last given frame"] = brightness(sample.observed[:, -1])
    return ways


def main(
    model: str = "swing",
    data: Path = Path("data/swing"),
    split: str = "test",
    batches: int = 12,
    trials: int = 1250,
    seed: int = 0,
    out: Path = Path("out"),
):
    """Print the likeness of pictures one second ahead, and draw some.

    Args:
        model: Name of a shipped model, or a checkpoint of `trainers/swing.yaml`.
        data: Data set `swing`.
        split: Split of the trials, valid or test.
        batches: Number of batches of 16 windows.
        trials: Number of trials that the data set was made with.
        seed: Seed that it was made with.
        out: Folder of the figure and of the JSON with all numbers.
    """
    trained = load(model).eval()
    recipes = PerfectSensor(trials=trials, seed=seed), NoiselessSensor(trials=trials, seed=seed)
    likeness: dict[str, list[list[Tensor]]] = {}
    rows = []
    for sample in held_out(data, WindowShape(GIVEN, AHEAD, 20), batches, split, masks=True):
        frames, masks = brightness(sample.frames_at((AHEAD,)))[:, 0], sample.masks[:, GIVEN - 1 + AHEAD]
        exact, noiseless = (rendered(recipe, sample, split) for recipe in recipes)
        ways = {"recipe, no noise": noiseless, "recipe, no noise nor compression": exact, **pictures(trained, sample)}
        for name, predicted in ways.items():
            values = likeness.setdefault(name, [[] for _ in range(4)])
            for link in range(2):
                values[link].append(link_likeness(predicted, frames, masks == link + 1))
                values[2 + link].append(link_likeness(predicted, exact, masks == link + 1))
        if not rows:
            shown = ("recipe, no noise", "true state", "true state, no network", "predicted state")
            rows = [
                {"true frame": frames[clip], **{name: ways[name][clip].clamp(0, 1) for name in shown}}
                for clip in range(0, 16, 2)
            ]
    heads = [f"link {link + 1}, {against}" for against in ("frame", "no sensor") for link in range(2)]
    claims: dict[str, float] = {}
    print(f"{'median SSIM over dilated masks, +30':<42}" + "".join(f"{head:>20}" for head in heads))
    for name, parts in likeness.items():
        medians = [float(torch.cat(part).median()) for part in parts]
        claims |= {f"{name}: {head}": value for head, value in zip(heads, medians, strict=True)}
        print(f"{name:<42}" + "".join(f"{value:>20.3f}" for value in medians))
    out.mkdir(parents=True, exist_ok=True)
    (out / "swing_pictures.json").write_text(json.dumps(claims, indent=1))
    save_pictures(rows, out / "swing_pictures.png")


if __name__ == "__main__":
    auto_cli(main)
