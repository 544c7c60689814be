"""Windows: gradients against differences, cuts, worlds that fail, and gradients that are no numbers."""

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
    made = Shac(ENVIRONMENTS[name](), settings, 0)
    made.actor.double()
    made.critic.double()
    made.dtype = torch.float64
    return made


def window(made, limit=None, monitor=None):
    """Always with the same noise."""
    task = EnvironmentTask(made.env, made.settings.horizon, torch.Generator().manual_seed(1), limit, made.dtype)
    times = made.worlds.elapsed_steps[:, None] + torch.arange(task.episode_steps)
    goals, through = times[..., None].float(), made.settings.gradient_decay
    rollout = rollout_policy(task, made.actor, made.worlds.state, goals, gradient_decay=through, monitor=monitor)
    return rollout, made._window(rollout, times)


def by_recursion(made, cut=False):
    """The gradient of a window from its periods one by one, the last one first, each played anew from its start.

    What goes back from the end of a period is that of the critic, and of what comes after by the share that goes on.
    """
    env, settings, count = made.env, made.settings, made.settings.horizon
    path, generator = window(made)[0].trajectory, torch.Generator().manual_seed(1)
    noises = [torch.randn(3, len(env.action_limit), generator=generator) for _ in range(count)]
    through = 0.0 if cut else settings.gradient_decay
    back, found = (torch.zeros(3, 2), torch.zeros(3, 2)), 0.0
    for k in reversed(range(count)):
        start = State(*(each[:, k].detach().requires_grad_() for each in (path.q, path.v)))
        output = made.actor.layers(env.observe(start, torch.full((3,), k)))[0]
        control = (output + noises[k] * made.actor.log_std.exp()).tanh() * torch.tensor(env.action_limit)
        end = env.engine.rollout(start, 1, control[:, None]).final
        value = made.critic(env.observe(end, torch.full((3,), k + 1)))[0, :, 0]
        told = 1.0 if k == count - 1 else 1 - through
        earned = env.reward(start, end, control) + settings.discount * told * value
        # Where all is cut every period begins a stretch, which is not discounted.
        goal = (1.0 if cut else settings.discount**k) * earned.sum()
        goal = goal + through * ((end.q * back[0]).sum() + (end.v * back[1]).sum())
        first, second, *rest = torch.autograd.grad(goal, [start.q, start.v, *weights(made)])
        back, found = (first, second), found + torch.cat([each.flatten() for each in rest])
    return found


def gradient(made, **options):
    return torch.cat([each.flatten() for each in torch.autograd.grad(total(made, **options), weights(made))])


def total(made, **options):
    return made._returns(window(made, **options)[1]).sum()


def weights(made):
    return list(made.actor.parameters())


