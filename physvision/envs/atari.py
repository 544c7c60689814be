"""Atari's games as frames and actions, one frame an action, without sticky keys."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from physvision.core import InputError
from physvision.envs.extras import needed

Picture = UInt8[np.ndarray, "height width channels"]


class Frame(NamedTuple):
    """What is on the screen after an action, what it scored, lives that are left, and whether the game is over."""

    picture: Picture
    score: float
    lives: int
    over: bool


class Atari:
    """A game of the Arcade Learning Environment, through gymnasium.

    Attributes:
        actions: their names, in order.
    """

    def __init__(self, name: str = "Breakout") -> None:
        gymnasium, ale = needed("gymnasium", "atari"), needed("ale_py", "atari")
        gymnasium.register_envs(ale)
        self._game = gymnasium.make(f"ALE/{name}-v5", frameskip=1, repeat_action_probability=0.0)
        self.actions: tuple[str, ...] = tuple(self._game.unwrapped.get_action_meanings())

    def begin(self, seed: int, idle: int = 0) -> Frame:
        """Start a game, and let so many frames pass."""
        picture, told = self._game.reset(seed=seed)
        frame = Frame(picture, 0.0, int(told["lives"]), False)
        for _ in range(idle):
            frame = self.act("NOOP")
        return frame

    def act(self, action: str) -> Frame:
        """One frame under an action."""
        if action not in self.actions:
            raise InputError(f"action: expected one of {', '.join(self.actions)}, got {action!r}")
        picture, score, over, cut, told = self._game.step(self.actions.index(action))
        return Frame(picture, float(score), int(told["lives"]), bool(over or cut))
