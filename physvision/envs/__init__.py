"""What an agent plays in: games of our engines with gradients, as gymnasium's environments, and others' as ours.

With gymnasium installed, importing this package registers each game, as `physvision/Pendulum-v0`.
"""

from importlib.util import find_spec

from physvision.envs.extras import needed
from physvision.envs.game import Game, Outcome
from physvision.envs.games import GAMES
from physvision.envs.worlds import Moves, Worlds

__all__ = ["GAMES", "Game", "Moves", "Outcome", "Worlds", "needed"]

if find_spec("gymnasium") is not None:
    from physvision.envs.environments import register

    register()
