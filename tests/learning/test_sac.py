"""One update against the losses written out, and a game with a known best action."""

# pyright: reportCallIssue=false

import math
from copy import deepcopy

import torch

from physvision.learning.actor import sample_tanh_normal
from physvision.learning.sac import ActionEvaluation, Sac, SacSettings


def rows(count, generator):
    draw = {"obs": (count, 3), "action": (count, 2), "reward": (count,), "next_obs": (count, 3)}
    result = {name: torch.randn(shape, generator=generator) for name, shape in draw.items()}
    return result | {"terminated": (torch.rand(count, generator=generator) < 0.3).float()}


def test_an_update_follows_the_gradients_of_the_losses_written_out():
    torch.manual_seed(0)
    settings = SacSettings((16, 16), bf16=False, discount=0.9, init_entropy_coef=0.3, learning_rate=1e-3)
    agent = Sac(3, 2, settings, torch.Generator().manual_seed(1))
    batch = rows(8, torch.Generator().manual_seed(2))
    # The same noise as the update draws: of what comes after, then of the actor.
    later, now = torch.randn(16, 2, generator=torch.Generator().manual_seed(1)).split(8)

    def values(critics, obs, action):
        return critics(torch.cat([obs, action], 1))[:, :, 0]

    def act(obs, noise):
        return sample_tanh_normal(agent.actor.network(obs)[0], noise)

    with torch.no_grad():
        action, density = act(batch["next_obs"], later)
        following = values(agent.target_critics, batch["next_obs"], action).min(0).values - 0.3 * density
        goal = batch["reward"] + 0.9 * (1 - batch["terminated"]) * following
    critics = sum(0.5 * (value - goal).pow(2).mean() for value in values(agent.critics, batch["obs"], batch["action"]))
    action, density = act(batch["obs"], now)
    policy = (0.3 * density - values(agent.critics, batch["obs"], action).min(0).values).mean()
    expected = torch.autograd.grad(critics, list(agent.critics.parameters()))
    expected += torch.autograd.grad(policy, list(agent.actor.parameters()))
    target_tau = [parameter.clone() for parameter in agent.target_critics.parameters()]
    agent.update(batch)
    results = [parameter.grad for parameter in (*agent.critics.parameters(), *agent.actor.parameters())]
    for value, reference in zip(results, expected, strict=True):
        torch.testing.assert_close(value, reference, rtol=1e-4, atol=1e-6)
    # log α moves against its gradient by the rate: the entropy is below or above what is wanted.
    step = float(agent.log_alpha.detach()) - math.log(0.3)
    target = -float(density.detach().mean()) < agent.target_entropy
    assert math.isclose(step, 1e-3 if target else -1e-3, rel_tol=1e-3)
    for before, now_slow, fast in zip(
        target_tau, agent.target_critics.parameters(), agent.critics.parameters(), strict=True
    ):
        torch.testing.assert_close(now_slow, before + 5e-3 * (fast.detach() - before))


def test_an_actor_learns_of_actions_that_were_tried_and_of_nothing_where_it_is_not_due():
    """The loss α log π − D · a at the actions of the given noise; the critics learn either way."""
    torch.manual_seed(0)
    agent = Sac(3, 2, SacSettings((16, 16), bf16=False, init_entropy_coef=0.3), torch.Generator().manual_seed(1))
    batch, generator = rows(8, torch.Generator().manual_seed(2)), torch.Generator().manual_seed(3)
    obs, noise, gradient = (torch.randn(5, width, generator=generator) for width in (3, 2, 2))
    action, density = sample_tanh_normal(agent.actor.network(obs)[0], noise)
    loss = (0.3 * density - (gradient * action).sum(1)).mean()
    expected = torch.autograd.grad(loss, list(agent.actor.parameters()))
    agent.update(batch, ActionEvaluation(obs, noise, torch.zeros(5), gradient))
    for value, reference in zip(agent.actor.parameters(), expected, strict=True):
        torch.testing.assert_close(value.grad, reference, rtol=1e-4, atol=1e-6)
    before = deepcopy(agent.state_dict())
    agent.update(batch, update_actor=False)
    after = agent.state_dict()
    assert all(torch.equal(before["actor"][name], value) for name, value in after["actor"].items())
    assert torch.equal(before["log_alpha"], after["log_alpha"])
    assert not torch.equal(before["critics"]["weights.0"], after["critics"]["weights.0"])


def test_the_best_action_of_a_single_step_is_found():
    """Reward −(a − ⅓ s)², over after one step."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    settings = SacSettings((32, 32), batch_size=64, learning_rate=3e-3, init_entropy_coef=0.1, target_entropy=-3.0)
    agent = Sac(1, 1, settings, generator)
    for _ in range(600):
        obs, action = (2 * torch.rand(64, 1, generator=generator) - 1 for _ in range(2))
        reward = -(action - obs / 3).square()[:, 0]
        agent.update({"obs": obs, "action": action, "reward": reward, "next_obs": obs, "terminated": torch.ones(64)})
    obs = torch.linspace(-1, 1, 21)[:, None]
    # Half of what is left of the deviation that the entropy allows, e^-3 / √(2πe) = 0.012, and of rounding to 8 bits.
    assert float((agent.actor.deterministic_action(obs) - obs / 3).abs().mean()) < 0.05


def test_what_was_kept_goes_on_bit_by_bit():
    def agent(seed):
        torch.manual_seed(seed)
        return Sac(3, 2, SacSettings((16, 16)), torch.Generator().manual_seed(seed))

    obs, second = agent(1), agent(2)
    for _ in range(3):
        obs.update(rows(8, torch.Generator().manual_seed(5)))
    second.load_state_dict(deepcopy(obs.state_dict()))
    second.generator.set_state(obs.generator.get_state())
    for entry in (obs, second):
        entry.update(rows(8, torch.Generator().manual_seed(6)))
    for value, reference in zip(obs.actor.parameters(), second.actor.parameters(), strict=True):
        assert torch.equal(value, reference)
