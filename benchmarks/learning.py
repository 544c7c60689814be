"""Environment steps a second with and without gradients, beside peers; and updates of soft actor–critic.

    python benchmarks/learning.py [--environments Ant,CompliantAnt,CompliantAntEuler,Links3] [--batches 1,16,256,4096]
                                 [--seconds 2] [--threads 2] [--peer_python PYTHON] [--jax_python PYTHON]

Steps of the ant (0.05 s) and of three links under random actions, worlds that end starting anew; with gradients, the
backward pass from what is seen and paid after a step to its action and state is part of it. Beside it gymnasium's Ant
in `AsyncVectorEnv`, a process a world, and, with the Python of an environment that has them, Brax and MJX on the CPU
(`learning_jax.py`, in float32). All on all cores, steps a second of the clock, and, which other work on the same
cores changes less, of processor time of all processes together. With the Python of an environment
that has stable-baselines3, updates of its SAC and of ours on the pendulum of that package's size (3 numbers seen, one
action, two layers of 256, batches of 256), in turns, one thread, a second of processor time, and the median ratio.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AsyncVectorEnv
from jsonargparse import auto_cli

from physvision import State
from physvision.envs import ENVIRONMENTS, Environment, VectorEnv
from physvision.envs.catalog import ant
from physvision.learning import ReplayBuffer, Sac, SacSettings

CORES = os.cpu_count() or 1
ROUNDS, UPDATES = 5, 150
# Brax's ant steps by Euler's method, gymnasium's by Runge and Kutta's, which asks for the acceleration four times.
PLAYED = ENVIRONMENTS | {"CompliantAntEuler": partial(ant, compliant=True, integrator="semi_implicit_euler")}
PEER = """
import time, torch
torch.set_num_threads(1)
from stable_baselines3 import SAC
learner = SAC("MlpPolicy", "Pendulum-v1", seed=0, learning_starts=300)
learner.learn(400)
learner.train(gradient_steps=20, batch_size=256)
began = time.process_time()
learner.train(gradient_steps={updates}, batch_size=256)
print({updates} / (time.process_time() - began))
"""


Rates = tuple[float, float]


def spent(processes: Sequence[int] = ()) -> float:
    """Seconds of processor time of this process and of these."""
    result = time.process_time()
    for process in processes:
        user, system = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        result += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return result


def rate(step: Callable[[], int], seconds: float, processes: Sequence[int] = ()) -> Rates:
    """Steps a second of the clock and of processor time, once the first one is done."""
    step()
    began, before, done = time.perf_counter(), spent(processes), 0
    while time.perf_counter() - began < seconds:
        done += step()
    return done / (time.perf_counter() - began), done / (spent(processes) - before)


def forward(environment: Environment, batch: int, seed: int) -> Callable[[], int]:
    """A step of all worlds."""
    generator = torch.Generator().manual_seed(seed)
    worlds, action_limit = VectorEnv(environment, batch, generator), torch.tensor(environment.action_limit)

    def step() -> int:
        moves = worlds.step(action_limit * (2 * torch.rand(batch, len(action_limit), generator=generator) - 1))
        worlds.reset(moves.terminated | moves.truncated)
        return batch

    return step


def forward_backward(environment: Environment, batch: int, seed: int) -> Callable[[], int]:
    """Time steps together with their backward pass."""
    generator = torch.Generator().manual_seed(seed)
    worlds, action_limit = VectorEnv(environment, batch, generator), torch.tensor(environment.action_limit)

    def step() -> int:
        action = action_limit * (2 * torch.rand(batch, len(action_limit), generator=generator, dtype=torch.float64) - 1)
        inputs = [entry.detach().requires_grad_() for entry in (worlds.state.q, worlds.state.v, action)]
        result = environment.step(State(*inputs[:2]), inputs[2])
        torch.autograd.grad(environment.observe_state(result.state).sum() + result.reward.sum(), inputs)
        worlds.set_states(result.state, result.failed)
        worlds.reset(result.terminated | (worlds.elapsed_steps >= environment.max_episode_steps))
        return batch

    return step


def peer(count: int, seconds: float) -> Rates:
    """Gymnasium's ant, so many in as many processes."""
    worlds = AsyncVectorEnv([lambda: gymnasium.make("Ant-v5") for _ in range(count)])
    worlds.reset(seed=0)
    random = np.random.default_rng(0)

    def step() -> int:
        worlds.step(random.uniform(-1, 1, (count, 8)))
        return count

    result = rate(step, seconds, [process.pid for process in worlds.processes])
    worlds.close()
    return result