def test_the_gradient_of_a_window_is_that_of_differences():
    made = learner()
    vector = torch.nn.utils.parameters_to_vector(weights(made)).detach()
    direction = torch.randn(len(vector), generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def along(step):
        torch.nn.utils.vector_to_parameters(vector + step * direction, weights(made))
        with torch.no_grad():
            return float(total(made))

    found = float(gradient(made) @ direction)
    coarse, fine = ((along(h) - along(-h)) / (2 * h) for h in (2e-6, 1e-6))
    # The second derivative of the layers jumps, so that differences err by their step; and by rounding, 1e-15 / 1e-6.
    assert found == pytest.approx((4 * fine - coarse) / 3, rel=1e-7)


def test_a_window_pays_what_was_earned_and_what_is_expected():
    made = learner()
    made.worlds.elapsed_steps = torch.tensor([0, 96, 0])
    _, judged = window(made)
    value = made.critic(judged.next_obs.flatten(0, 1))[0, :, 0].unflatten(0, (3, 6))
    earned = made._returns(judged)
    discount = 0.99 ** torch.arange(6, dtype=torch.float64)
    torch.testing.assert_close(earned[0], (discount * judged.reward[0]).sum() + 0.99**6 * value[0, -1])
    # The second world's time ends after four periods: nothing is paid or expected after.
    torch.testing.assert_close(earned[1], (discount[:4] * judged.reward[1, :4]).sum())


def test_a_cut_ends_a_stretch_and_the_next_one_begins():
    made = learner()
    rollout, free = window(made)
    speeds = torch.diff(rollout.trajectory.v, dim=1).norm(dim=2) * 60
    limit = float(speeds.quantile(0.8))
    _, judged = window(made, limit=limit)
    assert torch.equal(judged.gradient_cut, speeds > limit)
    assert judged.gradient_cut.any()
    torch.testing.assert_close(judged.reward, free.reward)
    value = made.critic(judged.next_obs.flatten(0, 1))[0, :, 0].unflatten(0, (3, 6))
    expected, weight = 0.0, 1.0
    for k in range(6):
        expected, weight = expected + weight * judged.reward[0, k], weight * 0.99
        if judged.gradient_cut[0, k] or k == 5:
            expected, weight = expected + weight * value[0, k], 1.0
    torch.testing.assert_close(made._returns(judged)[0], expected)
    # Nothing goes back through a cut: with all periods cut, an action counts for its own period alone.
    rollout, judged = window(made, limit=0.0)
    (back,) = torch.autograd.grad(judged.reward[:, -1].sum(), rollout.trajectory.q, allow_unused=True)
    assert back is None or back[:, :-2].abs().max() == 0


@pytest.mark.parametrize("through", [1.0, 0.7, 0.0])
def test_what_does_not_go_through_a_period_is_told_by_the_critic(through):
    """The reward is a difference of what the end and the start are worth, so that both must fade alike."""
    made = learner(replace(SMALL, gradient_decay=through))
    torch.testing.assert_close(gradient(made), by_recursion(made))


def test_periods_that_are_cut_count_for_what_they_gain():
    made = learner()
    torch.testing.assert_close(gradient(made, limit=0.0), by_recursion(made, cut=True))


@pytest.mark.parametrize("speed", [1e7, 1e200])
def test_a_world_that_fails_is_left_out_and_counted_and_the_others_learn_as_without_it(speed):
    """One that diverges but is still a number, and one that no longer is."""
    made = learner()
    made.worlds.state.v[1, 0] = speed
    with nullcontext() if speed < 1e100 else pytest.warns(RuntimeWarning, match="1 of 3 worlds failed"):
        rollout, judged = window(made)
    assert rollout.failed[1].all()
    assert judged.valid.tolist() == [True, False, True]
    found = torch.autograd.grad(made._returns(judged)[judged.valid].sum(), weights(made))
    assert all(each.isfinite().all() for each in found)
    other = learner()
    _, judged = window(other)
    expected = torch.autograd.grad(other._returns(judged)[[0, 2]].sum(), weights(other))
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)
    made._advance_worlds(rollout, window(made)[1])
    assert made.worlds.failures == 1
    assert made.worlds.state.v.abs().max() < 1e3


def test_worlds_that_diverge_in_single_precision_do_not_reach_the_weights():
    made = Shac(ENVIRONMENTS["Links5"](), replace(SMALL, horizon=3), 0)
    made.worlds.state.v[0, 0] = 1e39
    made.advance()
    assert made.worlds.failures == 1
    assert all(each.isfinite().all() for each in made.actor.parameters())


def test_a_gradient_that_is_no_number_is_named_by_world_and_period_and_left_out():
    made, watch = learner(), GradientMonitor()
    rollout, judged = window(made, monitor=watch)
    gradients = torch.tensor([0.0, float("nan"), 0.0], dtype=torch.float64)
    # The state after period 2 is that at time 3.
    poisoned = made._returns(judged).sum() + (rollout.trajectory.q[:, 3, 0] * gradients).sum()
    found = torch.autograd.grad(poisoned, weights(made))
    assert watch.nonfinite == [(1, 2)]
    assert all(each.isfinite().all() for each in found)
    assert any(each.ne(0).any() for each in found)


def test_an_actor_whose_gradient_is_no_number_stops_and_says_where():
    made = Shac(ENVIRONMENTS["Links1"](), SMALL, 0)
    for each in made.actor.parameters():
        each.register_hook(lambda gradient: gradient * float("nan"))
    with pytest.raises(TrainingError, match=r"actor gradient is nan after 0 environment steps"):
        made.advance()


