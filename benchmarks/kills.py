"""Kill commands at random moments: what they leave is whole or absent, and run again they end with the same bytes.

python benchmarks/kills.py [--kills 16] [--only "[fit, learn]"] [--seed 0]

Each command runs in a process that is forked after physvision is imported, so that kills meet its work. A training goes
on from its last checkpoint, if there is one, and must end with the same numbers.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from jsonargparse import auto_cli

import physvision.trainers.commands  # noqa: F401  what is imported before the fork is not imported again
from physvision import cli

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from claims import Claim, write_claims

# Files that hold a folder's own name or a time, and files that grow line by line until a command ends.
IGNORED, GROWING = ("config.yaml", "events.out.tfevents*"), ("checksums.sha256",)
# Entries of checkpoints that hold times and folders, and Lightning's counts of batches since the last start.
TIMES = ("cpu_seconds", "spent", "callbacks", "loops")
TRACK = "t,x,y\n" + "".join(f"{k / 30},{300 * k / 30},{490.5 * (k / 30) ** 2 - 400 * k / 30}\n" for k in range(20))
CONFIGURATION = """
trainer:
  default_root_dir: {out}
  max_epochs: 4
  limit_train_batches: 3
  limit_val_batches: 1
  enable_progress_bar: false
  logger: false
  callbacks:
    - class_path: lightning.pytorch.callbacks.ModelCheckpoint
      init_args: {{dirpath: {out}, save_last: true, every_n_train_steps: 1}}
"""


@dataclass(frozen=True)
class Case:
    """A command that writes.

    Attributes:
        line: Command line; {out} is the folder of its output, {data} that of the inputs.
        training: If true, a configuration of its output lies above its own, and it goes on from its last checkpoint.
        prepare: Function that fills the folder of the output before the command runs.
    """

    line: str
    training: bool = False
    prepare: Callable[[Path, Path], None] | None = None

    def arguments(self, out: Path, data: Path) -> list[str]:
        """Arguments of a first run, or of one that goes on."""
        words = self.line.format(out=out, data=data).split()
        if self.training:
            overlay = out.with_suffix(".yaml")
            overlay.write_text(CONFIGURATION.format(out=out))
            words += ["--config", str(overlay)]
            last = out / "last.ckpt"
            words += ["--ckpt_path", str(last)] if last.exists() else []
        return words


def remove_shards(out: Path, data: Path) -> None:
    """Copy a data set without two of its shards."""
    shutil.copytree(data / "pendulum", out / "pendulum")
    for shard in sorted((out / "pendulum").glob("*.arrow"))[:2]:
        shard.unlink()


LEARN = "--schedule.total_steps 200 --schedule.eval_every 20 --schedule.checkpoint_every 40 --learning_starts 20"
POLICY = "--model.updates 2 --model.batch 2 --model.curriculum.updates 7 --model.curriculum.initial_progress 0.1"
CASES = {
    "generate": Case("generate pendulum --out {out}/pendulum --trials 10 --frames 20 --workers 1"),
    "repair": Case("repair {out}/pendulum", prepare=remove_shards),
    "import": Case("import {data}/clip.mp4 --out {out}/clip --trial_frames 20 --size 32"),
    "show": Case("show {data}/pendulum --out {out}/shown.mp4"),
    "fit": Case("fit --config pendulum.yaml --data.path {data}/pendulum", training=True),
    "fit-flow": Case("fit-flow --config flow.yaml --data.init_args.batches 3", training=True),
    "fit-policy": Case(f"fit-policy --config pendulum-pixels-small.yaml {POLICY}", training=True),
    "learn": Case(f"learn sac --env Links1 {LEARN} --sac.hidden_sizes [16,16] --seed 7 --out {{out}}"),
    "export": Case("export pendulum --out {out}/pendulum.safetensors"),
    "export onnx": Case("export pendulum --format onnx --out {out}/onnx"),
    "export torch": Case("export pendulum --format torch --out {out}/torch"),
    "simulate": Case("simulate arm --seconds 0.1 --out {out}/arm.mp4"),
    "control": Case("control pendulum --seconds 0.2 --out {out}/pendulum.mp4"),
    "identify": Case("identify {data}/track.csv --motion projectile --out {out}/report"),
    "predict": Case("predict {data}/clip.mp4 --checkpoint pendulum --fps 20 --size 100 --force --out {out}/report"),
}


@dataclass
class Result:
    """Counts of one command.

    Attributes:
        kills: Number of runs that were killed before they ended.
        late: Number of runs that had ended by then.
        faults: Description of everything that was wrong after a kill.
        stages: Different numbers of files that killed runs left.
    """

    kills: int = 0
    late: int = 0
    faults: list[str] = field(default_factory=list)
    stages: set[int] = field(default_factory=set)


class Attack:
    """Kills of one command."""

    def __init__(self, name: str, case: Case, data: Path, folder: Path, random: np.random.Generator) -> None:
        """Let the command end twice, to learn its time and its output.

        Args:
            name: Name of the case.
            case: Command that is killed.
            data: Folder of inputs.
            folder: Folder of outputs.
            random: Generator of the moments.
        """
        self.case, self.data, self.random = case, data, random
        self.folder, self.log = folder / name.replace(" ", "_"), folder / f"{name}.log"
        self.folder.mkdir()
        whole, again = self._output("whole"), self._output("again")
        self.duration = max(finish(case.arguments(out, data), self.log) for out in (whole, again))
        self.expected, self.result = contents(whole), Result()
        others = contents(again)
        names = sorted(self.expected | others)
        differing = [file for file in names if self.expected.get(file) != others.get(file)]
        self.result.faults += [f"two whole runs differ in {file}" for file in differing]

    def run(self, kills: int) -> Result:
        """Kill the command so many times, unless it mostly ends before."""
        result = self.result
        while result.kills < kills and result.late < 3 * kills:
            out = self._output(str(result.kills + result.late))
            child = start(self.case.arguments(out, self.data), self.log)
            time.sleep(self.random.uniform(0.0, self.duration))
            kill(child)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL:
                result.kills += 1
                result.faults += [*self._leftover_faults(out), *self._ending_faults(out)]
            else:
                result.late += 1
                self.duration *= 0.9
            shutil.rmtree(out)
        return result

    def _output(self, label: str) -> Path:
        out = self.folder / label
        out.mkdir()
        if self.case.prepare:
            self.case.prepare(out, self.data)
        return out

    def _leftover_faults(self, out: Path) -> list[str]:
        """Files with a final name that are not whole; a training may leave any whole checkpoint."""
        try:
            leftover = contents(out)
        except (OSError, RuntimeError, ValueError, EOFError) as error:
            return [f"left a file that cannot be read: {error!r}"]
        self.result.stages.add(len(leftover))
        if "last.ckpt" in self.expected:
            return []
        visible = {name: digest for name, digest in leftover.items() if not Path(name).name.startswith(".")}
        return [
            f"left a part of {name}"
            for name, digest in visible.items()
            if Path(name).name not in GROWING and self.expected.get(name) != digest
        ]

    def _ending_faults(self, out: Path) -> list[str]:
        """Differences of what the command makes of a killed run's folder."""
        try:
            finish(self.case.arguments(out, self.data), self.log)
        except RuntimeError as error:
            return [f"run again: {error}"]
        final = contents(out)
        differences = [f"ended with another {name}" for name in self.expected if final.get(name) != self.expected[name]]
        left = sorted(set(final) - set(self.expected))
        # A kill between two checkpoints leaves the earlier one, whole.
        return differences + [f"left {name}" for name in left if not (self.case.training and name.endswith(".ckpt"))]


