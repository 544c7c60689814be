"""The quadruped of "A Differentiable Physics Engine …" (2019): its task, its gaits of few values, how well they do."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import mean

import mujoco
import torch
from hard_replay import replay
from torch import Tensor

from physvision.control.policies import OpenLoopTask, PolicyRollout
from physvision.core import State, Trajectory
from physvision.physics.articulated import scenes

DT, CLOCK = 0.01, 1.5  # s, Hz
BAR, LEFT = 1.17, 0.8  # m/s; share of the speed in MuJoCo
GAIN, DAMPING, TORQUE = 30.0, 20.0, 4.0
MASS = 28.7  # kg
WEIGHT = 9.81 * MASS  # N
BEGIN = 0.2  # s in which a gait comes up
PAPER = "paper: 1.17 m/s after 500 evaluations, a somersault every third step; a trot tuned by hand 0.7 m/s"


class Gait(OpenLoopTask):
    """The torso is to move along x."""

    def __init__(self, seconds: float = 10.0) -> None:
        self.engine = scenes.load("quadruped", DT)
        self.episode_steps = round(seconds / DT)

    def reset(self, batch: int, generator: torch.Generator) -> tuple[State, Tensor]:
        """It stands; there is no goal."""
        return self.engine.initial_state(batch, torch.float64), torch.zeros(batch, 0, dtype=torch.float64)

    def observe(self, goal: Tensor) -> Tensor:
        """The clock's sine and cosine."""
        phase = 2 * math.pi * CLOCK * DT * torch.arange(self.episode_steps, dtype=torch.float64)
        return torch.stack([phase.sin(), phase.cos()], 1).expand(len(goal), -1, 2)

    def act(self, output: Tensor) -> Tensor:
        """Targets of the servos, rad."""
        return output

    def losses(self, state: State, goal: Tensor) -> Tensor:
        """The torso's velocity backwards, m/s; its mean over the episode is that of the way."""
        return -state.v[:, 0]


# What a trot is like that is set by hand; and by how much each of its values may well differ.
VALUES = {
    "frequency, Hz": (3.5, 1.0),
    "swing of the shoulders in front, rad": (0.1, 0.15),
    "swing of the shoulders behind, rad": (0.1, 0.15),
    "slowness of the stance": (0.3, 0.3),
    "knees' bend in the air, rad": (0.6, 0.4),
    "by how much it comes early, rad": (0.0, 0.5),
    "knees' bend that stays, rad": (0.05, 0.1),
    "what the push takes off it, rad": (0.1, 0.1),
    "by how much the push comes late, rad": (0.0, 0.5),
    "lean of the shoulders in front, rad": (-0.05, 0.1),
    "lean of the shoulders behind, rad": (0.0, 0.1),
    "left before right, rad": (math.pi, 0.5),
    "front before hind, rad": (math.pi, 0.5),
}
TROT, UNITS = torch.tensor(list(VALUES.values()), dtype=torch.float64).unbind(1)


def steps(changes: Tensor, periods: int, window: int | None = None) -> Tensor:
    """Targets (robots, periods, 8) of a gait, all of whose legs do the same at different times.

    A leg swings; its knee bends while it comes forward, and straightens while it pushes. Legs that bend evenly too
    stand on bent knees, which servos of 4 N m cannot hold.

    Args:
        changes: from `TROT` in `UNITS`, (robots, values), of which `VALUES` tells.
        periods: Number of control periods.
        window: backward, the frequency counts from the start of each so many periods, as if legs were where they are.
    """
    values = TROT + UNITS * changes
    times = DT * torch.arange(periods).to(values)
    turned = values[:, :1] * times
    if window is not None:
        rate = values[:, :1]
        turned = turned.detach() + (rate - rate.detach()) * DT * (torch.arange(periods) % window)
    return legs(values, turned) * (times / BEGIN).clamp(max=1.0)[:, None]


def legs(values: Tensor, turned: Tensor) -> Tensor:
    """Targets (robots, periods, 8) of gaits with these `VALUES`, after (robots, periods) turns of their clocks."""
    _, front, hind, slow, lift, lead, bend, push, late, lean_front, lean_hind, left, before = (
        entry[:, None, None] for entry in values.unbind(1)
    )
    swing, lean = (torch.cat([a, a, b, b], 2) for a, b in ((front, hind), (lean_front, lean_hind)))
    zero = torch.zeros_like(left)
    side = torch.cat([zero, left, before, left + before], 2)  # front left, front right, hind left, hind right
    phase = 2 * math.pi * turned[..., None] + side
    phase = phase - slow * phase.sin()
    knees = bend + lift * (-(phase + lead).cos()).clamp(min=0.0) - push * (phase - late).cos().clamp(min=0.0)
    # A knee's bend takes the foot back by half of it.
    shoulders = lean + swing * phase.sin() - knees / 2
    return torch.stack([shoulders, knees], -1).flatten(2)


