"""Steps of a game for tests."""

import torch

from physvision.envs import GAMES, Worlds


def recorded(name, count, periods, seed=0):
    """Steps of a game under random actions."""
    generator = torch.Generator().manual_seed(seed)
    worlds = Worlds(GAMES[name](), count, generator)
    high, rows = torch.tensor(worlds.game.high), {}
    for _ in range(periods):
        action = 1.8 * torch.rand(count, len(high), generator=generator) - 0.9
        played = worlds.played
        moves = worlds.step(action * high)
        rows = {"seen": moves.seen, "action": action, "reward": moves.reward, "after": moves.after}
        rows |= {"q": moves.start.q, "v": moves.start.v, "played": played}
    return worlds.game, high, rows
