"""Milliseconds of an iteration of iLQR: a double pendulum swung up over 100 knots, alone and 64 problems at once.

Crocoddyl, where it is installed, solves the like problem in turns with ours in the same run. Times are of the processor
for one problem, and of the wall for the ratio between 64 problems and one; each is the least of several runs. Kernels
for a batch use as many cores as torch has threads (OMP_NUM_THREADS), so the ratio wants a machine that is idle.

    python benchmarks/ilqr.py
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from physvision import State
from physvision.control import Goal, ilqr
from physvision.physics import articulated

KNOTS, DT = 100, 0.05
WEIGHTS, FINAL, EFFORT = 0.1, 100.0, 1e-3


def angles(state: State) -> torch.Tensor:
    """Joint angles and velocities."""
    return torch.cat([state.q, state.v], 1)


def ours(worlds: int) -> Callable[[], int]:
    """A function that solves so many problems and returns the rounds."""
    chain = articulated.chain([1.0, 1.0], [1.0, 1.0], dt=DT)
    target = torch.tensor([torch.pi, 0.0, 0.0, 0.0], dtype=torch.float64)
    goal = Goal(angles, target, torch.full_like(target, WEIGHTS), EFFORT, torch.full_like(target, FINAL))
    start = State(torch.zeros(worlds, 2, dtype=torch.float64), torch.zeros(worlds, 2, dtype=torch.float64))
    generator = torch.Generator().manual_seed(0)
    first = 0.1 * torch.randn(worlds, KNOTS, 2, generator=generator, dtype=torch.float64)

    def solve() -> int:
        _, progress = ilqr(chain, start, first, goal, iterations=16, tolerance=0.0)
        return len(progress.cost_history) - 1

    return solve


def crocoddyls() -> Callable[[], int]:
    """Time Crocoddyl on the same problem: two rods, its own FDDP."""
    import crocoddyl  # pyright: ignore[reportMissingImports]
    import pinocchio  # pyright: ignore[reportMissingImports]

    model = pinocchio.Model()
    parent, place = 0, pinocchio.SE3.Identity()
    for _ in range(2):
        parent = model.addJoint(parent, pinocchio.JointModelRY(), place, f"joint {parent}")
        rod = pinocchio.Inertia(1.0, np.array([0.0, 0.0, -0.5]), np.diag([1 / 12, 1 / 12, 1e-3]))
        model.appendBodyToJoint(parent, rod, pinocchio.SE3.Identity())
        place = pinocchio.SE3(np.eye(3), np.array([0.0, 0.0, -1.0]))
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)
    target = np.array([np.pi, 0.0, 0.0, 0.0])
    bent = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state, target, 2))
    pushed = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, 2))

    def knot(weight: float, effort: float, dt: float):
        costs = crocoddyl.CostModelSum(state, 2)
        costs.addCost("state", bent, 2 * weight / (dt or 1.0))
        costs.addCost("control", pushed, 2 * effort / (dt or 1.0))
        return crocoddyl.IntegratedActionModelEuler(
            crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs), dt
        )

    problem = crocoddyl.ShootingProblem(np.zeros(4), [knot(WEIGHTS, EFFORT, DT)] * KNOTS, knot(FINAL, EFFORT, 0.0))
    problem.nthreads = 1  # as ours does for one problem; more wait for each other on a busy machine
    noise = [*(0.1 * np.random.default_rng(0).normal(size=(KNOTS, 2)))]

    def solve() -> int:
        solver = crocoddyl.SolverFDDP(problem)
        solver.th_stop = 1e-16
        solver.solve(problem.rollout(noise), noise, 16, False)
        return solver.iter

    return solve


def shortest_time(functions: dict[str, Callable[[], int]], clock: Callable[[], float], times: int) -> dict[str, float]:
    """Milliseconds an iteration of each, the least of so many turns."""
    result = dict.fromkeys(functions, float("inf"))
    for turn in range(times + 1):
        for name, solve in functions.items():
            start = clock()
            rounds = solve()
            if turn:  # the first compiles
                result[name] = min(result[name], 1e3 * (clock() - start) / rounds)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="turns, the best of which counts")
    times = parser.parse_args().times
    single = {"physvision": ours(1)}
    try:
        single["Crocoddyl"] = crocoddyls()
    except ImportError:
        print("Crocoddyl is not installed: pip install crocoddyl")
    for name, value in shortest_time(single, time.process_time, times).items():
        print(f"{name:12s} {value:6.2f} ms of processor time an iteration, {KNOTS} knots, one problem")
    many = shortest_time({"one": ours(1), "64": ours(64)}, time.perf_counter, times)
    times_one = f"{many['64'] / many['one']:.1f} times one ({many['64']:.1f} and {many['one']:.2f} ms)"
    print(f"64 problems at once take {times_one} by the clock, on {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