def jax_peers(python: str, batches: str, seconds: float) -> None:
    """Print the rows of Brax and MJX."""
    program = [python, str(Path(__file__).with_name("learning_jax.py")), f"--batches={batches}", f"--seconds={seconds}"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        # Their packages say things too.
        for line in (json.loads(line) for line in running.stdout if line.startswith("{")):
            ways = [line[way] for way in ("forward", "gradient") if way in line]
            print_row(line["peer"], line["batch"], [(entry["clock"], entry["processor"]) for entry in ways])
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, program)


def print_row(name: str, batch: int, rates: Iterable[Rates]) -> None:
    """Print a row of the table of steps."""
    text = "".join(f"{clock:>12,.0f}{processor:>13,.0f}" for clock, processor in rates)
    print(f"{name:<18}{batch:>7}{text}", flush=True)


def updates() -> float:
    """Rate of our updates, per second of processor time."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    agent = Sac(3, 1, SacSettings(), generator)
    record = ReplayBuffer(10_000, {"obs": 3, "action": 1, "reward": 0, "next_obs": 3, "terminated": 0})
    rows = {name: torch.randn(5000, width) for name, width in (("obs", 3), ("action", 1), ("next_obs", 3))}
    record.add(rows | {"reward": torch.randn(5000), "terminated": torch.zeros(5000)})
    began = 0.0
    for number in range(20 + UPDATES):
        began = time.process_time() if number == 20 else began
        agent.update(record.sample(256, generator))
    return UPDATES / (time.process_time() - began)


def main(
    environments: str = "Ant,CompliantAnt,CompliantAntEuler,Links3",
    batches: str = "1,16,256,4096",
    seconds: float = 2.0,
    threads: int = CORES,
    peer_python: str | None = None,
    jax_python: str | None = None,
) -> None:
    """Print the tables of rates.

    Args:
        environments: which.
        batches: worlds.
        seconds: each figure is measured for.
        threads: that ours may use.
        peer_python: the Python that has stable-baselines3; its SAC is left out if not given.
        jax_python: the Python that has brax and mujoco-mjx; these are left out if not given.
    """
    torch.set_num_threads(threads)
    print(f"{'steps a second':<18}{'batch':>7}{'forward':>12}{'of processor':>13}{'gradient':>12}{'of processor':>13}")
    for name in filter(None, environments.split(",")):
        for batch in map(int, batches.split(",")):
            print_row(
                name, batch, (rate(make(PLAYED[name](), batch, 0), seconds) for make in (forward, forward_backward))
            )
    if environments:
        for count in (1, CORES, 8 * CORES):
            print_row("AsyncVectorEnv Ant", count, [peer(count, seconds)])
    if jax_python:
        jax_peers(jax_python, batches, seconds)
    torch.set_num_threads(1)
    ratios = []
    for _ in range(ROUNDS if peer_python else 0):
        program = [str(peer_python), "-c", PEER.format(updates=UPDATES)]
        process = subprocess.run(
            program, check=True, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
        ours, theirs = updates(), float(process.stdout.split()[-1])
        print(
            f"updates of SAC a second: {ours:.0f}, stable-baselines3 {theirs:.0f}: {ours / theirs:.2f} times",
            flush=True,
        )
        ratios.append(ours / theirs)
    if ratios:
        print(f"in the median {float(np.median(ratios)):.2f} times")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
