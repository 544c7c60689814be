"""Atari games with one emulator frame for each action and without sticky actions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from physvision.core import InputError
from physvision.envs.environment import require_package

Image = UInt8[np.ndarray, "height width channels"]


class AtariFrame(NamedTuple):
    """Screen after an action.

    Attributes:
        image: RGB screen of 210 × 160 pixels, 0 … 255.
        reward: Points scored by the action.
        lives: Remaining lives.
        done: If true, the game has ended or reached its time limit.
    """

    image: Image
    reward: float
    lives: int
    done: bool


class AtariEnv:
    """A game of the Arcade Learning Environment, through Gymnasium.

    | Action | Meaning |
    |---|---|
    | a name in `actions` | buttons held for one frame, for example `NOOP`, `FIRE`, `LEFT` |

    Observation: an `AtariFrame`. Reward: points scored in the frame. Termination: no life is left. Truncation:
    Gymnasium's limit of 108,000 frames.

    Attributes:
        actions: Names of the actions, in the emulator's order.
    """

    def __init__(self, name: str = "Breakout") -> None:
        gymnasium, ale = require_package("gymnasium", "atari"), require_package("ale_py", "atari")
        gymnasium.register_envs(ale)
        self._env = gymnasium.make(f"ALE/{name}-v5", frameskip=1, repeat_action_probability=0.0)
        self.actions: tuple[str, ...] = tuple(self._env.unwrapped.get_action_meanings())

    def reset(self, seed: int, noop_frames: int = 0) -> AtariFrame:
        """Start a new game and emulate a number of frames without action."""
        image, info = self._env.reset(seed=seed)
        frame = AtariFrame(image, 0.0, int(info["lives"]), False)
        for _ in range(noop_frames):
            frame = self.step("NOOP")
        return frame

    def step(self, action: str) -> AtariFrame:
        """Emulate one frame under an action."""
        if action not in self.actions:
            raise InputError(f"action: expected one of {', '.join(self.actions)}, got {action!r}")
        image, reward, terminated, truncated, info = self._env.step(self.actions.index(action))
        return AtariFrame(image, float(reward), int(info["lives"]), bool(terminated or truncated))
