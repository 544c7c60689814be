"""Steps of the ant a second in Brax and MJX on the CPU, for `learning.py`, which runs this with a Python that has them.

    pip install brax mujoco-mjx jax gymnasium
    python benchmarks/learning_jax.py [--batches 1,16,256,4096] [--seconds 2]

Brax's own ant with its generalized engine and with MJX, and gymnasium's file in MJX: 0.05 s a step as five of 0.01 s,
float32, random actions, worlds that end starting anew from where they began. Compiled for each batch before anything is
timed; calls have several steps where a batch is small. With gradients, where the peer has any backwards, that of what
is seen and paid after each step to its action and state. A line of JSON for each: steps a second of the clock and of
processor time, and the seconds that compilation took of the processor.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jp
import mujoco
from brax import envs
from mujoco import mjx

FILE = Path(str(gymnasium.__file__)).parent / "envs" / "mujoco" / "assets" / "ant.xml"
AT_ONCE, STARTS = 256, 16  # steps of all worlds together in a call, at least; different starts


class Brax:
    """Brax's ant by one of its engines."""

    def __init__(self, backend: str) -> None:
        self.world = envs.get_environment("ant", backend=backend)

    def begin(self, key: jax.Array):
        """Reset to an initial state."""
        return self.world.reset(key)

    def step(self, state, action: jax.Array):
        """After a step, what is seen and paid, and whether the game is over."""
        state = self.world.step(state, action)
        return state, state.obs.sum() + state.reward, state.done > 0

    def parts(self, state):
        """Arrays with respect to which gradients are taken."""
        return state.pipeline_state.q, state.pipeline_state.qd

    def put(self, state, parts):
        """The state with these in their places."""
        return state.replace(pipeline_state=state.pipeline_state.replace(q=parts[0], qd=parts[1]))


class Mjx:
    """Gymnasium's ant in MJX."""

    def __init__(self) -> None:
        self.model = mjx.put_model(mujoco.MjModel.from_xml_path(str(FILE)))

    def begin(self, key: jax.Array):
        """Reset to an initial state."""
        data = mjx.make_data(self.model)
        return data.replace(qpos=data.qpos + 0.1 * jax.random.uniform(key, data.qpos.shape, minval=-1.0))

    def step(self, state, action: jax.Array):
        """After five steps of the engine, what is seen and paid, and whether the game is over."""
        start, state = state.qpos[0], state.replace(ctrl=action)
        state = jax.lax.fori_loop(0, 5, lambda _, entry: mjx.step(self.model, entry), state)
        paid = (state.qpos[0] - start) / 0.05 - 0.5 * jp.square(action).sum() + 1
        height = state.qpos[2]
        return state, state.qpos[2:].sum() + state.qvel.sum() + paid, (height < 0.2) | (height > 1.0)


PEERS = {
    "Brax, MJX": lambda: Brax("mjx"),
    "Brax, generalized": lambda: Brax("generalized"),
    "MJX, gymnasium's": Mjx,
}
BACKWARDS = ("Brax, generalized",)  # MJX's solver loops until it has converged, which JAX does not take back


def forward(peer, first, state, key: jax.Array):
    """A step, from the start again where the game is over."""
    following, _, over = peer.step(state, jax.random.uniform(key, (8,), minval=-1.0))
    return jax.tree.map(lambda new, old: jp.where(over, new, old), first, following)


def forward_backward(peer, first, state, key: jax.Array):
    """Time steps together with their backward pass."""

    def reward_of(parts, action: jax.Array):
        following, value, over = peer.step(peer.put(state, parts), action)
        return value, (following, over)

    action = jax.random.uniform(key, (8,), minval=-1.0)
    result, (following, over) = jax.grad(reward_of, (0, 1), has_aux=True)(peer.parts(state), action)
    # What nothing asks for is compiled away.
    bad = ~jp.isfinite(sum(leaf.sum() for leaf in jax.tree.leaves(result)))
    return jax.tree.map(lambda new, old: jp.where(over | bad, new, old), first, following)


def starts(peer):
    """Sixteen initial states of the environment."""
    begin = jax.jit(peer.begin)
    return jax.tree.map(lambda *work: jp.stack(work), *map(begin, jax.random.split(jax.random.PRNGKey(0), STARTS)))


def measured(peer, way: Callable, batch_states, batch: int, seconds: float) -> dict[str, float]:
    """Rate of steps, per second."""
    periods, which = max(1, AT_ONCE // batch), jp.arange(batch) % STARTS

    def world(first, state, key: jax.Array):
        keys = jax.random.split(key, periods)
        return jax.lax.scan(lambda now, entry: (way(peer, first, now, entry), None), state, keys)[0]

    keys, first = jax.random.split(jax.random.PRNGKey(0), batch), jax.tree.map(lambda entry: entry[which], batch_states)
    began = time.process_time()
    run = jax.jit(jax.vmap(world)).lower(first, first, keys).compile()
    compiled, state = time.process_time() - began, jax.block_until_ready(run(first, first, keys))
    clock, processor, done = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - clock < seconds:
        keys = jax.random.split(keys[0], batch)
        state = jax.block_until_ready(run(first, state, keys))
        done += batch * periods
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    return {"clock": done / clock, "processor": done / processor, "compiled": compiled}


def main() -> None:
    """Print the lines of the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", default="1,16,256,4096")
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    for name, make in PEERS.items():
        peer = make()
        subset = starts(peer)
        for batch in map(int, given.batches.split(",")):
            ways = {"forward": forward} | ({"gradient": forward_backward} if name in BACKWARDS else {})
            line = {way: measured(peer, work, subset, batch, given.seconds) for way, work in ways.items()}
            print(json.dumps({"peer": name, "batch": batch} | line), flush=True)


if __name__ == "__main__":
    main()
