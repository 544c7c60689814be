"""Flow beside JAX-CFD and PhiFlow on the same work: steps of a Taylor–Green vortex, and the gradient to its start.

    python benchmarks/fluid_peers.py --peer_python ENV/bin/python [--peers '[JAX-CFD]'] [--cells 64] [--steps 50]

Each peer is installed into an environment of its own (`pip install jax-cfd`, `pip install phiflow jax`), runs in
float64 on one thread, and is called through its compiled function after a first call that compiles it. All take the
same number of steps of the same length from the same velocities, and each uses the pressure solver that it offers for a
periodic box: ours and JAX-CFD's by fast diagonalisation, PhiFlow's by conjugate gradients. Times are medians, of the
processor and not of the clock, which other work on the machine would stretch; the error is that of the velocity along x
at the end beside the exact vortex, since schemes differ: ours is run on coarser grids with longer steps too.
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

VISCOSITY, DT = 0.01, 0.02


def timed(work: Callable[[], object], rounds: int) -> float:
    """Median milliseconds of the processor, after one call that warms up."""
    work()
    retained = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        retained.append(1e3 * (time.process_time() - began))
    return median(retained)


def vortex(x: np.ndarray, y: np.ndarray, fade: float) -> np.ndarray:
    """Velocity along x of the vortex."""
    return fade * np.cos(x) * np.sin(y)


def ours(cells: int, steps: int, rounds: int, seconds: float) -> list[float]:
    """Milliseconds forward and with the gradient, and the error, of so many steps in all these seconds."""
    import torch

    from physvision.core import State
    from physvision.physics.fluid import Boundary, Flow, FluidMaterial

    torch.set_num_threads(1)
    side = 2 * math.pi
    flow = Flow(
        (cells, cells),
        (side, side),
        FluidMaterial(VISCOSITY),
        boundary=Boundary(("periodic", "periodic")),
        dt=seconds / steps,
    )
    (x, y), (a, b) = flow.faces(0), flow.faces(1)
    start = flow.flow_state((x.cos() * y.sin())[None], (-a.sin() * b.cos())[None])

    def gradient() -> object:
        v = start.v.clone().requires_grad_()
        return torch.autograd.grad(flow.rollout(State(start.q, v), steps).final.v.square().sum(), v)

    with torch.no_grad():
        forward = timed(lambda: flow.rollout(start, steps), rounds)
        end = flow.velocities(flow.rollout(start, steps).final)[0][0].numpy()
    exact = vortex(x.numpy(), y.numpy(), math.exp(-2 * VISCOSITY * seconds))
    return [forward, timed(gradient, rounds), float(np.abs(end - exact).max())]


JAX_CFD = """
import jax, json, math, sys, time
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import jax_cfd.base as cfd
from statistics import median
cells, steps, rounds = (int(each) for each in sys.argv[1:4])
nu, dt = (float(each) for each in sys.argv[4:6])
side = 2 * math.pi
grid = cfd.grids.Grid((cells, cells), domain=((0, side), (0, side)))
bc = cfd.boundaries.periodic_boundary_conditions(2)
fields = []
laws = (lambda x, y: jnp.cos(x) * jnp.sin(y), lambda x, y: -jnp.sin(x) * jnp.cos(y))
for offset, law in zip(((1.0, 0.5), (0.5, 1.0)), laws):
    x, y = grid.mesh(offset)
    fields.append(cfd.grids.GridVariable(cfd.grids.GridArray(law(x, y), offset, grid), bc))
step = cfd.equations.semi_implicit_navier_stokes(density=1.0, viscosity=nu, dt=dt, grid=grid)
run = cfd.funcutils.repeated(step, steps)
forward = jax.jit(lambda v: run(v))
loss = lambda v: sum(jnp.sum(each.data ** 2) for each in run(v))
gradient = jax.jit(jax.grad(loss))
def timed(work):
    jax.block_until_ready(work())
    kept = []
    for _ in range(rounds):
        began = time.process_time(); jax.block_until_ready(work()); kept.append(1e3 * (time.process_time() - began))
    return median(kept)