def pulled(q: Tensor, v: Tensor, targets: Tensor, fraction: float = 1.0) -> Tensor:
    """Torques of servos over steps that start at the angles q and end with the speeds v, N m.

    Args:
        q: angles, rad.
        v: speeds, rad/s.
        targets: Targets of the servos, rad.
        fraction: Fraction of the scene's stiffness and damping that the servos have.
    """
    speed = scenes.MAX_SERVO_SPEED["quadruped"]
    return (fraction * DAMPING * ((GAIN * (targets - q)).clamp(-speed, speed) - v)).clamp(-TORQUE, TORQUE)


def powers(rollout: PolicyRollout) -> Tensor:
    """The servos' mechanical power in each period, where they do not brake, W."""
    q, v = rollout.trajectory.q[:, :-1, 7:], rollout.trajectory.v[:, 1:, 6:]
    return (pulled(q, v, rollout.controls) * v).clamp(min=0.0).sum(-1)


def measured(rollout: PolicyRollout) -> Tensor:
    """Velocity backwards, m/s, which is least in the best episode; cost of transport; turns of the torso."""
    with torch.no_grad():
        speed = rollout.losses.mean(1)
        speed = speed.where(rollout.losses.isfinite().all(1), math.inf)
        cost = powers(rollout).mean(1) / (WEIGHT * speed.abs())
        return torch.stack([speed, cost, turns(rollout.trajectory)], 1)


def turns(motion: Trajectory) -> Tensor:
    """Somersaults: how often the torso turned about its cross axis, in all, whichever way."""
    w, x, y, z = motion.q[..., 3:7].unbind(-1)
    # The x axis of the torso in the plane of x and z.
    along, up = 1 - 2 * (y * y + z * z), 2 * (x * z - w * y)
    pitch = torch.atan2(up, along)
    change = torch.remainder(pitch.diff(dim=1) + math.pi, 2 * math.pi) - math.pi
    whole = torch.cat([torch.zeros_like(change[:, :1]), change.cumsum(1)], 1)
    return (whole.amax(1) - whole.amin(1)) / (2 * math.pi)


def shifts(starts: int) -> Tensor:
    """By what places to start from differ, (starts, 3): normally by 1 mm, and lifted, not sunk."""
    shift = 1e-3 * torch.randn(starts, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shift[:, 2].abs_()
    return shift


@dataclass(frozen=True)
class Again:
    """Speeds of a gait from ten starts a millimetre apart: in the engine and in MuJoCo, where one motion is kept."""

    here: list[float]
    there: list[float]
    motion: Trajectory


def again(
    gait: Gait,
    targets: Tensor,
    starts: int = 10,
    start: State | None = None,
    properties: Mapping[str, Tensor] | None = None,
    change: Callable[[mujoco.MjSpec], None] = lambda model: None,
) -> Again:
    """Replay targets (periods, 8) from starts that are spread by `shifts`.

    Args:
        gait: Gait whose duration is taken.
        targets: Targets of the servos, rad.
        starts: Number of initial states.
        start: Mean initial state of one robot; the scene's by default.
        properties: Properties of the robot, one row; the scene's by default.
        change: gives MuJoCo's model the same properties.
    """
    start = gait.reset(1, torch.Generator())[0] if start is None else start
    q, v = start.q.repeat(starts, 1), start.v.repeat(starts, 1)
    q[:, :3] += shifts(starts)
    own = None if properties is None else {name: entry[0] for name, entry in properties.items()}
    ours = gait.engine.rollout(State(q, v), len(targets), targets.expand(starts, -1, -1), own)
    theirs = [
        replay("quadruped", State(q[k : k + 1], v[k : k + 1]), len(targets), DT, controls=targets, change=change)
        for k in range(starts)
    ]
    seconds = len(targets) * DT
    here = ((ours.final.q - q)[:, 0] / seconds).tolist()
    there = [float(entry.final.q[0, 0] - q[k, 0]) / seconds for k, entry in enumerate(theirs)]
    return Again(here, there, theirs[0])


HEADER = f"{'':<26}{'speed, m/s':>12}{'cost':>7}{'turns':>7}{'from starts':>13}{'MuJoCo':>8}{'left':>7}"


def row(name: str, numbers: Tensor, results: Again) -> str:
    """Row of a table: results of `measured` for a gait, and mean speeds from other starts, here and in MuJoCo."""
    speed, cost, turned = numbers.tolist()
    here, there = mean(results.here), mean(results.there)
    left = 100 * there / -speed
    return f"{name:<26}{-speed:>12.2f}{cost:>7.2f}{turned:>7.1f}{here:>13.2f}{there:>8.2f}{left:>5.0f} %"
