"""Teach a quadruped to run: section "quadruped" of "A Differentiable Physics Engine …" (2019).

A robot of 28.7 kg with eight servos of 4 N m (30 1/s, 10 rad/s) stands. A network of 17,952 parameters is told the
sine and cosine of a clock of 1.5 Hz and answers with the servos' targets a hundred times a second; it is to run as far
as it can in 10 s. It learns by gradients through all 1,000 steps and their contacts, five seeds side by side. Beside it
a trot of sines and the same network are tuned by CMA-ES with as many evaluations. The targets are replayed in MuJoCo
from ten starts that differ by a millimetre. With energy in the loss it runs without somersaults.

    python experiments/gait.py [--seeds 5] [--updates 500] [--energy 1.0] [--out out]
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import torch
from evolution import Evolved, evolve
from hard_replay import replay
from jsonargparse import auto_cli
from panel import panel, save
from side_by_side import Habits, Many, Teaching, taught
from torch import Tensor

from physvision.control.policies import Dense, OpenLoop, Played, Policy, play_open_loop
from physvision.core import State, Trajectory
from physvision.physics.articulated import scenes
from physvision.report import film

DT, CLOCK = 0.01, 1.5  # s, Hz
BAR, LEFT = 1.17, 0.8  # m/s; share of the speed in MuJoCo
GAIN, DAMPING, TORQUE = 30.0, 20.0, 4.0
WEIGHT = 28.7 * 9.81  # N
PIECE, BEGIN = 20, 0.2  # periods; s in which a trot comes up
PAPER = "paper: 1.17 m/s after 500 evaluations, a somersault every third step; a trot tuned by hand 0.7 m/s"


class Gait(OpenLoop):
    """The torso is to move along x."""

    def __init__(self, seconds: float = 10.0) -> None:
        self.engine = scenes.load("quadruped", DT)
        self.periods = round(seconds / DT)

    def begin(self, batch: int, generator: torch.Generator) -> tuple[State, Tensor]:
        """It stands; there is no aim."""
        return self.engine.initial_state(batch, torch.float64), torch.zeros(batch, 0, dtype=torch.float64)

    def foresee(self, aim: Tensor) -> Tensor:
        """The clock's sine and cosine."""
        phase = 2 * math.pi * CLOCK * DT * torch.arange(self.periods, dtype=torch.float64)
        return torch.stack([phase.sin(), phase.cos()], 1).expand(len(aim), -1, 2)

    def act(self, output: Tensor) -> Tensor:
        """Targets of the servos, rad."""
        return output

    def losses(self, state: State, aim: Tensor) -> Tensor:
        """The torso's velocity backwards, m/s; its mean over the episode is that of the way."""
        return -state.v[:, 0]


def network(seed: int) -> Dense:
    torch.manual_seed(seed)
    return Dense(2, (128, 128), 8, direct=True).double()


def powers(played: Played) -> Tensor:
    """The servos' mechanical power in each period, where they do not brake, W."""
    q, v = played.trajectory.q[:, :-1, 7:], played.trajectory.v[:, 1:, 6:]
    speed = scenes.SERVO_SPEED["quadruped"]
    asked = (GAIN * (played.controls - q)).clamp(-speed, speed)
    return ((DAMPING * (asked - v)).clamp(-TORQUE, TORQUE) * v).clamp(min=0.0).sum(-1)


def measured(played: Played) -> Tensor:
    """Velocity backwards, m/s, which is least in the best episode; cost of transport; turns of the torso."""
    with torch.no_grad():
        speed = played.losses.mean(1)
        speed = speed.where(played.losses.isfinite().all(1), math.inf)
        cost = powers(played).mean(1) / (WEIGHT * speed.abs())
        return torch.stack([speed, cost, turns(played.trajectory)], 1)


def turns(motion: Trajectory) -> Tensor:
    """Somersaults: how often the torso turned about its cross axis, in all, whichever way."""
    w, x, y, z = motion.q[..., 3:7].unbind(-1)
    # The x axis of the torso in the plane of x and z.
    along, up = 1 - 2 * (y * y + z * z), 2 * (x * z - w * y)
    pitch = torch.atan2(up, along)
    change = torch.remainder(pitch.diff(dim=1) + math.pi, 2 * math.pi) - math.pi
    whole = torch.cat([torch.zeros_like(change[:, :1]), change.cumsum(1)], 1)
    return (whole.amax(1) - whole.amin(1)) / (2 * math.pi)


