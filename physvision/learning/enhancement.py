"""Policy enhancement: what an action is worth is told by the engine (Qiao et al., ICML 2021).

The value of an action is told by the engine's step and not by a critic that has to generalise over
actions. With s' and r what the engine makes of a state and the policy's own action a, and μ its action without noise,

    D = ∂(r + γ Q(s', μ(s')))/∂a = ∂r/∂a + γ (∂s'/∂a)ᵀ ∂Q(s', μ(s'))/∂s'

is a constant, and the actor's loss has −D · a in the place of −Q(s, a). D holds at the action at which it was taken.

Over a horizon of h steps, which ends early where the game does, the critic is asked after the last one alone. The
policy goes on from s' by actions of its own, and each of them has a D, from the signal g that comes back to its step:

    D = ∂r/∂a + γ (∂s'/∂a)ᵀ g',    g = ∂r/∂s + (∂a/∂s)ᵀ D + γ (∂s'/∂s)ᵀ g',    last g' = ∂Q(s', μ(s'))/∂s'
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from physvision.control.policies.loop import LARGEST, faded
from physvision.core import State
from physvision.envs import Game
from physvision.learning.networks import squashed
from physvision.learning.replay import Batch
from physvision.learning.sac import Sac, Tried


class Branches(NamedTuple):
    """What the engine made of the policy from some states on; of branches with a failure nothing is kept.

    Attributes:
        tried: actions of the policy in all steps, what they are worth, and D.
        rows: the steps: `seen`, `action`, `reward`, `after`, `end`.
        unknown: branches in which a step failed, or came to more than `LARGEST`, or a D is no number.
        steps: of the game that the engine made, also in those.
    """

    tried: Tried
    rows: Batch
    unknown: list[int]
    steps: int


def played_by_engine(
    agent: Sac,
    game: Game,
    high: Tensor,
    start: State,
    played: Int[Tensor, " batch"],
    horizon: int = 1,
    steepest: float | None = None,
) -> Branches:
    """Play the policy from these states, with its noise, and tell what each action was worth.

    Args:
        agent: whose actor plays, and whose critics value what comes after.
        game: whose engine is differentiated.
        high: the largest controls.
        start: states.
        played: steps of the game before them.
        horizon: steps, fewer where the game ends.
        steepest: norm of a D; longer ones are shortened.
    """
    discount, actor = agent.settings.discount, agent.actor.layers
    state, which = start, torch.arange(len(played))  # the branches that go on
    branch, shifts, rewards, steps, failed = [], [], [], [], torch.zeros(len(played), dtype=torch.bool)
    with torch.enable_grad():
        seen = game.observe(state, played).float()
        total = state.q.new_zeros(())
        for _ in range(horizon):
            noise = torch.randn(len(which), len(high), generator=agent.generator)
            action = squashed(actor(seen, frozen=True)[0], noise)[0].to(state.q)
            shifts.append(torch.zeros_like(action).requires_grad_())
            found = game.step(state, (action + shifts[-1]) * high)
            played = played + 1
            after = game.observe(found.state, played)
            end, lost = game.is_over(after.detach()), found.failed | ~(after.detach().abs().amax(1) < LARGEST)
            step = {"seen": seen, "action": action, "reward": found.reward, "after": after, "end": end, "noise": noise}
            steps.append({name: value.detach().float() for name, value in step.items()})
            branch.append(which)
            rewards.append(found.reward.detach())
            failed[which] |= lost
            total = total + found.reward[~lost].sum()
            going = ~(end | lost)
            which, played = which[going], played[going]
            state = State(*(faded(each[going], discount) for each in (found.state.q, found.state.v)))
            seen = game.observe(state, played).float()
            if not len(which):
                break
        following = actor(seen, frozen=True)[0][:, : len(high)].tanh()
        value = agent.values(seen, following, frozen=True).amin(0)
        steep = torch.autograd.grad(total + value.sum(), shifts)
    for there, each in zip(branch, steep, strict=True):
        failed[there] |= ~each.isfinite().all(1)
    to_come = start.q.new_zeros(len(failed))
    to_come[which] = value.detach().to(to_come)
    worth = []
    for there, reward in zip(reversed(branch), reversed(rewards), strict=True):
        to_come[there] = reward + discount * to_come[there]
        worth.append(to_come[there])
    good = ~failed[torch.cat(branch)]
    rows = {name: torch.cat([step[name] for step in steps])[good] for name in steps[0]}
    steep = torch.cat(steep)[good].float()
    if steepest is not None:
        steep = steep * (steepest / steep.norm(dim=1, keepdim=True).clamp_min(steepest))
    tried = Tried(rows["seen"], rows.pop("noise"), torch.cat(worth[::-1])[good].float(), steep)
    return Branches(tried, rows, torch.nonzero(failed).flatten().tolist(), len(good))