def start(arguments: Sequence[str], log: Path) -> int:
    """Run a command in a forked process that leads a group of its own, and return its number."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    status = 1
    try:
        status = cli.main(list(arguments)) or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(status)


def kill(child: int) -> None:
    """Kill a process and those that it started."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # it leads no group yet
        os.kill(child, signal.SIGKILL)


def finish(arguments: Sequence[str], log: Path) -> float:
    """Run a command to its end, and return the time that it took, s."""
    begin = time.perf_counter()
    status = os.waitstatus_to_exitcode(os.waitpid(start(arguments, log), 0)[1])
    if status:
        raise RuntimeError(f"status {status}: {log.read_text()[-600:]}")
    return time.perf_counter() - begin


def contents(folder: Path) -> dict[str, str]:
    """Digest of every file beneath a folder, but for times in checkpoints and logs."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): digest(path) for path in files if not any(path.match(name) for name in IGNORED)
    }


def digest(path: Path) -> str:
    """Digest of a file's bytes, or of what it says but for times."""
    if path.suffix == ".ckpt":
        return digest_of(without_times(torch.load(path, map_location="cpu", weights_only=True)))
    if path.suffix == ".jsonl":
        return digest_of(without_times([json.loads(line) for line in path.read_text().splitlines()]))
    return sha256(path.read_bytes()).hexdigest()


def digest_of(value: object) -> str:
    """Digest of a value that prints in full."""
    return sha256(repr(value).encode()).hexdigest()


def without_times(value: object) -> object:
    """Copy lists and dictionaries without times, and with digests in place of tensors."""
    if isinstance(value, torch.Tensor):
        data = value.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        return str(value.dtype), tuple(value.shape), sha256(data).hexdigest()
    if isinstance(value, dict):
        return {key: without_times(part) for key, part in value.items() if key not in TIMES}
    if isinstance(value, list | tuple):
        return [without_times(part) for part in value]
    return value


def make_inputs(data: Path) -> None:
    """Make a data set, a clip and a track."""
    data.mkdir()
    (data / "track.csv").write_text(TRACK)
    source = f"{data}/pendulum"
    finish(f"generate pendulum --out {source} --trials 10 --frames 20 --workers 1".split(), data / "log")
    finish(f"show {source} --out {data}/clip.mp4 --states false".split(), data / "log")


def main(kills: int = 16, only: list[str] | None = None, seed: int = 0) -> None:
    """Kill every command, print what was wrong, and write the counts as claims.

    Args:
        kills: Number of kills of each command.
        only: Commands to kill; all if not given.
        seed: Seed of the moments.
    """
    torch.set_num_threads(1)
    random, total, faults = np.random.default_rng(seed), 0, 0
    with tempfile.TemporaryDirectory() as place:
        folder, data = Path(place), Path(place) / "inputs"
        make_inputs(data)
        print(f"{'command':<14}{'kills':>6}{'late':>6}{'stages':>8}{'faults':>8}", flush=True)
        for name in only or CASES:
            result = Attack(name, CASES[name], data, folder, random).run(kills)
            total, faults = total + result.kills, faults + len(result.faults)
            row = result.kills, result.late, len(result.stages), len(result.faults)
            print(f"{name:<14}" + "".join(f"{n:>{w}}" for n, w in zip(row, (6, 6, 8, 8), strict=True)), flush=True)
            for fault in sorted(set(result.faults)):
                print(f"    {fault}", flush=True)
    print(f"{total} kills, {faults} faults")
    write_claims(__file__, [Claim("kills", total), Claim("faults after kills", faults)])


if __name__ == "__main__":
    auto_cli(main)
