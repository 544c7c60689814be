"""Teach a quadruped to run: section "quadruped" of "A Differentiable Physics Engine …" (2019), in a closed loop.

A robot of 28.7 kg with eight servos of 4 N m (30 1/s, 10 rad/s) is to run as far as it can in 10 s. A network is told
how the robot stands and moves and what a clock of 3.5 Hz says; fifty times a second it changes the servos' targets of
a trot that is set by hand, which runs at 0.3 m/s. It learns by short-horizon actor–critic, gradients through the engine
and its contacts, in 5,000 s of simulated time, which are 500 episodes: without and with energy in its loss.

The servo of the scene pulls with all that it has where its target is off by 0.007 rad, and beyond that the target has
no gradient. So the network moves servos a tenth as stiff, with the same torque: what the scene's are where their
targets are, at each moment, 0.9 of where the joint is and moves to and 0.1 of what the network says. The policy is
asked in MuJoCo too, with the same servos, from ten starts that differ by a millimetre; beside it the targets that it
gave here are replayed there.

    python experiments/gait.py [--seeds 5] [--episodes 500] [--energies '[0, 1]'] [--starts 10] [--out out]
"""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

import mujoco
import torch
from hard_replay import replay
from jsonargparse import auto_cli
from panel import panel, save
from quadruped import BAR, DAMPING, DT, GAIN, LEFT, PAPER, TROT, WEIGHT, Gait, legs, pulled, shifts, turns
from torch import Tensor

from physvision.core import State, Trajectory
from physvision.envs import Environment
from physvision.learning import Actor, Shac, ShacSettings
from physvision.physics import articulated
from physvision.physics.articulated import scenes
from physvision.physics.engine import Overrides
from physvision.physics.wrapper import EngineWrapper
from physvision.report import render_video

SOFT = 0.1  # share of the servos' damping and stiffness that the network moves
HELD = 2  # steps of the engine in a period of control
CHANGES = (0.3, 0.5)  # of a shoulder's and a knee's target at most, rad
LOW, TILT, ALIVE = 0.2, 0.6, 0.5  # m and cosine of a torso that has fallen; what a period is paid beside its speed, m/s
HIDDEN = (128, 64, 32)
# A wheel that nothing turns and nothing stops.
CLOCK = """<body pos="0 5 1"><joint axis="0 1 0"/>
<geom type="sphere" size="0.1" mass="1" contype="0" conaffinity="0"/></body></worldbody>"""
SETTINGS = ShacSettings(
    num_envs=32,
    horizon=16,
    gradient_decay=0.9,
    max_state_grad_norm=100.0,
    init_log_std=-2.0,
    hidden_sizes=HIDDEN,
)


class Trotting(EngineWrapper):
    """The robot with soft servos, and a clock behind its joints; controls are added to targets of the trot by hand."""

    def __init__(self) -> None:
        stiff = f'kp="{GAIN * DAMPING:g}" kv="{DAMPING:g}"'
        soft = f'kp="{SOFT * GAIN * DAMPING:g}" kv="{SOFT * DAMPING:g}"'
        text = scenes.path("quadruped").read_text().replace(stiff, soft).replace("</worldbody>", CLOCK)
        servos = articulated.ServoSettings(scenes.MAX_SERVO_SPEED["quadruped"])
        super().__init__(articulated.load(text, DT, servos=servos))

    def targets(self, state: State, steps: int, controls: Tensor) -> Tensor:
        """Targets of the soft servos, (batch, steps, 8): the trot's in the middle of these steps, changed."""
        turned = (state.q[:, 15:] + state.v[:, 14:] * steps * DT / 2) / (2 * math.pi)
        return controls + legs(TROT[None].to(turned), turned)

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        assert controls is not None
        return self.engine._simulate(state, steps, self.targets(state, steps, controls), properties, truncate)


