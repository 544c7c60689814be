"""Find a servo's gain, delay and largest speed from its answer to a step, as an encoder sees it.

What is seen is made by the closed form of a motor that nothing holds back: from a delay after the step on it turns at
its largest speed, until what is left of the way times its gain is less, and then by an exponential. The angle is read a
hundred times a second with noise. Gauss–Newton fits a servo of the engine, through its own gradients.

    python experiments/servo_calibration.py [--noise 1.0] [--draws 5] [--out out]
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from jsonargparse import auto_cli
from panel import panel, save
from torch import Tensor

from physvision.estimation import MotionResidual, Setup, Unknown, Unknowns, gauss_newton
from physvision.estimation.uncertainty import uncertainty
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint, Transmission

DT, RATE, SECONDS = 1e-3, 100, 0.8
AT, WAY, LONGEST = 0.1, 0.8, 0.2  # s, rad, s: the step, and the longest delay
TRUTH = {"gain": 30.0, "delay": 0.037, "speed": 4.0}  # 1/s, s, rad/s
# So stiff that the speed that is asked for is reached within a step but for I / (h c) = 5e-5 of it.
INERTIA, DAMPING = 0.05, 1e6
SOUGHT = Unknowns(
    [
        Unknown("gain", 10.0, low=0.0, unit="1/s"),
        Unknown("delay", 0.1, low=0.0, high=LONGEST, unit="s"),
        Unknown("speed", 2.0, low=0.0, unit="rad/s"),
    ]
)
GUESSES = {"gain": 15.0, "delay": 0.1, "speed": torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64)}
ENGINE = articulated.tree(
    [Body("arm", None, [Joint("revolute", (0, 0, 1), name="hinge")], mass=1.0, inertia=(INERTIA,) * 3)],
    dt=DT,
    contact="event",
    transmissions=[Transmission({"hinge": 1.0}, stiffness=DAMPING, damping=DAMPING, max_speed=1.0)],
)


def answer(times: Tensor) -> Tensor:
    """The closed form, rad."""
    gain, delay, speed = TRUTH.values()
    moving = (times - AT - delay).clamp(min=0.0)
    last = (WAY - speed / gain) / speed  # s at the largest speed
    slow = WAY - speed / gain * torch.exp(-gain * (moving - last).clamp(min=0.0))
    return torch.where(moving < last, speed * moving, slow)


def setup(values) -> Setup:
    """The servo with these numbers, whose target steps as its samples begin, but for the longest delay."""
    gain, speed = (values[name].reshape(-1) for name in ("gain", "speed"))
    # Asked once a step it closes 1 − e^(−gain h) of what is left, as the motor does in that time.
    stiffness = DAMPING * (1 - torch.exp(-gain * DT)) / DT
    record = torch.arange(round((SECONDS + LONGEST) / DT)) >= round((AT + LONGEST) / DT)
    pull = (stiffness[:, None] * WAY * record).unsqueeze(-1)
    controls = torch.cat([torch.zeros_like(pull), pull], -1)
    properties = {"transmission_stiffness": stiffness[:, None], "transmission_max_speed": speed[:, None]}
    return Setup(ENGINE.initial_state(len(gain), torch.float64), properties, controls)


def problem(observed: Tensor, noise: float) -> MotionResidual:
    """Estimation problem of the parameters from angles (samples, 1)."""
    times = LONGEST + torch.arange(len(observed), dtype=torch.float64) / RATE

    # At its largest speed a servo does not feel when within a step it is told: the delay is one of what is seen.
    def later(values, sample: Tensor) -> Tensor:
        return -values["delay"].reshape(-1, 1)

    return MotionResidual(ENGINE, SOUGHT, setup, times, observed, weight=1 / noise, delay=later)


def main(noise: float = 1.0, draws: int = 5, out: Path = Path("out")) -> float:
    """Calibrate the parameters of the servo.

    Args:
        noise: Standard deviation of the encoder, mrad.
        draws: Number of realizations of the noise.
        out: folder of the figure.

    Returns:
        The worst error of the gain, a share of it.
    """
    torch.set_num_threads(1)
    times = torch.arange(round(SECONDS * RATE) + 1, dtype=torch.float64) / RATE
    deviates = torch.randn(draws, len(times), 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    observed = answer(times)[:, None] + 1e-3 * noise * deviates
    empty = problem(observed[0], 1e-3 * noise)
    results = [
        gauss_newton(replace(empty, observed=entry), SOUGHT.unconstrain(GUESSES), max_iterations=25)
        for entry in observed
    ]
    z = torch.stack([entry.best_z for entry in results])
    values = SOUGHT.values(z)
    print(f"{draws} draws of noise of {noise:g} mrad, {RATE} angles a second; {len(GUESSES['speed'])} guesses")
    for name, truth in TRUTH.items():
        errors = ((values[name].reshape(-1) - truth) / truth).tolist()
        worst = max(errors, key=abs)
        print(f"{name:<6}{truth:>7g} {'true':<6}{100 * median(map(abs, errors)):>7.2f} % off in the median,", end="")
        print(f"{100 * worst:>7.2f} % at worst")
    sure = uncertainty(replace(empty, observed=observed[0]), z[0]).interval(0.9)
    text = "; ".join(f"{name} {low:.4g} to {high:.4g}" for name, (low, high) in zip(TRUTH, sure.tolist(), strict=True))
    print(f"of the first draw, 90 % intervals: {text}")
    with torch.no_grad():
        fitted = empty.predictions(z[:1])[0, :, 0]
    draw(times, observed[0, :, 0], fitted, out / "servo_calibration.png")
    print(f"figure: {out / 'servo_calibration.png'}")
    return float(((values["gain"] / TRUTH["gain"]) - 1).abs().max())


def draw(times: Tensor, observed: Tensor, fitted: Tensor, file: Path) -> None:
    figure, axis = panel()
    axis.plot(times, observed, ".", color="0.5", label="seen")
    axis.plot(times, fitted, color="C0", label="fitted")
    axis.axvline(AT, color="0.7", linestyle=":", label="step")
    axis.set(xlabel="s", ylabel="rad")
    save(figure, axis, file)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
