"""From a clip of one's own to predictions, without labels, with an encoder class of one's own, by commands alone.

    python experiments/own_clip.py [--updates 1500] [--seconds 10] [--folder] [--devices 2] [--out out/own_clip]

A rod with a bob is filmed by lines that share no code with the package: blur of the exposure, uneven light, noise,
compression. `import` makes a data set of it, `fit` trains `Eye`, the class of a module beside the configuration,
through an engine and a camera that come from a model file, and goes on from its checkpoint; then `test`, `export` and
`predict`. Printed and written as claims is the PSNR of frames ten ahead of held-out ones: of the model, of the last
frame that is given, and of that frame moved on by its optical flow. The bar is 2 dB above the better of these two.
Run by the Python of an environment in which a wheel is installed, all of it is that of the wheel. Updates are a
multiple of 200, since half of them come before the resume, and a checkpoint is kept every 100. A source of another
kind or length needs a folder of its own (`--out`).

Of a clip of 2 s a third is for training, in which the bob swings to one side alone. An encoder that learned from it
as it is was 0.8 dB below the last frame where the bob swings back, after 300 updates; with the clip played backwards as
well it was 1.0 dB above after as many, and 7.5 dB after 1,000.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import torch
import yaml
from claims import ROOT, Claim, write_claims

import physvision
from physvision import video
from physvision.core import brightness
from physvision.datasets import Dataset, Windows, WindowShape
from physvision.models import load

WIDTH, HEIGHT, FPS, GIVEN, AHEAD, BAR = 64, 48, 30, 4, 10, 2.0
SCENE = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body>
<joint type="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -1" size=".03" mass=".1"/>
<geom type="sphere" pos="0 0 -1" size=".12" mass="1"/>
</body></worldbody></mujoco>"""
MODULE = '''"""An encoder of one's own: three convolutions over four frames."""

import torch
from torch import nn

from physvision.core import brightness
from physvision.models import AppearanceCode, Encoder, Observation, register


@register("own_clip.Eye")
class Eye(Encoder):
    """Reads angle and angular velocity from the last frames; looks and background are learned as those of the clip."""

    def __init__(self, size: tuple[int, int], frames: int, shapes: int) -> None:
        super().__init__()
        width, height = size
        layers = []
        for inputs, outputs in ((3 * frames, 12), (12, 24), (24, 48)):
            layers += [nn.Conv2d(inputs, outputs, 3, 2, 1), nn.LeakyReLU(0.1)]
        flat = 48 * (width // 8) * (height // 8)
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, 64), nn.LeakyReLU(0.1), nn.Linear(64, 2))
        self.frames = frames
        self.background = nn.Parameter(torch.full((3, height, width), 0.5))
        self.code = nn.Parameter(torch.zeros(12 * shapes))

    def observe(self, frames, context=None):
        images = brightness(frames[:, -self.frames :])
        angle, rate = self.layers((images - self.background).flatten(1, 2)).unbind(1)
        batch = len(frames)
        looks = AppearanceCode(self.code.expand(batch, -1), self.background.expand(batch, -1, -1, -1))
        return Observation(angle[:, None, None], 3.0 * rate[:, None, None], appearance=looks)
'''


