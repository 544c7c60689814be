"""Files that `benchmarks/attack.py` damages, and how each is read: one process attacks one kind of file.

python benchmarks/attack_targets.py KIND SEED FIRST FOLDER

Every mutant is that of its number and seed. Two lines of JSON are printed for it: its number, then the outcome.
"""

from __future__ import annotations

import copy
import json
import os
import random
import re
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml

from physvision import models
from physvision.core import PhysvisionError, Trajectory
from physvision.core.resources import folder as resource_folder
from physvision.core.state_files import load_states, save_states
from physvision.core.tables import read_table
from physvision.core.weights import read_weights
from physvision.datasets import Dataset, PendulumRecipe, generate
from physvision.datasets.folder import CHECKSUMS, DESCRIPTION
from physvision.datasets.registry import faults, recipe_of
from physvision.learning import training
from physvision.learning.learner import Learner
from physvision.models.checkpoints import FORMAT as CHECKPOINT_FORMAT
from physvision.perception.flow import load_flow
from physvision.perception.track import read_tracks
from physvision.physics import articulated
from physvision.physics.articulated import scenes
from physvision.trainers.commands import build_training

# Values that no honest file holds, some of which name code, addresses and files outside.
_NUMBERS = (-1, 0, 10**6, 10**12, 10**30, 1e308, -1e308, 5e-324, float("nan"), float("inf"))
_TEXTS = (
    "",
    "x" * 300,
    "../../outside",
    "[/a]",
    "hostile_module.run",
    "os.system",
    "http://127.0.0.1:9/a",
    "file:///a",
)
_ODD: tuple[Any, ...] = (
    *(*_NUMBERS, *_TEXTS, None, True, [], [[]], {}, {"a": 1}, list(range(1000))),
    *({"class_path": name, "init_args": {}} for name in ("hostile_module.Hostile", "os.system", "builtins.exec")),
)
_HOSTILE = "import os\nos.system('true')\ndef run(*a, **k): os.system('true')\nclass Hostile:\n    __init__ = run\n"
_FORBIDDEN = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "socket.connect",
    "socket.getaddrinfo",
    "socket.bind",
)
_URDF = (
    '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
    'ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry><box size="1 1 1"/></geometry></collision></link>'
    '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>'
    '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>'
)


class Mutator(random.Random):
    """Source of damage to values and bytes that follows from its seed."""

    def value(self, value: Any) -> Any:
        """Copy of a nested value with one entry that is odd, missing, or of another place."""
        changed = copy.deepcopy(value)
        places = [path for path in _places(changed) if path]
        if not places:
            return self.choice(_ODD)
        *way, key = self.choice(places)
        target = _entry(changed, way)
        kind = self.randrange(3)
        if kind == 1:
            del target[key]
        else:
            target[key] = copy.deepcopy(self.choice(_ODD) if kind == 0 else _entry(value, self.choice(places)))
        return changed

    def bytes(self, content: bytes) -> bytes:
        """Copy of bytes of which some are changed, cut off, repeated, or other numbers."""
        kind, start = self.randrange(5), self.randrange(max(1, len(content)))
        end = min(len(content), start + self.choice((1, 4, 30)))
        if kind == 0:
            return content[:start] + self.randbytes(end - start) + content[end:]
        if kind == 1:
            return content[:start]
        if kind == 2:
            return content[:end] + content[start:end] * self.choice((1, 50)) + content[end:]
        if kind == 3:
            return content[:start] + content[end:]
        match = self.choice(list(re.finditer(rb"-?\d+\.?\d*", content[:100_000])) or [None])
        span = (start, end) if match is None else match.span()
        return content[: span[0]] + str(self.choice((*_NUMBERS, *_TEXTS))).encode() + content[span[1] :]

    def safetensors(self, content: bytes) -> bytes:
        """Copy of a file of tensors with damage to its bytes, its header or its configuration."""
        if self.random() < 0.4:
            return self.bytes(content)
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        if self.random() < 0.7:
            configuration = json.loads(header["__metadata__"]["configuration"])
            header["__metadata__"]["configuration"] = json.dumps(self.value(configuration))
        else:
            header = self.value(header)
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + content[8 + size :]


class Sparing(Mutator):
    """Mutator that damages nothing, for the check that all readers accept what they are given undamaged."""

    def value(self, value: Any) -> Any:
        """Copy of a nested value."""
        return copy.deepcopy(value)

    def bytes(self, content: bytes) -> bytes:
        """Bytes as they are."""
        return content


