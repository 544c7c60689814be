"""Teach an arm to reach any point that it is told: section "robot arm" of "A Differentiable Physics Engine …" (2019).

The arm of `reach.py`; its policy, a network of 2,107,396 parameters, is told a point that the arm can reach, drawn anew
for every robot of a batch and every update, and answers once with the four angles that its servos are to turn to. The
error is the distance of the tip, averaged over the last half second of 8 s and over the batch, which no point of was
seen before. Adam's rate is 1e-3 times the error of the last update over a quarter of a meter, and 1e-3 at most.

    python experiments/reach_anywhere.py [--batch 128] [--updates 2563] [--out out]
"""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path

import torch
from claims import Claim, write_claims
from hard_replay import replay
from jsonargparse import auto_cli
from panel import panel, save
from reach import Reach
from torch import Tensor

from physvision.control.policies import MlpPolicy, OpenLoopTask, Policy, PolicyRollout, rollout_open_loop
from physvision.core import State
from physvision.report import render_video
from physvision.trainers import PolicyTraining

DT, PIECE = 0.01, 50
# Centimetres that the mean error is to be below, and within how many updates.
BARS = {10.0: 576, 5.0: 2563}
PAPER = "paper: mean below 10 cm after 576 updates and below 5 cm after 2,563, 128 robots, 58 s an update on a GPU"
MEAN = 20  # updates that errors are averaged over
POINTS, REPLAYED = 1000, 20  # new ones after the last update; those of them that MuJoCo has too
FAR = 20.0  # cm, of points that the network does not really know


class ReachAnywhere(OpenLoopTask):
    """The tip of the arm is to be at a point that is told once."""

    def __init__(self, seconds: float = 8.0) -> None:
        self.reach = Reach(seconds)
        self.engine, self.episode_steps = self.reach.engine, self.reach.episode_steps

    def reset(self, batch: int, generator: torch.Generator) -> tuple[State, Tensor]:
        """The arm stands upright; goals are where its tip is with angles drawn from all that there are."""
        angles = math.pi * (2 * torch.rand(batch, 4, generator=generator, dtype=torch.float64) - 1)
        return self.engine.initial_state(batch, torch.float64), self.reach.tip(State(angles, torch.zeros_like(angles)))

    def observe(self, goal: Tensor) -> Tensor:
        """Observe the target point, once."""
        return goal.float().unsqueeze(1)

    def act(self, output: Tensor) -> Tensor:
        """Targets of the servos, rad."""
        return output.double()

    def losses(self, state: State, goal: Tensor) -> Tensor:
        """Distance to the target, m."""
        return self.reach.distance(state, goal)


def followed(task: OpenLoopTask, policy: Policy, start: State, goal: Tensor, **options) -> PolicyRollout:
    """`rollout_open_loop`, half a second in a launch."""
    return rollout_open_loop(task, policy, start, goal, chunk_steps=PIECE, **options)


def error_of(rollout: PolicyRollout) -> Tensor:
    """The distance over the last half second, cm, (batch,)."""
    return 100 * rollout.losses.detach()[:, -round(0.5 / DT) :].mean(1)


def in_mujoco(task: ReachAnywhere, rollout: PolicyRollout, goal: Tensor, point: int) -> float:
    """The error of one of the points, cm, with the same targets of the servos in MuJoCo."""
    start, controls = rollout.trajectory.state(0), rollout.controls[point]
    motion = replay("arm", State(start.q[point, None], start.v[point, None]), task.episode_steps, DT, controls=controls)
    states = motion[1:].flatten()
    distances = task.losses(states, goal[point, None].expand(len(states.q), 3))
    return 100 * float(distances[-round(0.5 / DT) :].mean())


class Teaching(PolicyTraining):
    """Takes down errors, and sets the rate by the last one."""

    def __init__(self, *given, stop: float, **options) -> None:
        super().__init__(*given, player=followed, **options)
        self.errors: list[float] = []
        self.stop, self.began = stop, time.process_time()

    def on_train_batch_end(self, outputs: object, batch: int, batch_idx: int) -> None:
        """Measure the episode, which the update did not know before it."""
        assert self.last is not None
        self.errors.append(float(error_of(self.last).mean()))
        for group in self.trainer.optimizers[0].param_groups:
            # The first errors are over a meter: at several times the rate the network ends where it learns slowly.
            group["lr"] = self.learning_rate * min(1.0, self.errors[-1] / 25)
        if len(self.errors) % MEAN == 0:
            lately = sum(self.errors[-MEAN:]) / MEAN
            spent = time.process_time() - self.began
            print(f"  {len(self.errors)} updates, {spent:.0f} s: {lately:.1f} cm over the last {MEAN}", flush=True)
            # Well below, for such a mean scatters.
            self.trainer.should_stop = lately < 0.9 * self.stop