# Of a trot that is set by hand; and by how much each of its values may well differ.
TROT = torch.tensor([3.5, 0.1, 0.6, 0.3, 0.1, 0.1, 0.0, 0.0], dtype=torch.float64)
UNITS = torch.tensor([1.0, 0.15, 0.4, 0.5, 0.2, 0.1, 0.1, 0.1], dtype=torch.float64)
LEANS = slice(6, 8)


def trot(changes: Tensor, periods: int) -> Tensor:
    """Targets (robots, periods, 8) of a trot: diagonal legs together, the pairs half a turn apart.

    A leg swings evenly; its knee bends while it comes forward, and straightens while it pushes. Legs that bend evenly
    too stand on bent knees, which servos of 4 N m cannot hold.

    Args:
        changes: from `TROT` in `UNITS`, (robots, 8): frequency, Hz; in rad the swing of shoulders, the knees' bend in
            the air, by how much it comes early, the bend that stays, what the push takes off it, and how far back the
            shoulders lean in front and behind.
        periods: of control.
    """
    values = TROT + UNITS * changes
    rate, swing, lift, lead, bend, push = (each[:, None, None] for each in values[:, :6].unbind(1))
    lean = values[:, None, LEANS].repeat_interleave(2, 2)
    side = values.new_tensor([0.0, math.pi, math.pi, 0.0])  # front left, front right, hind left, hind right
    phase = 2 * math.pi * DT * rate * torch.arange(periods, dtype=values.dtype)[None, :, None] + side
    knees = bend + lift * (-(phase + lead).cos()).clamp(min=0.0) - push * phase.cos().clamp(min=0.0)
    # A knee's bend takes the foot back by half of it.
    shoulders = lean + swing * phase.sin() - knees / 2
    begun = (torch.arange(periods, dtype=values.dtype) * DT / BEGIN).clamp(max=1.0)[None, :, None]
    return torch.stack([shoulders, knees], -1).flatten(2) * begun


