"""The metrics of the cards, found by `physvision predict` alone on videos that no training saw.

    python experiments/predict_cards.py [--checkpoints pendulum billiards-3] [--videos 20]

For each checkpoint it makes held-out videos, writes them to files, runs the command on each, and compares states.npz
with the truth: what is seen now, and what had been predicted for a moment. Errors of angles go the shorter way.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np
from claims import Claim, write_claims
from matplotlib.figure import Figure

from physvision import demo, video
from physvision.cli import main as physvision
from physvision.core import Scene
from physvision.datasets.recipe import Recipe
from physvision.models import load

SECONDS = 10
# How far ahead each is asked, s.
HORIZONS = {"pendulum": (1.0, 3.0), "billiards-1": (1 / 3, 1.0), "billiards-3": (1 / 3, 1.0)}
Errors = dict[str, np.ndarray]


def predicted(path: Path, name: str, horizon: float, folder: Path) -> dict[str, np.ndarray]:
    """Output of the command for a video."""
    arguments = ["predict", str(path), "--checkpoint", name, "--out", str(folder), "--horizon", f"{horizon:.6f}"]
    with contextlib.redirect_stdout(io.StringIO()):
        status = physvision([*arguments, "--film", "false"])
    if status:
        raise RuntimeError(f"physvision {' '.join(arguments)} ended with {status}")
    with np.load(folder / "states.npz") as arrays:
        return {key: arrays[key] for key in arrays.files}


def errors(estimated: dict[str, np.ndarray], truth: dict[str, np.ndarray], scene: Scene) -> Errors:
    """Distances from the truth, of what is seen and of what had been predicted, and the likeness of frames."""
    selected, known = estimated["frame"], np.isfinite(estimated["psnr"])
    units = list(scene.coordinates.values())
    moving = [index for index, unit in enumerate(units) if not ("px" in units and unit == "rad")]

    def away(observed: str, true: str, rows: np.ndarray) -> np.ndarray:
        shape = estimated["position"].shape[1:]
        off = (estimated[observed] - truth[true][selected].reshape(-1, *shape))[rows][..., moving]
        if units[moving[0]] == "rad":
            turns = 2 * np.pi * np.round(off / (2 * np.pi)) if true == "q" else 0.0
            return np.abs(off - turns)
        return np.linalg.norm(off, axis=-1, keepdims=True)

    everything = np.ones_like(known)
    return {
        "position now": away("position", "q", everything),
        "velocity now": away("velocity", "v", everything),
        "position ahead": away("predicted_position", "q", known),
        "velocity ahead": away("predicted_velocity", "v", known),
        "psnr": estimated["psnr"][known],
        "ssim": estimated["ssim"][known],
        "reprojection score": estimated["reprojection_score"],
    }


def judge(name: str, videos: int, horizon: float) -> Errors:
    """Errors of all videos together."""
    scene = load(name).scene
    assert scene is not None
    recipe: Recipe = demo.CLIPS[name][0](round(scene.fps))
    retained: list[Errors] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(videos):
            truth = recipe.make("test", number)
            path = video.write(Path(folder) / f"{number}.mkv", truth["frames"], scene.fps, lossless=True)
            retained.append(errors(predicted(path, name, horizon, Path(folder) / "out"), truth, scene))
    return {key: np.concatenate([entry[key].ravel() for entry in retained]) for key in retained[0]}


def report(name: str, horizon: float, estimated: Errors) -> None:
    scene = load(name).scene
    assert scene is not None
    unit = "px" if "px" in scene.coordinates.values() else "rad"
    print(f"\n{name}, {horizon:.3g} s ahead")
    for key in ("position now", "velocity now", "position ahead", "velocity ahead"):
        values, per = estimated[key], "/s" if key.startswith("velocity") else ""
        marks = f"mean {values.mean():.3f}, median {np.median(values):.3f}, 95 % below {np.quantile(values, 0.95):.3f}"
        print(f"  {key:<16} {marks} {unit}{per}")
    print(f"  {'frames ahead':<16} PSNR {estimated['psnr'].mean():.1f} dB, SSIM {estimated['ssim'].mean():.3f}")
    low = np.quantile(estimated["reprojection score"], [0.01, 0.5])
    print(f"  {'reprojection score':<16} 1 % below {low[0]:.2f}, median {low[1]:.2f}")


def main(checkpoints: list[str], videos: int, out: Path = Path("out")) -> dict[tuple[str, float], Errors]:
    """Judge, print the table and draw how errors are distributed."""
    results = {}
    for name in checkpoints:
        for horizon in HORIZONS[name]:
            results[name, horizon] = judge(name, videos, horizon)
            report(name, horizon, results[name, horizon])
    figure = Figure(figsize=(5 * len(checkpoints), 3.4), layout="constrained")
    panels = figure.subplots(1, len(checkpoints), squeeze=False)[0]
    for panel, name in zip(panels, checkpoints, strict=True):
        for horizon in HORIZONS[name]:
            values = np.sort(results[name, horizon]["position ahead"])
            panel.plot(values, np.linspace(0, 1, len(values)), label=f"{horizon:.3g} s ahead")
        values = np.sort(results[name, HORIZONS[name][0]]["position now"])
        panel.plot(values, np.linspace(0, 1, len(values)), label="now")
        panel.set(xscale="log", xlabel="error of a position", ylabel="share below", title=name)
        panel.legend(frameon=False)
    if "pendulum" in checkpoints:
        horizon = HORIZONS["pendulum"][0]
        name = f"angle of a three-link pendulum {horizon:g} s ahead, {videos} held-out videos: median error"
        median = float(np.median(results["pendulum", horizon]["position ahead"]))
        print(write_claims(__file__, [Claim(name, median, "rad")]))
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "predict_cards.png", dpi=120)
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", nargs="+", default=list(HORIZONS))
    parser.add_argument("--videos", type=int, default=20)
    given = parser.parse_args()
    main(given.checkpoints, given.videos)
