"""Film of a policy on camera frames at work, with a summary of its success."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import interpolate

from physvision.control.pixels.policy_file import load_policy
from physvision.control.pixels.renderer import CartPoleRenderer
from physvision.control.pixels.task import CONTROL_PERIOD_S, UPRIGHT_TOLERANCE_RAD
from physvision.control.pixels.trials import run_trials, task_for_policy
from physvision.core import State
from physvision.report import OutputFolder, VideoFigure

FILM_SIZE, INSET_SCALE = (288, 864), 2  # pixels of the film, and film pixels for a pixel of the policy's frame


def film_policy(path: Path, seconds: float, policy: str) -> None:
    """Swing a pole up, film it with the policy's frame in a corner, and print a summary.

    Args:
        path: MP4 file of the film.
        seconds: Duration, in s.
        policy: Name of a policy that comes with physvision, or path of a file.
    """
    network = load_policy(policy)
    task = task_for_policy(network)
    results = run_trials(task, network, 1, seconds, hold_seconds=min(1.0, seconds))
    renderer = CartPoleRenderer(task.engine, *FILM_SIZE)
    with OutputFolder(path.parent), VideoFigure(path, 1 / CONTROL_PERIOD_S) as video:
        for q, v in zip(results.motion.q[0], results.motion.v[0], strict=True):
            state = State(q[None], v[None])
            with torch.no_grad():
                video.add([_with_inset(renderer(state)[0], task.renderer(state)[0])])
    if bool(results.upright[0]):
        print(f"upright from {float(results.rise_times[0]):.2f} s on")
    else:
        print(f"not within {UPRIGHT_TOLERANCE_RAD} rad of upright at the end")
    print(path)


def _with_inset(frame: torch.Tensor, observation: torch.Tensor) -> np.ndarray:
    """Return a frame with the policy's in its upper left corner, 8 bits a channel."""
    inset = interpolate(observation[None], scale_factor=INSET_SCALE, mode="nearest")[0]
    frame = frame.clone()
    frame[:, : inset.shape[1] + 2, : inset.shape[2] + 2] = 1.0
    frame[:, : inset.shape[1], : inset.shape[2]] = inset
    return (255 * frame.clamp(0, 1)).round().byte().movedim(0, -1).numpy()