def running(energy: float = 0.0, noise: float = 0.03, seconds: float = 10.0) -> Environment:
    """Build the environment: the reward is the speed less the cost of energy, and a fallen torso terminates.

    Args:
        energy: m/s that a cost of transport of 1 at 1 m/s counts for.
        noise: Noise of initial states, rad, m, m/s and rad/s; the clock starts at random with it, else at zero.
        seconds: Duration of an episode, s.
    """
    engine = Trotting()
    stand = engine.initial_state(1, torch.float64)
    high = CHANGES * 4

    def reset(batch: int, generator: torch.Generator) -> State:
        way, v = noise * torch.randn(2, batch, engine.nv, generator=generator, dtype=torch.float64)
        way[:, :2], way[:, 2] = 0.0, way[:, 2].abs() + noise / 3
        phase = torch.rand(batch, generator=generator, dtype=torch.float64)
        way[:, 14], v[:, 14] = 2 * math.pi * phase * bool(noise), 2 * math.pi * TROT[0]
        return State(engine.integrate(stand.q.expand(batch, -1), way), v)

    def observe(state: State) -> Tensor:
        clock = state.q[:, 15:]
        return torch.cat([state.q[:, 2:15], 0.2 * state.v[:, :14], clock.sin(), clock.cos()], 1)

    def reward(start: State, end: State, control: Tensor) -> Tensor:
        paid = (end.q[:, 0] - start.q[:, 0]) / (HELD * DT) + ALIVE
        if not energy:
            return paid
        joints, speeds = start.q[:, 7:15], end.v[:, 6:14]
        power = pulled(joints, speeds, engine.targets(start, HELD, control[:, None])[:, 0], SOFT) * speeds
        return paid - energy * power.clamp(min=0.0).sum(1) / WEIGHT

    def termination(obs: Tensor) -> Tensor:
        x, y = obs[..., 2], obs[..., 3]
        return (obs[..., 0] < LOW) | (1 - 2 * (x * x + y * y) < TILT)

    return Environment(engine, reset, observe, reward, high, round(seconds / (HELD * DT)), HELD, termination)


@dataclass(frozen=True)
class Learned:
    """A policy, seconds of processor time, and its speed over an episode after so much simulated time, m/s and s."""

    actor: Actor
    seconds: float
    course: list[tuple[float, float]]


def learned(seed: int, episodes: int, energy: float, seconds: float, looks: int = 10) -> Learned:
    """Learn to run, beginning with the trot by hand."""
    game, total = running(energy, seconds=seconds), round(episodes * seconds / (HELD * DT))
    learner = Shac(game, replace(SETTINGS, lr_decay_steps=total), seed)
    learner.actor.zero_output()
    began, course = time.process_time(), []
    while learner.env_steps < total:
        before = learner.env_steps
        learner.advance()
        if before * looks // total < learner.env_steps * looks // total:
            course.append((learner.env_steps * HELD * DT, closed_loop(learner.actor, seconds).speed))
    return Learned(learner.actor, time.process_time() - began, course)


@dataclass(frozen=True)
class Run:
    """An episode: the robot's states each `DT`, the targets of its soft servos each `HELD * DT`, and their power, W."""

    motion: Trajectory
    targets: Tensor
    power: float

    @property
    def speed(self) -> float:
        """Mean forward speed, m/s."""
        return float(self.motion.final.q[0, 0] - self.motion.q[0, 0, 0]) / (HELD * DT * len(self.targets))

    @property
    def cost(self) -> float:
        """Mean cost of transport."""
        return self.power / (WEIGHT * abs(self.speed))


def changes(actor: Actor, game: Environment, state: State) -> Tensor:
    """Change of the trot by the network, without noise, (batch, 1, 8)."""
    action = actor.deterministic_action(game.observe_state(state).float())
    return (action * torch.tensor(game.action_limit)).double()[:, None]


@torch.no_grad()
def closed_loop(actor: Actor, seconds: float) -> Run:
    """An episode from standing."""
    game = running(noise=0.0, seconds=seconds)
    engine, state = game.engine, game.reset(1, torch.Generator())
    assert isinstance(engine, Trotting)
    q, v, record, power = [state.q[:, None]], [state.v[:, None]], [], 0.0
    for _ in range(game.max_episode_steps):
        change = changes(actor, game, state)
        motion = engine.rollout(state, HELD, change.expand(-1, HELD, -1))
        record.append(engine.targets(state, HELD, change)[0])
        speeds = motion.v[0, 1:, 6:14]
        power += float((pulled(motion.q[0, :-1, 7:15], speeds, record[-1], SOFT) * speeds).clamp(min=0.0).sum())
        q, v, state = [*q, motion.q[:, 1:]], [*v, motion.v[:, 1:]], motion.final
    path = Trajectory(torch.cat(q, 1)[..., :15], torch.cat(v, 1)[..., :14], dt=DT)
    return Run(path, torch.cat(record), power / (game.max_episode_steps * HELD))


