"""Attack the readers of all files with mutants: none may run code, hang, or end in an error without a type.

python benchmarks/attack.py [--minutes 3] [--mutants 20000] [--kinds model table] [--out out/attack]

Mutants of one seed are numbered, and a run goes on after the last number of the run before in the same folder. Each
kind of file is attacked by a process of its own, which is ended when it takes over 20 s of processor time for a mutant,
or two minutes, or breaks down.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from attack_targets import TARGETS

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from claims import Claim, write_claims

# Processor time that a mutant may take, and time that may pass beside other work, s.
WATCHDOG_S, BLOCKED_S = 20.0, 120.0
# Time that a process may take until its first mutant, s.
START_S = 600.0
KEPT = 20


@dataclass
class Tally:
    """Counts of one kind of file, and the first mutants of each fault.

    Attributes:
        mutants: Number of mutants that were read.
        loaded: Number of readings that succeeded.
        untyped: Errors that are not of physvision: mutant and traceback.
        hangs: Mutants that took longer than the watchdog allows.
        crashes: Mutants that ended their process.
        code: Mutants that ran code, connected, or wrote outside their folder, with the event.
        slowest: Longest time of a mutant, s.
        peak_mb: Largest memory of a process, MB.
    """

    mutants: int = 0
    loaded: int = 0
    untyped: dict[str, str] = field(default_factory=dict)
    hangs: list[int] = field(default_factory=list)
    crashes: list[int] = field(default_factory=list)
    code: dict[str, list[str]] = field(default_factory=dict)
    slowest: float = 0.0
    peak_mb: float = 0.0

    @property
    def faults(self) -> int:
        """Number of all faults."""
        return len(self.untyped) + len(self.hangs) + len(self.crashes) + len(self.code)

    def add(self, answer: dict) -> None:
        """Count the outcome of a mutant."""
        self.mutants += 1
        self.loaded += answer["loaded"]
        self.slowest, self.peak_mb = max(self.slowest, answer["seconds"]), max(self.peak_mb, answer["peak_mb"])
        number = str(answer["number"])
        if answer["untyped"]:
            self.untyped[number] = answer["untyped"]
        if answer["code"]:
            self.code[number] = answer["code"]


class Attacker:
    """Process that attacks one kind of file, read line by line with a time limit."""

    def __init__(self, kind: str, seed: int, first: int, folder: Path) -> None:
        script = Path(__file__).with_name("attack_targets.py")
        command = [sys.executable, str(script), kind, str(seed), str(first), str(folder / kind)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        self.lines: list[bytes] = []
        self.rest = b""

    def line(self, processor_s: float, seconds: float) -> dict | None:
        """Next line within a processor time and a time; None if there is none."""
        assert self.process.stdout is not None
        end, used = time.monotonic() + seconds, self._processor_time()
        while not self.lines:
            if time.monotonic() > end or self._processor_time() > used + processor_s:
                return None
            if not select.select([self.process.stdout], [], [], 1.0)[0]:
                continue
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                return None
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            self.lines += lines
        return json.loads(self.lines.pop(0))

    def _processor_time(self) -> float:
        """Processor time of the process so far, s."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> bool:
        """End the process, and return true if it had ended by itself."""
        is_over = self.process.poll() is not None or not _waits(self.process)
        self.process.kill()
        self.process.wait()
        return is_over


def _waits(process: subprocess.Popen) -> bool:
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        return True
    return False


def attack(kind: str, seed: int, tally: Tally, folder: Path, mutants: int, seconds: float) -> None:
    """Attack one kind of file for some time after the first mutant, or up to a number of mutants."""
    deadline = float("inf")
    attacker = None
    try:
        while tally.mutants < mutants and time.monotonic() < deadline:
            number, limits = tally.mutants, (WATCHDOG_S, BLOCKED_S)
            if attacker is None:
                attacker, limits = Attacker(kind, seed, number, folder), (START_S, START_S)
            started = attacker.line(*limits)
            deadline = min(deadline, time.monotonic() + seconds)
            answer = attacker.line(WATCHDOG_S, BLOCKED_S) if started else None
            if started is None:
                raise SystemExit(
                    f"attack: the process for {kind} does not start; run it to see why: "
                    f"python benchmarks/attack_targets.py {kind} {seed} {number} /tmp/{kind}"
                )
            if answer is None:
                (tally.crashes if attacker.end() else tally.hangs).append(number)
                tally.mutants += 1
                attacker = None
                continue
            tally.add(answer)
    finally:
        if attacker is not None:
            attacker.end()


def table(tallies: dict[str, Tally]) -> str:
    """Text of the counts of all kinds."""
    head = "kind          mutants  loaded  untyped  hangs  crashes  code  slowest s  peak MB"
    rows = [
        f"{kind:12}{t.mutants:>9}{t.loaded:>8}{len(t.untyped):>9}{len(t.hangs):>7}{len(t.crashes):>9}{len(t.code):>6}"
        f"{t.slowest:>11.2f}{t.peak_mb:>9.0f}"
        for kind, t in tallies.items()
    ]
    return "\n".join([head, *rows])


def main() -> int:
    """Attack all kinds that the command line names; the exit status is 1 if there is any fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=3.0, help="time of the whole attack; 480 for eight hours")
    parser.add_argument(
        "--mutants", type=int, default=20_000, help="largest number of mutants of each kind, of all runs"
    )
    parser.add_argument("--kinds", nargs="+", default=list(TARGETS), choices=list(TARGETS), help="kinds of files")
    parser.add_argument("--seed", type=int, default=0, help="seed of all mutants")
    parser.add_argument("--out", default="out/attack", help="folder of the mutants and of results.json")
    options = parser.parse_args()
    folder = Path(options.out) / f"seed-{options.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.json"
    stored = json.loads(results.read_text()) if results.exists() else {}
    tallies = {kind: Tally(**stored.get(kind, {})) for kind in TARGETS}
    for kind in options.kinds:
        seconds = 60 * options.minutes / len(options.kinds)
        attack(kind, options.seed, tallies[kind], folder.resolve(), options.mutants, seconds)
        results.with_suffix(".part").write_text(json.dumps({name: asdict(tally) for name, tally in tallies.items()}))
        results.with_suffix(".part").replace(results)
    print(table(tallies))
    for kind, tally in tallies.items():
        for number, text in list(tally.untyped.items())[:KEPT]:
            print(f"\n{kind} {number}: {text}")
        if tally.code or tally.hangs or tally.crashes:
            print(f"\n{kind}: code {tally.code}, hangs {tally.hangs[:KEPT]}, crashes {tally.crashes[:KEPT]}")
    claims = [
        claim
        for kind, tally in tallies.items()
        for claim in (Claim(f"{kind}: mutants", tally.mutants), Claim(f"{kind}: faults", tally.faults, reference=0.0))
    ]
    write_claims(__file__, claims)
    return int(any(tally.faults for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
