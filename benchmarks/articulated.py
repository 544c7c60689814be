"""The articulated engine's speed and memory beside Pinocchio, MuJoCo and plain torch: one thread each, float64.

    python benchmarks/articulated.py [--rounds 5] [--scenes '[pendulum,double cartpole,laikago]'] [--long true]

Times are microseconds a step and world. A round times every contender once, one after the other, and a ratio is that
of one round; medians of the rounds are printed. Pinocchio is called from Python, a step at a time, on the states of our
own trajectory: `aba` for forward, `computeABADerivatives` for backward. Our backward is the whole backward pass of a
rollout, to the first state and all controls. Memory is how much a process's peak grows with the steps, over the states
kept.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import mujoco
import numpy as np
import pinocchio as pin
import torch
from jsonargparse import auto_cli
from torch_articulated import TorchTree

from physvision import State
from physvision.physics import articulated

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from claims import Claim, write_claims

LAIKAGO = Path(__file__).parents[1] / "tests" / "data" / "laikago.urdf"
DT = 1e-3
STEPS = (20, 1000)
BATCHES = (1, 64, 1024)
BARS = {"pendulum": (0.8, 0.6), "laikago": (0.7, 0.45)}  # of Pinocchio's time, forward and backward
MEMORY_BAR = 3.0  # of the states kept
LEFT_OUT = ("contact", "limit")


@dataclass
class Scene:
    """One tree in three libraries, and where it starts (in our conventions and in Pinocchio's)."""

    engine: articulated.Articulation
    mujoco: mujoco.MjModel
    pinocchio: pin.Model
    q: np.ndarray
    v: np.ndarray

    @property
    def order(self) -> np.ndarray:
        """Index in our order of each velocity of Pinocchio, which sorts the joints of a URDF by name."""
        first = 6 if self.engine.nq != self.engine.nv else 0
        hinges = self.engine.joint_names[-(self.engine.nv - first) :]
        at = [self.pinocchio.joints[self.pinocchio.getJointId(name)].idx_v for name in hinges]
        return np.array([*range(first), *at])

    def positions(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio writes quaternions x, y, z, w, and a URDF's continuous joints as cosine and sine."""
        if self.engine.nq == self.engine.nv:
            return q
        angles = self.velocities(np.concatenate([np.zeros_like(q[..., :6]), q[..., 7:]], -1))[..., 6:]
        turns = np.stack([np.cos(angles), np.sin(angles)], -1).reshape(*q.shape[:-1], -1)
        return np.concatenate([q[..., :3], q[..., 4:7], q[..., 3:4], turns], -1)

    def velocities(self, v: np.ndarray) -> np.ndarray:
        """Velocities in the order of Pinocchio."""
        out = np.empty_like(v)
        out[..., self.order] = v
        return out


def pendulum() -> Scene:
    rods = ""
    for rod in reversed(range(3)):
        at = "0 0 0" if rod == 0 else "0 0 -0.5"
        inertia = 0.5**2 / 12
        rods = (
            f'<body name="rod{rod}" pos="{at}"><joint name="hinge{rod}" axis="0 1 0"/>'
            f'<inertial mass="1" pos="0 0 -0.25" diaginertia="{inertia} {inertia} 1e-3"/>{rods}</body>'
        )
    xml = f"<mujoco><worldbody>{rods}</worldbody></mujoco>"
    return from_mjcf(xml, np.array([0.3, 0.4, 0.5]), np.zeros(3))


def double_cartpole() -> Scene:
    """That of dm_control, with what it includes written out."""
    from dm_control.suite import cartpole

    xml, assets = cartpole.get_model_and_assets(num_poles=2)
    flat = mujoco.MjSpec.from_string(xml.decode(), include=assets).to_xml()
    return from_mjcf(flat, np.array([0.1, 0.4, 0.5]), np.zeros(3))


def from_mjcf(xml: str, q: np.ndarray, v: np.ndarray) -> Scene:
    model = mujoco.MjModel.from_xml_string(xml)
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(xml)
        file.flush()
        reference = pin.buildModelFromMJCF(file.name)
    return Scene(articulated.load(xml, dt=DT, ignore=LEFT_OUT), _smooth(model), reference, q, v)


def laikago() -> Scene:
    spec = mujoco.MjSpec.from_file(str(LAIKAGO))
    spec.compiler.fusestatic = False
    spec.worldbody.first_body().add_freejoint()
    reference = pin.buildModelFromUrdf(str(LAIKAGO), pin.JointModelFreeFlyer())
    engine = articulated.load(str(LAIKAGO), dt=DT, base="free", ignore=LEFT_OUT)
    q = engine.initial_state(1, torch.float64).q[0].numpy().copy()
    q[7:] = np.linspace(-0.4, 0.4, 12)
    return Scene(engine, _smooth(spec.compile()), reference, q, np.linspace(-0.5, 0.5, 18))


def _smooth(model: mujoco.MjModel) -> mujoco.MjModel:
    model.opt.timestep = DT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT.value
    return model


SCENES: dict[str, Callable[[], Scene]] = {
    "pendulum": pendulum,
    "double cartpole": double_cartpole,
    "laikago": laikago,
}


def clocked(work: Callable[[], object]) -> float:
    """Seconds of this thread, of the second of two calls: what other processes take does not count, nor cold code."""
    work()
    began = time.thread_time()
    work()
    return time.thread_time() - began


def ours(scene: Scene, batch: int, steps: int) -> tuple[float, float]:
    """Microseconds a step and world of the forward and of the backward pass."""
    q = torch.tensor(scene.q).repeat(batch, 1).requires_grad_()
    v = torch.tensor(scene.v).repeat(batch, 1).requires_grad_()
    controls = torch.zeros(batch, steps, scene.engine.nu, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        forward = clocked(lambda: scene.engine.rollout(State(q, v), steps, controls))
    loss = scene.engine.rollout(State(q, v), steps, controls).final.q.sum()
    backward = clocked(lambda: torch.autograd.grad(loss, (q, v, controls), retain_graph=True))
    return forward / (batch * steps) * 1e6, backward / (batch * steps) * 1e6


def pinocchios(scene: Scene, steps: int) -> tuple[float, float]:
    model, data = scene.pinocchio, scene.pinocchio.createData()
    start = State(torch.tensor(scene.q)[None], torch.tensor(scene.v)[None])
    path = scene.engine.rollout(start, steps)
    qs, vs = scene.positions(path.q[0].numpy()), scene.velocities(path.v[0].numpy())
    states = [(qs[k].copy(), vs[k].copy()) for k in range(steps)]
    torque = np.zeros(model.nv)

    def run(step: Callable) -> Callable[[], None]:
        def loop() -> None:
            for q, v in states:
                step(model, data, q, v, torque)

        return loop

    return clocked(run(pin.aba)) / steps * 1e6, clocked(run(pin.computeABADerivatives)) / steps * 1e6


def mujocos(scene: Scene, steps: int) -> float:
    model, data = scene.mujoco, mujoco.MjData(scene.mujoco)
    data.qpos[:], data.qvel[:] = scene.q, scene.v
    return clocked(lambda: mujoco.mj_step(model, data, nstep=steps)) / steps * 1e6


def torchs(scene: Scene, batch: int, steps: int) -> tuple[float, float]:
    tree = TorchTree(scene.pinocchio)
    q = torch.tensor(scene.positions(scene.q)).repeat(batch, 1).requires_grad_()
    v = torch.tensor(scene.velocities(scene.v)).repeat(batch, 1).requires_grad_()
    ends: list[torch.Tensor] = []
    forward = clocked(lambda: ends.append(tree.rollout(q, v, steps, DT).sum()))
    backward = clocked(lambda: torch.autograd.grad(ends[0], (q, v), retain_graph=True))
    return forward / (batch * steps) * 1e6, backward / (batch * steps) * 1e6


def agreement(scene: Scene) -> float:
    """Largest difference between our accelerations and those of the peers at the start, over the largest of them."""
    state = State(torch.tensor(scene.q)[None], torch.tensor(scene.v)[None])
    result = scene.engine.acceleration(state)[0].numpy()
    q, v = scene.positions(scene.q), scene.velocities(scene.v)
    theirs = pin.aba(scene.pinocchio, scene.pinocchio.createData(), q, v, np.zeros(scene.engine.nv))
    plain = TorchTree(scene.pinocchio).acceleration(torch.tensor(q)[None], torch.tensor(v)[None])[0].numpy()
    data = mujoco.MjData(scene.mujoco)
    data.qpos[:], data.qvel[:] = scene.q, scene.v
    mujoco.mj_forward(scene.mujoco, data)
    # The linear velocity of a free joint is the world's here and turns with the body in Pinocchio.
    same = slice(3 if scene.engine.nq != scene.engine.nv else 0, None)
    differences = result - data.qacc, (result - theirs[scene.order])[same], plain - theirs
    return max(np.abs(difference).max() for difference in differences) / max(1.0, np.abs(result).max())


def memory(name: str, stored: tuple[int, int] = (100_000_000, 300_000_000), batch: int = 64) -> float:
    """Growth of a process's peak with the steps, forward and backward, over the growth of the states kept (bytes)."""
    engine = SCENES[name]().engine
    a_step = 8 * batch * (engine.nq + engine.nv)
    steps = [size // a_step for size in stored]
    fresh = ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1)
    subset, many = (fresh.submit(_peak, name, batch, count).result() for count in steps)
    return (many - subset) / (a_step * (steps[1] - steps[0]))


def _peak(name: str, batch: int, steps: int) -> int:
    """Bytes that this process held at most."""
    scene = SCENES[name]()
    q = torch.tensor(scene.q).repeat(batch, 1).requires_grad_()
    v = torch.tensor(scene.v).repeat(batch, 1).requires_grad_()
    scene.engine.rollout(State(q, v), steps).final.q.sum().backward()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def against_pinocchio(name: str, scene: Scene, rounds: int) -> list[Claim]:
    """The bars: 1000 steps of one world."""
    rows = [(*ours(scene, 1, 1000), *pinocchios(scene, 1000), mujocos(scene, 1000)) for _ in range(rounds + 1)][1:]
    forward, backward, aba, derivatives, step = (median(column) for column in zip(*rows, strict=True))
    ratios = median(row[0] / row[2] for row in rows), median(row[1] / row[3] for row in rows)
    print(f"  one world, 1000 steps          forward {forward:8.2f}   backward {backward:8.2f}")
    print(f"  pinocchio from Python              aba {aba:8.2f}  derivatives {derivatives:6.2f}")
    print(f"  mujoco mj_step                         {step:8.2f}")
    for what, ratio, bar in zip(("aba", "computeABADerivatives"), ratios, BARS.get(name, (None, None)), strict=True):
        verdict = "" if bar is None else f"; bar {bar}: {'met' if ratio <= bar else 'MISSED'}"
        print(f"  ours / {what:<24} {ratio:.2f}{verdict}")
    return [
        Claim(f"{name}, forward", forward, "µs a step", reference=aba, source="Pinocchio, aba"),
        Claim(
            f"{name}, backward", backward, "µs a step", reference=derivatives, source="Pinocchio, computeABADerivatives"
        ),
    ]


def main(scenes: tuple[str, ...] = tuple(SCENES), rounds: int = 5, long: bool = True) -> None:
    """Print the tables of times.

    Args:
        scenes: which of the scenes.
        rounds: Number of rounds of timing.
        long: If true, also time 1000 steps.
    """
    torch.set_num_threads(1)
    claims: list[Claim] = []
    for name in scenes:
        scene = SCENES[name]()
        print(f"{name}: {scene.engine.nv} velocities; accelerations agree to {agreement(scene):.0e}")
        claims += against_pinocchio(name, scene, rounds)
        print(f"  {'batch':>7} {'steps':>6} {'forward':>9} {'backward':>9}   {'torch':>9} {'backward':>9}")
        for steps in STEPS if long else STEPS[:1]:
            for batch in BATCHES:
                rows = [ours(scene, batch, steps) for _ in range(3)]
                forward, backward = (median(column) for column in zip(*rows, strict=True))
                # Autograd keeps every intermediate of every step: a thousand of a batch are more than memory holds.
                plain = "{:>9.1f} {:>9.1f}".format(*torchs(scene, batch, 5)) if steps == STEPS[0] else ""
                print(f"  {batch:>7} {steps:>6} {forward:>9.2f} {backward:>9.2f}   {plain}")
        extended = memory(name)
        verdict = "met" if extended <= MEMORY_BAR else "MISSED"
        claims.append(Claim(f"{name}, memory", extended, "of the states kept"))
        print(f"  memory grows by {extended:.2f} × the states kept; bar {MEMORY_BAR}: {verdict}\n")
    print(write_claims(__file__, claims))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
