"""Find when an unseen push came, and how large it was, from a motion that was recorded.

A cart on a rail carries a hanging rod that swings. Something pushes the cart for 20 ms, 1.5 N s at an unknown time. The
motion is made by MuJoCo in steps of 0.1 ms, and only the rod's angle is seen, a hundred times a second, with noise.
Time and size are sought by Gauss–Newton through the engine's gradients, from twelve guesses at the time at once.

    python experiments/push.py [--noise 2.0] [--draws 5] [--out out]
"""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from pathlib import Path
from statistics import median

import mujoco
import torch
from claims import Claim, write_claims
from jsonargparse import auto_cli
from panel import panel, save
from torch import Tensor

from physvision.core import State
from physvision.estimation import MotionResidual, Setup, Unknown, Unknowns, gauss_newton
from physvision.estimation.uncertainty import uncertainty
from physvision.physics import articulated
from physvision.report import render_video

DT, RATE, SECONDS, LASTS = 2e-3, 100, 3.0, 0.02
AT, SIZE = 1.2345, 1.5  # s, N s
GUESSES = 12
SCENE = """
<mujoco>
  <worldbody>
    <body name="cart">
      <joint name="rail" type="slide" axis="1 0 0" damping="0.3"/>
      <geom type="box" size="0.2 0.1 0.08" mass="2" contype="0" conaffinity="0" rgba="0.3 0.5 0.75 1"/>
      <body name="rod">
        <joint name="hinge" type="hinge" axis="0 1 0" damping="0.01"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.6" size="0.03" mass="0.8" contype="0" conaffinity="0"
              rgba="0.84 0.37 0.3 1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
START = 0.4  # rad
ENGINE = articulated.load(SCENE, DT)
SOUGHT = Unknowns(
    [Unknown("time", SECONDS / 2, low=0.0, high=SECONDS - LASTS, unit="s"), Unknown("size", 0.0, unit="N s")]
)


def recorded() -> Tensor:
    """The rod's angles in MuJoCo, (samples, 1), rad."""
    model = mujoco.MjModel.from_xml_string(SCENE)
    model.opt.timestep = 1e-4
    data = mujoco.MjData(model)
    data.qpos[1] = START
    angles = [START]
    for step in range(round(SECONDS / 1e-4)):
        covered = min(1e-4 * (step + 1), AT + LASTS) - max(1e-4 * step, AT)
        data.qfrc_applied[0] = SIZE / LASTS * max(0.0, covered) / 1e-4
        mujoco.mj_step(model, data)
        if (step + 1) % round(1e4 / RATE) == 0:
            angles.append(float(data.qpos[1]))
    return torch.tensor(angles, dtype=torch.float64)[:, None]


def setup(values) -> Setup:
    """The motion with a push at this time, each step having what of it falls into it."""
    at, size = (values[name].reshape(-1) for name in ("time", "size"))
    begins = DT * torch.arange(round(SECONDS / DT), dtype=torch.float64)
    covered = torch.minimum(begins + DT, at[:, None] + LASTS) - torch.maximum(begins, at[:, None])
    force = size[:, None] / LASTS * covered.clamp(min=0.0) / DT
    start = ENGINE.initial_state(len(at), torch.float64)
    q = start.q + torch.tensor([0.0, START], dtype=torch.float64)
    return Setup(State(q, start.v), {}, torch.stack([force, torch.zeros_like(force)], -1))


def problem(observed: Tensor, noise: float) -> MotionResidual:
    """Estimation problem of the push from angles (samples, 1)."""
    times = torch.arange(len(observed), dtype=torch.float64) / RATE
    return MotionResidual(
        ENGINE, SOUGHT, setup, times, observed, lambda entry: entry.state.q[:, 1:], weight=1 / noise
    )  # fmt: skip


def main(noise: float = 2.0, draws: int = 5, out: Path = Path("out"), filmed: bool = True) -> tuple[float, float]:
    """Estimate the push from angles.

    Args:
        noise: Standard deviation of the angles, mrad.
        draws: Number of realizations of the noise.
        out: folder of the figure and the film.
        filmed: If true, write a film.

    Returns:
        The worst errors of time, s, and of size, a share of it.
    """
    torch.set_num_threads(1)
    clean = recorded()
    deviates = torch.randn(draws, *clean.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    guesses = SECONDS * (torch.arange(GUESSES, dtype=torch.float64) + 0.5) / GUESSES
    starts = SOUGHT.unconstrain({"time": guesses, "size": torch.full_like(guesses, 0.5)})
    tasks = [problem(clean + 1e-3 * noise * deviate, 1e-3 * noise) for deviate in deviates]
    searches = [gauss_newton(task, starts, max_iterations=30) for task in tasks]
    best = [search.best_z for search in searches]
    flat = [SOUGHT.flat_values(z).tolist() for z in best]
    errors = [(at - AT, size / SIZE - 1) for at, size in flat]
    task, z = tasks[0], best[0]
    times, sizes = zip(*errors, strict=True)
    print(f"push of {SIZE} N s at {AT} s, noise of {noise:g} mrad, {draws} draws; nothing was told of it")
    worst = [max(entry, key=abs) for entry in (times, sizes)]
    middle = [median(map(abs, entry)) for entry in (times, sizes)]
    print(f"time off by {1e3 * middle[0]:.2f} ms in the median, {1e3 * worst[0]:.2f} ms at worst")
    print(f"size off by {100 * middle[1]:.2f} % in the median, {100 * worst[1]:.2f} % at worst")
    offs = {"time": ([1e3 * abs(at) for at in times], "ms"), "size": ([100 * abs(size) for size in sizes], "%")}
    claims = [
        Claim(f"error of a push's {name}, largest", max(off), unit, (min(off), max(off)), tuple(range(draws)))
        for name, (off, unit) in offs.items()
    ]
    print(write_claims(__file__, claims))
    (low, high), (minimum, limit) = uncertainty(task, z).interval(0.9).tolist()
    print(f"of the first draw, 90 % intervals: time {low:.4f} to {high:.4f} s, size {minimum:.3f} to {limit:.3f} N s")
    motion = task.rollout(z[None])
    draw(task, z, out / "push.png")
    print(
        f"figure: {out / 'push.png'}" + (f", film: {render_video(ENGINE, motion, out / 'push.mp4')}" if filmed else "")
    )
    return abs(worst[0]), abs(worst[1])


def draw(task: MotionResidual, z: Tensor, file: Path) -> None:
    figure, axis = panel()
    axis.plot(task.times, task.observed[:, 0], ".", color="0.5", markersize=3, label="seen")
    with torch.no_grad():
        axis.plot(task.times, task.predictions(z[None])[0, :, 0], color="C0", linewidth=1, label="with the push found")
    axis.axvspan(AT, AT + LASTS, color="C1", alpha=0.5, label="push")
    axis.set(xlabel="s", ylabel="angle of the rod, rad")
    save(figure, axis, file)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
