"""What an agent plays in: games of our engines with gradients, as gymnasium's environments, and others' as ours.

With gymnasium installed, importing this package registers `physvision/Pendulum-v0`, `physvision/CartPole-v0`,
`physvision/DoublePendulum-v0` and `physvision/Acrobot-v0`.
"""

from importlib.util import find_spec

from physvision.envs.extras import needed
from physvision.envs.game import Game, Outcome
from physvision.envs.games import GAMES

__all__ = ["GAMES", "Game", "Outcome", "needed"]

if find_spec("gymnasium") is not None:
    from physvision.envs.environments import register

    register()