def test_one_link_is_raised_by_gradients_through_the_whole_rollout():
    made = Shac(ENVIRONMENTS["Links1"](), ShacSettings(num_envs=8, horizon=100, discount=1.0), 0)
    best = -1.0
    for _ in range(30):
        made.advance()
        best = max(best, float(evaluate(made.env, made.actor, 1, 0)))
        if best > 0.9 * 0.5:
            break
    assert best > 0.9 * 0.5


def test_the_horizon_follows_how_stiff_motion_is():
    soft, stiff = (Shac(ENVIRONMENTS["Links1"](), replace(SMALL, max_acceleration=limit), 0) for limit in (1e6, 1e-3))
    for made in (soft, stiff):
        made.horizon = 10.0
        made.advance()
    assert soft.horizon == pytest.approx(11.0, abs=0.01)
    assert stiff.horizon == 8.0


def test_a_signal_is_limited_in_units_of_what_a_world_earns():
    """Far above what there is nothing changes; far below, a world's actions still count by what they earn at once."""
    moved = []
    for signal in (None, 1e6, 1e-9):
        made = Shac(ENVIRONMENTS["Links2"](), replace(SMALL, max_state_grad_norm=signal), 0)
        before = torch.nn.utils.parameters_to_vector(weights(made)).detach().clone()
        made.advance()
        moved.append(torch.nn.utils.parameters_to_vector(weights(made)).detach() - before)
    assert torch.equal(moved[0], moved[1])
    assert not torch.equal(moved[0], moved[2])
    assert bool(moved[2].isfinite().all())
    assert float(moved[2].norm()) > 0


def test_worlds_with_properties_of_their_own_move_apart_from_one_start():
    env = ENVIRONMENTS["Ant"]()
    varied = env.randomize(40, torch.Generator().manual_seed(0))
    known = dict(env.engine.properties.items())
    inward = (varied["joint_limits"] - known["joint_limits"])[:, 1:] * torch.tensor([1.0, -1.0], dtype=torch.float64)
    assert inward.max() < 0
    assert inward.min() > -0.1
    assert ((varied["friction"] > 0.7) & (varied["friction"] < 1.3)).all()
    one = env.reset(1, torch.Generator().manual_seed(0))
    start = State(one.q.expand(3, -1), one.v.expand(3, -1))
    pushed = 0.5 * torch.ones(3, 40, 8, dtype=torch.float64)
    apart = env.engine.rollout(start, 40, pushed, env.randomize(3, torch.Generator().manual_seed(0))).final.q
    assert (apart[0] - apart[1]).abs().max() > 1e-3
    together = env.engine.rollout(start, 40, pushed).final.q
    made = Shac(env, replace(SMALL, domain_randomization=True, horizon=8), 0)
    made.advance()
    assert made.worlds.failures == 0
    assert torch.equal(together[0], together[1])


def test_worlds_are_not_varied_where_a_game_has_no_others():
    with pytest.raises(InputError, match="domain_randomization: expected false for an environment without it"):
        Shac(ENVIRONMENTS["Links1"](), replace(SMALL, domain_randomization=True), 0)


def test_worlds_are_pushed_where_a_window_begins():
    made, pushed = (
        Shac(ENVIRONMENTS["Links2"](), SMALL, 0),
        Shac(ENVIRONMENTS["Links2"](), replace(SMALL, reset_noise=0.3, num_envs=400), 0),
    )
    assert torch.equal(made._noisy_state().v, made.worlds.state.v)
    change = pushed._noisy_state().v - pushed.worlds.state.v
    assert torch.equal(pushed._noisy_state().q, pushed.worlds.state.q)
    # Of 800 draws: the mean within five of its deviations, the deviation within five of its own.
    assert abs(float(change.mean())) < 5 * 0.3 / 800**0.5
    assert abs(float(change.std()) - 0.3) < 5 * 0.3 / 1600**0.5
