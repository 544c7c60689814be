"""What a policy that learned to walk with our contact earns in MuJoCo's own simulation of the ant.

    physvision learn --config ant.yaml
    python experiments/ant_transfer.py --run out/ant [--episodes 8]

The best policy of a run plays episodes without noise here and there, from the same starts: MuJoCo's contact, its
Runge–Kutta steps of 0.01 s, five a control. What is seen, paid and ends an episode is ours. The bar is 70 %.
"""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import torch
from jsonargparse import auto_cli

from physvision.core import InputError
from physvision.envs import GAMES, Game
from physvision.learning import Actor, evaluate

BAR, SEED = 0.7, 1000


def replayed(game: Game, actor: Actor, episodes: int) -> list[float]:
    """What each episode earns in MuJoCo."""
    file = Path(str(gymnasium.__file__)).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    model = mujoco.MjModel.from_xml_path(str(file))
    data, found = mujoco.MjData(model), []
    start = game.begin(episodes, torch.Generator().manual_seed(SEED))
    for q, v in zip(start.q, start.v, strict=True):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = q.numpy(), v.numpy()
        total = 0.0
        for _ in range(game.periods):
            seen = torch.from_numpy(np.concatenate([data.qpos[2:], 0.05 * data.qvel]))
            data.ctrl[:] = actor.best(seen[None].float())[0].numpy()
            before = data.qpos[0]
            mujoco.mj_step(model, data, game.steps)
            speed = (data.qpos[0] - before) / (game.steps * game.engine.dt)
            total += speed - 0.5 * float(np.square(data.ctrl).sum()) + 1.0
            if not 0.2 <= data.qpos[2] <= 1.0:
                break
        found.append(total)
    return found


def main(run: Path = Path("out/ant"), episodes: int = 8) -> float:
    """Print both rewards, and return the share that is kept.

    Args:
        run: folder of the run.
        episodes: of either.
    """
    torch.set_num_threads(1)
    game, about = GAMES["Ant"](), json.loads((run / "about.json").read_text())
    if about["method"] != "shac":
        raise InputError(f"run: expected one of SHAC, got {about['method']}")
    actor = Actor(27, tuple(about["settings"]["hidden"]), 8, "elu", steady=about["settings"]["steady"])
    kept = torch.load(run / "best.ckpt", weights_only=True)
    actor.load_state_dict(kept["actor"])
    ours, theirs = evaluate(game, actor, episodes, SEED).tolist(), replayed(game, actor, episodes)
    share = float(np.mean(theirs) / np.mean(ours))
    steps = kept["steps"]
    print(
        f"after {steps:,} steps, {episodes} episodes: here {np.mean(ours):.0f} ({min(ours):.0f} to {max(ours):.0f}), ",
        end="",
    )
    print(f"in MuJoCo {np.mean(theirs):.0f} ({min(theirs):.0f} to {max(theirs):.0f}): {share:.0%} is kept", end="")
    print(f" (bar {BAR:.0%}: {'met' if share >= BAR else 'MISSED'})")
    return share


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
