"""Windows: gradients against differences, cuts, worlds that fail, and gradients that are NaN."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from physvision.control.policies import GradientMonitor, rollout_policy
from physvision.core import InputError, State, TrainingError
from physvision.envs import ENVIRONMENTS
from physvision.learning.env_task import EnvironmentTask
from physvision.learning.learner import evaluate
from physvision.learning.shac import Shac, ShacSettings

SMALL = ShacSettings(
    num_envs=3, horizon=6, hidden_sizes=(8,), critic_hidden_sizes=(8,), critic_epochs=1, num_minibatches=1
)


def learner(settings=SMALL, name="Links2"):
    agent = Shac(ENVIRONMENTS[name](), settings, 0)
    agent.actor.double()
    agent.critic.double()
    agent.dtype = torch.float64
    return agent


def window(agent, limit=None, monitor=None):
    """Always with the same noise."""
    task = EnvironmentTask(agent.env, agent.settings.horizon, torch.Generator().manual_seed(1), limit, agent.dtype)
    times = agent.worlds.elapsed_steps[:, None] + torch.arange(task.episode_steps)
    goals, through = times[..., None].float(), agent.settings.gradient_decay
    rollout = rollout_policy(task, agent.actor, agent.worlds.state, goals, gradient_decay=through, monitor=monitor)
    return rollout, agent._window(rollout, times)


def by_recursion(agent, truncated_gradient=False):
    """The gradient of a window from its periods one by one, the last one first, each played anew from its start.

    What goes back from the end of a period is that of the critic, and of what comes after by the share that goes on.
    """
    env, settings, count = agent.env, agent.settings, agent.settings.horizon
    path, generator = window(agent)[0].trajectory, torch.Generator().manual_seed(1)
    noises = [torch.randn(3, len(env.action_limit), generator=generator) for _ in range(count)]
    through = 0.0 if truncated_gradient else settings.gradient_decay
    back, result = (torch.zeros(3, 2), torch.zeros(3, 2)), 0.0
    for k in reversed(range(count)):
        start = State(*(entry[:, k].detach().requires_grad_() for entry in (path.q, path.v)))
        output = agent.actor.network(env.observe(start, torch.full((3,), k)))[0]
        control = (output + noises[k] * agent.actor.log_std.exp()).tanh() * torch.tensor(env.action_limit)
        end = env.engine.rollout(start, 1, control[:, None]).final
        value = agent.critic(env.observe(end, torch.full((3,), k + 1)))[0, :, 0]
        record = 1.0 if k == count - 1 else 1 - through
        earned = env.reward(start, end, control) + settings.discount * record * value
        # Where all is cut every period begins a stretch, which is not discounted.
        goal = (1.0 if truncated_gradient else settings.discount**k) * earned.sum()
        goal = goal + through * ((end.q * back[0]).sum() + (end.v * back[1]).sum())
        obs, second, *rest = torch.autograd.grad(goal, [start.q, start.v, *weights(agent)])
        back, result = (obs, second), result + torch.cat([entry.flatten() for entry in rest])
    return result


def gradient(agent, **options):
    return torch.cat([entry.flatten() for entry in torch.autograd.grad(total(agent, **options), weights(agent))])


def total(agent, **options):
    return agent._actor_objective(window(agent, **options)[1]).sum()


def weights(agent):
    return list(agent.actor.parameters())


def test_the_gradient_of_a_window_is_that_of_differences():
    agent = learner()
    vector = torch.nn.utils.parameters_to_vector(weights(agent)).detach()
    direction = torch.randn(len(vector), generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def along(step):
        torch.nn.utils.vector_to_parameters(vector + step * direction, weights(agent))
        with torch.no_grad():
            return float(total(agent))

    result = float(gradient(agent) @ direction)
    coarse, fine = ((along(h) - along(-h)) / (2 * h) for h in (2e-6, 1e-6))
    # The second derivative of the layers jumps, so that differences err by their step; and by rounding, 1e-15 / 1e-6.
    assert result == pytest.approx((4 * fine - coarse) / 3, rel=1e-7)


def test_a_window_pays_what_was_earned_and_what_is_expected():
    agent = learner()
    agent.worlds.elapsed_steps = torch.tensor([0, 96, 0])
    _, verdict = window(agent)
    value = agent.critic(verdict.next_obs.flatten(0, 1))[0, :, 0].unflatten(0, (3, 6))
    earned = agent._actor_objective(verdict)
    discount = 0.99 ** torch.arange(6, dtype=torch.float64)
    torch.testing.assert_close(earned[0], (discount * verdict.reward[0]).sum() + 0.99**6 * value[0, -1])
    # The second world's time ends after four periods: nothing is paid or expected after.
    torch.testing.assert_close(earned[1], (discount[:4] * verdict.reward[1, :4]).sum())


def test_a_cut_ends_a_stretch_and_the_next_one_begins():
    agent = learner()
    rollout, free = window(agent)
    speeds = torch.diff(rollout.trajectory.v, dim=1).norm(dim=2) * 60
    limit = float(speeds.quantile(0.8))
    _, verdict = window(agent, limit=limit)
    assert torch.equal(verdict.gradient_cut, speeds > limit)
    assert verdict.gradient_cut.any()
    torch.testing.assert_close(verdict.reward, free.reward)
    value = agent.critic(verdict.next_obs.flatten(0, 1))[0, :, 0].unflatten(0, (3, 6))
    expected, weight = 0.0, 1.0
    for k in range(6):
        expected, weight = expected + weight * verdict.reward[0, k], weight * 0.99
        if verdict.gradient_cut[0, k] or k == 5:
            expected, weight = expected + weight * value[0, k], 1.0
    torch.testing.assert_close(agent._actor_objective(verdict)[0], expected)
    # Nothing goes back through a cut: with all periods cut, an action counts for its own period alone.
    rollout, verdict = window(agent, limit=0.0)
    (back,) = torch.autograd.grad(verdict.reward[:, -1].sum(), rollout.trajectory.q, allow_unused=True)
    assert back is None or back[:, :-2].abs().max() == 0


@pytest.mark.parametrize("through", [1.0, 0.7, 0.0])
def test_what_does_not_go_through_a_period_is_told_by_the_critic(through):
    """The reward is a difference of what the end and the start are worth, so that both must fade alike."""
    agent = learner(replace(SMALL, gradient_decay=through))
    torch.testing.assert_close(gradient(agent), by_recursion(agent))


def test_periods_that_are_cut_count_for_what_they_gain():
    agent = learner()
    torch.testing.assert_close(gradient(agent, limit=0.0), by_recursion(agent, truncated_gradient=True))


@pytest.mark.parametrize("speed", [1e7, 1e200])
def test_a_world_that_fails_is_left_out_and_counted_and_the_others_learn_as_without_it(speed):
    """One that diverges but is still a number, and one that no longer is."""
    agent = learner()
    agent.worlds.state.v[1, 0] = speed
    with nullcontext() if speed < 1e100 else pytest.warns(RuntimeWarning, match="1 of 3 worlds failed"):
        rollout, verdict = window(agent)
    assert rollout.failed[1].all()
    assert verdict.valid.tolist() == [True, False, True]
    result = torch.autograd.grad(agent._actor_objective(verdict)[verdict.valid].sum(), weights(agent))
    assert all(entry.isfinite().all() for entry in result)
    reference = learner()
    _, verdict = window(reference)
    expected = torch.autograd.grad(reference._actor_objective(verdict)[[0, 2]].sum(), weights(reference))
    for entry, two in zip(result, expected, strict=True):
        torch.testing.assert_close(entry, two)
    agent._advance_worlds(rollout, window(agent)[1])
    assert agent.worlds.failures == 1
    assert agent.worlds.state.v.abs().max() < 1e3


def test_worlds_that_diverge_in_single_precision_do_not_reach_the_weights():
    agent = Shac(ENVIRONMENTS["Links5"](), replace(SMALL, horizon=3), 0)
    agent.worlds.state.v[0, 0] = 1e39
    agent.advance()
    assert agent.worlds.failures == 1
    assert all(parameter.isfinite().all() for parameter in agent.actor.parameters())


def test_a_gradient_that_is_no_number_is_named_by_world_and_period_and_left_out():
    agent, watch = learner(), GradientMonitor()
    rollout, verdict = window(agent, monitor=watch)
    gradients = torch.tensor([0.0, float("nan"), 0.0], dtype=torch.float64)
    # The state after period 2 is that at time 3.
    poisoned = agent._actor_objective(verdict).sum() + (rollout.trajectory.q[:, 3, 0] * gradients).sum()
    result = torch.autograd.grad(poisoned, weights(agent))
    assert watch.nonfinite == [(1, 2)]
    assert all(entry.isfinite().all() for entry in result)
    assert any(entry.ne(0).any() for entry in result)


def test_an_actor_whose_gradient_is_no_number_stops_and_says_where():
    agent = Shac(ENVIRONMENTS["Links1"](), SMALL, 0)
    for parameter in agent.actor.parameters():
        parameter.register_hook(lambda gradient: gradient * float("nan"))
    with pytest.raises(TrainingError, match=r"actor gradient is nan after 0 environment steps"):
        agent.advance()


def test_one_link_is_raised_by_gradients_through_the_whole_rollout():
    agent = Shac(ENVIRONMENTS["Links1"](), ShacSettings(num_envs=8, horizon=100, discount=1.0), 0)
    best = -1.0
    for _ in range(30):
        agent.advance()
        best = max(best, float(evaluate(agent.env, agent.actor, 1, 0)))
        if best > 0.9 * 0.5:
            break
    assert best > 0.9 * 0.5


def test_the_horizon_follows_how_stiff_motion_is():
    soft, stiff = (Shac(ENVIRONMENTS["Links1"](), replace(SMALL, max_acceleration=limit), 0) for limit in (1e6, 1e-3))
    for agent in (soft, stiff):
        agent.horizon = 10.0
        agent.advance()
    assert soft.horizon == pytest.approx(11.0, abs=0.01)
    assert stiff.horizon == 8.0


def test_a_signal_is_limited_in_units_of_what_a_world_earns():
    """Far above what there is nothing changes; far below, a world's actions still count by what they earn at once."""
    moved = []
    for gradient_norm in (None, 1e6, 1e-9):
        agent = Shac(ENVIRONMENTS["Links2"](), replace(SMALL, max_state_grad_norm=gradient_norm), 0)
        before = torch.nn.utils.parameters_to_vector(weights(agent)).detach().clone()
        agent.advance()
        moved.append(torch.nn.utils.parameters_to_vector(weights(agent)).detach() - before)
    assert torch.equal(moved[0], moved[1])
    assert not torch.equal(moved[0], moved[2])
    assert bool(moved[2].isfinite().all())
    assert float(moved[2].norm()) > 0


