"""Random transitions of an environment for tests."""

import torch

from physvision.envs import ENVIRONMENTS, VectorEnv


def random_transitions(name, num_envs, steps, seed=0):
    """Return an environment and the last of some steps under random actions in each world."""
    generator = torch.Generator().manual_seed(seed)
    worlds = VectorEnv(ENVIRONMENTS[name](), num_envs, generator)
    limit, rows = torch.tensor(worlds.env.action_limit), {}
    for _ in range(steps):
        action = 1.8 * torch.rand(num_envs, len(limit), generator=generator) - 0.9
        elapsed = worlds.elapsed_steps
        moves = worlds.step(action * limit)
        rows = {"obs": moves.obs, "action": action, "reward": moves.reward, "next_obs": moves.next_obs}
        rows |= {"q": moves.state.q, "v": moves.state.v, "elapsed_steps": elapsed}
    return worlds.env, limit, rows
