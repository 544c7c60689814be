"""Model files of eight packages beside MuJoCo: which load, their accelerations, and their motion over half a second.

    python benchmarks/model_corpus.py [--folder out/model_corpus] [--packages "[gymnasium, metaworld]"]

`model_corpus.csv` lists the files with the packages and versions that have them; the packages are downloaded once.
Each file is loaded with contact by events and with compliant contact. Under the latter it is compared with MuJoCo
(solver tolerance 0, dense Jacobian), without contact between geoms and with it: the velocity after one Runge–Kutta step
of 0.1 ms or less from ten random states, relative to the largest acceleration; and positions after 0.5 s of steps of 1
ms without contact, from the reference pose under constant random controls, in radians or meters. Of contacts the kinds
of geoms are printed that touch where accelerations differ, and of files what they have that compliant contact leaves
out: MuJoCo's second solver `noslip_iterations`, which takes friction for hard.
"""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import csv
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import torch
from jsonargparse import auto_cli

from physvision import State
from physvision.core import PhysvisionError, UnsupportedError
from physvision.physics import articulated
from physvision.physics.articulated.loading.model_files import compile_model

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from claims import Claim, write_claims

CORPUS = Path(__file__).with_suffix(".csv")
STATES = 10
POSITION_SPREAD = 0.05  # rad or m, standard deviation of random positions about the reference pose
VELOCITY_SPREAD = 1.0  # rad/s or m/s
MAX_STEP = 1e-4  # s, of accelerations; a hundredth of the shortest time constant of damping if that is shorter
MOTION_STEP, MOTION_STEPS = 1e-3, 500
TOLERANCE = 1e-6


@dataclass(frozen=True)
class ModelFile:
    """A model file of a package, by its path in the wheel."""

    package: str
    version: str
    path: str


def corpus(packages: Sequence[str] = ()) -> list[ModelFile]:
    """Return all model files, or those of some packages."""
    with CORPUS.open() as file:
        files = [ModelFile(**row) for row in csv.DictReader(file)]
    return [file for file in files if not packages or file.package in packages]


def download(files: Sequence[ModelFile], folder: Path) -> Path:
    """Download and unpack the packages of these files where they are missing, and return the folder that has them.

    Raises:
        subprocess.CalledProcessError: A package cannot be downloaded.
    """
    for package, version in sorted({(file.package, file.version) for file in files}):
        mark = folder / f"{package}-{version}.unpacked"
        if mark.exists():
            continue
        wheels = folder / "wheels" / package
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels)]
        subprocess.run([*command, f"{package}=={version}"], check=True, capture_output=True)
        for path in wheels.glob("*.whl"):
            with zipfile.ZipFile(path) as wheel:
                wheel.extractall(folder)
            path.unlink()
        mark.touch()
    return folder


def refusal(path: Path, contact: str) -> str:
    """Reason why a file does not load; empty if it does."""
    try:
        articulated.load(path, contact=contact)
    except UnsupportedError as error:
        return str(error).split("cannot be simulated")[-1].strip()
    except PhysvisionError as error:
        return f"{type(error).__name__}: {error}"
    return ""


class Comparison:
    """A model file in both simulators, with equal Runge–Kutta steps.

    Attributes:
        model: MuJoCo's model.
        data: MuJoCo's state.
        engine: Engine with compliant contact.
    """

    def __init__(self, path: Path, step: float | None = None, ignore: Sequence[str] = ()) -> None:
        """Load a model file in both simulators.

        Args:
            path: Path of the file.
            step: Length of a step, s; None for one that resolves damping, of at most 0.1 ms.
            ignore: Features that are left out.
        """
        self.model, _ = compile_model(path)
        damping = float((self.model.dof_damping * self.model.dof_invweight0).max(initial=1e-9))
        self.step = step or min(MAX_STEP, 0.01 / damping)
        option = self.model.opt
        option.timestep, option.integrator = self.step, mujoco.mjtIntegrator.mjINT_RK4
        option.solver, option.jacobian = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtJacobian.mjJAC_DENSE
        option.tolerance, option.iterations = 0.0, 500
        if "contact" in ignore:
            option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT.value
        self.data = mujoco.MjData(self.model)
        self.engine = articulated.load(
            str(path), dt=self.step, contact="compliant", integrator="runge_kutta_4", ignore=tuple(ignore)
        )

    def randomize(self, generator: np.random.Generator, moving: bool) -> None:
        """Set the reference pose, perturbed and moving if asked for, and random controls."""
        model, data = self.model, self.data
        mujoco.mj_resetData(model, data)
        if moving:
            mujoco.mj_integratePos(model, data.qpos, POSITION_SPREAD * generator.normal(size=model.nv), 1.0)
            data.qvel[:] = VELOCITY_SPREAD * generator.normal(size=model.nv)
        limited = model.actuator_ctrllimited.astype(bool)
        low, high = (np.where(limited, model.actuator_ctrlrange[:, k], (-1, 1)[k]) for k in (0, 1))
        data.ctrl[:] = generator.uniform(low, high) if self.engine.nu == model.nu else 0.0

    def simulate(self, steps: int) -> tuple[State, bool]:
        """Advance MuJoCo's state; returns the engine's from the same start, and true if it converged."""
        padding = np.zeros(self.engine.nv - self.model.nv)  # activations of actuators
        q, v = (torch.from_numpy(np.concatenate([x, padding]))[None] for x in (self.data.qpos, self.data.qvel))
        controls = None
        if self.engine.nu == self.model.nu > 0:
            controls = torch.from_numpy(self.data.ctrl.copy()).expand(1, steps, -1)
        path = self.engine.rollout(State(q, v), steps, controls)
        mujoco.mj_step(self.model, self.data, steps)
        return path.final, bool(path.status.converged.all())

    def contact_kinds(self) -> set[str]:
        """Kinds of the pairs of geoms that touch in MuJoCo's state."""
        touching = (sorted(int(self.model.geom_type[geom]) for geom in contact.geom) for contact in self.data.contact)
        return {
            "-".join(mujoco.mjtGeom(kind).name.removeprefix("mjGEOM_").lower() for kind in pair) for pair in touching
        }


