"""What the engine says of a policy's actions, against differences and steps written out."""

# pyright: reportAttributeAccessIssue=false

import warnings
from functools import partial
from itertools import pairwise

import pytest
import torch
from learning.transitions import random_transitions

from physvision import State
from physvision.envs import ENVIRONMENTS
from physvision.learning.mbpo import Mbpo, MbpoSettings
from physvision.learning.off_policy import OffPolicySettings
from physvision.learning.policy_enhancement import engine_rollouts
from physvision.learning.sac import Sac, SacSettings


def double_agent(discount=0.9):
    """Networks of two links in double precision, for differences to be exact."""
    torch.manual_seed(0)
    agent = Sac(7, 2, SacSettings((16, 16), bf16=False, discount=discount), torch.Generator().manual_seed(4))
    for part in (agent.actor, agent.critics):
        part.double()
    return agent


def written_out_return(agent, env, action_limit, start, rollout, action, noises):
    """Reward after reward, written out: the first action is given, those that follow are drawn by these noises."""
    state, earned, weight = start, 0.0, torch.ones(len(action), dtype=torch.float64)
    steps = []
    for k in range(len(noises) + 1):
        result = env.step(state, action * action_limit)
        earned = earned + weight * result.reward
        rollout = rollout + 1
        weight = weight * 0.9 * (rollout < 100)
        steps.append((state, action, result.reward, result.state, rollout >= 100))
        state = result.state
        output = agent.actor.network(env.observe(state, rollout))[0]
        if k < len(noises):
            action = (output[:, :2] + noises[k] * output[:, 2:].clamp(-20, 2).exp()).tanh()
    value = agent.q_values(env.observe(state, rollout), output[:, :2].tanh()).min(0).values
    return earned + weight * value, steps


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_engine_tells_the_worth_of_an_action(horizon, monkeypatch):
    """D against differences of Σ γ^k r_k + γ^h Q(s_h, μ(s_h)); at the end of the time nothing follows."""
    env, action_limit, rows = random_transitions("Links2", 3, 5)
    agent = double_agent()
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    monkeypatch.setattr(torch, "randn", partial(torch.randn, dtype=torch.float64))
    start, rollout = State(rows["q"], rows["v"]), torch.tensor([4, 99, 4])
    rollouts = engine_rollouts(agent, env, start, rollout, horizon)
    assert rollouts.failed_branches == []
    # One branch ends after its first step; of the others all steps are there, and the engine made no more.
    assert rollouts.engine_steps == len(rollouts.transitions["obs"]) == 1 + 2 * horizon
    obs = torch.arange(3)
    noises = [torch.zeros(3, 2, dtype=torch.float64) for _ in range(horizon - 1)]
    for k, noise in enumerate(noises):
        noise[[0, 2]] = rollouts.evaluation.noise[3 + 2 * k : 5 + 2 * k]
    action = rollouts.transitions["action"][:3]
    record, steps = written_out_return(agent, env, action_limit, start, rollout, action, noises)
    torch.testing.assert_close(rollouts.evaluation.value[obs], record)
    for j in range(2):
        apart = torch.zeros_like(action)
        apart[:, j] = 1e-5
        with torch.no_grad():
            more, less = (
                written_out_return(agent, env, action_limit, start, rollout, action + way * apart, noises)[0]
                for way in (1, -1)
            )
        torch.testing.assert_close(rollouts.evaluation.action_gradient[obs, j], (more - less) / 2e-5, rtol=0, atol=1e-7)
    # The rows are steps of the env, one after the other.
    for k, (state, done, reward, after, end) in enumerate(steps):
        alive = slice(None) if k == 0 else [0, 2]
        there = slice(0, 3) if k == 0 else slice(1 + 2 * k, 3 + 2 * k)
        torch.testing.assert_close(rollouts.transitions["obs"][there], env.observe(state, rollout + k)[alive])
        torch.testing.assert_close(rollouts.transitions["action"][there], done[alive])
        torch.testing.assert_close(rollouts.transitions["reward"][there], reward[alive])
        torch.testing.assert_close(rollouts.transitions["next_obs"][there], env.observe(after, rollout + k + 1)[alive])
        assert rollouts.transitions["terminated"][there].bool().tolist() == end[alive].tolist()


