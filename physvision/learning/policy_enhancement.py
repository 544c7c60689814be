"""Policy enhancement: action gradients from the differentiable engine instead of a critic (Qiao et al., ICML 2021).

The value of an action comes from a step of the engine, not from a critic that has to generalize over actions. With
s' and r the engine's next state and reward for a state and the policy's own action a, and μ that action without noise,

    D = ∂(r + γ Q(s', μ(s')))/∂a = ∂r/∂a + γ (∂s'/∂a)ᵀ ∂Q(s', μ(s'))/∂s'

is treated as a constant, and −D · a replaces −Q(s, a) in the actor's loss. D is valid at the action at which it was
evaluated.

Over a horizon of h steps, which ends early at terminal states, the critic is evaluated only after the last step. The
policy continues from s' with its own actions, and each of them has a D, with g the gradient with respect to the state
in which the action is taken, and g' that of the next state:

    D = ∂r/∂a + γ (∂s'/∂a)ᵀ g',    g = ∂r/∂s + (∂a/∂s)ᵀ D + γ (∂s'/∂s)ᵀ g',    last g' = ∂Q(s', μ(s'))/∂s'
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.control.policies.rollouts import MAX_OBSERVATION, scale_gradient
from physvision.core import State
from physvision.envs import Environment
from physvision.learning.actor import sample_tanh_normal
from physvision.learning.replay_buffer import Batch
from physvision.learning.sac import ActionEvaluation, Sac


class BranchedRollouts(NamedTuple):
    """Engine rollouts of the policy from given states; a branch with a failed step is discarded as a whole.

    Attributes:
        evaluation: Actions of the policy in all steps, their values and their gradients D.
        transitions: Steps: `obs`, `action`, `reward`, `next_obs`, `terminated`.
        failed_branches: Indices of branches with a failed step, an observation beyond `MAX_OBSERVATION`, or a D that is
            not finite.
        engine_steps: Environment steps that the engine simulated, failed branches included.
    """

    evaluation: ActionEvaluation
    transitions: Batch
    failed_branches: list[int]
    engine_steps: int


class _ForwardPass(NamedTuple):
    """Results of the forward pass of all branches.

    Attributes:
        steps: Transitions and noise of each step, for the branches that were active in it.
        branches: Indices of the branches that were active in each step.
        rewards: Rewards of each step, in the engine's precision.
        perturbations: Zeros added to the actions of each step; their gradients are D.
        failed: If true, a step of the branch failed.
        active: Indices of the branches that reached the horizon.
        final_value: Critic's value of each active branch at the horizon.
        objective: Sum of all rewards and final values.
    """

    steps: list[Batch]
    branches: list[Int[Tensor, " active"]]
    rewards: list[Float[Tensor, " active"]]
    perturbations: list[Float[Tensor, "active actions"]]
    failed: Bool[Tensor, " batch"]
    active: Int[Tensor, " active"]
    final_value: Float[Tensor, " active"]
    objective: Float[Tensor, ""]


def engine_rollouts(
    agent: Sac,
    env: Environment,
    start: State,
    elapsed_steps: Int[Tensor, " batch"],
    horizon: int = 1,
    max_action_grad: float | None = None,
) -> BranchedRollouts:
    """Simulate the stochastic policy from given states and return the value and the gradient D of every action.

    Args:
        agent: Actor that acts, and critics that evaluate the state at the horizon.
        env: Environment whose engine is differentiated.
        start: Initial state of each branch.
        elapsed_steps: Environment steps of the episode before each initial state.
        horizon: Environment steps of a rollout, which ends early at a terminal state.
        max_action_grad: Largest norm of D; larger gradients are scaled down to it. None for no limit.
    """
    with torch.enable_grad():
        forward_pass = _simulate(agent, env, start, elapsed_steps, horizon)
        gradients = torch.autograd.grad(forward_pass.objective, forward_pass.perturbations)
    failed = forward_pass.failed
    for branch_indices, gradient in zip(forward_pass.branches, gradients, strict=True):
        failed[branch_indices] |= ~gradient.isfinite().all(1)
    valid = ~failed[torch.cat(forward_pass.branches)]
    steps = forward_pass.steps
    transitions = {name: torch.cat([step[name] for step in steps])[valid] for name in steps[0]}
    gradient = torch.cat(gradients)[valid].float()
    if max_action_grad is not None:
        gradient = gradient * (max_action_grad / gradient.norm(dim=1, keepdim=True).clamp_min(max_action_grad))
    value = torch.cat(_returns(forward_pass, start, agent.settings.discount))[valid].float()
    evaluation = ActionEvaluation(transitions["obs"], transitions.pop("noise"), value, gradient)
    return BranchedRollouts(evaluation, transitions, torch.nonzero(failed).flatten().tolist(), len(valid))


def _simulate(agent: Sac, env: Environment, start: State, elapsed_steps: Tensor, horizon: int) -> _ForwardPass:
    """Simulate all branches up to the horizon, with gradients with respect to the actions of each step."""
    discount, actor, limit = agent.settings.discount, agent.actor.network, torch.tensor(env.action_limit)
    state, active = start, torch.arange(len(elapsed_steps))
    steps, branches, rewards, perturbations = [], [], [], []
    failed, obs = torch.zeros(len(elapsed_steps), dtype=torch.bool), env.observe(start, elapsed_steps).float()
    objective = start.q.new_zeros(())
    for _ in range(horizon):
        noise = torch.randn(len(active), len(limit), generator=agent.generator)
        action = sample_tanh_normal(actor(obs, frozen_weights=True)[0], noise)[0].to(state.q)
        perturbations.append(torch.zeros_like(action).requires_grad_())
        result = env.step(state, (action + perturbations[-1]) * limit)
        elapsed_steps = elapsed_steps + 1
        next_obs = env.observe(result.state, elapsed_steps)
        terminated = env.is_terminal(next_obs.detach())
        invalid = result.failed | ~(next_obs.detach().abs().amax(1) < MAX_OBSERVATION)
        step = {"obs": obs, "action": action, "reward": result.reward, "next_obs": next_obs}
        step |= {"terminated": terminated, "noise": noise}
        steps.append({name: value.detach().float() for name, value in step.items()})
        branches.append(active)
        rewards.append(result.reward.detach())
        failed[active] |= invalid
        objective = objective + result.reward[~invalid].sum()
        active_mask = ~(terminated | invalid)
        active, elapsed_steps = active[active_mask], elapsed_steps[active_mask]
        state = State(*(scale_gradient(values[active_mask], discount) for values in (result.state.q, result.state.v)))
        obs = env.observe(state, elapsed_steps).float()
        if not len(active):
            break
    final_action = actor(obs, frozen_weights=True)[0][:, : len(limit)].tanh()
    final_value = agent.q_values(obs, final_action, frozen_weights=True).amin(0)
    objective = objective + final_value.sum()
    return _ForwardPass(steps, branches, rewards, perturbations, failed, active, final_value, objective)


def _returns(forward_pass: _ForwardPass, start: State, discount: float) -> list[Float[Tensor, " active"]]:
    """Return the discounted return from each step on, with the critic's value at the horizon."""
    next_returns = start.q.new_zeros(len(forward_pass.failed))
    next_returns[forward_pass.active] = forward_pass.final_value.detach().to(next_returns)
    returns = []
    for branch_indices, reward in zip(reversed(forward_pass.branches), reversed(forward_pass.rewards), strict=True):
        next_returns[branch_indices] = reward + discount * next_returns[branch_indices]
        returns.append(next_returns[branch_indices])
    return returns[::-1]