class Trot(Policy):
    """A trot that does not ask for its clock, for its frequency is one of its values."""

    def __init__(self, robots: int, periods: int) -> None:
        super().__init__()
        self.changes = torch.nn.Parameter(torch.zeros(len(TROT), dtype=torch.float64))
        self.shifts = torch.zeros(robots, len(TROT), dtype=torch.float64)
        self.periods = periods

    def forward(self, sensed: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Each robot's targets, of values that differ a little."""
        return trot(self.changes + self.shifts, self.periods), memory


def trot_by_gradient(
    updates: int = 40, rate: float = 0.01, robots: int = 3, seconds: float = 2.0, whole: float = 10.0
) -> Evolved:
    """Adam in a trot's values, through episodes short enough for gradients to mean something.

    Their mean is taken over robots whose values differ by some hundredths, and the torso is to keep upright: in 2 s a
    robot that leans forward and falls is the fastest. For the same reason legs keep the lean that they have. The gait
    that is the fastest over 10 s is kept.
    """
    began, gait, short = time.perf_counter(), Gait(whole), Gait(seconds)
    policy, generator = Trot(robots, short.periods), torch.Generator().manual_seed(0)
    adam = torch.optim.Adam(policy.parameters(), rate)
    best, course = policy.changes.detach().clone(), [math.inf]
    start, aim = short.begin(robots, generator)
    for count in range(updates + 1):
        if count % 5 == 0:
            with torch.no_grad():
                standing, _ = gait.begin(1, generator)
                end = gait.engine.rollout(standing, gait.periods, trot(policy.changes[None], gait.periods)).final
            if float(-end.q[0, 0]) < course[-1]:
                best = policy.changes.detach().clone()
            course.append(min(course[-1], float(-end.q[0, 0])))
            print(f"  trot, {count} updates: {float(end.q[0, 0]) / (gait.periods * DT):.3f} m/s", flush=True)
        policy.shifts = 0.02 * torch.randn(robots, len(TROT), generator=generator, dtype=torch.float64)
        played = play_open_loop(short, policy, start, aim, decay=0.985, piece=5)
        adam.zero_grad()
        (played.losses + upset(played.trajectory)).mean().backward()
        gradient = policy.changes.grad
        assert gradient is not None
        gradient[LEANS] = 0.0
        if bool(gradient.isfinite().all()):
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            adam.step()
    evaluations = len(course) - 1 + round((updates + 1) * robots * seconds / (gait.periods * DT))
    return Evolved(best, evaluations, time.perf_counter() - began, False, course[1:])


def upset(motion: Trajectory) -> Tensor:
    """How far the torso is from upright and from its height, as m/s, after each period."""
    x, y, height = motion.q[:, 1:, 4], motion.q[:, 1:, 5], motion.q[:, 1:, 2]
    return 40 * (x * x + y * y) + 5 * (0.32 - height).clamp(min=0.0)


@dataclass(frozen=True)
class Again:
    """Speeds of a gait from ten starts a millimetre apart: in the engine and in MuJoCo, where one motion is kept."""

    here: list[float]
    there: list[float]
    motion: Trajectory


def again(gait: Gait, targets: Tensor, starts: int = 10) -> Again:
    """Replay targets (periods, 8) from starts that are normally spread by 1 mm, and lifted, not sunk."""
    start = gait.engine.initial_state(starts, torch.float64)
    shift = 1e-3 * torch.randn(starts, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shift[:, 2].abs_()
    start.q[:, :3] += shift
    ours = gait.engine.rollout(start, len(targets), targets.expand(starts, -1, -1))
    theirs = [
        replay("quadruped", State(start.q[k : k + 1], start.v[k : k + 1]), len(targets), DT, controls=targets)
        for k in range(starts)
    ]
    seconds = len(targets) * DT
    here = ((ours.final.q - start.q)[:, 0] / seconds).tolist()
    there = [float(each.final.q[0, 0] - start.q[k, 0]) / seconds for k, each in enumerate(theirs)]
    return Again(here, there, theirs[0])


def targets_of(gait: Gait, vectors: Tensor) -> Tensor:
    """The targets of networks with these parameters, (robots, periods, 8)."""
    policy = Many([network(0)])
    policy.set(vectors)
    _, aim = gait.begin(len(vectors), torch.Generator())
    with torch.no_grad():
        return policy(gait.foresee(aim), aim)[0]


def by_evolution(gait: Gait, evaluations: int, seed: int, networks: bool) -> list[tuple[str, Tensor, float]]:
    """What CMA-ES makes of a trot and, if asked, of the network: name, targets (periods, 8), seconds."""
    found = []
    for name, start, spread, made in (
        ("trot", torch.zeros(len(TROT)), 0.3, lambda x: trot(x, gait.periods)),
        ("network", Many([network(seed)]), 0.02, lambda x: targets_of(gait, x)),
    )[: None if networks else 1]:
        if isinstance(start, Many):
            start.still()
            start = start.vectors()[0]

        def judge(candidates: Tensor, made=made) -> tuple[Tensor, Tensor]:
            at, _ = gait.begin(len(candidates), torch.Generator())
            end = gait.engine.rollout(at, gait.periods, made(candidates)).final
            return -end.q[:, 0], torch.zeros(len(candidates), dtype=torch.bool)

        best = evolve(judge, start.double(), spread, seed, evaluations)
        found.append((name, made(best.values[None])[0], best.seconds))
    return found


def draw(courses: dict[str, list[list[float]]], file: Path) -> None:
    figure, axis = panel()
    for number, (name, speeds) in enumerate(courses.items()):
        for order, each in enumerate(speeds):
            label = None if order else name
            axis.plot(range(1, len(each) + 1), each, color=f"C{number}", linewidth=1, alpha=0.7, label=label)
    axis.axhline(BAR, color="0.7", linestyle=":")
    axis.set(xlabel="evaluations", ylabel="speed over the episode, m/s")
    save(figure, axis, file)


def tell(name: str, gait: Gait, targets: Tensor, starts: int) -> Again:
    """Print how a gait does here and in MuJoCo."""
    start, aim = gait.begin(1, torch.Generator())
    motion = gait.engine.rollout(start, gait.periods, targets[None])
    played = Played(motion, targets[None], gait.losses(motion[1:].flatten(), aim)[None])
    speed, cost, turned = measured(played)[0].tolist()
    found = again(gait, targets, starts)
    share = mean(found.there) / -speed
    print(
        f"{name:<26}{-speed:>7.2f}{cost:>8.2f}{turned:>8.1f}{mean(found.here):>9.2f}{mean(found.there):>9.2f}"
        f"{100 * share:>7.0f} %",
        flush=True,
    )
    return found


def main(
    seeds: int = 5, updates: int = 500, energy: float = 1.0, starts: int = 10, seconds: float = 10.0,
    out: Path = Path("out"),
) -> bool:  # fmt: skip
    """Teach the robot.

    Args:
        seeds: of the network; 0, 1, 2 …; with 0 seeds trots alone are tuned.
        updates: of each policy, and evaluations of CMA-ES.
        energy: m/s that a cost of transport of 1 at 1 m/s counts for in the second loss; 0 to leave it out.
        starts: of the replays.
        seconds: of an episode.
        out: folder of the figure and the films.

    Returns:
        Whether most seeds reach the paper's speed, and keep 80 % of it in MuJoCo.
    """
    torch.set_num_threads(1)
    gait = Gait(seconds)
    print(f"{PAPER}; network of {sum(each.numel() for each in network(0).parameters()):,} parameters")
    trainings: dict[str, Teaching] = {}
    weights = {"speed": 0.0} | ({"speed and energy": energy} if energy else {})
    for name, weight in weights.items() if seeds else ():

        def losses(played: Played, weight: float = weight) -> Tensor:
            return played.losses + (weight * powers(played) / WEIGHT if weight else 0.0)

        trainings[name] = taught(
            [network(seed) for seed in range(seeds)], gait, updates, measured, [Habits()] * seeds, told=name,
            losses=losses, player=follow_in_pieces,
        )  # fmt: skip
    header = f"{'speed, m/s':>16}{'cost':>8}{'turns':>8}{'10 starts':>9}{'MuJoCo':>9}{'left':>9}"
    print(f"{'':<17}{header}")
    kept = {}
    for name, training in trainings.items():
        kept[name] = [
            tell(f"{name}, seed {seed}", gait, targets, starts)
            for seed, targets in enumerate(targets_of(gait, training.best))
        ]
    by_hand = trot(torch.zeros(1, len(TROT), dtype=torch.float64), gait.periods)[0]
    tell("trot by hand", gait, by_hand, starts)
    learned = trot_by_gradient()
    found = tell(f"trot, {learned.evaluations} evaluations", gait, trot(learned.values[None], gait.periods)[0], starts)
    print(f"figure: {film(gait.engine, found.motion, out / 'gait_trot.mp4')}", flush=True)
    for name, targets, spent in by_evolution(gait, updates, 0, seeds > 0):
        tell(f"CMA-ES, {name}, {spent:.0f} s", gait, targets, starts)
    if not seeds:
        return False
    fast = [-float(each) for each in trainings["speed"].least]
    left = [mean(each.there) / speed for each, speed in zip(kept["speed"], fast, strict=True)]
    reached = sum(speed >= BAR for speed in fast)
    met = 2 * reached > seeds and sum(share >= LEFT for share, speed in zip(left, fast, strict=True)) * 2 > seeds
    print(f"{reached} of {seeds} seeds reach {BAR} m/s; {'met' if met else 'MISSED'} with 80 % in MuJoCo")
    courses = {name: [[-row[0] for row in course] for course in each.courses] for name, each in trainings.items()}
    draw(courses, out / "gait.png")
    for name, each in kept.items():
        file = out / f"gait {name}.mp4".replace(" ", "_")
        print(f"figure: {out / 'gait.png'}, film of the replay: {film(gait.engine, each[0].motion, file)}")
    return met


def follow_in_pieces(*given, **options) -> Played:
    """`play_open_loop`, 0.2 s in a launch."""
    return play_open_loop(*given, piece=PIECE, **options)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