def in_mujoco(actor: Actor | None, run: Run, starts: int) -> list[Trajectory]:
    """Motions in MuJoCo, its servos as soft, from starts a millimetre apart: of the network, or of a run's targets."""
    game = running(noise=0.0)
    engine, at = game.engine, game.reset(1, torch.Generator())
    assert isinstance(engine, Trotting)

    def soften(model: mujoco.MjModel) -> None:
        model.actuator_gainprm[:, 0] *= SOFT
        model.actuator_biasprm[:, 1:3] *= SOFT

    results = []
    for way in shifts(starts):
        start, periods = State(at.q[:, :15].clone(), at.v[:, :14]), itertools.count()
        start.q[0, :3] += way

        def answer(state: State, periods: itertools.count = periods) -> Tensor:
            assert actor is not None
            wheel = at.v[:, 14:]
            record = State(torch.cat([state.q, wheel * HELD * DT * next(periods)], 1), torch.cat([state.v, wheel], 1))
            return engine.targets(record, HELD, changes(actor, game, record))[:, 0]

        controls = run.targets if actor is None else answer
        results.append(replay("quadruped", start, len(run.targets), HELD * DT, controls=controls, adapt=soften))
    return results


@dataclass(frozen=True)
class Told:
    """Behavior of a policy here, and its mean speeds in MuJoCo: closed loop, with targets recorded here, m/s."""

    run: Run
    there: float
    replayed: float
    motion: Trajectory


def tell(name: str, policy: Learned, starts: int, seconds: float) -> Told:
    """Print how a policy does."""
    run = closed_loop(policy.actor, seconds)
    motions = in_mujoco(policy.actor, run, starts), in_mujoco(None, run, starts)
    there, replayed = (
        mean(float(entry.final.q[0, 0] - entry.q[0, 0, 0]) / seconds for entry in kind) for kind in motions
    )
    print(
        f"{name}: {run.speed:.2f} m/s, cost {run.cost:.2f}, {float(turns(run.motion)):.1f} turns; in MuJoCo "
        f"{there:.2f} m/s, {100 * there / run.speed:.0f} %, by targets alone {replayed:.2f}; {policy.seconds:.0f} s",
        flush=True,
    )
    return Told(run, there, replayed, motions[0][0])


def draw(courses: dict[str, list[Learned]], file: Path) -> None:
    figure, axis = panel()
    for number, (name, entry) in enumerate(courses.items()):
        for order, policy in enumerate(entry):
            times, speeds = zip(*policy.course, strict=True)
            axis.plot(times, speeds, color=f"C{number}", linewidth=1, alpha=0.7, label=None if order else name)
    axis.axhline(BAR, color="0.7", linestyle=":")
    axis.set(xlabel="simulated time, s", ylabel="speed over an episode, m/s")
    save(figure, axis, file)


def main(
    seeds: int = 5, episodes: int = 500, energies: tuple[float, ...] = (0.0, 1.0), starts: int = 10,
    seconds: float = 10.0, out: Path = Path("out"),
) -> bool:  # fmt: skip
    """Train the gait, and replay it in MuJoCo.

    Args:
        seeds: 0, 1, 2 …
        episodes: whose simulated time, in all worlds together, each policy learns from.
        energies: m/s that a cost of transport of 1 at 1 m/s counts for in each loss.
        starts: Number of initial states of the replays.
        seconds: Duration of an episode, s.
        out: folder of the figure and the films.

    Returns:
        Whether most seeds reach the paper's speed, and keep 80 % of it in MuJoCo.
    """
    torch.set_num_threads(1)
    print(PAPER)
    kinds: dict[str, list[Learned]] = {}
    reached = 0
    for energy in energies:
        name = f"energy {energy:g}" if energy else "speed"
        kinds[name], result = [], []
        for seed in range(seeds):
            kinds[name].append(learned(seed, episodes, energy, seconds))
            result.append(tell(f"{name}, seed {seed}", kinds[name][-1], starts, seconds))
            reached += not energy and result[-1].run.speed >= BAR and result[-1].there >= LEFT * result[-1].run.speed
        for kind, values in (
            ("here", [entry.run.speed for entry in result]),
            ("MuJoCo", [entry.there for entry in result]),
        ):
            print(f"{name}, {kind}: median {median(values):.2f} ({min(values):.2f} to {max(values):.2f}) m/s")
        fastest = max(result, key=lambda entry: entry.run.speed)
        print(f"film: {render_video(Gait(seconds).engine, fastest.motion, out / f'gait {name}.mp4'.replace(' ', '_'))}")
    met = 2 * reached > seeds
    print(f"{reached} of {seeds} reach {BAR} m/s and keep 80 % in MuJoCo: {'met' if met else 'MISSED'}")
    draw(kinds, out / "gait.png")
    return met


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
