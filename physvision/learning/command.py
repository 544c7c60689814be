"""`physvision learn`: one configuration, one run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from physvision.core import InputError
from physvision.envs import GAMES
from physvision.learning.learner import Learner
from physvision.learning.mbpo import Mbpo, MbpoSettings
from physvision.learning.recorded import Recorded, RecordedSettings
from physvision.learning.run import Length, run
from physvision.learning.shac import Shac, ShacSettings

Method = Literal["sac", "mbpo", "shac"]


_LENGTH, _SAC, _MBPO, _SHAC = Length(20_000), RecordedSettings(), MbpoSettings(), ShacSettings()


def learn(
    game: str = "Links2",
    method: Method = "mbpo",
    length: Length = _LENGTH,
    sac: RecordedSettings = _SAC,
    mbpo: MbpoSettings = _MBPO,
    shac: ShacSettings = _SHAC,
    seed: int = 0,
    out: Path = Path("out/learn"),
) -> None:
    """Learn a game; run it again to go on after an interruption, with the same numbers as without.

    Args:
        game: its name, as Links2 or Ant.
        method: how.
        length: of the run.
        sac: numbers of soft actor–critic.
        mbpo: of model-based policy optimisation, with both enhancements.
        shac: of short-horizon actor–critic.
        seed: of all that is drawn, written to about.json.
        out: folder of the checkpoint, progress.jsonl and TensorBoard's files.
    """
    if game not in GAMES:
        raise InputError(f"game: expected one of {', '.join(GAMES)}, got {game!r}")
    makers = {"sac": (Recorded, sac), "mbpo": (Mbpo, mbpo), "shac": (Shac, shac)}
    maker, settings = makers[method]
    # As JSON gives it back, so that a checkpoint's can be compared with it.
    about = json.loads(json.dumps({"game": game, "method": method, "seed": seed, "settings": asdict(settings)}))
    learner: Learner = maker(GAMES[game](), settings, seed)
    out.mkdir(parents=True, exist_ok=True)
    (out / "about.json").write_text(json.dumps(about | {"length": asdict(length)}, indent=1))
    run(learner, length, out, about)
