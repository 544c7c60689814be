"""Failures of differentiable physics: growing and vanishing gradients, and what the status reports.

First, the largest singular value of the derivative of a motion's end by its start, over horizons of a quarter of a
second to eight: a pendulum (grows evenly), one with drag (fades), a double pendulum (chaos: grows by a factor each
second) and billiards (chaos of collisions). Beside it, the relative error of that derivative by differences: it is
right even where it is of no use. Then a list of failures, each brought about on purpose beside a world that is well:
drift of energy, numbers that leave all bounds, shapes that graze, impacts that would add energy, crowds, bullets,
solids and flows that are asked for too much. What the status says is printed, and whether the other world is as it is
alone.

    python experiments/failures.py [--out out]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from jsonargparse import auto_cli
from panel import panel, save
from torch import Tensor

from physvision.core import Box, Placed, Plane, Sphere, State, Trajectory
from physvision.physics import Engine, articulated, fluid, soft

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # where the scenes are
from rigid2d_scenes import billiard, pile  # pyright: ignore[reportMissingImports]

DOUBLE = torch.float64
HORIZONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # s
MOVES = (1e-5, 1e-6, 1e-7)  # by which a start is moved for differences


def swung(engine: Engine, *angles: float) -> tuple[Engine, State]:
    """An engine, and its start from rest at some angles."""
    return engine, State(torch.tensor([angles], dtype=DOUBLE), torch.zeros(1, len(angles), dtype=DOUBLE))


def motions() -> dict[str, tuple[Engine, State]]:
    """An engine and where it starts, for each motion."""
    step = {"dt": 1 / 240, "integrator": "runge_kutta_4"}
    table = billiard([(100, 200), (230, 215), (300, 120)], [(300, 0), (0, 0), (0, 0)], dt=1 / 60)
    return {
        "pendulum": swung(articulated.chain([1.0], **step), 2.0),
        "pendulum with drag": swung(articulated.chain([1.0], damping=0.6, **step), 2.0),
        "double pendulum": swung(articulated.chain([0.5, 0.5], **step), 2.1, 0.4),
        "billiards": (table, table.initial_state(1, DOUBLE)),
    }


def ends(engine: Engine, start: Tensor, steps: int) -> Tensor:
    """Final positions and velocities of motions, from starts as one row each."""
    q, v = start.split([engine.nq, engine.nv], 1)
    run = engine.rollout(State(q, v), steps)
    return torch.cat([run.final.q, run.final.v], 1)


def derivative(engine: Engine, start: State, steps: int) -> tuple[float, float]:
    """The largest singular value of the end's derivative by the start, and its relative error against differences."""
    row = torch.cat([start.q, start.v], 1)
    size = row.shape[1]
    rows = row.repeat(size, 1).requires_grad_()
    (exact,) = torch.autograd.grad(ends(engine, rows, steps).diagonal().sum(), rows)
    norm, errors = float(torch.linalg.matrix_norm(exact, 2)), []
    for move in MOVES:
        moved = row + move * torch.cat([torch.eye(size, dtype=DOUBLE), -torch.eye(size, dtype=DOUBLE)])
        with torch.no_grad():
            ahead, back = ends(engine, moved, steps).chunk(2)
        difference = (ahead - back).T / (2 * move)
        errors.append(float(torch.linalg.matrix_norm(difference - exact, 2)) / norm)
    return norm, min(errors)


def gradients(out: Path) -> bool:
    """Print and draw how derivatives grow; whether each is right."""
    print("largest singular value of the derivative of the end by the start (relative error against differences)")
    figure, axis = panel()
    right = True
    for name, (engine, start) in motions().items():
        results = [derivative(engine, start, round(horizon / engine.dt)) for horizon in HORIZONS]
        # Differences themselves end where the derivative times their move is no longer small.
        right &= all(error < max(1e-5, 1e-9 * norm) for norm, error in results)
        print(f"  {name:20s}" + "  ".join(f"{norm:9.3g} ({error:.0e})" for norm, error in results))
        axis.loglog(HORIZONS, [norm for norm, _ in results], "o-", label=name)
    axis.set_xticks(HORIZONS, [f"{horizon:g}" for horizon in HORIZONS])
    axis.minorticks_off()
    axis.set_xlabel("horizon, s")
    axis.set_ylabel("size of the derivative")
    save(figure, axis, out / "failures.png")
    return right


def ball(name: str, radius: float = 0.1) -> articulated.Body:
    """Make a free ball."""
    sphere = Placed(Sphere(radius))
    return articulated.Body(name, None, [articulated.Joint("free")], mass=1.0, inertia=(0.004,) * 3, shapes=[sphere])


def floor() -> Placed:
    """Make the ground plane."""
    return Placed(Plane())


def energy_drift() -> tuple[Engine, State]:
    """A chain that turns fast at a long step, beside one at rest."""
    engine = articulated.chain([0.5, 0.5], dt=0.05, integrator="runge_kutta_4")
    v = torch.tensor([[60.0, -40.0], [0.0, 0.0]], dtype=DOUBLE)
    return engine, State(torch.zeros_like(v), v)


def divergence() -> tuple[Engine, State]:
    """A joint whose speed overflows, beside one that swings."""
    engine = articulated.chain([0.5, 0.5], dt=0.01)
    v = torch.tensor([[1e200, 1e200], [1.0, 0.0]], dtype=DOUBLE)
    return engine, State(torch.zeros_like(v), v)


