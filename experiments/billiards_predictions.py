"""Three balls ten frames ahead: what the autoencoder foresees beside simpler ways, on held-out trials (figure 3).

All ways but the last start from the same frames. "The network's start" is what the encoder's network is given to mend;
"mask centroids" are those of whole color masks, with the same physics. The MLP, two layers of 100, learns the engine's
steps from true states, and starts from the encoder's. Errors are distances of single balls, in pixels of 64.

    physvision generate billiards --trials 600 --out data/billiards
    python experiments/billiards_predictions.py [--model billiards-3] [--data data/billiards] [--out out]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import Coordinates, State, Trajectory, brightness
from physvision.datasets import DataModule, Dataset, WindowShape
from physvision.datasets.sample import join
from physvision.losses.frames import mean_square
from physvision.models import NetworkEngine, ObjectEncoder, PredictiveAutoencoder, StatePerceptron, load
from physvision.perception.frame_corruption import FrameCorruption
from physvision.perception.object_crops import locate_objects
from physvision.perception.segmentation import centroids

mpl.use("Agg")
from matplotlib import pyplot as plt

AHEAD = 10
CONDITIONS = {
    "clean": {},
    "noise 0.05": {"noise": 0.05},
    "noise 0.15": {"noise": 0.15},
    "blur 1.5 px": {"blur": 1.5},
    "background 0.4": {"texture": 0.4},
    "occlusion": {"occlusion": 1.0},
}
MEDIAN_BAR, MAX_ERROR_BAR_PX, STRAIGHT_BAR, MLP_BAR = 0.5, 3.0, 3.0, 2.0

Foresee = Callable[[Tensor, State], Trajectory]


@dataclass(frozen=True)
class Truth:
    """Held-out windows: frames given, and what comes after them.

    Attributes:
        frames: (windows, 3, 3, height, width), clean.
        start: the true state at the last of them.
        q: true positions `AHEAD` frames later.
        later: the frame at that time.
        impacts: If true, a ball meets a wall or another ball in between.
    """

    frames: Tensor
    start: State
    q: Tensor
    later: Tensor
    impacts: Tensor


def held_out(data: str, stride: int) -> Truth:
    source = DataModule(data, 64, WindowShape(horizon=AHEAD, stride=stride))
    source.setup("test")
    whole = join(list(source.test_dataloader()))
    ahead = whole.ahead
    assert ahead is not None
    return Truth(
        brightness(whole.observed),
        ahead.state(0),
        ahead.final.q,
        brightness(whole.frames[:, -1]),
        (ahead.v.diff(dim=1).abs() > 1e-3).flatten(1).any(1),
    )


def learned_steps(engine: NetworkEngine, data: str, updates: int, path: Path) -> NetworkEngine:
    """`engine` after it has learned from true states, ten steps at a time; kept in `path`."""
    if path.exists():
        engine.load_state_dict(torch.load(path, weights_only=True))
        return engine
    dataset = Dataset(data, "train")
    fields = {name: [dataset.field(name, trial) for trial in range(len(dataset))] for name in ("q", "v")}
    q, v = (torch.stack([torch.from_numpy(x).float().flatten(1) for x in fields[name]]) for name in ("q", "v"))
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(engine.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    steps = torch.arange(AHEAD + 1)
    for _ in range(updates):
        trial = torch.randint(len(q), (128, 1), generator=generator)
        time = torch.randint(q.shape[1] - AHEAD, (128, 1), generator=generator) + steps
        true_q, true_v = q[trial, time], v[trial, time]
        trajectory = engine.rollout(State(true_q[:, 0], true_v[:, 0]), AHEAD)
        loss = torch.nn.functional.smooth_l1_loss(trajectory.q, true_q) + 0.03 * (trajectory.v - true_v).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(engine.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(engine.state_dict(), path)
    return engine


def ways(model: PredictiveAutoencoder, mlp: NetworkEngine) -> dict[str, Foresee]:
    """Predictors from frames, and from the state that the encoder estimates, to the states that follow."""
    encoder = model.encoder
    assert isinstance(encoder, ObjectEncoder)

    def straight(frames: Tensor, state: State) -> Trajectory:
        times = torch.arange(AHEAD + 1)[:, None] * encoder.dt
        v = state.v[:, None].expand(-1, AHEAD + 1, -1)
        return Trajectory(state.q[:, None] + times * v, v)

    def held(frames: Tensor, state: State) -> Trajectory:
        q = state.q[:, None].expand(-1, AHEAD + 1, -1)
        return Trajectory(q, torch.zeros_like(q))

    def state_of(position: Tensor, step: Tensor) -> State:
        still = torch.zeros_like(position[..., :1])
        return State(*(torch.cat([part, still], -1).flatten(1) for part in (position, step / encoder.dt)))

    def from_masks(frames: Tensor, state: State) -> Trajectory:
        places = centroids(encoder.filters.masks(frames))
        return model.simulate(state_of(places[:, -1], 0.5 * (places[:, -1] - places[:, 0])), AHEAD)

    def from_start(frames: Tensor, state: State) -> Trajectory:
        look = encoder.extract_views(frames)
        return model.simulate(state_of(look.position, look.step), AHEAD)

    return {
        "encoder and physics": lambda frames, state: model.simulate(state, AHEAD),
        "the last place, held": held,
        "encoder and constant velocity": straight,
        "encoder and MLP": lambda frames, state: mlp.rollout(state, AHEAD),
        "mask centroids and physics": from_masks,
        "the network's start and physics": from_start,
    }


def spoilt(encoder: ObjectEncoder, frames: Tensor, options: dict[str, float]) -> Tensor:
    if not options:
        return frames
    torch.manual_seed(0)
    masks = encoder.filters.masks(frames)
    places = locate_objects(masks, encoder.radius).centers[:, -1]
    return FrameCorruption(**options, radius=encoder.radius, fixed_severity=True)(
        frames, masks.sum(2, keepdim=True), places
    )


def distances(observation: Tensor, true: Tensor) -> Tensor:
    """Error of each ball, (windows, balls)."""
    return (observation - true).unflatten(1, (-1, 3))[..., :2].norm(dim=-1)


def decibels(error: float) -> float:
    return float(-10 * torch.tensor(error).log10())


def compare_frames(model: PredictiveAutoencoder, truth: Truth, predicted_states: dict[str, Tensor]) -> None:
    """Print errors of decoded frames, beside the decoder fed with the true future state and the last frame, held."""
    still = torch.zeros_like(truth.q)
    places = {name: q for name, q in predicted_states.items() if "held" not in name}
    places["decoder, true future state"] = truth.q
    selected = {"the last frame, held": truth.frames[:, -1]}
    selected |= {name: model.decoder(State(q, still), model.engine.properties) for name, q in places.items()}
    print(f"\n{'frames':<34} {'MSE':>10} {'PSNR dB':>8}")
    for name, frames in selected.items():
        error = float(mean_square(frames.clamp(0, 1), truth.later))
        print(f"{name:<34} {error:>10.2e} {decibels(error):>8.2f}")


def draw(model: PredictiveAutoencoder, mlp: NetworkEngine, truth: Truth, path: Path, count: int = 6) -> None:
    """Frames given, true ones and those foreseen, of windows that hold an impact."""
    selected = torch.nonzero(truth.impacts).flatten()[:: max(1, int(truth.impacts.sum()) // count)][:count]
    frames = truth.frames[selected]
    start, properties = model.initial_state(model.observe(frames)), model.engine.properties
    rows = {
        "last given": frames[:, -1],
        "true, 10 later": truth.later[selected],
        "physics": model.decoder(model.simulate(start, AHEAD).final, properties),
        "MLP": model.decoder(mlp.rollout(start, AHEAD).final, properties),
    }
    figure, grid = plt.subplots(len(rows), count, figsize=(1.4 * count, 1.5 * len(rows)), layout="constrained")
    for row, (name, pictures) in enumerate(rows.items()):
        for column, picture in enumerate(pictures):
            grid[row][column].imshow(picture.clamp(0, 1).permute(1, 2, 0))
            grid[row][column].set(xticks=[], yticks=[])
        grid[row][0].set_ylabel(name, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


@torch.no_grad()
def report(model: PredictiveAutoencoder, mlp: NetworkEngine, truth: Truth, out: Path) -> dict[str, float]:
    """Print all tables; the figures that have bars."""
    predict = ways(model, mlp)
    encoder = model.encoder
    assert isinstance(encoder, ObjectEncoder)
    print(f"{len(truth.q)} windows, {int(truth.impacts.sum())} of them with an impact; median / 95th percentile, px")
    print(f"{'':<34} " + " ".join(f"{name:>15}" for name in CONDITIONS))
    views = {name: spoilt(encoder, truth.frames, options) for name, options in CONDITIONS.items()}
    states = {name: model.initial_state(model.observe(frames)) for name, frames in views.items()}
    errors: dict[str, Tensor] = {}
    predicted: dict[str, Tensor] = {}
    for name, way in predict.items():
        cells = []
        for condition, frames in views.items():
            q = way(frames, states[condition]).q[:, -1]
            result = distances(q, truth.q)
            if condition == "clean":
                errors[name], predicted[name] = result, q
            cells.append(f"{float(result.median()):>7.3f} /{float(result.quantile(0.95)):>6.2f}")
        print(f"{name:<34} " + " ".join(cells), flush=True)
    exact = distances(model.simulate(truth.start, AHEAD).q[:, -1], truth.q)
    print(f"{'true state and physics':<34} {float(exact.median()):>7.3f} /{float(exact.quantile(0.95)):>6.2f}")
    print(f"\n{'clean frames, mean error, px':<34} {'all':>8} {'impacts':>8}")
    for name, result in errors.items():
        print(f"{name:<34} {float(result.mean()):>8.3f} {float(result[truth.impacts].mean()):>8.3f}")
    compare_frames(model, truth, predicted)
    draw(model, mlp, truth, out / "billiards_predictions.png")
    ours = errors["encoder and physics"]
    at_impacts = {name: float(entry[truth.impacts].mean()) for name, entry in errors.items()}
    return {
        "median": float(ours.median()),
        "most": float(ours.quantile(0.95)),
        "straight": at_impacts["encoder and constant velocity"] / at_impacts["encoder and physics"],
        "mlp": at_impacts["encoder and MLP"] / at_impacts["encoder and physics"],
    }


def main(
    model: str = "billiards-3",
    data: str = "data/billiards",
    stride: int = 15,
    updates: int = 4000,
    runs: Path = Path("out/billiards_predictions"),
    out: Path = Path("out"),
) -> dict[str, float]:
    """Compare on held-out trials.

    Args:
        model: a model that comes with physvision, or a file.
        data: the data set.
        stride: frames between the starts of windows.
        updates: Updates of the MLP.
        runs: where the MLP is kept.
        out: folder of the figure.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loaded = load(model)
    truth = held_out(data, stride)
    balls = truth.q.shape[1] // 3
    coordinates = Coordinates(3 * balls, tuple(range(2, 3 * balls, 3)))
    mlp = NetworkEngine(
        StatePerceptron(coordinates, hidden=100, velocity_scale=30.0, position_scale=32.0), loaded.engine.dt
    )
    learned_steps(mlp, data, updates, runs / f"mlp-{balls}-{updates}.pt")
    result = report(loaded, mlp, truth, out)
    bars = {
        "median": (MEDIAN_BAR, -1),
        "most": (MAX_ERROR_BAR_PX, -1),
        "straight": (STRAIGHT_BAR, 1),
        "mlp": (MLP_BAR, 1),
    }
    names = (
        "median, px",
        "95th percentile, px",
        "impacts, constant velocity over physics",
        "impacts, MLP over physics",
    )
    for (name, (bar, sign)), text in zip(bars.items(), names, strict=True):
        verdict = "met" if sign * result[name] >= sign * bar else "MISSED"
        print(f"{text}: {result[name]:.2f}; bar {bar}: {verdict}")
    print(f"figure: {out / 'billiards_predictions.png'}")
    return result


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