def first_below(errors: list[float], bar: float) -> float:
    """After how many updates the mean of the last ones is below; infinite if it never is."""
    means = [sum(errors[k - MEAN : k]) / MEAN for k in range(MEAN, len(errors) + 1)]
    return next((MEAN + k for k, entry in enumerate(means) if entry < bar), math.inf)


def draw(errors: list[float], file: Path) -> None:
    figure, axis = panel()
    axis.loglog(range(1, len(errors) + 1), errors, linewidth=1)
    for bar, entry in BARS.items():
        axis.plot([entry], [bar], "o", color="0.4", label=f"paper: {bar:g} cm after {entry}")
    axis.set(xlabel="updates", ylabel="error of points not seen before, cm")
    save(figure, axis, file)


def main(
    batch: int = 128, updates: int = 2563, seed: int = 0, seconds: float = 8.0, width: int = 1024,
    out: Path = Path("out"),
) -> bool:  # fmt: skip
    """Train the arm to reach any point.

    Args:
        batch: robots in an update.
        updates: at most so many.
        seed: Seed of the network and of the points.
        seconds: Duration of an episode, s.
        width: Width of the network's three layers.
        out: folder of the figure and the film.

    Returns:
        Whether both of the paper's figures are met.
    """
    from lightning import Trainer

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    policy, task = MlpPolicy(3, (width,) * 3, 4), ReachAnywhere(seconds)
    print(f"{PAPER}; network of {sum(weight.numel() for weight in policy.parameters()):,} parameters, {batch} robots")
    training = Teaching(policy, task, updates, batch=batch, seed=seed, stop=min(BARS))
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of data loaders without workers
        Trainer(max_epochs=1, accelerator="cpu", **quiet).fit(training)
    spent = (time.process_time() - training.began) / len(training.errors)
    with torch.no_grad():
        start, goal = task.reset(POINTS, torch.Generator().manual_seed(seed + 10**6))
        rollout = rollout_open_loop(task, policy, start, goal)
    result = error_of(rollout)
    far = result > FAR
    mean, rest, middle = (float(entry) for entry in (result.mean(), result[~far].mean(), result.median()))
    print(f"{POINTS} more points: mean {mean:.1f} cm, median {middle:.1f}; {spent:.2f} s an update")
    print(f"farther than {FAR:g} cm are {float(far.double().mean()):.1%} of them; mean of the others {rest:.1f} cm")
    again = [in_mujoco(task, rollout, goal, point) for point in range(REPLAYED)]
    ours, theirs = result[:REPLAYED].mean(), sum(again) / REPLAYED
    limit = max(abs(error - mine) for error, mine in zip(again, result.tolist(), strict=False))
    print(f"the first {REPLAYED} of them: mean {ours:.2f} cm; in MuJoCo {theirs:.2f}, at most {limit:.2f} cm from ours")
    reached = {bar: first_below(training.errors, bar) for bar in BARS}
    claims = []
    for bar, limit in BARS.items():
        name, paper = f"updates until an arm reaches any point within {bar:g} cm", "Degrave et al. 2019"
        claims.append(Claim(name, reached[bar], "updates", seeds=(seed,), reference=limit, source=paper))
        print(
            f"below {bar:g} cm after {reached[bar]:.0f} (bar {limit}): {'met' if reached[bar] <= limit else 'MISSED'}"
        )
    draw(training.errors, out / "reach_anywhere.png")
    print(write_claims(__file__, claims))
    filmed = render_video(task.engine, rollout.trajectory, out / "reach_anywhere.mp4")
    print(f"figure: {out / 'reach_anywhere.png'}, film: {filmed}")
    return all(reached[bar] <= entry for bar, entry in BARS.items())


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