def grazing() -> tuple[Engine, State]:
    """A ball that passes another at a tenth of a micrometre, beside one that passes far off."""
    bodies = [ball("one"), ball("other")]
    engine = articulated.tree(bodies, dt=0.01, gravity=(0, 0, 0), contact=articulated.ContactSettings(restitution=1.0))
    start = engine.initial_state(2, DOUBLE)
    q, v = start.q.clone(), start.v.clone()
    q[:, 0], q[:, 1], v[:, 0] = -0.503, torch.tensor([0.2 + 1e-7, 5.0]), 1.0
    return engine, State(q, v)


def energy_of_impacts() -> tuple[Engine, State]:
    """A rod that strikes the ground aslant with friction: Newton's restitution alone would give it energy."""
    block = Placed(Box((0.5, 0.02, 0.02)))
    rod = articulated.Body(
        "rod", None, [articulated.Joint("free")], mass=1.0, inertia=(1e-3, 0.02, 0.02), shapes=[block]
    )
    engine = articulated.tree(
        [rod], dt=0.01, static_shapes=[floor()], contact=articulated.ContactSettings(restitution=1.0, friction=1.0)
    )
    start = engine.initial_state(2, DOUBLE)
    q, v = start.q.clone(), start.v.clone()
    q[:, 2] = torch.tensor([0.4, 3.0])
    tilt = torch.tensor(1.1, dtype=DOUBLE)
    q[:, 3], q[:, 5] = (tilt / 2).cos(), (tilt / 2).sin()
    v[0, 0], v[0, 2], v[0, 4] = 8.0, -2.0, -10.0
    return engine, State(q, v)


def crowd() -> tuple[Engine, State]:
    """Eighteen bodies that fall into a bin at once, beside the same that fly up out of it."""
    engine = pile(18, seed=3)
    start = engine.initial_state(2, DOUBLE)
    v = start.v.clone()
    v[1, 1::3] = 1000.0
    return engine, State(start.q, v)


def bullet() -> tuple[Engine, State]:
    """A ball that would be a hundred of its sizes behind a plate after one step, beside one at rest."""
    bodies = [ball("bullet", 0.01)]
    plate = Placed(Box((0.01, 2.0, 2.0)), pose=((1.0, 0, 0, 1.0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)))
    engine = articulated.tree(
        bodies, dt=0.02, gravity=(0, 0, 0), static_shapes=[plate], contact=articulated.ContactSettings(restitution=0.5)
    )
    start = engine.initial_state(2, DOUBLE)
    v = start.v.clone()
    v[0, 0] = 100.0
    return engine, State(start.q, v)


def crushed() -> tuple[Engine, State]:
    """A soft block whose nodes start turned inside out, beside one at rest."""
    body = soft.SoftBody(soft.rectangle((0.2, 0.1), (2, 1)), soft.Material(1e5), dt=0.01, kinematic=(0,))
    start = body.initial_state(2, DOUBLE)
    q = start.q.clone()
    q[0, 0::2] = -q[0, 0::2]
    return body, State(q, start.v)


def racing() -> tuple[Engine, State]:
    """A flow that passes many cells in a step, beside one at rest."""
    flow = fluid.Flow(
        (8, 8), (1.0, 1.0), fluid.FluidMaterial(0.01), boundary=fluid.Boundary(("periodic", "periodic")), dt=0.1
    )
    start = flow.initial_state(2, DOUBLE)
    v = start.v.clone()
    # Not the same everywhere: what streams evenly goes on for ever, at any speed.
    v[0] = 50.0 * torch.linspace(0.0, 1.0, v.shape[1], dtype=DOUBLE)
    return flow, State(start.q, v)


FAILURES: dict[str, tuple[Callable[[], tuple[Engine, State]], str]] = {
    "drift of energy": (energy_drift, "first_underresolved_step"),
    "numbers beyond all bounds": (divergence, "converged"),
    "shapes that graze": (grazing, "first_grazing_step"),
    "impacts that would add energy": (energy_of_impacts, "regularized_impacts"),
    "a crowd": (crowd, "fallback_steps"),
    "a bullet": (bullet, "penetration"),
    "a body inside out": (crushed, "converged"),
    "a flow that races": (racing, "converged"),
}
# What the status of a world that is well says.
WELL = {"first_underresolved_step": -1, "converged": True, "first_grazing_step": -1}
WELL |= {"regularized_impacts": 0, "fallback_steps": 0}


def evaluate(make: Callable[[], tuple[Engine, State]]) -> tuple[Engine, Trajectory, bool]:
    """The motion of both worlds, and whether the second is what it is alone, to the last bit."""
    engine, start = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        run = engine.rollout(start, 100)
        alone = engine.rollout(State(start.q[1:], start.v[1:]), 100)
    same = torch.equal(run.q[1:], alone.q) and torch.equal(run.v[1:], alone.v)
    return engine, run, same


def statuses() -> bool:
    """Print what the status says of each failure; whether it names the world that fails, and that one alone."""
    print("\nwhat the status says of a world that fails, and of one that is well beside it")
    good = True
    for name, (make, field) in FAILURES.items():
        _, run, same = evaluate(make)
        status = run.status
        assert status is not None
        bad, well = getattr(status, field).tolist()
        if field == "penetration":  # nothing has failed: the bullet is stopped where it strikes
            named = bad < 1e-9 and bool(status.converged.all()) and float(run.q[0, :, 0].max()) < 1.0
        else:
            named = bad != WELL[field] and well == WELL[field]
        good &= named and same
        print(f"  {name:30s} {field}: {bad} and {well}; the other world {'as alone' if same else 'CHANGED'}")
    return good


def main(out: Path = Path("out")) -> bool:
    """Print both tables and draw the first.

    Args:
        out: folder of the picture.

    Returns:
        Whether derivatives are right, and every failure is named while the other world stays as it is.
    """
    return gradients(out) & statuses()


if __name__ == "__main__":
    auto_cli(main)
