"""What the engine says of a policy's actions, against differences and steps written out."""

import warnings
from functools import partial
from itertools import pairwise

import pytest
import torch
from learning.played import recorded

from physvision import State
from physvision.envs import GAMES
from physvision.learning.enhancement import played_by_engine
from physvision.learning.mbpo import Mbpo, MbpoSettings
from physvision.learning.recorded import RecordedSettings
from physvision.learning.sac import Sac, SacSettings


def doubled(discount=0.9):
    """Networks of two links in double precision, for differences to be exact."""
    torch.manual_seed(0)
    agent = Sac(7, 2, SacSettings((16, 16), rounded=False, discount=discount), torch.Generator().manual_seed(4))
    for part in (agent.actor, agent.critics):
        part.double()
    return agent


def followed(agent, game, high, start, played, action, noises):
    """Reward after reward, written out: the first action is given, those that follow are drawn by these noises."""
    state, earned, weight = start, 0.0, torch.ones(len(action), dtype=torch.float64)
    steps = []
    for k in range(len(noises) + 1):
        found = game.step(state, action * high)
        earned = earned + weight * found.reward
        played = played + 1
        weight = weight * 0.9 * (played < 100)
        steps.append((state, action, found.reward, found.state, played >= 100))
        state = found.state
        output = agent.actor.layers(game.observe(state, played))[0]
        if k < len(noises):
            action = (output[:, :2] + noises[k] * output[:, 2:].clamp(-20, 2).exp()).tanh()
    value = agent.values(game.observe(state, played), output[:, :2].tanh()).min(0).values
    return earned + weight * value, steps


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_engine_tells_the_worth_of_an_action(horizon, monkeypatch):
    """D against differences of Σ γ^k r_k + γ^h Q(s_h, μ(s_h)); at the end of the time nothing follows."""
    game, high, rows = recorded("Links2", 3, 5)
    agent = doubled()
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    monkeypatch.setattr(torch, "randn", partial(torch.randn, dtype=torch.float64))
    start, played = State(rows["q"], rows["v"]), torch.tensor([4, 99, 4])
    found = played_by_engine(agent, game, high, start, played, horizon)
    assert found.unknown == []
    # One branch ends after its first step; of the others all steps are there, and the engine made no more.
    assert found.steps == len(found.rows["seen"]) == 1 + 2 * horizon
    first = torch.arange(3)
    noises = [torch.zeros(3, 2, dtype=torch.float64) for _ in range(horizon - 1)]
    for k, noise in enumerate(noises):
        noise[[0, 2]] = found.tried.noise[3 + 2 * k : 5 + 2 * k]
    action = found.rows["action"][:3]
    told, steps = followed(agent, game, high, start, played, action, noises)
    torch.testing.assert_close(found.tried.worth[first], told)
    for j in range(2):
        apart = torch.zeros_like(action)
        apart[:, j] = 1e-5
        with torch.no_grad():
            more, less = (
                followed(agent, game, high, start, played, action + way * apart, noises)[0] for way in (1, -1)
            )
        torch.testing.assert_close(found.tried.steep[first, j], (more - less) / 2e-5, rtol=0, atol=1e-7)
    # The rows are steps of the game, one after the other.
    for k, (state, done, reward, after, end) in enumerate(steps):
        alive = slice(None) if k == 0 else [0, 2]
        there = slice(0, 3) if k == 0 else slice(1 + 2 * k, 3 + 2 * k)
        torch.testing.assert_close(found.rows["seen"][there], game.observe(state, played + k)[alive])
        torch.testing.assert_close(found.rows["action"][there], done[alive])
        torch.testing.assert_close(found.rows["reward"][there], reward[alive])
        torch.testing.assert_close(found.rows["after"][there], game.observe(after, played + k + 1)[alive])
        assert found.rows["end"][there].bool().tolist() == end[alive].tolist()


def test_a_later_action_is_worth_what_comes_after_it():
    """D and worth in the second step of a branch are those of a branch that begins there."""
    game, high, rows = recorded("Links2", 3, 5)
    agent = doubled()
    start, played = State(rows["q"], rows["v"]), torch.tensor([4, 5, 6])
    long = played_by_engine(agent, game, high, start, played, 2)
    with torch.no_grad():
        second = game.step(start, long.rows["action"][:3].double() * high).state
    agent.generator.manual_seed(4)
    torch.randn(3, 2, generator=agent.generator)  # of the first step
    alone = played_by_engine(agent, game, high, second, played + 1, 1)
    torch.testing.assert_close(long.tried.noise[3:], alone.tried.noise)
    # Actions are kept in single precision.
    torch.testing.assert_close(long.tried.steep[3:], alone.tried.steep, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(long.tried.worth[3:], alone.tried.worth, rtol=1e-4, atol=1e-5)


def test_a_long_derivative_is_shortened():
    game, high, rows = recorded("Links2", 4, 5)
    start = State(rows["q"], rows["v"])
    whole, short = (
        played_by_engine(doubled(), game, high, start, rows["played"], 5, steepest).tried.steep
        for steepest in (None, 0.05)
    )
    norm = whole.norm(dim=1, keepdim=True)
    assert norm.min() < 0.05 < norm.max()
    torch.testing.assert_close(short, torch.where(norm > 0.05, 0.05 * whole / norm, whole))


@pytest.mark.parametrize("speed", [float("nan"), 1e7])
def test_a_branch_with_a_failure_is_named_and_left_out(speed):
    """Also one that comes to numbers beyond 10⁶, from which networks would take harm."""
    game, high, rows = recorded("Links2", 3, 5)
    torch.manual_seed(0)
    agent = Sac(7, 2, SacSettings((16, 16)), torch.Generator().manual_seed(4))
    rows["v"][1, 0] = speed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = played_by_engine(agent, game, high, State(rows["q"], rows["v"]), rows["played"], 4)
    assert found.unknown == [1]
    assert found.steps == 1 + 2 * 4
    assert len(found.rows["seen"]) == len(found.tried.steep) == 2 * 4
    for each in (*found.rows.values(), *found.tried):
        assert each.isfinite().all()
    assert found.tried.steep.ne(0).all()


def test_critics_learn_of_the_engine_s_steps_alone():
    """With no share left for imagined steps no model is fitted; all rows but the true ones are the engine's."""
    play = RecordedSettings(SacSettings((16, 16), batch=40), first=20)
    settings = MbpoSettings(play, by_engine=True, horizon=5, starts=4, every=3, stepped=0.75, real=0.25)
    learner = Mbpo(GAMES["Links2"](), settings, 0)
    learner.model.fit = learner.model.step = None  # neither may be called
    actors = []
    while learner.steps < 26:
        learner.advance()
        actors.append(learner.actor.layers.weights[0].detach().clone())
    # From the 20th step on each step has an update, of which every third, the first to begin with, is the actor's too.
    assert [not torch.equal(*pair) for pair in pairwise(actors[18:])] == [True, False, False, True, False, False, True]
    assert learner.told()["engine_steps"] == learner.stepped.size == 3 * 4 * 5
    batch = learner.batch()
    known = torch.cat([learner.record.all()["after"], learner.stepped.all()["after"]])
    found = (batch["after"][:, None] == known).all(2).float().argmax(1)
    assert (found >= learner.record.size).sum() == 30
    assert torch.equal(known[found], batch["after"])
