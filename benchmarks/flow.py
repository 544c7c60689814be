"""End-point error of the flow network that comes with physvision, beside OpenCV's DIS on the same frames; px.

Billiards are held-out trials of the data set's recipe, where a pixel of a ball flows by what the ball moves and the
table does not flow. Synthetic pairs are drawn from a seed that training never saw: with textures on every layer and
moving backgrounds, and mixed as in training. Times are of one thread, for a pair of 64 × 64.

With a data set `tabletop`, the error of each ball's mean flow over two frames is measured on validation trials instead.

    python benchmarks/flow.py [--name flow] [--pairs 128] [--data data/tabletop]
"""

from __future__ import annotations

import time

import torch
from jsonargparse import auto_cli
from torch import Tensor, nn

from physvision.datasets import BilliardsRecipe, LabelSettings
from physvision.perception.flow import DenseInverseSearch, endpoint_error, load_flow
from physvision.perception.synthetic_flow import FlowSample, SyntheticFlow
from physvision.trainers import LabeledFlowData
from physvision.trainers.flow import object_errors

SEED = 987_654_321


def billiards(pairs: int, frame: int = 40) -> FlowSample:
    """One pair of consecutive frames of each of so many trials; true flow of the balls."""
    recipe = BilliardsRecipe(trials=10 * pairs, frames=frame + 2, seed=SEED)
    middles = torch.arange(recipe.size) + 0.5
    samples = []
    for trial in range(pairs):
        result = recipe.make("test", trial)
        frames = torch.from_numpy(result["frames"][frame:]).permute(0, 3, 1, 2).float() / 255
        places = torch.from_numpy(result["q"][frame:, :, :2]).float()
        flow, shown = torch.zeros(2, recipe.size, recipe.size), torch.zeros(1, recipe.size, recipe.size)
        for now, after in places.transpose(0, 1):
            away = (middles - now[0]).square() + (middles[:, None] - now[1]).square()
            inside = away < float(recipe.radius) ** 2
            flow[:, inside], shown[:, inside] = (after - now)[:, None], 1.0
        samples.append((frames[0], frames[1], flow, shown))
    return FlowSample(*(torch.stack(parts) for parts in zip(*samples, strict=True)))


def synthetic(pairs: int, recipe: SyntheticFlow) -> FlowSample:
    return recipe.draw(pairs, torch.Generator().manual_seed(SEED))


def tabletop(path: str, pairs: int) -> FlowSample:
    """Pairs of frames of validation trials, two frames apart, with a mask for each ball."""
    source = LabeledFlowData(path, pairs, stride=31, labels=LabelSettings())
    source.setup("validate")
    return source.flow_sample(next(iter(source.val_dataloader())))


def compare_objects(ways: dict[str, nn.Module], sample: FlowSample) -> bool:
    """Print the error of each ball's mean flow, px a frame; return whether the network has the smallest median."""
    medians = {}
    for label, way in ways.items():
        error = 0.5 * object_errors(way(sample.first, sample.second), sample).norm(dim=-1)
        medians[label] = float(error.median())
        print(
            f"{label:<9} median {medians[label]:.3f}, 90 % {float(error.quantile(0.9)):.3f} px a frame; "
            f"{len(error)} balls"
        )
    return min(medians, key=lambda label: medians[label]) == "network"


def errors(flow: Tensor, sample: FlowSample) -> list[float]:
    """Mean over all pixels, and over those that show a shape."""
    error, shown = endpoint_error(flow, sample.flow), sample.shapes[:, 0] > 0
    return [float(error.mean()), float(error[shown].mean())]


@torch.no_grad()
def main(name: str = "flow", pairs: int = 128, data: str | None = None) -> bool:
    """Compare; whether the network is the better one on both.

    Args:
        name: the network, one that comes with physvision or a file.
        pairs: Number of pairs of each kind.
        data: Folder of a data set `tabletop`, to measure the mean flow of its balls instead.
    """
    torch.set_num_threads(1)
    ways: dict[str, nn.Module] = {"network": load_flow(name), "DIS": DenseInverseSearch()}
    if data is not None:
        return compare_objects(ways, tabletop(data, pairs))
    kinds = {
        "billiards": billiards(pairs),
        "textured motion": synthetic(pairs, SyntheticFlow(textured_fraction=1.0)),
        "mixed": synthetic(pairs, SyntheticFlow()),
    }
    print(f"{'':<18} {'':<9} {'all, px':>9} {'shapes, px':>11} {'ms a pair':>10}")
    results = {}
    for kind, sample in kinds.items():
        for label, way in ways.items():
            began = time.process_time()
            flow = way(sample.first, sample.second)
            spent = time.process_time() - began
            results[kind, label] = errors(flow, sample)
            cells = " ".join(f"{error:>10.3f}" for error in results[kind, label])
            print(f"{kind:<18} {label:<9} {cells} {1e3 * spent / pairs:>10.2f}")
        still = errors(torch.zeros_like(sample.flow), sample)
        print(f"{'':<18} {'no flow':<9} " + " ".join(f"{error:>10.3f}" for error in still))
    met = all(results[kind, "network"][0] < results[kind, "DIS"][0] for kind in ("billiards", "textured motion"))
    print(f"below DIS on billiards and on textured motion: {'met' if met else 'MISSED'}")
    return met


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
