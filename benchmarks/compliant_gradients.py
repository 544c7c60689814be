"""Gradients of compliant contact against central differences of MuJoCo's motion, on model files of the corpus.

    python benchmarks/compliant_gradients.py [--models 40] [--folder out/model_corpus] [--packages "[gymnasium]"]

Files are taken in turn from the packages of `model_corpus.csv`, those that load, move, and whose motion over 20 steps
of 1 ms or less is MuJoCo's to 1e-9 (solver tolerance 0, dense Jacobian, Runge–Kutta): with contact where all points are
MuJoCo's, otherwise without. From random states under random controls, the derivative of a random sum of the final
positions and velocities is taken along a random direction of positions, of velocities and of controls. The differences
are those at 1e-4, 1e-5 and 1e-6; their spread is that of the three. A gradient is right within 1e-6 of the middle one,
relative to the derivative or to one where that is smaller, or within twice the spread.
"""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import torch
from jsonargparse import auto_cli

sys.path.append(str(Path(__file__).parent))
from model_corpus import Comparison, ModelFile, corpus, download, refusal
from mujoco_versions import runge_kutta_steps

from physvision import State
from physvision.physics.articulated.loading.model_files import compile_model

DIFFERENCES = (1e-4, 1e-5, 1e-6)
TOLERANCE = 1e-6
SAME_MOTION = 1e-9  # rad or m, and rad/s or m/s
MAX_STEP, STEPS = 1e-3, 20
STATES = 2
Array = np.ndarray


class Start(NamedTuple):
    """State of MuJoCo's model and its controls."""

    q: Array
    v: Array
    control: Array


class Derivative(NamedTuple):
    """Gradient along a direction, beside the central differences of MuJoCo's and their spread."""

    name: str
    gradient: float
    difference: float
    spread: float

    @property
    def size(self) -> float:
        """Size of the derivative, at least one."""
        return max(1.0, abs(self.difference))

    @property
    def error(self) -> float:
        """Relative error of the gradient."""
        return abs(self.gradient - self.difference) / self.size

    @property
    def is_right(self) -> bool:
        """If true, the gradient is within the tolerance, or within twice the spread of the differences."""
        return self.error <= max(TOLERANCE, 2 * self.spread / self.size)


class Motion:
    """Motions of a model file in both simulators from states and controls."""

    def __init__(self, path: Path, ignore: Sequence[str], generator: np.random.Generator) -> None:
        damping = 1e-9
        model, _ = compile_model(path)
        if model.nv:
            damping = float((model.dof_damping * model.dof_invweight0).max(initial=damping))
        self.comparison = Comparison(path, min(MAX_STEP, 0.1 / damping), ignore)
        self.model, self.data, self.engine = self.comparison.model, self.comparison.data, self.comparison.engine
        self.comparison.randomize(generator, moving=True)
        self.start = Start(self.data.qpos.copy(), self.data.qvel.copy(), self.data.ctrl.copy())
        self.has_controls = self.engine.nu == self.model.nu > 0

    def mujoco(self, start: Start) -> tuple[Array, Array]:
        """Return the final positions and velocities by MuJoCo."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:], self.data.ctrl[:] = start
        runge_kutta_steps(self.model, self.data, STEPS)
        return self.data.qpos.copy(), self.data.qvel.copy()

    def rollout(self, q: torch.Tensor, v: torch.Tensor, control: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the final positions and velocities of the engine; NaN after a failure."""
        padding = v.new_zeros(1, self.engine.nv - self.model.nv)  # activations of actuators
        controls = control.expand(1, STEPS, -1) if self.has_controls else None
        state = State(torch.cat([q, padding], 1), torch.cat([v, padding], 1))
        final = self.engine.rollout(state, STEPS, controls).final
        return final.q[:, : self.model.nq], final.v[:, : self.model.nv]

    def tensors(self) -> list[torch.Tensor]:
        """Return the start as tensors of one world."""
        return [torch.from_numpy(value)[None] for value in self.start]

    def difference(self, first: Array, second: Array) -> Array:
        """Return the difference of positions in the tangent space."""
        result = np.zeros(self.model.nv)
        mujoco.mj_differentiatePos(self.model, result, 1.0, first, second)
        return result

    def is_mujocos(self) -> bool:
        """If true, both simulators end in the same state."""
        q, v = self.mujoco(self.start)
        own_q, own_v = (value[0].detach().numpy() for value in self.rollout(*self.tensors()))
        return bool(max(np.abs(self.difference(q, own_q)).max(), np.abs(own_v - v).max()) <= SAME_MOTION)

    def derivatives(self, generator: np.random.Generator) -> list[Derivative]:
        """Return the derivatives along a direction of positions, of velocities and of controls."""
        nv = self.model.nv
        reference, _ = self.mujoco(self.start)
        weights = generator.normal(size=(2, nv))
        shift = torch.zeros(1, nv, dtype=torch.float64, requires_grad=True)
        q, v, control = self.tensors()
        v.requires_grad_()
        control.requires_grad_()
        padding = torch.zeros(1, self.engine.nv - nv, dtype=torch.float64)
        moved = self.engine.integrate(torch.cat([q, padding], 1), torch.cat([shift, padding], 1))
        end_q, end_v = self.rollout(moved[:, : self.model.nq], v, control)
        whole = torch.cat([torch.from_numpy(reference)[None], padding], 1)
        change = self.engine.difference(whole, torch.cat([end_q, padding], 1))[:, :nv]
        end = (change @ torch.from_numpy(weights[0]) + end_v @ torch.from_numpy(weights[1])).sum()
        gradients = torch.autograd.grad(end, (shift, v, control), allow_unused=True)

        def slope(name: str, along: Array, h: float) -> float:
            values = []
            for sign in (1, -1):
                start = Start(*(value.copy() for value in self.start))
                if name == "q":
                    mujoco.mj_integratePos(self.model, start.q, along, sign * h)
                else:
                    getattr(start, name)[:] += sign * h * along
                final_q, final_v = self.mujoco(start)
                values.append(weights[0] @ self.difference(reference, final_q) + weights[1] @ final_v)
            return (values[0] - values[1]) / (2 * h)

        result = []
        for name, gradient, size in zip(("q", "v", "control"), gradients, (nv, nv, self.model.nu), strict=True):
            if gradient is None or size == 0:
                continue
            along = generator.normal(size=size)
            along /= np.linalg.norm(along)
            slopes = [slope(name, along, h) for h in DIFFERENCES]
            result.append(Derivative(name, float(gradient[0].numpy() @ along), slopes[1], float(np.ptp(slopes))))
        return result