class Target(NamedTuple):
    """File, or a folder, under attack.

    Attributes:
        write: Function that writes it with the damage of a mutator.
        read: Functions that read it.
    """

    write: Callable[[Mutator], None]
    read: tuple[Callable[[], object], ...]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, entry in entries for place in _places(entry, (*path, key)))]


def _entry(value: Any, path: Sequence[Any]) -> Any:
    for step in path:
        value = value[step]
    return value


def _checkpoint(folder: Path) -> list[Target]:
    """Checkpoints of a model and of the flow network, and one of a training."""
    model, flow, trained = folder / "model.safetensors", folder / "flow.safetensors", folder / "training.ckpt"
    shipped = resource_folder("models")
    tensors, configuration = read_weights(shipped / "billiards-1.safetensors", CHECKPOINT_FORMAT)
    state = {"state_dict": {f"model.{name}": value for name, value in tensors.items()}}
    state["configuration"] = json.dumps(configuration)

    def write_training(mutator: Mutator) -> None:
        changed = {**state, "configuration": json.dumps(mutator.value(configuration))}
        torch.save(changed if mutator.random() < 0.5 else mutator.value(state), trained)
        if mutator.random() < 0.3:
            trained.write_bytes(mutator.bytes(trained.read_bytes()))

    return [
        _tensor_file(model, (shipped / "billiards-1.safetensors").read_bytes(), models.load),
        _tensor_file(flow, (shipped / "flow.safetensors").read_bytes(), load_flow),
        Target(write_training, (lambda: models.load(trained),)),
    ]


def _tensor_file(path: Path, content: bytes, read: Callable[[str], object]) -> Target:
    return Target(lambda mutator: _overwrite(path, mutator.safetensors(content)), (lambda: read(str(path)),))


def _overwrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _dataset(folder: Path) -> list[Target]:
    data = folder / "set"
    recipe = PendulumRecipe(trials=10, frames=14, size=8, samples=1)
    if not (data / DESCRIPTION).exists():
        generate(recipe, data, workers=1, progress=False)
        (folder / DESCRIPTION).write_bytes((data / DESCRIPTION).read_bytes())
        # Without a checksum of its own, a description is judged by what it says.
        lines = (data / CHECKSUMS).read_text().splitlines(keepends=True)
        (data / CHECKSUMS).write_text("".join(line for line in lines if DESCRIPTION not in line))
    description = json.loads((folder / DESCRIPTION).read_text())

    def write(mutator: Mutator) -> None:
        (data / DESCRIPTION).write_text(json.dumps(mutator.value(description)))

    readers = (
        lambda: Dataset(data).frames(0),
        lambda: faults(data),
        lambda: recipe_of(Dataset(data).folder.description()),
    )
    return [Target(write, readers)]


def _table(folder: Path) -> list[Target]:
    """Tables, tracks among them, and states."""
    path, states = folder / "a.csv", folder / "a.safetensors"
    rows = "\n".join(f"{k / 30:.4f},{k * 0.1:.3f},{1 - k * 0.02:.3f}" for k in range(60))
    motion = save_states(states, Trajectory(torch.rand(1, 5, 2), torch.rand(1, 5, 2), dt=0.1)).read_bytes()

    def write(mutator: Mutator) -> None:
        content = f"{mutator.choice(('time,x,y', 't,x,y', 'time,q0,v0'))}\n{rows}\n".encode()
        for _ in range(mutator.randrange(1, 4)):
            content = mutator.bytes(content)
        path.write_bytes(content)

    return [
        Target(write, (lambda: read_table(path), lambda: read_tracks(path))),
        _tensor_file(states, motion, load_states),
    ]


def _training(folder: Path) -> list[Target]:
    names = ("pendulum.yaml", "billiards-3.yaml")
    files = [yaml.safe_load((resource_folder("trainers") / name).read_text()) for name in names]
    path = folder / "a.yaml"

    def write(mutator: Mutator) -> None:
        text = yaml.safe_dump(mutator.value(mutator.choice(files)), sort_keys=False)
        path.write_bytes(text.encode() if mutator.random() < 0.8 else mutator.bytes(text.encode()))

    return [Target(write, (lambda: build_training(["--config", str(path)]),))]


