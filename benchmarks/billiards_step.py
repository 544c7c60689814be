"""Time of the parts of a training step of the billiards, each alone, on one thread, in processor seconds.

The step is that of trainers/billiards-3.yaml, without the losses. A part's backward pass is counted with it. The
shares are of the sum of all parts.

    physvision generate billiards --trials 20 --out out/billiards-20
    python benchmarks/billiards_step.py [--config billiards-3] [--data out/billiards-20]
"""

# pyright: reportCallIssue=false

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import yaml
from jsonargparse import auto_cli
from torch import nn

from physvision.core import State, brightness
from physvision.core.resources import find
from physvision.datasets import DataModule, WindowShape
from physvision.models import CameraDecoder, ClipContext, TableEncoder, build
from physvision.models.table_crops import CROP_CHANNELS


def seconds(part: Callable[[], object], repeats: int) -> float:
    """Processor seconds of one call, the first one not counted: kernels are compiled in it."""
    part()
    began = time.process_time()
    for _ in range(repeats):
        part()
    return (time.process_time() - began) / repeats


def main(config: str = "billiards-3", data: str = "out/billiards-20", repeats: int = 5) -> None:
    """Time the parts of a training step.

    Args:
        config: Configuration in trainers/.
        data: a data set of as many balls.
        repeats: Number of runs of each part.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = yaml.safe_load(find(f"{config}.yaml", "trainers").read_text())
    model = build(settings["model"]["model"])
    batch_size, shape = settings["data"]["batch_size"], WindowShape(**settings["data"]["shape"])
    source = DataModule(data, batch_size, shape)
    source.setup("fit")
    windows = source.windows("train")
    batch = windows.__getitems__(list(range(batch_size)))
    frames, steps = brightness(batch.observed), shape.horizon
    encoder = model.encoder
    assert isinstance(encoder, TableEncoder)

    def read() -> None:
        reading = encoder.read(frames, ClipContext())
        (reading.logits.square().sum() + reading.tracks.positions.square().sum()).backward()

    def learn_network() -> None:
        encoder.network(crops).square().sum().backward()

    def learn_physics() -> None:
        start = batch.ahead.state(0)
        start = State(start.q.clone().requires_grad_(), start.v.clone().requires_grad_())
        model.simulate(start, steps).q.sum().backward()

    def render(part: nn.Module) -> None:
        final = batch.ahead.final
        image = part(State(final.q.clone().requires_grad_(), final.v), model.engine.properties, looks)
        image.square().sum().backward()

    encoder.train()
    with torch.no_grad():
        looks = encoder.observe_window(frames).appearance
    crops = torch.rand(batch_size * encoder.slots, CROP_CHANNELS, encoder.crops.side, encoder.crops.side)
    camera = CameraDecoder(model.decoder.camera, None, encoder.codes)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], fused=True)
    parts = {
        "reading the windows": lambda: windows.__getitems__(list(range(batch_size))),
        "segmentation and tracks": read,
        "the VGG on crops": learn_network,
        f"the engine, {steps} steps": learn_physics,
        "the camera": lambda: render(camera),
        "camera and transposed convolutions": lambda: render(model.decoder),
        "the optimizer": optimizer.step,
    }
    results = {name: seconds(part, repeats) for name, part in parts.items()}
    total = sum(results.values())
    print(f"{config}, a step of {batch_size} windows: {1e3 * total:.0f} ms of one thread")
    for name, spent in results.items():
        print(f"{name:<46} {1e3 * spent:>8.1f} ms {100 * spent / total:>6.1f} %")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
