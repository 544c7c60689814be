"""Reward of a policy that was trained here in MuJoCo's own simulation of the ant.

    physvision learn shac --config compliant-ant.yaml
    python experiments/ant_transfer.py --run out/compliant-ant [--episodes 8]

The best policy of a run plays episodes without noise here and there, from the same starts: MuJoCo's contact, its
Runge–Kutta steps of 0.01 s, five a control. What is seen, paid and ends an episode is ours. The bar is 70 %. Beside it
the same with MuJoCo's contact and stops as hard as it has them at steps of 1 ms. A policy of `CompliantAnt` has learned
in that world; one of `Ant` by contact that does not yield, where stops are not passed, by up to 0.1 rad, and friction
does not lift what slides, as it does in MuJoCo, hard or not: the last lines say how fast.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import torch
from jsonargparse import auto_cli

from physvision.core import InputError
from physvision.envs import ENVIRONMENTS, Environment
from physvision.learning import Actor, evaluate

BAR, SEED = 0.7, 1000
SOFT, HARD = (0.02, 1.0), (0.002, 1.0)  # time constant in s and damping ratio: MuJoCo's own, and the least at 1 ms


def ant(hard: bool) -> mujoco.MjModel:
    """Gymnasium's model, with contact and stops of its file or hard ones."""
    file = Path(str(gymnasium.__file__)).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    model = mujoco.MjModel.from_xml_path(str(file))
    if hard:
        model.opt.timestep = 1e-3
        for reference, impedance in ((model.geom_solref, model.geom_solimp), (model.jnt_solref, model.jnt_solimp)):
            reference[:], impedance[:, :2] = HARD, (0.99, 0.999)
    return model


def replayed(game: Environment, actor: Actor, episodes: int, hard: bool) -> tuple[list[float], list[int]]:
    """Rewards of the episodes in MuJoCo, and their lengths in steps."""
    model = ant(hard)
    data, result, lengths, high = mujoco.MjData(model), [], [], np.array(game.action_limit)
    steps = round(game.frame_skip * game.engine.dt / model.opt.timestep)
    start = game.reset(episodes, torch.Generator().manual_seed(SEED))
    for q, v in zip(start.q, start.v, strict=True):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = q.numpy(), v.numpy()
        earned: list[float] = []
        for _ in range(game.max_episode_steps):
            observed = torch.from_numpy(np.concatenate([data.qpos[2:], 0.05 * data.qvel]))
            data.ctrl[:] = high * actor.deterministic_action(observed[None].float())[0].numpy()
            before = data.qpos[0]
            mujoco.mj_step(model, data, steps)
            speed = (data.qpos[0] - before) / (game.frame_skip * game.engine.dt)
            earned.append(speed - 0.5 * float(np.square(data.ctrl).sum()) + 1.0)
            if not 0.2 <= data.qpos[2] <= 1.0:
                break
        result.append(sum(earned))
        lengths.append(len(earned))
    return result, lengths


def lifted(reference: tuple[float, float], speed: float = 5.0) -> float:
    """The fastest that a ball that may not turn rises in MuJoCo when it starts to slide on level ground, m/s."""
    slides = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
    ball = f'<geom type="sphere" size="0.1" mass="1" friction="1" solref="{reference[0]} {reference[1]}"/>'
    scene = f'<geom type="plane" size="9 9 1" friction="1"/><body pos="0 0 0.1">{slides}{ball}</body>'
    model = mujoco.MjModel.from_xml_string(f'<mujoco><option timestep="0.001"/><worldbody>{scene}</worldbody></mujoco>')
    data, fastest = mujoco.MjData(model), 0.0
    mujoco.mj_step(model, data, 500)
    data.qvel[0] = speed
    for _ in range(400):
        mujoco.mj_step(model, data)
        fastest = max(fastest, float(data.qvel[2]))
    return fastest


def _text(rewards: list[float]) -> str:
    return f"{np.mean(rewards):.0f} ({min(rewards):.0f} to {max(rewards):.0f})"


def main(run: Path = Path("out/compliant-ant"), episodes: int = 8) -> float:
    """Print the rewards, and return the share that is kept.

    Args:
        run: folder of the run.
        episodes: Episodes in each simulator.
    """
    torch.set_num_threads(1)
    config = json.loads((run / "config.json").read_text())
    game = ENVIRONMENTS[config["env"]]()
    if config["algorithm"] != "shac":
        raise InputError(f"run: expected one of SHAC, got {config['algorithm']}")
    settings = config["settings"]
    options = {name: settings[name] for name in ("normalize_obs", "layer_norm", "state_independent_std")}
    actor = Actor(27, tuple(settings["hidden_sizes"]), 8, "elu", **options)
    retained = torch.load(run / "best.ckpt", weights_only=True)
    actor.load_state_dict(retained["actor"])
    ours = evaluate(game, actor, episodes, SEED).tolist()
    print(f"after {retained['env_steps']:,} steps, {episodes} episodes: here {_text(ours)}")
    (soft, long), (hard, held) = (replayed(game, actor, episodes, value) for value in (False, True))
    print(f"in MuJoCo, made hard: {_text(hard)}, {np.mean(held):.0f} steps long, {np.mean(hard) / np.mean(ours):.0%}")
    fraction = float(np.mean(soft) / np.mean(ours))
    print(f"in MuJoCo: {_text(soft)}, {np.mean(long):.0f} steps long: {fraction:.0%} is kept ", end="")
    print(f"(bar {BAR:.0%}: {'met' if fraction >= BAR else 'MISSED'})")
    for name, reference in (("soft", SOFT), ("hard", HARD)):
        print(f"MuJoCo's {name} contact lifts a ball that slides at 5 m/s at {lifted(reference):.2f} m/s")
    return fraction


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