class _Learner(Learner):
    """Learner of two layers, which is resumed and never trained."""

    def __init__(self) -> None:
        self.env_steps, self.generator = 0, torch.Generator()
        self.worlds = torch.nn.Linear(1, 1)  # pyright: ignore[reportAttributeAccessIssue]
        self.layers = {"actor": torch.nn.Linear(3, 2), "critic": torch.nn.Linear(3, 1)}

    def modules(self) -> dict[str, torch.nn.Module]:
        """Layers whose weights are saved."""
        return dict(self.layers)

    def metrics(self) -> dict[str, float]:
        """Scalars of an evaluation: none."""
        return {}

    def advance(self) -> None:
        """Learn nothing in this increment."""


def _learner(folder: Path) -> list[Target]:
    learner, run, path = _Learner(), {"env": "Links2"}, folder / training.CHECKPOINT
    metrics = {"steps": 1, "reward": 0.5, "cpu_seconds": 1.0, "finished": False}
    state = {"run_config": run, "evaluations": [metrics], "learner": learner.state_dict(), "cpu_seconds": 1.0}

    def write(mutator: Mutator) -> None:
        torch.save(mutator.value(state), path)
        if mutator.random() < 0.5:
            path.write_bytes(mutator.bytes(path.read_bytes()))

    return [Target(write, (lambda: training.resume(_Learner(), folder, run),))]


def _model(folder: Path) -> list[Target]:
    names = [name for name in scenes.names() if name != "ten_quadrupeds"]
    mjcf, urdf = folder / "a.xml", folder / "a.urdf"

    def target(path: Path, contents: list[bytes]) -> Target:
        def write(mutator: Mutator) -> None:
            content = mutator.choice(contents)
            for _ in range(mutator.randrange(1, 4)):
                content = mutator.bytes(content)
            path.write_bytes(content)

        return Target(write, (lambda: articulated.load(path),))

    # Five times as many of MJCF, which says more.
    return [*5 * [target(mjcf, [scenes.path(name).read_bytes() for name in names])], target(urdf, [_URDF.encode()])]


TARGETS: dict[str, Callable[[Path], list[Target]]] = {
    "checkpoint": _checkpoint,
    "dataset": _dataset,
    "table": _table,
    "training": _training,
    "learner": _learner,
    "model": _model,
}


class Audit:
    """Hook that records what no file may cause: processes, connections, hostile modules, writing outside a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder.resolve())
        self.is_armed = False
        self.events: list[str] = []
        sys.addaudithook(self._record)

    def _record(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_armed:
            return
        if (
            event in _FORBIDDEN
            or (event == "import" and "hostile" in str(arguments[0]))
            or (event == "subprocess.Popen" and not any("mujoco_compiler" in str(word) for word in arguments[1]))
        ):
            self.events.append(f"{event} {arguments[:2]}")
        elif event == "open" and isinstance(arguments[0], str | bytes) and self._writes(*arguments[:3]):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith((self.folder, "/dev/null", "/proc/self", "/sys")) and "__pycache__" not in path:
                self.events.append(f"open {path}")

    @staticmethod
    def _writes(path: object, mode: object, flags: object) -> bool:
        if isinstance(mode, str):
            return any(letter in mode for letter in "wax+")
        return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def main(kind: str, seed: str, first: str, where: str) -> None:
    """Attack one kind of file until the process is ended."""
    folder = Path(where)
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    (folder / "hostile_module.py").write_text(_HOSTILE)
    sys.path.insert(0, str(folder))
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    targets, audit = TARGETS[kind](folder.resolve()), Audit(folder)
    for target in targets:
        target.write(Sparing(seed))
        for read in target.read:
            read()
    number = int(first)
    while True:
        print(json.dumps({"number": number}), file=answers, flush=True)
        mutator = Mutator(f"{kind} {seed} {number}")
        target = mutator.choice(targets)
        target.write(mutator)
        start, audit.events = time.perf_counter(), []
        untyped = None
        loaded = 0
        audit.is_armed = True
        for read in target.read:
            try:
                read()
                loaded += 1
            except PhysvisionError:
                pass
            except BaseException:
                untyped = traceback.format_exc(limit=-4)
        audit.is_armed = False
        answer = {
            "number": number,
            "seconds": time.perf_counter() - start,
            "untyped": untyped,
            "code": audit.events[:3],
        }
        answer |= {"loaded": loaded, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
        print(json.dumps(answer), file=answers, flush=True)
        number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
