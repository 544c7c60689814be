"""A quadruped with its network in a closed loop, as in *A Differentiable Physics Engine for Deep Learning in Robotics*.

    python benchmarks/quadruped_policy.py [--steps 1000] [--threads 2]

Ten seconds of robot time in 1000 steps: 81 sensors (angular rate, direction of gravity and velocity of nine bodies, in
their axes) feed a network whose outputs are the targets of eight servos; forward, and with the gradient of the distance
traveled with respect to all weights. Seconds of processor time, of all threads together, beside the paper's on its CPU
(i7-5930K), for 1 and 128 robots and both its networks, and how much of ours the engine's calls take. The robot, which
the paper does not describe whole, is that of its gait: a torso of 21.5 kg and four legs of two links; springs and
dampers of at most 4 N m stand for its servos. Output weights start at zero, as in the paper: it stands.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from jsonargparse import auto_cli
from torch import Tensor, nn

from physvision import State
from physvision.core import Placed, Plane, Sphere
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint

TORQUE, STIFFNESS, DAMPING = 4.0, 30.0, 1.0
# Widths of the hidden layers: seconds of the paper's CPU forward, and with the gradient, for 1 and for 128 robots.
PAPER = {
    (): {1: (1.06, 8.17), 128: (47.7, 263.0)},
    (1024, 1024): {1: (2.04, 13.2), 128: (50.4, 311.0)},
}
FACTOR = 20.0


def ball(radius: float, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Placed:
    return Placed(Sphere(radius), pose=((1, 0, 0, x), (0, 1, 0, y), (0, 0, 1, z), (0, 0, 0, 1)))


def rod(mass: float, length: float) -> dict:
    across = mass * length**2 / 12 + 1e-3
    return {"mass": mass, "center_of_mass": (0, 0, -length / 2), "inertia": (across, across, 1e-3)}


def quadruped() -> articulated.Articulation:
    """The torso rests on the spheres in its corners, the legs on one each."""
    corners = [ball(0.05, x, y) for x in (-0.25, 0.25) for y in (-0.075, 0.075)]
    bodies = [Body("torso", None, [Joint("free")], mass=21.5, inertia=(0.13, 0.66, 0.76), shapes=corners)]
    for x in (-0.25, 0.25):
        for y in (-0.15, 0.15):
            name = f"{'front' if x > 0 else 'hind'} {'left' if y > 0 else 'right'}"
            shoulder, elbow = (Joint("revolute", (0, 1, 0), damping=DAMPING) for _ in range(2))
            bodies.append(Body(f"{name} thigh", "torso", [shoulder], position=(x, y, 0), **rod(0.9, 0.15)))
            foot = [ball(0.03, z=-0.15)]
            shank = Body(
                f"{name} shank", f"{name} thigh", [elbow], position=(0, 0, -0.15), shapes=foot, **rod(0.9, 0.15)
            )
            bodies.append(shank)
    return articulated.tree(
        bodies, dt=0.01, static_shapes=[Placed(Plane())], contact=articulated.ContactSettings(friction=1.0)
    )


@dataclass
class Clock:
    """Seconds of processor time spent within it."""

    seconds: float = field(default=0.0)

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._began


class Policy(nn.Module):
    """A network without biases from 81 sensors to 16 outputs, of which the first eight are targets of servos."""

    def __init__(self, hidden: tuple[int, ...]) -> None:
        super().__init__()
        widths = (81, *hidden)
        torch.manual_seed(0)
        self.hidden = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairwise(widths))
        self.output = nn.Linear(widths[-1], 16, bias=False)
        nn.init.zeros_(self.output.weight)

    def forward(self, sensors: Tensor) -> Tensor:
        """Targets of the servos, (batch, 8), rad."""
        for layer in self.hidden:
            sensors = layer(sensors).relu()
        return self.output(sensors)[:, :8]


def sensed(poses: Tensor, before: Tensor, dt: float) -> Tensor:
    """Angular rate, direction of gravity and velocity of each body, (batch, 81), from its last two poses."""
    turn, place = poses[..., :3, :3], poses[..., :3, 3]
    spin = before[..., :3, :3].mT @ turn / dt
    rate = torch.stack([spin[..., 2, 1], spin[..., 0, 2], spin[..., 1, 0]], -1)
    velocity = (turn.mT @ ((place - before[..., :3, 3]) / dt).unsqueeze(-1)).squeeze(-1)
    return torch.cat([rate, turn[..., 2, :], velocity], -1).flatten(1)


def traveled(engine: articulated.Articulation, policy: Policy, state: State, steps: int, clock: Clock) -> Tensor:
    """Distance that each robot covers along x, m."""
    with clock:
        before = poses = engine.poses(state)
    start = state.q[:, 0]
    for _ in range(steps):
        target = policy(sensed(poses, before, engine.dt))
        torque = (STIFFNESS * (target - state.q[:, 7:])).clamp(-TORQUE, TORQUE)
        control = torch.cat([torque.new_zeros(len(torque), 6), torque], -1)
        before = poses
        with clock:
            state = engine.step(state, control)
            poses = engine.poses(state)
    return state.q[:, 0] - start


def main(steps: int = 1000, threads: int = 2, robots: list[int] | None = None) -> None:
    """Print the table of times.

    Args:
        steps: Number of steps of 10 ms; the paper's seconds are for 1000, and are scaled.
        threads: cores to use.
        robots: numbers of robots, of 1 and 128.
    """
    torch.set_num_threads(threads)
    engine = quadruped()
    high = engine.initial_state(dtype=torch.float32)
    stand = State(high.q + torch.tensor([0, 0, 0.335] + [0.0] * 12), high.v)
    first = State(stand.q.clone().requires_grad_(), stand.v)
    traveled(engine, Policy(()), first, 2, Clock()).sum().backward()  # what is compiled and loaded once is not timed
    print(f"{'robots':>6}{'parameters':>12}{'':>10}{'paper, s':>10}{'ours, s':>9}{'engine, s':>11}{'factor':>8}")
    for batch in robots or [1, 128]:
        for hidden, paper in PAPER.items():
            policy = Policy(hidden)
            count = sum(weight.numel() for weight in policy.parameters())
            start = stand.repeat(batch)
            forward, whole, clock = Clock(), Clock(), Clock()
            with torch.no_grad(), forward:
                traveled(engine, policy, start, steps, clock)
            with whole:
                distance = traveled(engine, policy, start, steps, Clock())
                distance.mean().backward()
            assert engine.status is not None
            fine = "" if bool(engine.status.converged.all()) else "   some worlds failed"
            rows = (("forward", forward, clock.seconds), ("gradient", whole, None))
            for (name, spent, inside), theirs in zip(rows, paper[batch], strict=True):
                theirs = theirs * steps / 1000
                factor = theirs / spent.seconds
                verdict = f"bar {FACTOR:.0f}: {'met' if factor >= FACTOR else 'MISSED'}" if not hidden else ""
                fraction = "" if inside is None else f"{inside:.2f}"
                print(
                    f"{batch:>6}{count:>12,}{name:>10}{theirs:>10.2f}{spent.seconds:>9.2f}{fraction:>11}{factor:>8.1f}"
                    f"  {verdict}{fine}",
                    flush=True,
                )


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
