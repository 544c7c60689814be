"""What the engine's gradients say of actions and of neighbouring steps, against differences; the learned model."""

import pytest
import torch

from physvision import State
from physvision.envs import GAMES, Worlds
from physvision.learning.dynamics import Dynamics, DynamicsSettings
from physvision.learning.enhancement import STEEPEST, changes_contact, jacobians, neighbours, worth_by_engine
from physvision.learning.sac import Sac, SacSettings


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


def test_the_engine_tells_the_worth_of_an_action():
    """D against differences of r + γ Q(s', μ(s')); at the end of the time nothing follows."""
    game, high, rows = recorded("Links2", 3, 5)
    torch.manual_seed(0)
    agent = Sac(7, 2, SacSettings((16, 16), rounded=False, discount=0.9), torch.Generator())
    for part in (agent.actor, agent.critics):
        part.double()
    start, played = State(rows["q"], rows["v"]), torch.tensor([4, 4, 99])
    action = rows["action"].double()

    def total(tried):
        found = game.step(start, tried * high)
        seen = game.observe(found.state, played + 1)
        following = agent.actor.layers(seen)[0][:, :2].tanh()
        value = agent.values(seen, following).min(0).values
        return found.reward + 0.9 * torch.tensor([1.0, 1.0, 0.0]) * value

    worth, unknown = worth_by_engine(agent, game, high, start, played)
    told, steep = worth(action)
    torch.testing.assert_close(told, total(action).detach().float())
    for k in range(2):
        apart = torch.zeros_like(action)
        apart[:, k] = 1e-4
        with torch.no_grad():
            difference = (total(action + apart) - total(action - apart)) / 2e-4
        # What is seen goes to the networks in single precision: 6e-8 of a value of about one, over 2e-4.
        torch.testing.assert_close(steep[:, k].double(), difference, rtol=0, atol=3e-3)
    assert unknown == []


def test_a_world_without_a_derivative_is_named_and_worth_nothing():
    game, high, rows = recorded("Links2", 3, 5)
    torch.manual_seed(0)
    agent = Sac(7, 2, SacSettings((16, 16)), torch.Generator())
    rows["v"][1, 0] = float("nan")
    worth, unknown = worth_by_engine(agent, game, high, State(rows["q"], rows["v"]), rows["played"])
    with pytest.warns(RuntimeWarning, match="1 of 3 worlds failed"):
        _, steep = worth(rows["action"])
    assert unknown == [1]
    assert steep[1].eq(0).all()
    assert steep[[0, 2]].isfinite().all()
    assert steep[[0, 2]].ne(0).all()


def test_neighbours_of_a_step_are_steps_to_first_order():
    game, high, rows = recorded("Links2", 4, 5)
    steep, good = jacobians(game, high, rows)
    assert good.all()
    errors = []
    for within in (0.1, 0.05):
        near = neighbours(rows, steep, 9, within, torch.Generator().manual_seed(1))
        assert (near["action"] - rows["action"].repeat_interleave(9, 0)).abs().max() <= within
        assert near["action"].abs().max() <= 1
        found = game.step(State(near["q"], near["v"]), near["action"].double() * high)
        after = game.observe(found.state, near["played"] + 1)
        errors.append(float((after - near["after"]).norm()))
        assert float((found.reward - near["reward"]).abs().max()) < within**2
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)  # of second order
    far = neighbours(rows, 1e6 * steep, 1, 1e-3, torch.Generator())
    assert float((far["after"] - rows["after"]).abs().max()) <= STEEPEST * 1e-3 * 2**0.5 * 1.001


def test_steps_in_which_a_contact_changes_are_told():
    pytest.importorskip("gymnasium")
    game, _, rows = recorded("Ant", 4, 1)
    start = State(rows["q"], rows["v"])
    # High in the air nothing touches at either end; in a fall of 0.05 s from just above the ground a foot comes to.
    high_up = rows | {"q": start.q + torch.tensor([0.0, 0.0, 1.0] + [0.0] * 12), "action": torch.zeros(4, 8)}
    assert not changes_contact(game, high_up).any()
    still = torch.zeros(4, 8, dtype=torch.float64)
    state, touched = start, game.touching(start)
    for _ in range(12):
        kept = rows | {"q": state.q, "v": state.v, "action": torch.zeros(4, 8)}
        state = game.step(state, still).state
        now = game.touching(state)
        assert torch.equal(changes_contact(game, kept), (now != touched).any(1))
        touched = now
    assert touched.any(1).all()


def test_a_model_learns_a_noisy_linear_game():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    settings = DynamicsSettings(members=3, elites=2, hidden=(32, 32), batch=128, most=2000, patience=200)
    model = Dynamics(2, 1, settings, generator)
    seen, action = torch.randn(1000, 2, generator=generator), torch.randn(1000, 1, generator=generator)
    noise = 0.1 * torch.randn(1000, 2, generator=generator)
    after = seen + torch.cat([action, -seen[:, :1]], 1) + noise
    rows = {"seen": seen, "action": action, "after": after, "reward": action[:, 0]}
    told = model.fit(rows)
    assert told["model_updates"] <= 2008
    place = torch.tensor([[0.5, -0.2]]).repeat(2000, 1)
    later, reward = model.step(place, torch.full((2000, 1), 0.3))
    # A tenth of what actions move, and half as much again of the noise as there was.
    torch.testing.assert_close(later.mean(0), torch.tensor([0.8, -0.7]), rtol=0, atol=0.1)
    assert 0.05 < float(later.std(0).mean()) < 0.15
    assert float((reward - 0.3).abs().mean()) < 0.1


def test_a_model_of_a_few_steps_learns_what_comes_to_them():
    """A hundred steps that go further than the first: all networks are worse at first, and a pass is one update."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(0)
    seen = torch.randn(220, 2, generator=generator) * torch.tensor([1.0] * 120 + [5.0] * 100)[:, None]
    action = 2 * torch.rand(220, 1, generator=generator) - 1
    after = seen + torch.cat([action * seen[:, 1:], 0.2 * seen[:, :1] * seen[:, 1:]], 1)
    rows = {"seen": seen, "action": action, "after": after, "reward": seen[:, 1]}
    model = Dynamics(2, 1, DynamicsSettings(members=3, elites=2, hidden=(32, 32)), generator.manual_seed(1))
    model.fit({name: value[:120] for name, value in rows.items()})
    # Of the variance of what is to be told.
    assert model.fit(rows)["model"] < 0.05


def test_all_rows_of_a_step_are_held_out_together(monkeypatch):
    """A model that has learned from neighbours of a step would be judged by what it knows."""
    model = Dynamics(1, 1, DynamicsSettings(members=2, elites=1, hidden=(4,), most=1), torch.Generator().manual_seed(0))
    origin, used = torch.arange(50).repeat(10), []
    monkeypatch.setattr(model, "_learn", lambda inputs, targets: used.append(inputs))
    rows = {name: origin[:, None].float() for name in ("seen", "action", "after")} | {"reward": origin.float()}
    model.fit(rows, origin)
    number = torch.cat(used, 1)[0, :, 0].round()
    assert torch.bincount(number.long(), minlength=50).unique().tolist() == [0, 10]
    assert len(number) == 45 * 10