def alternate(files: Sequence[ModelFile]) -> list[ModelFile]:
    """Return the files of all packages in turn."""
    groups = [[file for file in files if file.package == name] for name in dict.fromkeys(f.package for f in files)]
    return [file for file in chain(*zip_longest(*groups)) if file is not None]


def compare(path: Path) -> tuple[str, list[Derivative]] | None:
    """Return the derivatives of a file, with the contact they have; None if its motion is not MuJoCo's."""
    if refusal(path, "compliant") or compile_model(path)[0].nv == 0:
        return None
    for ignore in ((), ("contact",)):
        motions = [Motion(path, ignore, np.random.default_rng(seed)) for seed in range(STATES)]
        if all(motion.is_mujocos() for motion in motions):
            touches = any(motion.data.ncon > 0 or motion.data.nefc > 0 for motion in motions)
            kind = "without contact" if ignore else "with constraints" if touches else "nothing touches"
            generator = np.random.default_rng(40)
            return kind, [entry for motion in motions for entry in motion.derivatives(generator)]
    return None


def results(models: int, folder: Path, packages: Sequence[str]) -> Iterator[tuple[str, str, list[Derivative]]]:
    """Yield path, contact and derivatives of the first files whose motion is MuJoCo's."""
    files = alternate(corpus(packages))
    download(files, folder)
    count = 0
    for file in files:
        result = compare(folder / file.path) if count < models else None
        if result is not None:
            count += 1
            yield file.path, *result


def main(models: int = 40, folder: Path = Path("out/model_corpus"), packages: Sequence[str] = ()) -> int:
    """Print the errors of every file, and return the number of gradients that are wrong.

    Args:
        models: Number of model files.
        folder: Folder of the downloaded packages.
        packages: Names of the packages that files are taken from; all if none is given.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    began = time.process_time()
    print(f"{'error':>8} {'spread':>8}  contact, file")
    compared: list[Derivative] = []
    files = wrong = 0
    for path, kind, derivatives in results(models, folder, packages):
        worst = max(derivatives, key=lambda entry: entry.error)
        misses = [entry.name for entry in derivatives if not entry.is_right]
        files, wrong = files + 1, wrong + len(misses)
        compared += derivatives
        print(f"{worst.error:8.1e} {worst.spread / worst.size:8.1e}  {kind}, {path} {', '.join(misses)}", flush=True)
    spreads = [entry.spread / entry.size for entry in compared]
    print(
        f"{files} files, {len(compared)} derivatives, {wrong} wrong; within 1e-6 "
        f"{sum(entry.error <= TOLERANCE for entry in compared)}, spread of differences above 1e-6 in "
        f"{sum(spread > TOLERANCE for spread in spreads)}; {time.process_time() - began:.0f} s"
    )
    return wrong


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
