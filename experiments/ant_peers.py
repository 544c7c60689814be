"""Time that SAC and PPO of stable-baselines3 take to teach the ant to walk, beside our learner's.

    physvision learn shac --config ant.yaml
    python experiments/ant_peers.py --peer PYTHON --run out/ant [--methods SAC,PPO] [--out out]

They play gymnasium's Ant-v5 in MuJoCo as it comes, with the numbers that the library gives each method; what is seen
and paid is what our game shows and pays: no forces of contact, no cost of them. One thread each. SAC has 200,000 steps
and PPO a million. The reward of four episodes without noise after each part of a run, and seconds of processor time
without those of the evaluations. PYTHON is that of an environment with stable-baselines3, gymnasium and mujoco. A run
that is done is kept; one that was interrupted starts anew.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from jsonargparse import auto_cli

STEPS = {"SAC": (200_000, 10_000), "PPO": (1_000_000, 50_000)}  # of the run, and between its evaluations
PEER = """
import json, sys, time, gymnasium, numpy as np, stable_baselines3, torch
from stable_baselines3.common.callbacks import BaseCallback
torch.set_num_threads(1)
method, steps, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def make():
    return gymnasium.make("Ant-v5", include_cfrc_ext_in_observation=False, contact_cost_weight=0.0)
class Look(BaseCallback):
    spent = 0.0
    def _on_step(self):
        if self.num_timesteps % every == 0:
            began, world, found = time.process_time(), make(), []
            for episode in range(4):
                seen, total, over = world.reset(seed=1000 + episode)[0], 0.0, False
                while not over:
                    seen, reward, lost, late, _ = world.step(self.model.predict(seen, deterministic=True)[0])
                    total, over = total + reward, lost or late
                found.append(total)
            line = {"steps": self.num_timesteps, "reward": float(np.mean(found)),
                    "seconds": began - self.began - self.spent}
            print(json.dumps(line), flush=True)
            self.spent += time.process_time() - began
        return True
look = Look()
learner = getattr(stable_baselines3, method)("MlpPolicy", make(), seed=0, device="cpu")
look.began = time.process_time()
learner.learn(steps, callback=look)
"""

Line = dict[str, float]


def read(file: Path) -> list[Line]:
    """Read the evaluations of a run."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def evaluate(method: str, peer: str, folder: Path) -> list[Line]:
    """A peer's evaluations, run if they are not there."""
    file, (steps, every) = folder / f"ant_{method.lower()}.jsonl", STEPS[method]
    if not (lines := read(file)) or lines[-1]["steps"] < steps:
        file.parent.mkdir(parents=True, exist_ok=True)
        command = [peer, "-c", PEER, method, str(steps), str(every)]
        with file.open("w") as end:
            subprocess.run(command, check=True, stdout=end, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return read(file)


def main(peer: str, run: Path, methods: tuple[str, ...] = tuple(STEPS), out: Path = Path("out")) -> None:
    """Run what is missing, and print the table.

    Args:
        peer: the Python that has stable-baselines3.
        run: folder of a run of ours.
        methods: Algorithms of the peer.
        out: folder of the peer's evaluations.
    """
    ours = [line for line in read(run / "progress.jsonl") if "reward" in line]
    print(f"{'':>5}{'steps':>10}{'reward':>8}{'seconds':>9}{'ours earned that after':>24}{'sooner':>8}")
    for method in methods:
        for line in evaluate(method, peer, out):
            first = next((our["cpu_seconds"] for our in ours if our["reward"] >= line["reward"]), None)
            fraction = "" if first is None else f"{first:>22.0f} s{line['seconds'] / first:>6.1f} x"
            print(f"{method:>5}{line['steps']:>10,.0f}{line['reward']:>8.0f}{line['seconds']:>9.0f}{fraction}")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
