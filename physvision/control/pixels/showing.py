"""A policy that sees at work: a film, and what became of the pole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import interpolate

from physvision.control.pixels.files import load_policy
from physvision.control.pixels.task import DT, STEPS, UPRIGHT
from physvision.control.pixels.trials import task_of, trials
from physvision.control.pixels.view import View
from physvision.core import State
from physvision.report import OutputFolder, VideoFigure

_SIZE, _INSET = (288, 864), 2  # pixels of the film, and of it for one that the policy sees


def show(path: Path, seconds: float, policy: str) -> None:
    """Swing a pole up, film it with what the policy sees in a corner, and print how it went.

    Args:
        path: the film, an MP4 file.
        seconds: of it.
        policy: one that comes with physvision, or the path of a file.
    """
    network = load_policy(policy)
    task = task_of(network)
    found = trials(task, network, 1, seconds, last=min(1.0, seconds))
    large = View(task.engine, *_SIZE)
    with OutputFolder(path.parent):
        shown = VideoFigure(path, 1 / (DT * STEPS))
        for q, v in zip(found.motion.q[0], found.motion.v[0], strict=True):
            state = State(q[None], v[None])
            with torch.no_grad():
                shown.add([_drawn(large(state)[0], task.view(state)[0])])
        shown.close()
    if bool(found.stays[0]):
        print(f"upright from {float(found.rises[0]):.2f} s on")
    else:
        print(f"not within {UPRIGHT} rad of upright at the end")
    print(path)


def _drawn(frame: torch.Tensor, seen: torch.Tensor) -> np.ndarray:
    """The frame with what the policy sees of it in the upper left corner."""
    small = interpolate(seen[None], scale_factor=_INSET, mode="nearest")[0]
    frame = frame.clone()
    frame[:, : small.shape[1] + 2, : small.shape[2] + 2] = 1.0
    frame[:, : small.shape[1], : small.shape[2]] = small
    return (255 * frame.clamp(0, 1)).round().byte().movedim(0, -1).numpy()