def test_a_later_action_is_worth_what_comes_after_it():
    """D and worth in the second step of a branch are those of a branch that begins there."""
    env, action_limit, rows = random_transitions("Links2", 3, 5)
    agent = double_agent()
    start, rollout = State(rows["q"], rows["v"]), torch.tensor([4, 5, 6])
    long = engine_rollouts(agent, env, start, rollout, 2)
    with torch.no_grad():
        second = env.step(start, long.transitions["action"][:3].double() * action_limit).state
    agent.generator.manual_seed(4)
    torch.randn(3, 2, generator=agent.generator)  # of the first step
    alone = engine_rollouts(agent, env, second, rollout + 1, 1)
    torch.testing.assert_close(long.evaluation.noise[3:], alone.evaluation.noise)
    # Actions are kept in single precision.
    torch.testing.assert_close(
        long.evaluation.action_gradient[3:], alone.evaluation.action_gradient, rtol=1e-3, atol=1e-5
    )
    torch.testing.assert_close(long.evaluation.value[3:], alone.evaluation.value, rtol=1e-4, atol=1e-5)


def test_a_long_derivative_is_shortened():
    env, _, rows = random_transitions("Links2", 4, 5)
    start = State(rows["q"], rows["v"])
    whole, short = (
        engine_rollouts(
            double_agent(), env, start, rows["elapsed_steps"], 5, max_action_grad
        ).evaluation.action_gradient
        for max_action_grad in (None, 0.05)
    )
    norm = whole.norm(dim=1, keepdim=True)
    assert norm.min() < 0.05 < norm.max()
    torch.testing.assert_close(short, torch.where(norm > 0.05, 0.05 * whole / norm, whole))


@pytest.mark.parametrize("speed", [float("nan"), 1e7])
def test_a_branch_with_a_failure_is_named_and_left_out(speed):
    """Also one that comes to numbers beyond 10⁶, from which networks would take harm."""
    env, _, rows = random_transitions("Links2", 3, 5)
    torch.manual_seed(0)
    agent = Sac(7, 2, SacSettings((16, 16)), torch.Generator().manual_seed(4))
    rows["v"][1, 0] = speed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        rollouts = engine_rollouts(agent, env, State(rows["q"], rows["v"]), rows["elapsed_steps"], 4)
    assert rollouts.failed_branches == [1]
    assert rollouts.engine_steps == 1 + 2 * 4
    assert len(rollouts.transitions["obs"]) == len(rollouts.evaluation.action_gradient) == 2 * 4
    for entry in (*rollouts.transitions.values(), *rollouts.evaluation):
        assert entry.isfinite().all()
    assert rollouts.evaluation.action_gradient.ne(0).all()


def test_critics_learn_of_the_engine_s_steps_alone():
    """With no share left for imagined steps no model is fitted; all rows but the true ones are the engine's."""
    rollout_policy = OffPolicySettings(SacSettings((16, 16), batch_size=40), learning_starts=20)
    settings = MbpoSettings(
        rollout_policy,
        policy_enhancement=True,
        horizon=5,
        actor_batch_size=4,
        actor_update_every=3,
        engine_ratio=0.75,
        real_ratio=0.25,
    )
    learner = Mbpo(ENVIRONMENTS["Links2"](), settings, 0)
    learner.model.fit = learner.model.predict = None  # neither may be called
    actors = []
    while learner.env_steps < 26:
        learner.advance()
        actors.append(learner.actor.network.weights[0].detach().clone())
    # From the 20th step on each step has an update, of which every third, the first to begin with, is the actor's too.
    assert [not torch.equal(*pair) for pair in pairwise(actors[18:])] == [True, False, False, True, False, False, True]
    assert learner.metrics()["engine_steps"] == learner.engine_buffer.size == 3 * 4 * 5
    batch = learner.batch()
    known = torch.cat([learner.replay_buffer.contents()["next_obs"], learner.engine_buffer.contents()["next_obs"]])
    result = (batch["next_obs"][:, None] == known).all(2).float().argmax(1)
    assert (result >= learner.replay_buffer.size).sum() == 30
    assert torch.equal(known[result], batch["next_obs"])