def test_worlds_with_properties_of_their_own_move_apart_from_one_start():
    env = ENVIRONMENTS["Ant"]()
    randomized = env.randomize(40, torch.Generator().manual_seed(0))
    known = dict(env.engine.properties.items())
    inward = (randomized["joint_limits"] - known["joint_limits"])[:, 1:] * torch.tensor(
        [1.0, -1.0], dtype=torch.float64
    )
    assert inward.max() < 0
    assert inward.min() > -0.1
    assert ((randomized["friction"] > 0.7) & (randomized["friction"] < 1.3)).all()
    single = env.reset(1, torch.Generator().manual_seed(0))
    start = State(single.q.expand(3, -1), single.v.expand(3, -1))
    pushed = 0.5 * torch.ones(3, 40, 8, dtype=torch.float64)
    apart = env.engine.rollout(start, 40, pushed, env.randomize(3, torch.Generator().manual_seed(0))).final.q
    assert (apart[0] - apart[1]).abs().max() > 1e-3
    together = env.engine.rollout(start, 40, pushed).final.q
    agent = Shac(env, replace(SMALL, domain_randomization=True, horizon=8), 0)
    agent.advance()
    assert agent.worlds.failures == 0
    assert torch.equal(together[0], together[1])


def test_worlds_are_not_varied_where_a_game_has_no_others():
    with pytest.raises(InputError, match="domain_randomization: expected false for an environment without `randomize`"):
        Shac(ENVIRONMENTS["Links1"](), replace(SMALL, domain_randomization=True), 0)


def test_worlds_are_pushed_where_a_window_begins():
    agent, pushed = (
        Shac(ENVIRONMENTS["Links2"](), SMALL, 0),
        Shac(ENVIRONMENTS["Links2"](), replace(SMALL, reset_noise=0.3, num_envs=400), 0),
    )
    assert torch.equal(agent._noisy_state().v, agent.worlds.state.v)
    change = pushed._noisy_state().v - pushed.worlds.state.v
    assert torch.equal(pushed._noisy_state().q, pushed.worlds.state.q)
    # Of 800 draws: the mean within five of its deviations, the deviation within five of its own.
    assert abs(float(change.mean())) < 5 * 0.3 / 800**0.5
    assert abs(float(change.std()) - 0.3) < 5 * 0.3 / 1600**0.5
