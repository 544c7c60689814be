"""What the engine's gradients say of steps beside recorded ones, against its own steps."""

import pytest
import torch
from learning.played import recorded
from torch.nn.functional import normalize

from physvision import State
from physvision.envs import GAMES
from physvision.learning.neighbourhood import (
    Neighbourhood,
    NeighbourSettings,
    changes_contact,
    jacobians,
    neighbours,
)
from physvision.learning.recorded import Recorded, RecordedSettings


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
    assert near.look_around(record)[:2] == (0, 0)
    assert near.look_around(record)[:2] == (0, 0)
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
    monkeypatch.setattr("physvision.learning.neighbourhood.STEEPEST", 1e9)
    whole.look_around(record)
    less = neighbourhood(NeighbourSettings(9))[1]
    monkeypatch.setattr("physvision.learning.neighbourhood.STEEPEST", 1.5)
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

    monkeypatch.setattr("physvision.learning.neighbourhood.jacobians", some)
    changed = (places >= 20) & (places < 30)
    monkeypatch.setattr("physvision.learning.neighbourhood.changes_contact", lambda game, rows: changed)
    assert near.look_around(record)[:2] == (20, 10)
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
