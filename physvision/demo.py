"""Demonstration of `make demo`: predictions on videos that are new to the checkpoints, and an identified pendulum."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice, zip_longest
from pathlib import Path

import matplotlib as mpl
import numpy as np
from PIL import Image

from physvision import video
from physvision.core import FileError, InputError
from physvision.datasets import BilliardsRecipe, PendulumRecipe, SwingRecipe, TabletopRecipe
from physvision.datasets.clips import Filming, draw
from physvision.datasets.recipe import Recipe
from physvision.identification.command import run_command as identify
from physvision.models import shipped
from physvision.prediction.command import ClipOptions, predict
from physvision.report import palette

SECONDS = 10
# Seed of the test videos; training uses the seed 0.
SEED = 2024
# Recipe of the videos of each checkpoint by frame rate, and prediction horizon, s.
CLIPS: dict[str, tuple[Callable[[int], Recipe], float]] = {
    "billiards-3": (lambda fps: BilliardsRecipe(trials=10, frames=SECONDS * fps, seed=SEED, balls=3), 1.0),
    "billiards-1": (lambda fps: BilliardsRecipe(trials=10, frames=SECONDS * fps, seed=SEED, balls=1), 1.0),
    "pendulum": (lambda fps: PendulumRecipe(trials=10, frames=SECONDS * fps, seed=SEED), 0.5),
    "pendulum-camera": (lambda fps: PendulumRecipe(trials=10, frames=SECONDS * fps, seed=SEED), 1.0),
    # As long as its training trials: balls that rest become background.
    "tabletop": (lambda fps: TabletopRecipe(trials=10, frames=min(SECONDS * fps, 100), seed=SEED), 0.5),
    # `predict` assumes a camera that neither tilts nor shakes.
    "swing": (
        lambda fps: SwingRecipe(trials=10, frames=min(SECONDS * fps, 100), seed=SEED, tilt=0, roll=0, shake=0),
        0.5,
    ),
}
# Clip of a bob on a string, filmed by a phone: motion, seed and filming.
_BOB = ("pendulum", 3, Filming(size=(320, 240), fps=30, exposure=0.3, noise=2, shake=0.2))
_RATES = {"pendulum": 20, "pendulum-camera": 20}
# Frame rate, number of frames and width, in pixels, of the GIF.
_GIF_FPS, _GIF_FRAMES, _GIF_WIDTH = 10, 60, 720


def demo(
    out: Path = Path("out/demo"),
    checkpoints: Sequence[str] = ("billiards-3", "tabletop", "swing", "pendulum"),
    law: bool = True,
) -> int:
    """Predict the motion in a video for each of several checkpoints, and print the paths of all reports.

    Args:
        out: Output folder; created if missing.
        checkpoints: Names of checkpoints; those that are not shipped are skipped.
        law: If true, also identify the length of a pendulum without a checkpoint; --no-law skips it.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{out}: cannot be created as the folder of the demo ({error.strerror})") from error
    shown = [name for name in checkpoints if name in shipped()]
    if not shown:
        raise InputError(f"checkpoints: none of {', '.join(checkpoints)} is shipped; there are {', '.join(shipped())}")
    start, films = time.perf_counter(), []
    for name in shown:
        make, horizon = CLIPS[name]
        fps = _RATES.get(name, 30)
        clip = video.write(out / f"{name}.mp4", make(fps).make("test", 0)["frames"], fps)
        print(f"\nphysvision predict {clip} --checkpoint {name} --out {out / name} --horizon {horizon:g}")
        status = predict(ClipOptions(str(clip)), name, str(out / name), horizon=horizon)
        if status:
            return status
        films.append(out / name / "prediction.mp4")
    picture = animate(films, out / "demo.gif")
    if law:
        films.append(_identified_bob(out))
    print(f"\nThe demo took {time.perf_counter() - start:.0f} s. Open these files:")
    for path in [*(film.with_name("report.html") for film in films), *films, picture]:
        print(f"  {path.resolve()}")
    print("\nTo do the same with a film of your own in the browser: physvision open")
    return 0


def _identified_bob(out: Path) -> Path:
    """Identify the length of a pendulum in a synthetic clip, and return the path of the video."""
    synthetic, folder = draw(*_BOB), out / "bob"
    clip = synthetic.write(out / "bob.mp4")
    print(f"\nphysvision identify {clip} --motion pendulum --known gravity=9.81 --out {folder}")
    identify([str(clip), "--motion", "pendulum", "--known", "gravity=9.81", "--out", str(folder)])
    print(f"The true length is {synthetic.truth['length']:.5g} m.")
    return folder / "prediction.mp4"


def animate(films: Sequence[Path], path: Path) -> Path:
    """Stack the beginnings of several videos into a small GIF."""
    rows = [islice(_subsampled(film), _GIF_FRAMES) for film in films]
    pictures = [np.vstack(column) for column in zip_longest(*rows) if all(picture is not None for picture in column)]
    colors = Image.new("P", (1, 1))
    colors.putpalette(_colors().tobytes())
    # Without dithering, still parts stay still.
    still = [Image.fromarray(picture).quantize(palette=colors, dither=Image.Dither.NONE) for picture in pictures]
    still[0].save(path, save_all=True, append_images=still[1:], duration=1000 // _GIF_FPS, loop=0, optimize=True)
    return path


def _colors() -> np.ndarray:
    """Palette of 256 colors for the GIF: grays, heat, and the colors of objects fading to black and to white."""
    grays = np.linspace(0, 255, 48)[:, None].repeat(3, 1)
    heat = mpl.colormaps["inferno"](np.linspace(0, 1, 64))[:, :3] * 255
    pure = np.array([*palette.OBJECTS, palette.WARN, *np.eye(3) * 255, *(np.eye(3) * 140 + 115)], float)
    fractions = np.array([0.2, 0.4, 0.6, 0.8, 1.0])[:, None, None]
    fading = np.concatenate(
        [(pure * fractions).reshape(-1, 3), (pure + (255 - pure) * 0.4), (pure + (255 - pure) * 0.7)]
    )
    rest = np.array([palette.GROUND, palette.PANEL, palette.TEXT, palette.MUTED], float)
    colors = np.concatenate([grays, heat, fading, rest])
    assert len(colors) <= 256
    return np.rint(np.vstack([colors, np.zeros((256 - len(colors), 3))])).astype(np.uint8)


def _subsampled(film: Path):
    """Frames of a video at the rate and width of the GIF, from 1 s on, when predictions begin."""
    info = video.read_info(film)
    height = 2 * round(info.height * _GIF_WIDTH / info.width / 2)
    frames = video.stream(film, "rgb", video.Conversion(fps=_GIF_FPS, size=(_GIF_WIDTH, height)))
    return (frame for time, frame in frames if time >= 1)
