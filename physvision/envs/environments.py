"""Games as gymnasium's environments: one world, or many at once. Actions are shares of the largest controls."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from physvision.core import InputError
from physvision.envs.extras import needed
from physvision.envs.game import Game
from physvision.envs.games import GAMES
from physvision.envs.worlds import Worlds

needed("gymnasium", "environments")

import gymnasium  # noqa: E402
from gymnasium.vector import AutoresetMode, VectorEnv  # noqa: E402
from gymnasium.vector.utils import batch_space  # noqa: E402


def _spaces(game: Game) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Of one world: what is seen, and actions in [−1, 1]."""
    seen = Worlds(game, 1, torch.Generator().manual_seed(0)).seen().shape[1]
    return (
        gymnasium.spaces.Box(-np.inf, np.inf, (seen,), np.float32),
        gymnasium.spaces.Box(-1.0, 1.0, (len(game.high),), np.float32),
    )


def _single(seen: torch.Tensor) -> NDArray[np.float32]:
    """In single precision, as far as that reaches."""
    most = float(np.finfo(np.float32).max)
    return seen.clamp(-most, most).numpy().astype(np.float32)


class _Players:
    """Worlds that play a game, and what gymnasium makes of them."""

    def __init__(self, game: Game, count: int) -> None:
        self.game, self.count = game, count
        self.worlds: Worlds | None = None

    def begin(self, random: np.random.Generator) -> NDArray[np.float32]:
        """Start all worlds; what is seen."""
        self.worlds = Worlds(self.game, self.count, torch.Generator().manual_seed(int(random.integers(2**31))))
        return _single(self.worlds.seen())

    def restart(self, which: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Start these worlds anew; what is seen of all."""
        assert self.worlds is not None
        self.worlds.restart(torch.as_tensor(which))
        return _single(self.worlds.seen())

    def step(self, actions: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray, NDArray, NDArray, NDArray]:
        """What is seen, rewards, which worlds ended, whose time is over, and which failed."""
        if self.worlds is None:
            raise InputError("step: call reset() first")
        high = np.asarray(self.game.high)
        if actions.shape != (self.count, len(high)) or not np.isfinite(actions).all():
            raise InputError(f"action: expected finite numbers, {(self.count, len(high))}, got {actions}")
        moves = self.worlds.step(torch.as_tensor(actions * high, dtype=self.worlds.state.q.dtype))
        told = (each.numpy() for each in (moves.reward, moves.lost, moves.over, moves.failed))
        return _single(moves.after), *told  # pyright: ignore[reportReturnType]


class GameEnvironment(gymnasium.Env):
    """One world of a game."""

    metadata = {"render_modes": []}  # noqa: RUF012  as gymnasium has it

    def __init__(self, game: Game | str) -> None:
        chosen = GAMES[game]() if isinstance(game, str) else game
        self.observation_space, self.action_space = _spaces(chosen)
        self._players = _Players(chosen, 1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        return self._players.begin(self.np_random)[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step of the game."""
        seen, reward, lost, over, failed = self._players.step(np.asarray(action, float)[None])
        return seen[0], float(reward[0]), bool(lost[0]), bool(over[0]), {"failed": bool(failed[0])}


class GameVectorEnvironment(VectorEnv):
    """Many worlds of a game, all in one launch; a world that ended starts anew with the step after."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  as gymnasium has it

    def __init__(self, game: Game | str, num_envs: int = 1) -> None:
        chosen = GAMES[game]() if isinstance(game, str) else game
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _spaces(chosen)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._players = _Players(chosen, num_envs)
        self._ended = np.zeros(num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode in every world."""
        super().reset(seed=seed)
        self._ended[:] = False
        return self._players.begin(self.np_random), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of the game in every world that goes on; the others start."""
        fresh = self._ended.copy()
        seen, reward, lost, over, failed = self._players.step(np.asarray(actions, float))
        if fresh.any():
            seen = self._players.restart(fresh)
            reward, lost, over, failed = (np.where(fresh, 0, each) for each in (reward, lost, over, failed))
        lost, over = lost.astype(bool), over.astype(bool)
        self._ended = lost | over
        return seen, reward, lost, over, {"failed": failed.astype(bool)}


def register() -> None:
    """Make gymnasium know the games as physvision/NAME-v0."""
    for name in GAMES:
        if f"physvision/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"physvision/{name}-v0",
                entry_point="physvision.envs.environments:GameEnvironment",
                vector_entry_point="physvision.envs.environments:GameVectorEnvironment",
                kwargs={"game": name},
            )