def acceleration_errors(path: Path, ignore: Sequence[str] = ()) -> tuple[list[float], set[str]]:
    """Relative errors of accelerations in random states, and the kinds of geoms that touch where they exceed 1e-6."""
    comparison, generator = Comparison(path, None, ignore), np.random.default_rng(0)
    errors: list[float] = []
    kinds: set[str] = set()
    for _ in range(STATES):
        comparison.randomize(generator, moving=True)
        before = comparison.data.qvel.copy()
        after, _ = comparison.simulate(1)
        change = comparison.data.qvel - before
        difference = after.v[0, : len(before)].numpy() - comparison.data.qvel
        errors.append(float(np.abs(difference).max() / max(np.abs(change).max(), 1e-9 * comparison.step)))
        if not errors[-1] <= TOLERANCE:
            kinds |= comparison.contact_kinds()
    return errors, kinds


def motion_error(path: Path, ignore: Sequence[str] = ()) -> float:
    """Largest difference of positions after a motion from the reference pose, rad or m; infinite after a failure."""
    comparison = Comparison(path, MOTION_STEP, ignore)
    comparison.randomize(np.random.default_rng(0), moving=False)
    end, converged = comparison.simulate(MOTION_STEPS)
    if not converged:
        return float("inf")
    difference = np.zeros(comparison.model.nv)
    own = end.q[0, : comparison.model.nq].numpy()
    mujoco.mj_differentiatePos(comparison.model, difference, 1.0, comparison.data.qpos, own)
    return float(np.abs(difference).max())


@dataclass(frozen=True)
class Result:
    """Outcome of a file; errors are NaN where it does not load.

    Attributes:
        file: Model file.
        refusals: Reasons why it does not load by events and with compliant contact, empty where it does.
        smooth: Largest relative error of accelerations without contact.
        contact: Largest relative error of accelerations with contact.
        kinds: Kinds of geoms that touch where accelerations with contact differ by more than 1e-6.
        motion: Largest difference of positions after 0.5 s without contact, rad or m.
        omission: Option of the file that compliant contact leaves out; empty without one.
    """

    file: ModelFile
    refusals: tuple[str, str]
    smooth: float
    contact: float
    kinds: set[str]
    motion: float
    omission: str = ""


def omission(model: mujoco.MjModel) -> str:
    """Return the option of a model that compliant contact leaves out; empty without one."""
    count = int(model.opt.noslip_iterations)
    return f"noslip_iterations={count}" if count else ""


def measure(file: ModelFile, folder: Path) -> Result:
    """Load a file under both contacts, and compare it with MuJoCo."""
    path, nan = folder / file.path, float("nan")
    refusals = refusal(path, "event"), refusal(path, "compliant")
    if refusals[1]:
        return Result(file, refusals, nan, nan, set(), nan)
    model, _ = compile_model(path)
    if model.nv == 0:  # nothing moves
        return Result(file, refusals, 0.0, 0.0, set(), 0.0)
    smooth, _ = acceleration_errors(path, ("contact",))
    contact, kinds = acceleration_errors(path)
    motion = motion_error(path, ("contact",))
    return Result(file, refusals, max(smooth), max(contact), kinds, motion, omission(model))


def print_table(results: Sequence[Result]) -> list[Claim]:
    """Print a line for each package and one for all, and return their numbers as claims."""
    claims = []
    heads = ("by events", "compliant", "accelerations", "listed", "with contact", "motion within 1e-6")
    print("| package | files | " + " | ".join(heads) + " |\n|" + "---|" * (len(heads) + 2))
    for package in [*dict.fromkeys(result.file.package for result in results), "all"]:
        rows = [result for result in results if package in (result.file.package, "all")]
        values = [
            sum(not result.refusals[0] for result in rows),
            sum(not result.refusals[1] for result in rows),
            sum(result.smooth <= TOLERANCE for result in rows),
            sum(result.smooth > TOLERANCE and bool(result.omission) for result in rows),
            *(sum(getattr(result, name) <= TOLERANCE for result in rows) for name in ("contact", "motion")),
        ]
        print(f"| {package} | {len(rows)} | " + " | ".join(map(str, values)) + " |")
        claims += [Claim(f"{package}: {head}", value, "files") for head, value in zip(heads, values, strict=True)]
    return claims


def main(folder: Path = Path("out/model_corpus"), packages: Sequence[str] = ()) -> int:
    """Print the table, and return the number of files whose accelerations differ without contact or omission.

    Args:
        folder: Folder of the downloaded packages.
        packages: Names of the packages to compare; all if none is given.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    files, results = corpus(packages), []
    download(files, folder)
    for file in files:
        result = measure(file, folder)
        results.append(result)
        numbers = f"{result.smooth:8.1e} {result.contact:8.1e} {result.motion:8.1e}"
        details = f"{', '.join(sorted(result.kinds))} {' | '.join(result.refusals)}"
        print(f"{numbers} {file.path} {details} {result.omission}", flush=True)
    claims = print_table(results)
    print(write_claims(__file__, claims))
    return sum(result.smooth > TOLERANCE and not result.omission for result in results)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