start = tuple(fields)
times = [timed(lambda: forward(start)), timed(lambda: gradient(start))]
x, y = grid.mesh((1.0, 0.5))
exact = math.exp(-2 * nu * dt * steps) * jnp.cos(x) * jnp.sin(y)
print(json.dumps([*times, float(jnp.abs(forward(start)[0].data - exact).max())]))
"""

PHIFLOW = """
import json, sys, time
from phi.jax.flow import *
import math as numbers
from statistics import median
from phiml import backend
backend.set_global_precision(64)
cells, steps, rounds = (int(each) for each in sys.argv[1:4])
nu, dt = (float(each) for each in sys.argv[4:6])
side = 2 * numbers.pi
domain = dict(extrapolation=extrapolation.PERIODIC, bounds=Box(x=side, y=side), x=cells, y=cells)
start = StaggeredGrid(lambda p: vec(x=math.cos(p.vector['x']) * math.sin(p.vector['y']),
                                     y=-math.sin(p.vector['x']) * math.cos(p.vector['y'])), **domain)
def one(v):
    v = diffuse.explicit(advect.mac_cormack(v, v, dt), nu, dt)
    return fluid.make_incompressible(v, solve=Solve('CG', 1e-10, 1e-10, rank_deficiency=1))[0]
def run(v):
    for _ in range(steps):
        v = one(v)
    return v
forward = jit_compile(run)
gradient = jit_compile(math.gradient(lambda v: field.l2_loss(run(v)), 'v'))
def timed(work):
    work()
    kept = []
    for _ in range(rounds):
        began = time.process_time(); out = work()
        while isinstance(out, (tuple, list)):
            out = out[-1]
        out.vector['x'].values.numpy('x,y')
        kept.append(1e3 * (time.process_time() - began))
    return median(kept)
first = timed(lambda: forward(start))
exact = numbers.exp(-2 * nu * dt * steps)
ends = [each.vector['x'].values.numpy('x,y') for each in (forward(start), start)]
off = abs(ends[0] - exact * ends[1]).max()
try:
    second = timed(lambda: gradient(start))
except Exception as error:
    print(type(error).__name__, str(error)[:200], file=sys.stderr)
    second = float('nan')
print(json.dumps([first, second, float(off)]))
"""


PEERS = {"JAX-CFD": JAX_CFD, "PhiFlow": PHIFLOW}


def peer(code: str, python: Path, cells: int, steps: int, rounds: int) -> list[float]:
    """Run a peer's program in another environment; raises an error with its output if it fails."""
    given = [str(entry) for entry in (cells, steps, rounds, VISCOSITY, DT)]
    limits = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
    result = subprocess.run([str(python), "-c", code, *given], capture_output=True, text=True, env=limits, check=False)
    if result.returncode:
        raise RuntimeError(result.stderr.strip().splitlines()[-1])
    return json.loads(result.stdout.strip().splitlines()[-1])


def main(
    peer_python: Path | None = None,
    peers: tuple[str, ...] = tuple(PEERS),
    cells: int = 64,
    steps: int = 50,
    rounds: int = 5,
) -> None:
    """Print the table of times.

    Args:
        peer_python: Python of the environment with the peers; by default only our own times are printed.
        peers: which of them.
        cells: along each axis.
        steps: Steps of the motion.
        rounds: after one that warms up.
    """
    rows = {
        name: ours(cells // entry, steps // less, rounds, DT * steps)
        for name, entry, less in (
            ("here", 1, 1),
            ("here, half the steps", 1, 2),
            ("here, half the cells and steps", 2, 2),
            ("here, a quarter", 4, 4),
        )
    }
    if peer_python is not None:
        for name in peers:
            try:
                rows[name] = peer(PEERS[name], peer_python, cells, steps, rounds)
            except RuntimeError as error:
                print(f"{name} does not run: {error}")
    print(f"{cells} × {cells} cells, {steps} steps, float64, one thread, milliseconds of the processor")
    print("| solver | forward, ms | with gradient, ms | error |")
    print("|---|---|---|---|")
    for name, (forward, gradient, error) in rows.items():
        print(f"| {name} | {forward:.1f} | {gradient:.1f} | {error:.1e} |")


if __name__ == "__main__":
    from jsonargparse import auto_cli

    auto_cli(main)
