"""The three-link pendulum a second ahead: what an encoder's angle errors leave of it, by the number of frames it reads.

Directions of links with Gaussian errors stand for an encoder, the engine with true lengths fits its motion to them
(`consistent_state`), and the camera draws the links where it predicts them. So the table says which errors of angles
the likeness of links asks for, and that velocities, not chaos, are what three frames lack.

    python experiments/pendulum_start.py
"""

# pyright: reportCallIssue=false

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from jsonargparse import auto_cli
from torch import Tensor
from torch.nn import functional

from physvision.core import Coordinates, State
from physvision.losses import ssim_map
from physvision.models import CameraDecoder, PendulumCamera
from physvision.models.consistency import consistent_state
from physvision.physics import articulated

LENGTH, LINKS, DT, AHEAD = 3.0, 3, 0.05, 20
# Frames that the longest start reads, and those of a trial.
_LONGEST, _TRIAL = 20, 170
_DILATION = 3
# Velocity error as likely as an angle error of one, 1/s, of trainers/pendulum-camera.yaml.
_TRUST = 33.0


def motions(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Angles and rates in windows of trials that start as those of the data set `pendulum` do."""
    torch.manual_seed(seed)
    start = State(
        (2.0 * torch.rand(count, LINKS).double() - 1.0) * 0.5 * math.pi,
        2.0 * torch.rand(count, LINKS).double() - 1.0,
    )
    path = engine().rollout(start, _TRIAL)
    firsts = torch.randint(0, _TRIAL - _LONGEST - AHEAD, (count,)).tolist()
    windows = [slice(first, first + _LONGEST + AHEAD) for first in firsts]
    q, v = (torch.stack([part[row, window] for row, window in enumerate(windows)]) for part in (path.q, path.v))
    return q, v


def engine() -> articulated.Articulation:
    """Three rods of 3 m, four Runge–Kutta steps a frame."""
    return articulated.chain([LENGTH] * LINKS, dt=DT, integrator="runge_kutta_4", substeps=4)


def main(worlds: int = 32, seed: int = 0, out: Path = Path("out")):
    """Print angle errors and likeness of links for errors of the encoder and numbers of frames.

    Args:
        worlds: Number of windows.
        seed: Seed of windows and errors.
        out: Folder of the JSON with all numbers.
    """
    camera = PendulumCamera(LINKS, 100, 37.4, 181.818182, lengths=[LENGTH] * LINKS)
    decoder = CameraDecoder(camera, None, codes=1, channels=1, colors=((0.9,), (0.6,), (0.3,)))
    angles, model = Coordinates(LINKS, tuple(range(LINKS))), engine()
    q, v = motions(worlds, seed)
    now, later = _LONGEST - 1, _LONGEST - 1 + AHEAD

    @torch.no_grad()
    def frames(positions: Tensor) -> tuple[Tensor, Tensor]:
        """Frames of states, and the coverage of each link."""
        state = State(positions.float(), torch.zeros_like(positions).float())
        return decoder(state), decoder.layers(state).coverage

    true, coverage = frames(q[:, later])
    visible = functional.max_pool2d((coverage > 0.5).float(), 2 * _DILATION + 1, 1, _DILATION)
    claims: dict[str, list[float]] = {}
    print(f"{'angle error, rad':<18}{'frames':>8}   {'direction errors 1 s ahead, rad':<42}SSIM over dilated links")
    for error in (0.002, 0.005, 0.01, 0.02):
        for count in (3, 6, 10, 20):
            read = q[:, now - count + 1 : now + 1] + error * torch.randn(worlds, count, LINKS).double()
            velocity = v[:, now] + _TRUST * error * torch.randn(worlds, LINKS).double()
            start = consistent_state(model, angles, read, velocity, _TRUST)
            predicted = model.rollout(start, AHEAD).q[:, -1]
            apart = angles.difference(q[:, later], predicted).cumsum(-1).abs().median(0).values
            similar = ssim_map(frames(predicted)[0], true)[:, None]
            likeness = (similar * visible).sum((2, 3)) / visible.sum((2, 3)).clamp_min(1.0)
            row = [*apart.tolist(), *likeness.median(0).values.tolist()]
            claims[f"{error:g} rad, {count} frames"] = row
            print(f"{error:<18g}{count:>8}   " + "".join(f"{value:<14.4f}" for value in row), flush=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / "pendulum_start.json").write_text(json.dumps(claims, indent=1))


if __name__ == "__main__":
    auto_cli(main)
