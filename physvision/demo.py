"""What `make demo` shows: videos that the shipped checkpoints have not seen, and a clip that needs none."""

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
from physvision.datasets import BilliardsRecipe, PendulumRecipe
from physvision.datasets.clips import Filming, draw
from physvision.datasets.recipe import Recipe
from physvision.identification.command import run_command as identify
from physvision.models import shipped
from physvision.prediction.command import predict
from physvision.report import palette

SECONDS = 10
# Held out: training uses the seed 0.
SEED = 2024
# How to make a video of the kind that each checkpoint was made for, and how far ahead is worth showing, s.
CLIPS: dict[str, tuple[Callable[[int], Recipe], float]] = {
    "billiards-3": (lambda fps: BilliardsRecipe(trials=10, frames=SECONDS * fps, seed=SEED, balls=3), 1.0),
    "billiards-1": (lambda fps: BilliardsRecipe(trials=10, frames=SECONDS * fps, seed=SEED, balls=1), 1.0),
    "pendulum": (lambda fps: PendulumRecipe(trials=10, frames=SECONDS * fps, seed=SEED), 0.5),
}
# A bob on a string, as a phone films it.
_SWING = ("pendulum", 3, Filming(size=(320, 240), fps=30, open=0.3, noise=2, shake=0.2))
_RATES = {"pendulum": 20}
# Of the GIF: its frames a second, how many there are, and its width in pixels.
_GIF_FPS, _GIF_FRAMES, _GIF_WIDTH = 10, 60, 720


def demo(
    out: Path = Path("out/demo"), checkpoints: Sequence[str] = ("billiards-3", "pendulum"), law: bool = True
) -> int:
    """Make a video for each of some shipped checkpoints, predict from it, and print where everything is.

    Args:
        out: folder; made where it is missing.
        checkpoints: which to show; those that are not shipped are left out.
        law: show as well how the length of a pendulum is found without a checkpoint; --no-law goes without.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{out}: cannot be made a folder for the demo ({error.strerror})") from error
    shown = [name for name in checkpoints if name in shipped()]
    if not shown:
        raise InputError(f"checkpoints: none of {', '.join(checkpoints)} is shipped; there are {', '.join(shipped())}")
    began, films = time.perf_counter(), []
    for name in shown:
        make, horizon = CLIPS[name]
        fps = _RATES.get(name, 30)
        clip = video.write(out / f"{name}.mp4", make(fps).make("test", 0)["frames"], fps)
        print(f"\nphysvision predict {clip} --checkpoint {name} --out {out / name} --horizon {horizon:g}")
        status = predict(str(clip), name, str(out / name), horizon=horizon)
        if status:
            return status
        films.append(out / name / "prediction.mp4")
    picture = animate(films, out / "demo.gif")
    if law:
        films.append(_swing(out))
    print(f"\nIn {time.perf_counter() - began:.0f} s. Open these:")
    for path in [*(film.with_name("report.html") for film in films), *films, picture]:
        print(f"  {path.resolve()}")
    return 0


def _swing(out: Path) -> Path:
    """Draw a clip of a pendulum and find its length; the film."""
    drawn, folder = draw(*_SWING), out / "swing"
    clip = drawn.write(out / "swing.mp4")
    print(f"\nphysvision identify {clip} --motion pendulum --known gravity=9.81 --out {folder}")
    identify([str(clip), "--motion", "pendulum", "--known", "gravity=9.81", "--out", str(folder)])
    print(f"It was drawn with a length of {drawn.truth['length']:.5g} m.")
    return folder / "prediction.mp4"


def animate(films: Sequence[Path], path: Path) -> Path:
    """The beginnings of `films` below each other as a small GIF, which pages show."""
    rows = [islice(_thinned(film), _GIF_FRAMES) for film in films]
    pictures = [np.vstack(column) for column in zip_longest(*rows) if all(each is not None for each in column)]
    colors = Image.new("P", (1, 1))
    colors.putpalette(_colors().tobytes())
    # Without dithering, still parts stay still.
    still = [Image.fromarray(each).quantize(palette=colors, dither=Image.Dither.NONE) for each in pictures]
    still[0].save(path, save_all=True, append_images=still[1:], duration=1000 // _GIF_FPS, loop=0, optimize=True)
    return path


def _colors() -> np.ndarray:
    """The 256 colours of the GIF: grays, heat, and each colour of an object or a ball fading to black and to white."""
    grays = np.linspace(0, 255, 48)[:, None].repeat(3, 1)
    heat = mpl.colormaps["inferno"](np.linspace(0, 1, 64))[:, :3] * 255
    pure = np.array([*palette.OBJECTS, palette.WARN, *np.eye(3) * 255, *(np.eye(3) * 140 + 115)], float)
    shares = np.array([0.2, 0.4, 0.6, 0.8, 1.0])[:, None, None]
    fading = np.concatenate([(pure * shares).reshape(-1, 3), (pure + (255 - pure) * 0.4), (pure + (255 - pure) * 0.7)])
    rest = np.array([palette.GROUND, palette.PANEL, palette.TEXT, palette.MUTED], float)
    found = np.concatenate([grays, heat, fading, rest])
    assert len(found) <= 256
    return np.rint(np.vstack([found, np.zeros((256 - len(found), 3))])).astype(np.uint8)


def _thinned(film: Path):
    """The frames of a film at the GIF's rate and width, without its first second, which has no prediction yet."""
    found = video.read_info(film)
    height = 2 * round(found.height * _GIF_WIDTH / found.width / 2)
    frames = video.stream(film, "rgb", video.Conversion(fps=_GIF_FPS, size=(_GIF_WIDTH, height)))
    return (frame for time, frame in frames if time >= 1)
