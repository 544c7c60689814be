"""Command `physvision learn`: train one algorithm with one configuration on one environment."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from physvision.core import InputError
from physvision.envs import ENVIRONMENTS
from physvision.learning.learner import Learner
from physvision.learning.mbpo import Mbpo, MbpoSettings
from physvision.learning.off_policy import OffPolicyAgent, OffPolicySettings
from physvision.learning.shac import Shac, ShacSettings
from physvision.learning.training import TrainingSchedule, train
from physvision.report import OutputFolder

Settings = OffPolicySettings | MbpoSettings | ShacSettings

_ALGORITHMS: dict[type, tuple[str, type]] = {
    OffPolicySettings: ("sac", OffPolicyAgent),
    MbpoSettings: ("mbpo", Mbpo),
    ShacSettings: ("shac", Shac),
}
_DEFAULT_SCHEDULE, _DEFAULT_FOLDER = TrainingSchedule(), Path("out/learn")


def learn(
    settings: Settings,
    env: str = "Links2",
    schedule: TrainingSchedule = _DEFAULT_SCHEDULE,
    seed: int = 0,
    out: Path = _DEFAULT_FOLDER,
) -> list[dict[str, Any]]:
    """Train a policy, or resume an interrupted run with the same results as without the interruption.

    Args:
        settings: Settings of the algorithm; their type selects the algorithm.
        env: Name of the environment, for example Links2 or Ant.
        schedule: Schedule of the evaluations, the checkpoints and the end of the run.
        seed: Seed of all random numbers.
        out: Folder of config.json, checkpoints, progress.jsonl and TensorBoard's files.

    Returns:
        Metrics of each evaluation, in order.
    """
    if env not in ENVIRONMENTS:
        raise InputError(f"env: expected one of {', '.join(ENVIRONMENTS)}, got {env!r}")
    algorithm, learner_class = _ALGORITHMS[type(settings)]
    # A round trip through JSON makes it comparable to the configuration that a checkpoint stores.
    run_config = {"env": env, "algorithm": algorithm, "seed": seed, "settings": asdict(settings)}
    run_config = json.loads(json.dumps(run_config))
    with OutputFolder(out):
        learner: Learner = learner_class(ENVIRONMENTS[env](), settings, seed)
        (out / "config.json").write_text(json.dumps(run_config | {"schedule": asdict(schedule)}, indent=1))
        return train(learner, schedule, out, run_config)


COMMANDS = {name: (learn, settings) for settings, (name, _) in _ALGORITHMS.items()}