def film(seconds: float) -> list[np.ndarray]:
    """Film a rod with a bob that swings: four samples an exposure, four an edge, uneven light, noise."""
    generator, substeps = np.random.default_rng(7), 40
    # Of the model file: the moment of gravity over the moment of inertia about the hinge.
    rate = 9.81 * (1.0 + 0.05) / (1.0 + 0.4 * 0.12**2 + 0.1 / 3)
    angle, speed, dt = 0.9, 0.0, 1 / (FPS * substeps)
    focal = HEIGHT / (2 * np.tan(0.35))
    x, y = np.meshgrid(np.linspace(-1, 1, 4 * WIDTH), np.linspace(-1, 1, 4 * HEIGHT))
    wall = 110 + 40 * x - 25 * y + 12 * np.sin(9 * x + 4 * y)
    wall = np.stack([wall, 0.9 * wall + 8, 0.8 * wall + 20], -1)

    def pixel(along: float) -> tuple[int, int]:
        across, up = -np.sin(angle) * along, -np.cos(angle) * along
        scale = 4 * focal / 3.5
        return round(4 * WIDTH / 2 + across * scale), round(4 * HEIGHT / 2 - (up + 0.5) * scale)

    frames = []
    for _ in range(round(seconds * FPS)):
        exposures = []
        for substep in range(substeps):
            speed -= rate * np.sin(angle) * dt
            angle += speed * dt
            if substep >= substeps // 2 and substep % 5 == 0:
                picture = wall.copy()
                cv2.line(picture, pixel(0), pixel(1), (60, 50, 45), round(8 * 0.03 * focal / 3.5), cv2.LINE_AA)
                cv2.circle(picture, pixel(1), round(4 * 0.12 * focal / 3.5), (200, 60, 40), -1, cv2.LINE_AA)
                exposures.append(picture)
        image = cv2.resize(np.mean(exposures, 0), (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
        frames.append(np.clip(image + generator.normal(0, 2, image.shape), 0, 255).round().astype(np.uint8))
    return frames


def configuration(updates: int, devices: int) -> dict:
    """Configuration of the training, to be written as YAML."""
    engine = {
        "class_path": "physvision.physics.articulated.load",
        "init_args": {"source": "scene.xml", "dt": 1 / FPS, "integrator": "runge_kutta_4"},
    }
    view = {"engine": engine, "size": [WIDTH, HEIGHT], "position": [0, -3.5, -0.5], "target": [0, 0, -0.5], "fov": 0.7}
    decoder = {
        "camera": {"class_path": "physvision.models.SceneCamera", "init_args": view},
        "network": {
            "class_path": "physvision.models.LayerNetwork",
            "init_args": {"inputs": 20, "channels": 3, "width": 0.0625},
        },
    }
    model = {
        "encoder": {
            "class_path": "own_clip.Eye",
            "init_args": {"size": [WIDTH, HEIGHT], "frames": GIVEN, "shapes": 2},
        },
        "engine": engine,
        "decoder": {"class_path": "physvision.models.CameraDecoder", "init_args": decoder},
        "max_speed": 30.0,
        "scene": {
            "title": "a bob on a rod",
            "appearance": "a red bob on a dark rod before a wall",
            "size": [WIDTH, HEIGHT],
            "color": "rgb",
            "fps": float(FPS),
            "frames_in": GIVEN,
            "coordinates": {"angle": "rad"},
            "objects": [{"name": "rod", "body": 0, "points": [[0, 0, 0], [0, 0, -1]]}],
            "parameters": {},
        },
    }
    checkpoints = {
        "dirpath": "out/checkpoints",
        "save_last": True,
        "enable_version_counter": False,
        "every_n_train_steps": 100,
    }
    return {
        "seed_everything": 0,
        "trainer": {
            "default_root_dir": "out",
            "max_steps": updates,
            "max_epochs": -1,
            "accelerator": "cpu",
            "devices": devices,
            **({"strategy": "ddp_find_unused_parameters_true"} if devices > 1 else {}),
            "enable_progress_bar": False,
            "logger": {"class_path": "lightning.pytorch.loggers.TensorBoardLogger", "init_args": {"save_dir": "out"}},
            "callbacks": [{"class_path": "lightning.pytorch.callbacks.ModelCheckpoint", "init_args": checkpoints}],
        },
        "model": {
            "model": {"class_path": "physvision.models.PredictiveAutoencoder", "init_args": model},
            "supervision": {
                "coordinates": {"size": 1, "angles": [0]},
                "frame_loss": {"kind": "multi_scale"},
                "ramp_updates": max(1, updates // 4),
            },
            "samples": {"symmetries": ["reversal"]},
            "optimization": {"learning_rate": 3e-3},
            "forecast": {"eval_steps": [0, AHEAD]},
        },
        "data": {"path": "data/clip", "batch_size": 16, "shape": {"frames_in": GIVEN, "horizon": AHEAD}},
    }


def main(updates: int = 1500, seconds: float = 10.0, folder: bool = False, devices: int = 1, out: str = "") -> float:
    """Go from the clip to the prediction, and print and return the gain over the better baseline, dB."""
    place = Path(out or "out/own_clip").resolve()
    place.mkdir(parents=True, exist_ok=True)
    frames = film(seconds)
    clip = "pictures" if folder else "clip.mp4"
    if folder:
        (place / clip).mkdir(exist_ok=True)
        for number, frame in enumerate(frames):
            cv2.imwrite(str(place / clip / f"frame-{number:04}.png"), frame[..., ::-1])
    else:
        video.write(place / clip, frames, FPS)
    (place / "scene.xml").write_text(SCENE)
    (place / "own_eyes.py").write_text(MODULE)
    (place / "mine.yaml").write_text(yaml.safe_dump(configuration(updates, devices)))

    def run(*arguments: str) -> None:
        command = [str(Path(sys.executable).with_name("physvision")), *arguments, "--import", "own_eyes"]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")

    last, trained = "out/checkpoints/last.ckpt", ("--config", "mine.yaml")
    run("import", clip, "--out", "data/clip", "--fps", str(FPS))
    run("fit", *trained, "--trainer.max_steps", str(max(1, updates // 2)))
    run("fit", *trained, "--ckpt_path", last)
    run("test", *trained, "--trainer.devices", "1", "--ckpt_path", last)
    run("export", last, "--out", "mine.safetensors")
    size = f"{WIDTH},{HEIGHT}"
    run("predict", clip, "--checkpoint", "mine.safetensors", "--fps", str(FPS), "--size", size, "--out", "p", "--force")
    ratios = _measure(place)
    baseline = max((name for name in ratios if name != "model"), key=lambda name: ratios[name])
    gain = ratios["model"] - ratios[baseline]
    print(f"{AHEAD} frames ahead: {gain:+.2f} dB (bar {BAR:+.1f})")
    source = "a folder of pictures" if folder else "a clip"
    way = f"{source} of {seconds:g} s, {devices} process{'es' if devices > 1 else ''}"
    package = Path(physvision.__file__).resolve()
    way += "" if package.is_relative_to(ROOT / "physvision") else ", from a wheel"
    print(package.parent)
    name = f"PSNR of frames {AHEAD} ahead, {updates:,} updates, {way}"
    write_claims(__file__, [Claim(name, ratios["model"], "dB", None, (0,), ratios[baseline], baseline)])
    return gain


def _measure(place: Path) -> dict[str, float]:
    """Compare frames of the exported model with those of the held-out part of the clip: PSNR by name, dB."""
    sys.path.insert(0, str(place))
    importlib.import_module("own_eyes")
    model = load(place / "mine.safetensors").eval()
    windows = Windows(Dataset(place / "data/clip", "test"), WindowShape(frames_in=GIVEN, horizon=AHEAD))
    frames = brightness(torch.cat([windows[index].frames for index in range(len(windows))]))
    given, target = frames[:, :GIVEN], frames[:, -1]
    with torch.no_grad():
        predicted = model(given, AHEAD).frames[:, -1]
    ways = {"model": predicted, "last frame": given[:, -1], "moved by its flow": _moved(given)}
    ratios = {name: -10 * torch.log10((image - target).square().mean()).item() for name, image in ways.items()}
    print(f"{len(frames)} held-out windows")
    for name, value in ratios.items():
        print(f"{name:18} {value:.2f} dB")
    return ratios


def _moved(given: torch.Tensor) -> torch.Tensor:
    """The last frame, each pixel moved on at the velocity of the optical flow."""
    moved = []
    for clip in (255 * given).round().byte().permute(0, 1, 3, 4, 2).numpy():
        before, now = (cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in clip[-2:])
        flow = cv2.calcOpticalFlowFarneback(now, before, None, 0.5, 3, 9, 5, 5, 1.1, 0)  # pyright: ignore
        rows, columns = np.indices(now.shape, np.float32)
        source = np.dstack([columns, rows]).astype(np.float32) + AHEAD * flow
        image = cv2.remap(clip[-1], source, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)  # pyright: ignore
        moved.append(torch.from_numpy(image).permute(2, 0, 1))
    return torch.stack(moved) / 255


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=1500, help="updates of the training")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of the clip, s")
    parser.add_argument("--folder", action="store_true", help="film to a folder of pictures")
    parser.add_argument("--devices", type=int, default=1, help="processes of the training")
    parser.add_argument("--out", default="", help="folder of all files")
    given = parser.parse_args()
    sys.exit(main(given.updates, given.seconds, given.folder, given.devices, given.out) < BAR)
