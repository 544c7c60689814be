"""Identify three drawn clips by the command, and compare the results with the truth.

OUT receives the reports, and `identify.jpg` with one frame of each film.

    python experiments/identify_clips.py [--out out/identify_clips]
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
from jsonargparse import auto_cli
from PIL import Image

from physvision import video
from physvision.datasets.clips import draw
from physvision.identification.command import run_command

BAR = 0.01  # of the leading parameter, the largest error
HEIGHT = 240  # pixels of each frame in the picture
# Kind of the clip, its seed, the kind given to the command, the known value, and the leading parameter.
CLIPS = (
    ("pendulum", 3, "pendulum", "gravity", "length"),
    ("bounce", 1, "bounce", "radius", "restitution"),
    ("spring", 1, None, "mass", "stiffness"),
)


def main(out: Path = Path("out/identify_clips")) -> float:
    """Draw and identify the clips, and return the largest relative error of a leading parameter.

    Args:
        out: Output folder.
    """
    out.mkdir(parents=True, exist_ok=True)
    frames, errors = [], []
    for kind, seed, motion, known_name, leading in CLIPS:
        clip = draw(kind, seed)
        path = clip.write(out / f"{kind}.mp4")
        known = f"{known_name}={clip.truth[known_name]:.4g}"
        arguments = [str(path), *(["--motion", motion] if motion else []), "--known", known]
        print(f"\nphysvision identify {' '.join(arguments)}")
        run_command([*arguments, "--out", str(out / kind)])
        result = json.loads((out / kind / "parameters.json").read_text())
        value, truth = result["parameters"][leading]["value"], clip.truth[leading]
        print(f"  {leading} of the drawing: {truth:.5g}, identified as {result['motion']}: {value / truth - 1:+.2%}")
        errors.append(abs(value / truth - 1))
        film = out / kind / "prediction.mp4"
        middle = video.read_info(film).frames // 3
        frame = next(islice(video.stream(film, color="rgb"), middle, None))[1]
        width = round(frame.shape[1] * HEIGHT / frame.shape[0])
        frames.append(cv2.resize(frame, (width, HEIGHT), interpolation=cv2.INTER_AREA))
    Image.fromarray(np.hstack(frames)).save(out / "identify.jpg", quality=85)
    print(f"\n{out / 'identify.jpg'}")
    return max(errors)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
