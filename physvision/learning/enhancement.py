"""What the engine's gradients add to a method that learns from a record of steps (Qiao et al., ICML 2021).

Policy enhancement: the value of an action is told by the engine's step and not by a critic that has to generalise over
actions. With s' and r what the engine makes of a state and the policy's own action a, and μ its action without noise,

    D = ∂(r + γ Q(s', μ(s')))/∂a = ∂r/∂a + γ (∂s'/∂a)ᵀ ∂Q(s', μ(s'))/∂s'

is a constant, and the actor's loss has −D · a in the place of −Q(s, a). D holds at the action at which it was taken.

Sample enhancement: a true step (s, a, r, s') stands for its neighbours too, to first order:
(s, a + δ, r + ∂r/∂a · δ, s' + ∂s'/∂a δ).
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.core import State
from physvision.envs import Game
from physvision.learning.replay import Batch
from physvision.learning.sac import Sac, Worth

STEEPEST = 10.0  # norm of the derivatives of one number by the actions


def worth_by_engine(
    agent: Sac, game: Game, high: Tensor, start: State, played: Int[Tensor, " batch"]
) -> tuple[Worth, list[int]]:
    """What `Sac.update` takes as the worth of actions in these states: r + γ Q(s', μ(s')), and D.

    Args:
        agent: whose critics and actor value what comes after.
        game: whose engine is differentiated.
        high: the largest controls.
        start: states.
        played: steps of the game before them.

    Returns:
        the worth, and a list that gets, when it is asked, the rows whose D is no number; these are worth nothing.
    """
    unknown: list[int] = []

    def worth(action: Tensor) -> tuple[Tensor, Tensor]:
        tried = action.to(start.q).requires_grad_()
        with torch.enable_grad():
            found = game.step(start, tried * high)
            after = game.observe(found.state, played + 1)
            seen = after.float()
            following = agent.actor.layers(seen, frozen=True)[0][:, : tried.shape[1]].tanh()
            value = agent.values(seen, following, frozen=True).amin(0)
            ends = game.is_over(after.detach())
            total = found.reward + agent.settings.discount * torch.where(ends, 0.0, value)
            (steep,) = torch.autograd.grad(total.sum(), tried)
        bad = found.failed | ~steep.isfinite().all(1)
        unknown.extend(torch.nonzero(bad).flatten().tolist())
        return torch.where(bad, 0.0, total.detach()).float(), torch.where(bad[:, None], 0.0, steep).float()

    return worth, unknown


def jacobians(
    game: Game, high: Tensor, rows: Batch
) -> tuple[Float[Tensor, "rows numbers actions"], Bool[Tensor, " rows"]]:
    """∂(s', r)/∂a of recorded steps, what is seen first and the reward last; and which steps have one.

    Each step is done as often as there are numbers to differentiate, all in one launch forward and one back.
    """
    seen = rows["seen"].shape[1]
    numbers, count = seen + 1, len(rows["seen"])
    state = State(rows["q"], rows["v"]).repeat(numbers)
    action = rows["action"].to(state.q).repeat_interleave(numbers, 0).requires_grad_()
    with torch.enable_grad():
        found = game.step(state, action * high)
        after = game.observe(found.state, torch.zeros(len(state.q), dtype=torch.int64))
        told = torch.cat([after, found.reward[:, None]], 1).unflatten(0, (count, numbers))
        (steep,) = torch.autograd.grad(told.diagonal(dim1=1, dim2=2).sum(), action)
    steep = steep.unflatten(0, (count, numbers))
    good = ~found.failed.unflatten(0, (count, numbers)).any(1) & steep.isfinite().all((1, 2))
    return steep.float(), good


def changes_contact(game: Game, rows: Batch) -> Bool[Tensor, " rows"]:
    """Whether something touches at the end of a recorded step that did not at its start, or the other way round."""
    if game.touching is None:
        return torch.zeros(len(rows["seen"]), dtype=torch.bool)
    start = State(rows["q"], rows["v"])
    with torch.no_grad():
        end = game.step(start, rows["action"].to(start.q) * start.q.new_tensor(game.high)).state
    return (game.touching(start) != game.touching(end)).any(1)


def neighbours(
    rows: Batch,
    steep: Float[Tensor, "rows numbers actions"],
    count: int,
    within: float,
    generator: torch.Generator,
) -> Batch:
    """So many neighbours of each recorded step, to first order.

    Args:
        rows: the steps.
        steep: their derivatives, as of `jacobians`; those of one number are shortened to a norm of `STEEPEST`.
        count: neighbours of each.
        within: actions differ by no more, uniformly; they stay within [−1, 1].
        generator: of the differences.
    """
    norm = steep.norm(dim=2, keepdim=True)
    steep = steep * (STEEPEST / norm.clamp_min(STEEPEST))
    copies = {name: value.repeat_interleave(count, 0) for name, value in rows.items()}
    apart = within * (2 * torch.rand(copies["action"].shape, generator=generator) - 1)
    action = (copies["action"] + apart).clamp(-1, 1)
    change = (steep.repeat_interleave(count, 0) @ (action - copies["action"])[..., None])[..., 0]
    after, reward = copies["after"] + change[:, :-1], copies["reward"] + change[:, -1]
    return copies | {"action": action, "after": after, "reward": reward}
