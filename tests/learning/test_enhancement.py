"""What the engine's gradients say of actions and of neighbouring steps, against differences; the learned model."""

import pytest
import torch
from torch.nn.functional import normalize

from physvision import State
from physvision.envs import GAMES, Worlds
from physvision.learning.dynamics import Dynamics, DynamicsSettings
from physvision.learning.enhancement import (
    Neighbourhood,
    NeighbourSettings,
    changes_contact,
    jacobians,
    neighbours,
    worth_by_engine,
)
from physvision.learning.recorded import Recorded, RecordedSettings
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


def true_step(game, rows):
    """What the engine makes of rows: what is seen after, and the reward."""
    found = game.step(State(rows["q"], rows["v"]), rows["action"].double() * torch.tensor(game.high))
    return torch.cat([game.observe(found.state, rows["played"] + 1), found.reward[:, None]], 1)


@pytest.mark.parametrize("varied", ["action", "velocity", "both"])
@pytest.mark.parametrize("name", ["Links2", "Ant"])
def test_neighbours_of_a_step_are_steps_to_first_order(name, varied):
    """The error falls with the square of the difference, so that each derivative is right."""
    if name == "Ant":
        pytest.importorskip("gymnasium")
    game, high, rows = recorded(name, 6, 2)
    rows = {key: value.double() if value.is_floating_point() else value for key, value in rows.items()}
    rows["end"] = torch.zeros(6)
    end, steep, good = jacobians(game, rows)
    assert good.all()
    drawn = 2 * torch.rand(6, game.engine.nv + len(high), generator=torch.Generator().manual_seed(1)) - 1
    faster, other = drawn.double().split([game.engine.nv, len(high)], 1)
    faster, other = (0 if varied == "action" else 1) * faster, (0 if varied == "velocity" else 1) * other
    # Of the ant only as far as no contact comes or goes, at which the first order ends.
    sizes = (0.1, 0.05) if name == "Links2" else (4e-3, 2e-3)
    errors = []
    for size in sizes:
        near = rows | neighbours(game, rows, end, steep, size * faster, size * other)
        torch.testing.assert_close(near["seen"], game.observe(State(near["q"], near["v"]), rows["played"]))
        assert torch.equal(near["q"], rows["q"])
        said = torch.cat([near["after"], near["reward"][:, None]], 1)
        errors.append((true_step(game, near) - said).norm(dim=1))
        assert float(errors[-1].max()) < 0.1 * float((said - true_step(game, rows)).norm(dim=1).max())
    if (name, varied) == ("Links2", "action"):
        assert float(errors[0].max()) < 1e-12  # where a single step ends is linear in the torques
    else:
        assert float((errors[0] / errors[1]).median()) == pytest.approx(4, rel=0.1)


def neighbourhood(settings, steps=48):
    """A record of random play, and what its steps have neighbours by."""
    game = GAMES["Links2"]()
    learner = Recorded(game, RecordedSettings(worlds=3, first=steps, capacity=steps), seed=0)
    near = Neighbourhood(game, settings, steps)
    while learner.steps < steps:
        near.add(int((~learner.play().failed).sum()))
    return learner.record, near


def test_nine_of_ten_rows_are_neighbours_drawn_anew():
    record, near = neighbourhood(NeighbourSettings(9, action=0.2, velocity=0.1))
    assert near.look_around(record) == (0, 0)
    assert near.look_around(record) == (0, 0)
    generator, places = torch.Generator().manual_seed(0), torch.arange(record.size).repeat(40)
    rows = record.take(places)
    first, second = (near.vary(rows, places, generator) for _ in range(2))
    moved = (first["v"] != rows["v"]).any(1)
    # Of a binomial draw, within five deviations.
    assert abs(int(moved.sum()) - 0.9 * len(rows["v"])) < 5 * (len(rows["v"]) * 0.09) ** 0.5
    for name, value in rows.items():
        torch.testing.assert_close(first[name][~moved], value[~moved])
    assert not torch.equal(first["after"], second["after"])
    assert float((first["action"] - rows["action"]).abs().max()) <= 0.2 + 1e-6
    assert float(((first["v"] - rows["v"]) / record.all()["v"].std(0)).abs().max()) == pytest.approx(0.1, rel=0.1)
    wrong = (true_step(near.game, first)[:, :-1] - first["after"]).norm(dim=1)
    assert float(wrong.median()) < 0.1 * float((first["after"] - rows["after"]).norm(dim=1).median())


def test_the_derivatives_of_a_number_are_shortened(monkeypatch):
    record, whole = neighbourhood(NeighbourSettings(9))
    monkeypatch.setattr("physvision.learning.enhancement.STEEPEST", 1e9)
    whole.look_around(record)
    less = neighbourhood(NeighbourSettings(9))[1]
    monkeypatch.setattr("physvision.learning.enhancement.STEEPEST", 1.5)
    less.look_around(record)
    long, short = (each.slopes.all()["steep"].unflatten(1, (4, 4)) for each in (whole, less))
    # Of two positions and two velocities, by two velocities and two actions.
    causes = torch.cat([whole.deviation, torch.ones(2)])
    units = torch.cat([whole.deviation / 60, whole.deviation])[:, None]
    norm = (long * causes / units).norm(dim=2)
    assert 1.0 < float(norm.median()) < 1.5 < float(norm.max())
    torch.testing.assert_close((short * causes / units).norm(dim=2), norm.clamp_max(1.5), rtol=1e-5, atol=0)
    # Shortened, not turned.
    torch.testing.assert_close(*(normalize(each, dim=2) for each in (long, short)))


def test_steps_without_derivatives_stay(monkeypatch):
    record, near = neighbourhood(NeighbourSettings(9, drop=True))
    places = torch.arange(48)

    def some(game, rows):
        end, steep, good = jacobians(game, rows)
        return end, torch.where(places[:, None, None] < 20, float("nan"), steep), good & (places >= 20)

    monkeypatch.setattr("physvision.learning.enhancement.jacobians", some)
    changed = (places >= 20) & (places < 30)
    monkeypatch.setattr("physvision.learning.enhancement.changes_contact", lambda game, rows: changed)
    assert near.look_around(record) == (20, 10)
    rows = record.take(places)
    found = near.vary(rows, places, torch.Generator().manual_seed(0))
    for name in ("v", "action", "after", "reward"):
        torch.testing.assert_close(found[name][:30], rows[name][:30])
    assert (found["v"][30:] != rows["v"][30:]).any(1).sum() > 10


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


def test_neighbours_of_rows_that_are_held_out_are_not_learned(monkeypatch):
    """A model that has learned from neighbours of a step would be judged by what it knows."""
    settings = DynamicsSettings(members=2, elites=1, hidden=(4,), most=12, patience=12, batch=10)
    model = Dynamics(1, 1, settings, torch.Generator().manual_seed(0))
    number, used, passes = torch.arange(50.0), [], []

    def near():
        passes.append(len(passes) + 1)
        return dict.fromkeys(("seen", "action", "after"), number[:, None] + 100 * passes[-1]) | {"reward": number}

    monkeypatch.setattr(model, "_learn", lambda inputs, targets: used.append(inputs[..., 0].round()))
    model.fit(dict.fromkeys(("seen", "action", "after"), number[:, None]) | {"reward": number}, near)
    assert passes == [1, 2, 3]
    fresh = torch.tensor([each for each in range(50) if each % 10], dtype=torch.float32)
    for each in passes:
        learned = torch.cat(used[5 * (each - 1) : 5 * each], 1) - 100 * each
        for member in learned:
            assert torch.equal(member.sort().values, fresh)
